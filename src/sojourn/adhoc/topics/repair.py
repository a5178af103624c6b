"""Beyond paper 004: events are kept near their home and sent again to whoever has not got them.

1. Whoever takes an event at its home repeats it once to all neighbours, so that everybody near the home keeps
   it for `keep_s`, and sends the publisher a receipt.
2. A publisher without a receipt tries again after one, two, four, eight and sixteen seconds; not with the
   event, which may walk round a void again, but with an offer a tenth of its size. Whoever takes the offer at
   the home asks for the event. If its last event was not confirmed, a publisher begins with an offer.
3. A subscription lists the events its subscriber was given lately. Whoever takes it at the home sends the
   kept events that pass and are not on the list, to the place the subscription has just named; unless the
   subscription itself came by more than `HOPS_MAX` hops.
4. An event known here, by itself or from a neighbour's repetition, is not matched again.

Since a subscription that gets lost costs a delay and no longer an event, they can be sent half as often,
which pays for all the rest.
"""

from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import (
    COPY,
    DATA,
    EVENT,
    EVERYBODY,
    ITEMS_MAX,
    OFFER,
    RECEIPT,
    SEND,
    SUBSCRIBE,
    TIMER,
    Effects,
    Packet,
    Record,
    emit,
    emit_new,
)
from sojourn.adhoc.topics import core
from sojourn.adhoc.topics.state import (
    EVENT_HEADER_BYTES,
    GIVEN,
    HANDLED,
    KEPT_MAX,
    RECEIPT_BYTES,
    RECEIPT_ITEM_BYTES,
    RECENT_MAX,
    Topics,
    has_seen,
    keep,
    kept_at,
    remember,
)

CONFIRMED = 3
"""Role of a publisher in a remembered event: its home has confirmed it."""

FIRST_WAIT_S = 1.0
TRIES_MAX = 6

HOPS_MAX = 16
"""A subscription that came further than this gets no repair: it walked, and so would the event."""


@inner
def list_receipts(topics: Topics, node: int, packet: Packet, now_s: float) -> None:
    """Add to a subscription which events its subscriber was given lately."""
    me = topics.stations[node]
    for at in range(RECENT_MAX):
        wanted = me.seen_event[at] >= 0 and me.seen_role[at] == GIVEN and me.seen_topic[at] == packet.topic
        if wanted and me.seen_s[at] > now_s - me.keep_s and packet.count < ITEMS_MAX:
            packet.items[packet.count, 0] = me.seen_event[at]
            packet.count += 1
            packet.bytes += RECEIPT_ITEM_BYTES


@inner
def publish(
    topics: Topics, node: int, event: Record, tries: int, x: float, y: float, now_s: float, out: Effects
) -> None:
    """Publish an event, or see to it again if nobody has confirmed it."""
    me = topics.stations[node]
    if tries == 1:
        keep(topics, node, event, event.bytes + EVENT_HEADER_BYTES + me.header_bytes)
    elif has_seen(topics, node, event.event, CONFIRMED):
        return
    else:
        me.reached = 0
    if tries == 1 and me.reached != 0:
        core.publish(topics, node, event, x, y, now_s, out)
    else:
        row = out.rows[core.to_home(topics, node, event.topic, OFFER, RECEIPT_BYTES, now_s, out)]
        row.event = event.event
        row.source_x, row.source_y = x, y
    if tries < TRIES_MAX:
        timer = out.rows[emit_new(out, node, DATA, TIMER, now_s)]
        timer.event, timer.tries = event.event, tries
        timer.delay_s = FIRST_WAIT_S * 2 ** (tries - 1)


@inner
def arrived(
    topics: Topics, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    """Take in a packet that has reached its goal, or a repetition by a neighbour."""
    what = packet.what
    if what == EVENT:
        _on_event(topics, node, x, y, packet, now_s, out)
    elif what == COPY:
        keep(topics, node, packet, packet.bytes)
        if not has_seen(topics, node, packet.event, HANDLED):
            remember(topics, node, packet.event, HANDLED, packet.topic, now_s)
    elif what == OFFER:
        wanted = 0 if has_seen(topics, node, packet.event, HANDLED) else 1
        _confirm(topics, node, packet, wanted, now_s, out)
    elif what == RECEIPT:
        _on_receipt(topics, node, x, y, packet, now_s, out)
    else:
        core.arrived(topics, node, x, y, packet, now_s, out)
        if what == SUBSCRIBE:
            _send_missing(topics, node, packet, now_s, out)


@inner
def _on_event(
    topics: Topics, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    if not has_seen(topics, node, packet.event, HANDLED):
        core.arrived(topics, node, x, y, packet, now_s, out)
        keep(topics, node, packet, packet.bytes)
        row = out.rows[emit(out, packet, SEND)]
        row.what, row.sender, row.to = COPY, node, EVERYBODY
        row.x, row.y = x, y
    _confirm(topics, node, packet, 0, now_s, out)


@inner
def _confirm(topics: Topics, node: int, packet: Packet, wanted: int, now_s: float, out: Effects) -> None:
    """Tell a publisher that its event is known, or that it is wanted."""
    row = out.rows[core.to_node(topics, node, packet.origin, RECEIPT, RECEIPT_BYTES, now_s, out)]
    row.event, row.topic, row.tries = packet.event, packet.topic, wanted
    row.goal_x, row.goal_y = packet.source_x, packet.source_y


@inner
def _on_receipt(
    topics: Topics, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    topics.stations[node].reached = 1
    if packet.tries == 0:
        remember(topics, node, packet.event, CONFIRMED, packet.topic, now_s)
        return
    at = kept_at(topics, node, packet.event)
    if at >= 0:
        kept = topics.kept[node, at]
        row = out.rows[core.to_home(topics, node, kept.topic, EVENT, 0, now_s, out)]
        row.bytes, row.made_s = kept.bytes, kept.made_s
        row.event, row.value, row.clearance = kept.event, kept.value, kept.clearance
        row.source_x, row.source_y = x, y


@inner
def _send_missing(topics: Topics, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    rules = topics.stations[node]
    if packet.hops > HOPS_MAX:
        return  # it had to walk far: an event would, too, and is ten times its size
    entry = topics.stored[node, packet.subscription]
    for at in range(KEPT_MAX):
        kept = topics.kept[node, at]
        if kept.event < 0 or kept.topic != packet.topic or not core.passes(entry, kept):
            continue
        age_s = now_s - kept.made_s
        if rules.grace_s <= age_s <= rules.keep_s and not _has_receipt(packet, kept.event):
            core.send_event(topics, node, packet.subscription, kept, now_s, out)


@inner
def _has_receipt(packet: Packet, event: int) -> bool:
    for at in range(packet.count):  # noqa: SIM110  kernels have no generators
        if packet.items[at, 0] == event:
            return True
    return False
