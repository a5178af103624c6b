"""A node's table of neighbours: who was heard, where, and until when that counts.

Every packet carries its sender's place, so every packet heard counts as a beacon. An entry lives for
`EXPIRY_BEACONS` beacon intervals; a link that the MAC reports broken ends it at once. A table has room for
`NEIGHBOURS_MAX`; when it is full, the entry that was heard longest ago makes room.
"""

import numpy as np

from sojourn.adhoc.kernels import hot, inner
from sojourn.adhoc.packets import Records

EXPIRY_BEACONS = 4.5
"""Beacon intervals after which a silent neighbour is forgotten: three lost, each as late as can be."""

NEIGHBOURS_MAX = 128

GPSR = np.dtype(
    [
        ("beacon_s", "f8"),
        ("capture_m", "f8"),  # whoever is this near a place takes what is addressed to it; 0: nobody
        ("nearest_m", "f8"),  # whoever is this near and knows nobody nearer takes it, too; 0: nobody
        ("steady", "i8"),  # beacons go out whatever else was sent
        ("said_s", "f8"),  # when it last sent anything that counts as a beacon
        ("home_walk", "i8"),  # whether a packet that walked round a void belongs to the node it returns to
        ("relative", "i8"),  # planar graph: relative neighbourhood instead of Gabriel
        ("room", "i8"),
        ("degree", "i8"),  # how many neighbours stand in the table
        ("near", "i8", (NEIGHBOURS_MAX,)),
        ("x", "f8", (NEIGHBOURS_MAX,)),
        ("y", "f8", (NEIGHBOURS_MAX,)),
        ("expires_s", "f8", (NEIGHBOURS_MAX,)),
        ("last_at", "i8", (NEIGHBOURS_MAX,)),  # by the rest of a node's number: where such a one stood last
    ],
    align=True,
)
"""One node's rules and table."""

Gpsr = Records
"""The GPSR state of all nodes of a run; a node's core reads and writes its own row only."""


def make_gpsr(
    nodes: int,
    *,
    beacon_s: float = 1.0,
    capture_m: float = 0.0,
    nearest_m: float = 0.0,
    home_walk: bool = False,
    relative: bool = False,
    steady: bool = False,
    room: int = NEIGHBOURS_MAX,
) -> Gpsr:
    """Empty tables."""
    gpsr = np.zeros(nodes, GPSR)
    gpsr["beacon_s"], gpsr["capture_m"], gpsr["said_s"] = beacon_s, capture_m, -1e9
    gpsr["nearest_m"], gpsr["steady"] = nearest_m, steady
    gpsr["home_walk"], gpsr["relative"], gpsr["room"] = home_walk, relative, min(room, NEIGHBOURS_MAX)
    return gpsr


@hot
def hear(gpsr: Gpsr, node: int, other: int, x: float, y: float, now_s: float) -> None:
    """Note that a neighbour was heard at a place."""
    me = gpsr[node]
    at = me.last_at[other % NEIGHBOURS_MAX]
    if at >= me.degree or me.near[at] != other:
        at = entry_of(gpsr, node, other)
    if at < 0:
        at = me.degree
        if me.degree < me.room:
            me.degree += 1
        else:
            at = 0
            for entry in range(1, me.degree):
                if me.expires_s[entry] < me.expires_s[at]:
                    at = entry
    me.near[at] = other
    me.last_at[other % NEIGHBOURS_MAX] = at
    me.x[at], me.y[at] = x, y
    me.expires_s[at] = now_s + EXPIRY_BEACONS * me.beacon_s


@inner
def forget_silent(gpsr: Gpsr, node: int, now_s: float) -> None:
    """Drop the entries that have expired."""
    me = gpsr[node]
    entry = 0
    while entry < me.degree:
        if me.expires_s[entry] <= now_s:
            _drop(gpsr, node, entry)
        else:
            entry += 1


@inner
def forget(gpsr: Gpsr, node: int, other: int) -> None:
    """Drop a neighbour that did not answer."""
    entry = entry_of(gpsr, node, other)
    if entry >= 0:
        _drop(gpsr, node, entry)


@inner
def _drop(gpsr: Gpsr, node: int, entry: int) -> None:
    me = gpsr[node]
    last = me.degree - 1
    me.near[entry] = me.near[last]
    me.x[entry], me.y[entry] = me.x[last], me.y[last]
    me.expires_s[entry] = me.expires_s[last]
    me.degree = last


@inner
def entry_of(gpsr: Gpsr, node: int, other: int) -> int:
    """Where a neighbour stands in the table; -1 if nowhere."""
    me = gpsr[node]
    for entry in range(me.degree):
        if me.near[entry] == other:
            return entry
    return -1
