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
QUARTERS = 4.0
CLEARLY = 1e-9
"""Turns in quarters that differ by more are in the order of their angles, whatever was rounded."""
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
    """The first planar edge counter-clockwise from a direction, as an entry of the table; -1 if none.

    Angles decide. They are dear, so an edge that clearly comes after the best one so far is told by its turn
    in quarters alone; what is near zero, near a full turn or near the best one is looked at by its angle.
    """
    me = gpsr[node]
    ahead_x, ahead_y = towards_x - x, towards_y - y
    start = math.atan2(ahead_y, ahead_x)
    best, best_turn, best_quarters = -1, 2 * FULL_TURN, QUARTERS
    for entry in range(me.degree):
        side_x, side_y = me.x[entry] - x, me.y[entry] - y
        quarters = _quarters(ahead_x * side_x + ahead_y * side_y, ahead_x * side_y - ahead_y * side_x)
        if best_quarters + CLEARLY < quarters < QUARTERS - CLEARLY:
            continue
        turn = math.atan2(side_y, side_x) - start
        if turn < 0.0:
            turn += FULL_TURN
        elif turn >= FULL_TURN:
            turn -= FULL_TURN
        if turn < STRAIGHT_BACK:
            turn += FULL_TURN
        if turn < best_turn and kept(gpsr, node, x, y, entry):
            best, best_turn = entry, turn
            # A turn of next to nothing counts as a full one: then nothing comes clearly after it.
            best_quarters = quarters if CLEARLY < quarters < QUARTERS - CLEARLY else QUARTERS
    return best


@inner
def _quarters(along: float, across: float) -> float:
    """The turn from one direction to another in quarters, exact at each quarter and growing in between.

    `along` is their scalar product, `across` their cross product; without a direction it is not a number.
    """
    if across >= 0.0:
        return across / (across + along) if along >= 0.0 else 1.0 - along / (across - along)
    return 2.0 + across / (across + along) if along < 0.0 else 3.0 + along / (along - across)


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
