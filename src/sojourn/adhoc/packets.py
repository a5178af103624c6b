"""What mobile ad-hoc nodes send to each other, as one record, and the effects their cores answer with.

An effect is a packet record with its field `effect` set: what is to be sent, handed up, routed or timed.
Cores write effects into a buffer that their driver hands in and empties (`Effects`); a full buffer drops what
is added, which the driver counts. One record holds the fields of all layers, since a packet passes all of
them.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.kernels import inner

EVERYBODY = -1
"""As `to`: a broadcast. As `goal`: no node is meant, but whoever is at the place."""

# Kinds of packets: GPSR's beacon, AODV's four messages, and everything that is routed.
BEACON, HELLO, REQUEST, REPLY, ERROR, DATA = 1, 2, 3, 4, 5, 6
KINDS = ("", "beacon", "hello", "route request", "route reply", "route error", "data")

# What a data packet is to the topics above.
SUBSCRIBE, REPLICA, ADVERTISE, LIST, EVENT, DELIVERY, RECEIPT, COPY, OFFER = 1, 2, 3, 4, 5, 6, 7, 8, 9
WHATS = ("", "subscribe", "replica", "advertise", "list", "event", "delivery", "receipt", "copy", "offer")

# Effects. ROUTE and ARRIVED stay inside a node; the driver carries out the others.
SEND, ROUTE, ARRIVED, DELIVER, LOST, TIMER = 1, 2, 3, 4, 5, 6

# Why a packet was lost, in `reason`.
NO_ROUTE, TTL_OUT, WALKED_ROUND, BUFFER_FULL, QUEUE_FULL, LINK_BROKE, TOO_OLD, HAD_IT = 1, 2, 3, 4, 5, 6, 7, 8
REASONS = (
    "",
    "no route",
    "hops used up",
    "walked round the void",
    "buffer full",
    "queue full",
    "link broke",
    "waited too long",
    "given before",
)

ITEMS_MAX = 16
"""Entries of a list or of a route error in one packet."""

GREEDY, PERIMETER = 0, 1

PACKET = np.dtype(
    [
        ("effect", "i8"),
        ("kind", "i8"),
        ("what", "i8"),
        ("reason", "i8"),
        ("sender", "i8"),
        ("to", "i8"),
        ("origin", "i8"),
        ("goal", "i8"),
        ("ttl", "i8"),
        ("hops", "i8"),
        ("bytes", "i8"),
        ("mode", "i8"),
        ("edge_from", "i8"),  # e0, the first edge walked on this face
        ("edge_to", "i8"),
        ("request", "i8"),
        ("origin_seq", "i8"),
        ("goal_seq", "i8"),
        ("topic", "i8"),
        ("subscription", "i8"),
        ("event", "i8"),
        ("clearance", "i8"),
        ("count", "i8"),
        ("token", "i8"),
        ("tries", "i8"),
        ("delay_s", "f8"),  # before it is sent, or until a timer fires
        ("made_s", "f8"),
        ("lifetime_s", "f8"),
        ("x", "f8"),  # where its sender is
        ("y", "f8"),
        ("arrived_x", "f8"),  # where the hop before was
        ("arrived_y", "f8"),
        ("goal_x", "f8"),
        ("goal_y", "f8"),
        ("entered_x", "f8"),  # Lp, where it entered perimeter mode
        ("entered_y", "f8"),
        ("face_x", "f8"),  # Lf, where it entered this face
        ("face_y", "f8"),
        ("source_x", "f8"),  # where the node that made it was
        ("source_y", "f8"),
        ("value", "f8"),  # of an event; of a subscription, the least value wanted
        ("items", "f8", (ITEMS_MAX, 7)),
    ],
    align=True,
)

Record: TypeAlias = np.record
"""One record of an array of them, whose fields kernels read and set by name."""
Records: TypeAlias = NDArray[np.void]
Packet: TypeAlias = Record
Packets: TypeAlias = Records


class Effects(NamedTuple):
    """A buffer of effects."""

    rows: Packets
    filled: NDArray[np.int64]
    """How many rows are set; and how many were refused since the buffer was full."""


def make_effects(rows: int = 512) -> Effects:
    """An empty buffer."""
    return Effects(np.zeros(rows, PACKET), np.zeros(2, np.int64))


@inner
def emit(out: Effects, packet: Packet, effect: int) -> int:
    """Add a copy of a packet as an effect and return its row; the last row is spare, for a full buffer."""
    at = int(out.filled[0])
    if at >= len(out.rows) - 1:
        out.filled[1] += 1
        at = len(out.rows) - 1
    else:
        out.filled[0] = at + 1
    out.rows[at] = packet
    out.rows[at].effect = effect
    return at


@inner
def emit_new(out: Effects, node: int, kind: int, effect: int, now_s: float) -> int:
    """Add an effect that is a new packet of a node, and return its row."""
    at = int(out.filled[0])
    if at >= len(out.rows) - 1:
        out.filled[1] += 1
        at = len(out.rows) - 1
    else:
        out.filled[0] = at + 1
    row = out.rows[at]
    row.effect = effect
    row.kind = kind
    row.what = row.reason = row.hops = row.mode = row.count = row.token = row.tries = 0
    row.sender = row.origin = node
    row.to = row.goal = EVERYBODY
    row.edge_from = row.edge_to = -1
    row.ttl = 1
    row.bytes = 0
    row.request = row.origin_seq = row.goal_seq = 0
    row.topic = row.subscription = row.event = -1
    row.clearance = 0
    row.delay_s = row.lifetime_s = row.value = 0.0
    row.made_s = now_s
    return at


@inner
def lose(out: Effects, packet: Packet, reason: int) -> None:
    """Add the loss of a packet as an effect."""
    at = emit(out, packet, LOST)
    out.rows[at].reason = reason
