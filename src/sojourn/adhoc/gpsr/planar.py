"""The planar graph that packets walk round a void on, and the right-hand rule.

Both graphs are made from a node's own neighbours only. An edge uv is kept in the Gabriel graph unless a
neighbour w lies strictly inside the circle over uv, and in the relative neighbourhood graph unless some w is
nearer to both ends than they are to each other. In a unit-disk graph such a w hears both ends, so both decide
alike, and taking the edge away disconnects nobody.
"""

import math

from sojourn.adhoc.gpsr.neighbours import Gpsr
from sojourn.adhoc.kernels import inner

FULL_TURN = 2 * math.pi
STRAIGHT_BACK = 1e-12
"""Angles below this count as a full turn: the edge of arrival is the last choice, not the first."""


@inner
def kept(gpsr: Gpsr, node: int, x: float, y: float, entry: int) -> bool:
    """Whether the edge from a node at (x, y) to one of its neighbours is in the planar graph."""
    me = gpsr[node]
    vx, vy = me.x[entry], me.y[entry]
    length = (vx - x) ** 2 + (vy - y) ** 2
    for other in range(me.degree):
        if other == entry:
            continue
        wx, wy = me.x[other], me.y[other]
        to_here = (wx - x) ** 2 + (wy - y) ** 2
        to_there = (wx - vx) ** 2 + (wy - vy) ** 2
        if me.relative != 0:
            if max(to_here, to_there) < length:
                return False
        elif to_here + to_there < length:
            return False
    return True


@inner
def next_edge(gpsr: Gpsr, node: int, x: float, y: float, towards_x: float, towards_y: float) -> int:
    """The first planar edge counter-clockwise from a direction, as an entry of the table; -1 if none."""
    me = gpsr[node]
    start = math.atan2(towards_y - y, towards_x - x)
    best, best_turn = -1, 2 * FULL_TURN
    for entry in range(me.degree):
        turn = math.atan2(me.y[entry] - y, me.x[entry] - x) - start
        turn %= FULL_TURN
        if turn < STRAIGHT_BACK:
            turn += FULL_TURN
        if turn < best_turn and kept(gpsr, node, x, y, entry):
            best, best_turn = entry, turn
    return best


@inner
def crossing(
    ax: float, ay: float, bx: float, by: float, cx: float, cy: float, dx: float, dy: float
) -> tuple[bool, float, float]:
    """Whether the lines from a to b and from c to d cross between their ends, and where."""
    ux, uy, vx, vy = bx - ax, by - ay, dx - cx, dy - cy
    area = ux * vy - uy * vx
    if area == 0.0:
        return False, 0.0, 0.0
    along = ((cx - ax) * vy - (cy - ay) * vx) / area
    across = ((cx - ax) * uy - (cy - ay) * ux) / area
    if along < 0.0 or along > 1.0 or across < 0.0 or across > 1.0:
        return False, 0.0, 0.0
    return True, ax + along * ux, ay + along * uy
