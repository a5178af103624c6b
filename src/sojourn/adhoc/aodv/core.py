"""What a node does under AODV with each packet, message, broken link and timer (RFC 3561, section 6)."""

from sojourn.adhoc.aodv.discovery import found, mend, wait_for_route
from sojourn.adhoc.aodv.errors import may_tell, tell_no_route
from sojourn.adhoc.aodv.routes import add_precursor, give_up, meet, prolong, take_over, usable
from sojourn.adhoc.aodv.tables import (
    ALLOWED_HELLO_LOSS,
    DELETE_PERIOD_S,
    ERROR_BYTES,
    ERROR_ITEM_BYTES,
    FLOOD_JITTER_S,
    HELLO_INTERVAL_S,
    REPLY_BYTES,
    Aodv,
)
from sojourn.adhoc.kernels import hot, inner
from sojourn.adhoc.packets import (
    ARRIVED,
    ERROR,
    EVERYBODY,
    HELLO,
    ITEMS_MAX,
    LINK_BROKE,
    NO_ROUTE,
    REPLY,
    REQUEST,
    SEND,
    TTL_OUT,
    Effects,
    Packet,
    emit,
    emit_new,
    lose,
)


@inner
def route(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    """Send a packet on towards its goal, hand it up, keep it while a route is sought, or report its loss."""
    if packet.goal == node:
        emit(out, packet, ARRIVED)
        return
    if packet.ttl <= 0:
        lose(out, packet, TTL_OUT)
        return
    if not usable(aodv, node, packet.goal, now_s):
        if packet.origin == node:
            wait_for_route(aodv, node, packet, now_s, out)
        else:
            lose(out, packet, NO_ROUTE)
            tell_no_route(aodv, node, packet.goal, now_s, out)
        return
    until_s = now_s + aodv.stations[node].active_route_s
    onward = aodv.pairs[node, packet.goal].next
    # A route in use lives on at the source, at the goal and along the way, both ways (section 6.2).
    prolong(aodv, node, packet.goal, until_s)
    prolong(aodv, node, onward, until_s)
    if packet.origin != node:
        prolong(aodv, node, packet.origin, until_s)
        prolong(aodv, node, packet.sender, until_s)
    row = out.rows[emit(out, packet, SEND)]
    row.sender, row.to = node, onward
    row.ttl -= 1
    row.hops += 1


@inner
def receive(aodv: Aodv, node: int, packet: Packet, now_s: float, draw: float, out: Effects) -> None:
    """Take in one of AODV's own messages."""
    meet(aodv, node, packet.sender, now_s)
    if packet.kind == HELLO:
        _on_hello(aodv, node, packet, now_s, out)
    elif packet.kind == REQUEST:
        _on_request(aodv, node, packet, now_s, draw, out)
    elif packet.kind == REPLY:
        _on_reply(aodv, node, packet, now_s, out)
    elif packet.kind == ERROR:
        _on_error(aodv, node, packet, now_s, out)


@hot
def overhear(aodv: Aodv, node: int, sender: int, now_s: float) -> None:
    """Anything heard from a neighbour that says hello tells that it is still there (section 6.9)."""
    if now_s - aodv.pairs[node, sender].heard_s < DELETE_PERIOD_S:
        aodv.pairs[node, sender].heard_s = now_s


@inner
def _on_hello(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    until_s = now_s + ALLOWED_HELLO_LOSS * HELLO_INTERVAL_S
    take_over(aodv, node, packet.sender, packet.sender, 1, packet.goal_seq, until_s, now_s)
    aodv.pairs[node, packet.sender].heard_s = now_s
    if aodv.pairs[node, packet.sender].searching != 0:
        found(aodv, node, packet.sender, now_s, out)


@inner
def _on_request(aodv: Aodv, node: int, packet: Packet, now_s: float, draw: float, out: Effects) -> None:
    origin, goal = packet.origin, packet.goal
    if packet.request <= aodv.pairs[node, origin].seen:
        return
    aodv.pairs[node, origin].seen = packet.request
    hops = packet.hops + 1
    me = aodv.stations[node]
    until_s = now_s + 2 * me.node_traversal_s * (2 * me.net_diameter - hops)
    take_over(aodv, node, origin, packet.sender, hops, packet.origin_seq, until_s, now_s)
    prolong(aodv, node, origin, until_s)
    if aodv.pairs[node, origin].searching != 0 and usable(aodv, node, origin, now_s):
        found(aodv, node, origin, now_s, out)
    if not usable(aodv, node, origin, now_s):
        return  # an answer would have no way back
    if goal == node:
        station = aodv.stations[node]
        station.seq = max(station.seq, packet.goal_seq)
        _reply(aodv, node, packet, 0, station.seq, station.my_route_s, now_s, out)
        return
    known = aodv.pairs[node, goal]
    fresh = usable(aodv, node, goal, now_s) and known.seq_known != 0 and known.seq >= packet.goal_seq
    # The way to the goal must not lead back to whoever asks through this node.
    if fresh and known.next != packet.sender:
        add_precursor(known, packet.sender)
        add_precursor(aodv.pairs[node, origin], known.next)
        _reply(aodv, node, packet, known.hops, known.seq, known.expires_s - now_s, now_s, out)
        return
    if packet.ttl > 1:
        row = out.rows[emit(out, packet, SEND)]
        row.sender, row.to = node, EVERYBODY
        row.ttl -= 1
        row.hops = hops
        row.goal_seq = max(packet.goal_seq, known.seq if known.seq_known != 0 else -1)
        row.delay_s = FLOOD_JITTER_S * draw
        aodv.stations[node].broadcast_s = now_s


@inner
def _reply(
    aodv: Aodv, node: int, asked: Packet, hops: int, seq: int, lifetime_s: float, now_s: float, out: Effects
) -> None:
    """Answer a request: the reply goes back hop by hop to whoever asked, who is its goal."""
    row = out.rows[emit_new(out, node, REPLY, SEND, now_s)]
    row.origin = asked.goal  # the node that the route leads to
    row.goal = asked.origin
    row.goal_seq = seq
    row.hops = hops
    row.lifetime_s = lifetime_s
    row.bytes = REPLY_BYTES
    row.to = aodv.pairs[node, asked.origin].next


@inner
def _on_reply(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    there, asker = packet.origin, packet.goal
    if there == node:
        return
    hops = packet.hops + 1
    until_s = now_s + packet.lifetime_s
    better = take_over(aodv, node, there, packet.sender, hops, packet.goal_seq, until_s, now_s)
    if usable(aodv, node, there, now_s) and aodv.pairs[node, there].searching != 0:
        found(aodv, node, there, now_s, out)
    if asker == node or not better or not usable(aodv, node, asker, now_s):
        return
    back = aodv.pairs[node, asker]
    prolong(aodv, node, asker, now_s + aodv.stations[node].active_route_s)
    add_precursor(aodv.pairs[node, there], back.next)
    add_precursor(aodv.pairs[node, packet.sender], back.next)
    add_precursor(back, packet.sender)
    row = out.rows[emit(out, packet, SEND)]
    row.sender, row.to = node, back.next
    row.hops = hops


# ------------------------------------------------------------------------------ errors


@inner
def _on_error(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    told = -1
    for at in range(packet.count):
        goal = int(packet.items[at, 0])
        known = aodv.pairs[node, goal]
        if goal == node or known.valid == 0 or known.next != packet.sender:
            continue
        give_up(known)
        if known.seq_known != 0:
            known.seq = max(known.seq, int(packet.items[at, 1]))
        told = _list(aodv, node, goal, told, now_s, out)


@inner
def _list(aodv: Aodv, node: int, goal: int, told: int, now_s: float, out: Effects) -> int:
    """Add a route given up to the error that is being made, if somebody uses it; the error's row."""
    gone = aodv.pairs[node, goal]
    if gone.precursors == 0:
        return told
    if told >= 0 and out.rows[told].count >= ITEMS_MAX:
        told = -1
    if told < 0:
        if not may_tell(aodv, node, now_s):
            return told
        told = emit_new(out, node, ERROR, SEND, now_s)
        out.rows[told].bytes = ERROR_BYTES
        out.rows[told].to = gone.by[0] if gone.precursors == 1 else EVERYBODY
        aodv.stations[node].broadcast_s = now_s
    row = out.rows[told]
    if row.to != EVERYBODY and (gone.precursors != 1 or gone.by[0] != row.to):
        row.to = EVERYBODY
    row.items[row.count, 0] = goal
    row.items[row.count, 1] = gone.seq
    row.count += 1
    row.bytes += ERROR_ITEM_BYTES
    gone.precursors = 0
    return told


@inner
def link_lost(aodv: Aodv, node: int, neighbour: int, now_s: float, out: Effects) -> None:
    """A neighbour is out of reach: give up every route through it and tell those who use them."""
    told = -1
    aodv.pairs[node, neighbour].heard_s = -1e9
    for goal in range(aodv.pairs.shape[1]):
        known = aodv.pairs[node, goal]
        if known.valid != 0 and known.next == neighbour:
            give_up(known)
            told = _list(aodv, node, goal, told, now_s, out)


@inner
def link_broke(aodv: Aodv, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    """A packet could not be handed to its next hop: the link is gone, and so is the packet.

    The RFC keeps packets while a route is sought, not those that were sent; ns-2 and ns-3 drop them, at their
    source as anywhere else. With local repair (section 6.12) a node on the way keeps what is for a goal that
    was near, and asks around for it; those who use its route are told only if nobody answers.
    """
    known = aodv.pairs[node, packet.goal]
    mends = packet.origin != node and 0 < known.hops <= aodv.stations[node].repair_ttl
    if mends:
        known.precursors = 0  # so that the error leaves it out
    link_lost(aodv, node, packet.to, now_s, out)
    if not mends:
        lose(out, packet, LINK_BROKE)
        return
    packet.ttl += 1
    packet.hops -= 1
    mend(aodv, node, packet, now_s, out)


@inner
def on_hello_timer(aodv: Aodv, node: int, now_s: float, out: Effects) -> None:
    """Once a second: say hello if this node is on somebody's route, and miss neighbours that were silent."""
    active = False
    for goal in range(aodv.pairs.shape[1]):
        if goal == node or aodv.pairs[node, goal].valid == 0 or not usable(aodv, node, goal, now_s):
            continue
        active = True
        silent_s = now_s - aodv.pairs[node, goal].heard_s
        # Only a neighbour that said hello before can be missed; DELETE_PERIOD bounds "before".
        if ALLOWED_HELLO_LOSS * HELLO_INTERVAL_S < silent_s < DELETE_PERIOD_S:
            link_lost(aodv, node, goal, now_s, out)
    station = aodv.stations[node]
    if active and station.hello != 0 and now_s - station.broadcast_s >= HELLO_INTERVAL_S:
        row = out.rows[emit_new(out, node, HELLO, SEND, now_s)]
        row.goal_seq = station.seq
        row.bytes = REPLY_BYTES
        station.broadcast_s = now_s
