"""Telling others that a route is gone (RFC 3561, section 6.11), no more than ten times a second."""

from sojourn.adhoc.aodv.tables import ERROR_BYTES, ERROR_ITEM_BYTES, ERRORS_MAX_PER_S, Aodv
from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import ERROR, SEND, Effects, emit_new


@inner
def may_tell(aodv: Aodv, node: int, now_s: float) -> bool:
    """Whether one more error may be told this second."""
    station = aodv.stations[node]
    if now_s - station.errors_s >= 1.0:
        station.errors_s, station.errors = now_s, 0
    station.errors += 1
    return bool(station.errors <= ERRORS_MAX_PER_S)


@inner
def tell_no_route(aodv: Aodv, node: int, goal: int, now_s: float, out: Effects) -> None:
    """A packet came for which there is no route: whoever sent it should know (case ii)."""
    if not may_tell(aodv, node, now_s):
        return
    row = out.rows[emit_new(out, node, ERROR, SEND, now_s)]
    row.count = 1
    row.items[0, 0] = goal
    row.items[0, 1] = aodv.pairs[node, goal].seq
    row.bytes = ERROR_BYTES + ERROR_ITEM_BYTES
    aodv.stations[node].broadcast_s = now_s
