"""What nodes keep for their topics: other nodes' subscriptions as soft state, and events they have seen.

A subscription is kept until it has not been heard of for `soft_state_s`; no state ever moves from one home to
the next (section 3.4). Rings of fixed size hold the latest events: what falls out is forgotten.
"""

from typing import NamedTuple

import numpy as np

from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import Record, Records

RECENT_MAX = 64
"""Events that a node remembers having handled or been given."""
KEPT_MAX = 32
"""Events that a node keeps: near a home for repair, as a publisher until it has a list."""

HANDLED, GIVEN = 1, 2
"""Roles of a node in a remembered event: it matched it as a broker, or its application was given it."""

# Bytes above the routing header: 28 of IP and UDP, and what the message says.
SUBSCRIBE_BYTES = 28 + 36
ADVERTISE_BYTES = 28 + 20
LIST_BYTES, LIST_ITEM_BYTES = 28 + 4, 28
EVENT_HEADER_BYTES = 28
RECEIPT_BYTES, RECEIPT_ITEM_BYTES = 28 + 8, 4

STATION = np.dtype(
    [
        # Rules, alike on all nodes.
        ("geographic", "i8"),  # homes are places, over GPSR; else nodes, over AODV
        ("rendezvous", "i8"),  # publishers match; else brokers do
        ("proximity", "i8"),  # a home's subscriptions are repeated to all neighbours (section 3.5)
        ("repair", "i8"),
        ("ttl", "i8"),
        ("message_bytes", "i8"),  # of every message, whatever it says; 0: as much as it takes
        ("waits", "i8"),  # a rendezvous' publisher asks for the list when it publishes, and waits for it
        ("list_s", "f8"),  # how long a list counts with who was sent it; 0: as long as with who sent it
        ("header_bytes", "i8"),  # of the routing protocol, on every packet
        ("soft_state_s", "f8"),
        ("keep_s", "f8"),
        ("grace_s", "f8"),
        ("reached", "i8"),  # whether the home confirmed what this node published last
        # A ring of events seen.
        ("seen_at", "i8"),
        ("seen_event", "i8", (RECENT_MAX,)),
        ("seen_role", "i8", (RECENT_MAX,)),
        ("seen_topic", "i8", (RECENT_MAX,)),
        ("seen_s", "f8", (RECENT_MAX,)),
    ],
    align=True,
)
"""One node's rules and memory."""

TOPIC = np.dtype([("home", "i8"), ("first", "i8"), ("end", "i8"), ("x", "f8"), ("y", "f8")], align=True)
"""A topic's home, and its subscriptions: those numbered from `first` to before `end`."""

SUBSCRIPTION = np.dtype(
    [("node", "i8"), ("topic", "i8"), ("clearance", "i8"), ("silent", "i8"), ("least", "f8")], align=True
)
"""What one node wants: events of a topic whose value is at least that, and what it may see; and whether it
falls silent during the run."""

STORED = np.dtype(
    [("node", "i8"), ("clearance", "i8"), ("expires_s", "f8"), ("x", "f8"), ("y", "f8"), ("least", "f8")],
    align=True,
)
"""A subscription as another node knows it."""

KEPT = np.dtype(
    [
        ("event", "i8"),
        ("topic", "i8"),
        ("clearance", "i8"),
        ("bytes", "i8"),
        ("next", "i8"),  # of the ring's first entry: which entry is replaced next
        ("value", "f8"),
        ("made_s", "f8"),
    ],
    align=True,
)


class Topics(NamedTuple):
    """The publish/subscribe state of all nodes of a run; a node's core reads and writes its own row only."""

    stations: Records
    topics: Records
    """What the hash says, alike for everybody."""
    subscriptions: Records
    """Each subscriber's own."""
    stored: Records
    """By node and subscription: what it knows of it."""
    kept: Records
    """By node: a ring of whole events, for repair or until a list has come."""


def make_topics(nodes: int, topics: Records, subscriptions: Records, **rules: float) -> Topics:
    """Nothing stored, nothing seen."""
    stations = np.zeros(nodes, STATION)
    for name, value in rules.items():
        stations[name] = value
    stations["seen_event"], stations["reached"] = -1, 1
    stored = np.zeros((nodes, len(subscriptions)), STORED)
    stored["expires_s"] = -1e9
    kept = np.zeros((nodes, KEPT_MAX), KEPT)
    kept["event"] = -1
    return Topics(stations, topics, subscriptions, stored, kept)


@inner
def has_seen(topics: Topics, node: int, event: int, role: int) -> bool:
    """Whether an event was seen before in a role."""
    me = topics.stations[node]
    for at in range(RECENT_MAX):  # noqa: SIM110  kernels have no generators
        if me.seen_event[at] == event and me.seen_role[at] == role:
            return True
    return False


@inner
def remember(topics: Topics, node: int, event: int, role: int, topic: int, now_s: float) -> None:
    """Remember an event; the oldest is forgotten."""
    me = topics.stations[node]
    at = me.seen_at
    me.seen_at = (at + 1) % RECENT_MAX
    me.seen_event[at], me.seen_role[at], me.seen_topic[at], me.seen_s[at] = event, role, topic, now_s


@inner
def kept_at(topics: Topics, node: int, event: int) -> int:
    """Where a node keeps an event; -1 if it does not."""
    for at in range(KEPT_MAX):
        if topics.kept[node, at].event == event:
            return at
    return -1


@inner
def keep(topics: Topics, node: int, event: Record, size: int) -> None:
    """Keep a whole event; the one kept longest makes room."""
    if kept_at(topics, node, event.event) >= 0:
        return
    at = topics.kept[node, 0].next
    topics.kept[node, 0].next = (at + 1) % KEPT_MAX
    kept: Record = topics.kept[node, at]
    kept.event, kept.topic = event.event, event.topic
    kept.clearance, kept.bytes, kept.value = event.clearance, size, event.value
    kept.made_s = event.made_s
