"""The rules for a route (RFC 3561, sections 6.1, 6.2, 6.11): made, taken over, used, given up.

What keeps AODV free of loops: along valid next hops towards a destination the sequence number known never
falls, and where it is equal the hops left fall. So a route is taken over only if its number is newer, or
equal and shorter, or the old one is invalid; and a route that is given up has its number raised by one, so
that nothing as old as it will be believed again. A number in a route error raises ours and never lowers it.
"""

from sojourn.adhoc.aodv.tables import PRECURSORS_MAX, Aodv
from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import Record


@inner
def usable(aodv: Aodv, node: int, goal: int, now_s: float) -> bool:
    """Whether there is a valid route; one whose time has run out is given up here."""
    route = aodv.pairs[node, goal]
    if route.valid == 0:
        return False
    if route.expires_s <= now_s:
        give_up(route)
        return False
    return True


@inner
def give_up(route: Record) -> None:
    """Make a route invalid; its number goes up."""
    if route.valid != 0:
        route.valid = 0
        if route.seq_known != 0:
            route.seq += 1


@inner
def prolong(aodv: Aodv, node: int, goal: int, until_s: float) -> None:
    """A route that is used lives on."""
    route = aodv.pairs[node, goal]
    if route.valid != 0 and route.expires_s < until_s:
        route.expires_s = until_s


@inner
def meet(aodv: Aodv, node: int, other: int, now_s: float) -> None:
    """Whoever is heard is a neighbour: a route of one hop, whose sequence number is not known by that."""
    if not usable(aodv, node, other, now_s):
        route = aodv.pairs[node, other]
        # A longer route's number stays: only the neighbour itself can be the next hop to itself.
        route.next, route.hops, route.valid = other, 1, 1
        route.precursors = 0
        route.expires_s = now_s + aodv.stations[node].active_route_s
    elif aodv.pairs[node, other].next == other:
        prolong(aodv, node, other, now_s + aodv.stations[node].active_route_s)


@inner
def take_over(
    aodv: Aodv, node: int, goal: int, by: int, hops: int, seq: int, until_s: float, now_s: float
) -> bool:
    """Take a route over that is newer or shorter than ours; whether that was so."""
    if goal == node:
        return False
    route = aodv.pairs[node, goal]
    valid = usable(aodv, node, goal, now_s)
    known = route.seq_known != 0
    newer = not known or seq > route.seq
    equal = known and seq == route.seq
    if not (newer or (equal and (not valid or hops < route.hops))):
        if valid and equal and route.next == by and hops == route.hops:
            prolong(aodv, node, goal, until_s)
        return False
    if not valid or route.next != by:
        route.precursors = 0
    route.next, route.hops, route.seq, route.seq_known, route.valid = by, hops, seq, 1, 1
    if not valid or route.expires_s < until_s:
        route.expires_s = until_s
    return True


@inner
def add_precursor(route: Record, other: int) -> None:
    """Note that a neighbour forwards over this route."""
    for at in range(min(route.precursors, PRECURSORS_MAX)):
        if route.by[at] == other:
            return
    if route.precursors < PRECURSORS_MAX:
        route.by[route.precursors] = other
    route.precursors += 1
