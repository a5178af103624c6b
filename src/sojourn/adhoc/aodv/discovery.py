"""Asking for a route (RFC 3561, sections 6.3 and 6.4): an expanding ring, then the whole net, then no more.

The first ring is one hop, or the last known distance and two more; rings grow by two up to seven; then the
whole net is asked, RREQ_RETRIES times in all (section 6.3: discovery attempted so often at the maximum TTL
has failed), each time with twice the wait. A node that mends a route on the way asks in one ring only.
Packets wait in a buffer meanwhile, at most some ten seconds. A node asks at most ten times a second: what is
more waits for the next second.
"""

from sojourn.adhoc.aodv.errors import tell_no_route
from sojourn.adhoc.aodv.tables import (
    BUFFER_MAX_S,
    LOCAL_ADD_TTL,
    REQUEST_BYTES,
    REQUESTS_MAX_PER_S,
    TIMEOUT_BUFFER,
    TTL_INCREMENT,
    TTL_THRESHOLD,
    Aodv,
)
from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import (
    BUFFER_FULL,
    NO_ROUTE,
    REQUEST,
    ROUTE,
    SEND,
    TIMER,
    TOO_OLD,
    Effects,
    Packet,
    Record,
    emit,
    emit_new,
    lose,
)

WAIT_MIN_S = 0.001
"""No timer is shorter: rounding must not let one fire before the second it waits for is over."""


@inner
def wait_for_route(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    """Keep a packet and see to it that its route is sought."""
    _keep(aodv, node, packet, now_s, out)
    search = aodv.pairs[node, packet.goal]
    if search.searching != 0:
        return
    route, me = aodv.pairs[node, packet.goal], aodv.stations[node]
    ttl = me.ttl_start
    if route.hops > 0:
        ttl = min(route.hops + TTL_INCREMENT, me.net_diameter)
    search.searching = 1
    search.ttl = me.net_diameter if ttl > TTL_THRESHOLD else ttl
    search.retries = 0
    _ask(aodv, node, packet.goal, now_s, out)


@inner
def mend(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    """Keep another's packet whose link broke and ask for a new route, once, a little beyond the old one."""
    _keep(aodv, node, packet, now_s, out)
    search = aodv.pairs[node, packet.goal]
    if search.searching != 0:
        return
    search.searching = search.mending = 1
    search.ttl = search.hops + LOCAL_ADD_TTL
    search.retries = 0
    _ask(aodv, node, packet.goal, now_s, out)


@inner
def _keep(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    """Put a packet into the buffer; the oldest makes room when it is full."""
    free, oldest = -1, 0
    for at in range(aodv.waiting.shape[1]):
        kept = aodv.waiting[node, at]
        if kept.kind != 0 and kept.delay_s + BUFFER_MAX_S <= now_s:
            lose(out, kept, TOO_OLD)
            kept.kind = 0
        if kept.kind == 0:
            free = at
        elif kept.delay_s < aodv.waiting[node, oldest].delay_s:
            oldest = at
    if free < 0:
        free = oldest
        lose(out, aodv.waiting[node, free], BUFFER_FULL)
    aodv.waiting[node, free] = packet
    aodv.waiting[node, free].delay_s = now_s  # while it waits: since when


@inner
def _ask(aodv: Aodv, node: int, goal: int, now_s: float, out: Effects) -> None:
    """Broadcast a request and set the timer for its answer; or set the timer for when asking is allowed."""
    station: Record = aodv.stations[node]
    search = aodv.pairs[node, goal]
    search.token += 1
    if now_s - station.requests_s >= 1.0:
        station.requests_s, station.requests = now_s, 0
    if station.requests >= REQUESTS_MAX_PER_S:
        _set_timer(node, goal, search.token, station.requests_s + 1.0 - now_s, 1, now_s, out)
        return
    station.requests += 1
    station.seq += 1
    station.request += 1
    station.broadcast_s = now_s
    aodv.pairs[node, node].seen = station.request
    route = aodv.pairs[node, goal]
    row = out.rows[emit_new(out, node, REQUEST, SEND, now_s)]
    row.goal = goal
    row.ttl = search.ttl
    row.bytes = REQUEST_BYTES
    row.request = station.request
    row.origin_seq = station.seq
    row.goal_seq = route.seq if route.seq_known != 0 else -1
    wait_s = 2 * station.node_traversal_s * (search.ttl + TIMEOUT_BUFFER)
    if search.ttl >= station.net_diameter:
        wait_s = 2 * station.node_traversal_s * station.net_diameter * 2**search.retries
    _set_timer(node, goal, search.token, wait_s, 0, now_s, out)


@inner
def _set_timer(
    node: int, goal: int, token: int, wait_s: float, put_off: int, now_s: float, out: Effects
) -> None:
    row = out.rows[emit_new(out, node, REQUEST, TIMER, now_s)]
    row.goal = goal
    row.token = token
    row.tries = put_off
    row.delay_s = max(wait_s, WAIT_MIN_S)


@inner
def search_again(
    aodv: Aodv, node: int, goal: int, token: int, put_off: int, now_s: float, out: Effects
) -> None:
    """A timer ran out: ask in a wider ring, or once more, or give up and lose what waits.

    `put_off` says that nothing was asked yet, since the limit a second was reached.
    """
    search = aodv.pairs[node, goal]
    if search.searching == 0 or search.token != token:
        return
    if put_off == 0:
        me = aodv.stations[node]
        if search.mending != 0:
            search.mending = 0
            _lose_waiting(aodv, node, goal, out, 1)
            tell_no_route(aodv, node, goal, now_s, out)
            if not _waits(aodv, node, goal):
                search.searching = 0
                return
        if search.ttl < me.net_diameter:
            wider = search.ttl + TTL_INCREMENT
            search.ttl = wider if wider <= TTL_THRESHOLD else me.net_diameter
        elif search.retries + 1 < me.searches_max:
            search.retries += 1
        else:
            search.searching = 0
            _lose_waiting(aodv, node, goal, out, 0)
            return
    _ask(aodv, node, goal, now_s, out)


@inner
def _lose_waiting(aodv: Aodv, node: int, goal: int, out: Effects, others_only: int) -> None:
    """Lose what waits for a route; or only what this node had been sent to pass on."""
    for at in range(aodv.waiting.shape[1]):
        kept = aodv.waiting[node, at]
        if kept.kind != 0 and kept.goal == goal and (kept.origin != node or others_only == 0):
            lose(out, kept, NO_ROUTE)
            kept.kind = 0


@inner
def _waits(aodv: Aodv, node: int, goal: int) -> bool:
    for at in range(aodv.waiting.shape[1]):
        if aodv.waiting[node, at].kind != 0 and aodv.waiting[node, at].goal == goal:
            return True
    return False


@inner
def found(aodv: Aodv, node: int, goal: int, now_s: float, out: Effects) -> None:
    """There is a route: end the search and send what waits for it, in the order it came."""
    aodv.pairs[node, goal].searching = aodv.pairs[node, goal].mending = 0
    while True:
        first = -1
        for at in range(aodv.waiting.shape[1]):
            kept = aodv.waiting[node, at]
            if kept.kind != 0 and kept.goal == goal:
                if kept.delay_s + BUFFER_MAX_S <= now_s:
                    lose(out, kept, TOO_OLD)
                    kept.kind = 0
                elif first < 0 or kept.delay_s < aodv.waiting[node, first].delay_s:
                    first = at
        if first < 0:
            return
        row = out.rows[emit(out, aodv.waiting[node, first], ROUTE)]
        row.delay_s = 0.0
        aodv.waiting[node, first].kind = 0
