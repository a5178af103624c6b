"""One hop of a packet under GPSR: what a node does with a packet that it made, was sent, or could not send.

1. A packet has arrived if it is addressed to this node, or to a place of which this node is within
   `capture_m` (the topics above decide what that means; section 3.5 of paper 004), or within `nearest_m`
   without knowing anybody nearer.
2. Greedy: the neighbour nearest to the goal's place, if it is nearer than this node. A goal that is itself a
   neighbour is the next hop, whatever its old place says.
3. Where nobody is nearer, the packet enters perimeter mode at this place (Lp) and walks the face before it by
   the right-hand rule. It leaves the mode as soon as it is nearer to the goal than Lp. Where the next edge
   crosses the line from Lp to the goal nearer to it than where the face was entered (Lf), it changes to the
   face beyond, and remembers the first edge there (e0).
4. A packet about to walk e0 again has been round: it is lost. Or, with `home_walk`, if a place was its goal,
   it belongs here: this node is the nearest on the face around that place.
5. A link that the MAC reports broken is forgotten and the packet tried again.

Not here: when beacons are sent (the node's timers), queues, time on the air.
"""

from sojourn.adhoc.gpsr.neighbours import Gpsr, entry_of, forget, forget_silent
from sojourn.adhoc.gpsr.planar import crossing, next_edge
from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import (
    ARRIVED,
    EVERYBODY,
    GREEDY,
    NO_ROUTE,
    PERIMETER,
    SEND,
    TTL_OUT,
    WALKED_ROUND,
    Effects,
    Packet,
    emit,
    lose,
)

ROUNDING = 1e-9
"""Two crossings at distances this close are one: the same edge met from its other end."""

FACES_MAX = 64
"""Changes of face at one node; more would mean that the places known are in conflict."""


@inner
def forward(gpsr: Gpsr, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects) -> None:
    """Hand a packet up, on, or report its loss; (x, y) is where the node is now."""
    if _has_arrived(gpsr, node, x, y, packet):
        emit(out, packet, ARRIVED)
        return
    if packet.ttl <= 0:
        lose(out, packet, TTL_OUT)
        return
    forget_silent(gpsr, node, now_s)
    at = emit(out, packet, SEND)
    row = out.rows[at]
    row.sender = node
    row.ttl -= 1
    row.hops += 1
    row.x, row.y = x, y
    left = (x - row.goal_x) ** 2 + (y - row.goal_y) ** 2
    if row.mode == PERIMETER:
        entered = (row.entered_x - row.goal_x) ** 2 + (row.entered_y - row.goal_y) ** 2
        if left < entered:
            row.mode = GREEDY
    if row.mode == GREEDY:
        entry = _nearest(gpsr, node, row, left)
        if entry < 0 and row.goal == EVERYBODY and left <= gpsr[node].nearest_m ** 2:
            entry = _HOME
        elif entry < 0:
            entry = _enter_perimeter(gpsr, node, x, y, row)
    else:
        entry = _walk(gpsr, node, x, y, row)
    if entry >= 0:
        row.to = gpsr[node].near[entry]
        gpsr[node].said_s = now_s
        return
    out.filled[0] = at  # nothing is sent after all
    walked_home = entry == _ROUND and gpsr[node].home_walk != 0 and packet.goal == EVERYBODY
    if entry == _HOME or walked_home:
        emit(out, packet, ARRIVED)
    else:
        lose(out, packet, WALKED_ROUND if entry == _ROUND else NO_ROUTE)


_NOBODY, _ROUND, _HOME = -1, -2, -3


@inner
def _has_arrived(gpsr: Gpsr, node: int, x: float, y: float, packet: Packet) -> bool:
    if packet.goal != EVERYBODY:
        return bool(packet.goal == node)
    reach = gpsr[node].capture_m
    return bool((x - packet.goal_x) ** 2 + (y - packet.goal_y) ** 2 <= reach * reach)


@inner
def _nearest(gpsr: Gpsr, node: int, packet: Packet, left: float) -> int:
    """The entry of the goal itself, or else of the neighbour nearest to it, if nearer than this node."""
    if packet.goal != EVERYBODY:
        known = entry_of(gpsr, node, packet.goal)
        if known >= 0:
            return known
    best, nearest = _NOBODY, left
    me = gpsr[node]
    for entry in range(me.degree):
        distance = (me.x[entry] - packet.goal_x) ** 2 + (me.y[entry] - packet.goal_y) ** 2
        if distance < nearest:
            best, nearest = entry, distance
    return best


@inner
def _enter_perimeter(gpsr: Gpsr, node: int, x: float, y: float, packet: Packet) -> int:
    entry = next_edge(gpsr, node, x, y, packet.goal_x, packet.goal_y)
    if entry < 0:
        # Nobody is in reach: whoever walks round alone is home at once.
        return _ROUND if gpsr[node].degree == 0 else _NOBODY
    packet.mode = PERIMETER
    packet.entered_x = packet.face_x = x
    packet.entered_y = packet.face_y = y
    packet.edge_from = node
    packet.edge_to = gpsr[node].near[entry]
    return entry


@inner
def _walk(gpsr: Gpsr, node: int, x: float, y: float, packet: Packet) -> int:
    """The next edge of the face, or of the face beyond the line from Lp to the goal."""
    if packet.goal != EVERYBODY:
        known = entry_of(gpsr, node, packet.goal)
        if known >= 0:
            return known
    entry = next_edge(gpsr, node, x, y, packet.arrived_x, packet.arrived_y)
    changed = False
    for _ in range(FACES_MAX):
        if entry < 0:
            return _NOBODY
        there_x, there_y = gpsr[node].x[entry], gpsr[node].y[entry]
        crosses, at_x, at_y = crossing(
            x, y, there_x, there_y, packet.entered_x, packet.entered_y, packet.goal_x, packet.goal_y
        )
        if not crosses:
            break
        nearer = (at_x - packet.goal_x) ** 2 + (at_y - packet.goal_y) ** 2
        face = (packet.face_x - packet.goal_x) ** 2 + (packet.face_y - packet.goal_y) ** 2
        if nearer >= face * (1 - ROUNDING):
            break
        packet.face_x, packet.face_y = at_x, at_y
        changed = True
        entry = next_edge(gpsr, node, x, y, there_x, there_y)
    following = gpsr[node].near[entry]
    if changed or packet.edge_from < 0:
        packet.edge_from, packet.edge_to = node, following
    elif packet.edge_from == node and packet.edge_to == following:
        return _ROUND
    return entry


@inner
def link_broke(gpsr: Gpsr, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects) -> None:
    """A packet could not be handed to its next hop: forget that neighbour and try another."""
    forget(gpsr, node, packet.to)
    if packet.edge_from == node and packet.edge_to == packet.to:
        packet.edge_from = packet.edge_to = -1  # the walk begins with whichever edge is taken instead
    packet.ttl += 1
    packet.hops -= 1
    forward(gpsr, node, x, y, packet, now_s, out)
