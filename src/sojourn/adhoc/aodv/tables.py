"""A node's AODV state: its routes, its searches, the packets that wait for one; and the RFC's constants.

Tables are dense, by node and destination: sixty nodes, or a thousand, are few enough for that. Routes have
room for `PRECURSORS_MAX` precursors by name; of more, only that they are many is known, and an error is then
broadcast, as the RFC has it for more than one.
"""

from typing import NamedTuple

import numpy as np

from sojourn.adhoc.packets import PACKET, Records

# RFC 3561, section 10.
ACTIVE_ROUTE_TIMEOUT_S = 3.0
ALLOWED_HELLO_LOSS = 2
HELLO_INTERVAL_S = 1.0
LOCAL_ADD_TTL = 2
NET_DIAMETER = 35
NODE_TRAVERSAL_TIME_S = 0.04
MY_ROUTE_TIMEOUT_S = 2 * ACTIVE_ROUTE_TIMEOUT_S
DELETE_PERIOD_S = 5 * ACTIVE_ROUTE_TIMEOUT_S
RREQ_RETRIES = 2
REQUESTS_MAX_PER_S = 10
ERRORS_MAX_PER_S = 10
TTL_START = 1
TTL_INCREMENT = 2
TTL_THRESHOLD = 7
TIMEOUT_BUFFER = 2

BUFFER_MAX = 64
"""Packets that a node keeps while routes are sought (ns-3's number)."""
BUFFER_MAX_S = 30.0
"""How long each of them is kept (ns-3's number)."""
PRECURSORS_MAX = 4
FLOOD_JITTER_S = 0.01
"""A request is passed on after a random part of this, so that neighbours do not answer in step (ns-2's)."""

IP_UDP_BYTES = 28
REQUEST_BYTES = IP_UDP_BYTES + 24
REPLY_BYTES = IP_UDP_BYTES + 20
ERROR_BYTES = IP_UDP_BYTES + 4
ERROR_ITEM_BYTES = 8

PAIR = np.dtype(
    [
        # The route.
        ("next", "i8"),
        ("hops", "i8"),
        ("seq", "i8"),
        ("seq_known", "i8"),
        ("valid", "i8"),
        ("precursors", "i8"),  # how many; the named ones stand in `by`
        ("expires_s", "f8"),
        ("by", "i8", (PRECURSORS_MAX,)),
        # The search for one.
        ("searching", "i8"),
        ("mending", "i8"),  # whether it is for packets of others whose link broke here
        ("ttl", "i8"),
        ("retries", "i8"),
        ("token", "i8"),  # of the timer that is running; others are void
        # What was heard of the other node.
        ("seen", "i8"),  # its latest request
        ("heard_s", "f8"),  # when a hello, or after one anything, was last heard
    ],
    align=True,
)
"""What a node knows of another: a route to it, the search for one, and what was heard of it."""


class Constants(NamedTuple):
    """What implementations of AODV differ in; the defaults are the RFC's."""

    active_route_s: float = ACTIVE_ROUTE_TIMEOUT_S
    my_route_s: float = MY_ROUTE_TIMEOUT_S
    net_diameter: int = NET_DIAMETER
    node_traversal_s: float = NODE_TRAVERSAL_TIME_S
    ttl_start: int = TTL_START
    searches_max: int = RREQ_RETRIES
    """How often the whole net is asked for a route."""
    repair_ttl: int = 0
    """A node on the way mends a route whose goal was so many hops away at most; 0: none does."""


RFC_3561 = Constants()
NS_2 = Constants(
    active_route_s=10.0,
    my_route_s=10.0,
    net_diameter=30,
    node_traversal_s=0.03,
    ttl_start=5,
    searches_max=3,
    repair_ttl=9,
)
"""ns-2's agent: routes last longer, a search begins wider, and routes are mended on the way, where the goal
is within 0.3 of the diameter (RFC 3561, section 6.12)."""

STATION = np.dtype(
    [
        # Rules, alike on all nodes.
        ("active_route_s", "f8"),
        ("my_route_s", "f8"),
        ("net_diameter", "i8"),
        ("node_traversal_s", "f8"),
        ("ttl_start", "i8"),
        ("searches_max", "i8"),
        ("repair_ttl", "i8"),
        # State.
        ("seq", "i8"),
        ("request", "i8"),
        ("hello", "i8"),  # whether it says hello
        ("requests", "i8"),  # in the second that began at requests_s
        ("errors", "i8"),
        ("requests_s", "f8"),
        ("errors_s", "f8"),
        ("broadcast_s", "f8"),  # when it last broadcast anything
    ],
    align=True,
)


class Aodv(NamedTuple):
    """The AODV state of all nodes of a run; a node's core reads and writes its own row only."""

    stations: Records
    pairs: Records
    """By node and other node."""
    waiting: Records
    """By node: packets that wait for a route; free where the kind is 0."""


def make_aodv(
    nodes: int, *, hello: bool = True, buffer_max: int = BUFFER_MAX, constants: Constants = RFC_3561
) -> Aodv:
    """Empty tables."""
    stations = np.zeros(nodes, STATION)
    for name, value in constants._asdict().items():
        stations[name] = value
    stations["hello"] = hello
    stations["requests_s"] = stations["errors_s"] = stations["broadcast_s"] = -1e9
    pairs = np.zeros((nodes, nodes), PAIR)
    pairs["next"], pairs["heard_s"] = -1, -1e9
    return Aodv(stations, pairs, np.zeros((nodes, buffer_max), PACKET))
