"""Beyond paper 004: events are kept near their home and sent again to whoever has not got them.

1. Whoever takes an event at its home repeats it once to all neighbours, so that everybody near the home keeps
   it for `keep_s`, and sends the publisher a receipt. A publisher without a receipt sends again, after one,
   two, four and eight seconds.
2. A subscription lists the events its subscriber was given lately. Whoever takes it at the home sends the
   kept events that pass and are not on the list, to the place the subscription has just named.
3. An event known here, by itself or from a neighbour's repetition, is not matched again.

Since a subscription that gets lost costs a delay and no longer an event, they can be sent half as often,
which pays for all the rest.
"""

from typing import Any

from sojourn.adhoc.kernels import inner
from sojourn.adhoc.packets import (
    COPY,
    DATA,
    EVENT,
    EVERYBODY,
    ITEMS_MAX,
    RECEIPT,
    SEND,
    SUBSCRIBE,
    TIMER,
    Effects,
    Packet,
    emit,
    emit_new,
)
from sojourn.adhoc.topics import core
from sojourn.adhoc.topics.state import (
    GIVEN,
    KEPT_MAX,
    RECEIPT_BYTES,
    RECEIPT_ITEM_BYTES,
    RECENT_MAX,
    Topics,
    has_seen,
    remember,
)

CONFIRMED = 3
"""Role of a publisher in a remembered event: its home has confirmed it."""

FIRST_WAIT_S = 1.0
TRIES_MAX = 5


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
def wait_for_receipt(node: int, event: int, tries: int, now_s: float, out: Effects) -> None:
    """Set the timer after which a publisher sends an event again."""
    if tries >= TRIES_MAX:
        return
    row = out.rows[emit_new(out, node, DATA, TIMER, now_s)]
    row.event, row.tries = event, tries
    row.delay_s = FIRST_WAIT_S * 2 ** (tries - 1)


@inner
def is_confirmed(topics: Topics, node: int, event: int) -> bool:
    """Whether a publisher knows that its event has come home."""
    return has_seen(topics, node, event, CONFIRMED)


@inner
def arrived(
    topics: Topics, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    """Take in a packet that has reached its goal, or a repetition by a neighbour."""
    what = packet.what
    if what == EVENT:
        _on_event(topics, node, x, y, packet, now_s, out)
    elif what == COPY:
        _keep(topics, node, packet)
    elif what == RECEIPT:
        remember(topics, node, packet.event, CONFIRMED, packet.topic, now_s)
    else:
        core.arrived(topics, node, x, y, packet, now_s, out)
        if what == SUBSCRIBE:
            _send_missing(topics, node, packet, now_s, out)


@inner
def _on_event(
    topics: Topics, node: int, x: float, y: float, packet: Packet, now_s: float, out: Effects
) -> None:
    if not _is_kept(topics, node, packet.event):
        core.arrived(topics, node, x, y, packet, now_s, out)
        _keep(topics, node, packet)
        row = out.rows[emit(out, packet, SEND)]
        row.what, row.sender, row.to = COPY, node, EVERYBODY
        row.x, row.y = x, y
    row = out.rows[core.to_node(topics, node, packet.origin, RECEIPT, RECEIPT_BYTES, now_s, out)]
    row.event, row.topic = packet.event, packet.topic
    row.goal_x, row.goal_y = packet.source_x, packet.source_y


@inner
def _is_kept(topics: Topics, node: int, event: int) -> bool:
    for at in range(KEPT_MAX):  # noqa: SIM110  kernels have no generators
        if topics.kept[node, at].event == event:
            return True
    return False


@inner
def _keep(topics: Topics, node: int, packet: Packet) -> None:
    if _is_kept(topics, node, packet.event):
        return
    at = topics.kept[node, 0].next
    topics.kept[node, 0].next = (at + 1) % KEPT_MAX
    kept: Any = topics.kept[node, at]
    kept.event, kept.topic = packet.event, packet.topic
    kept.clearance, kept.bytes, kept.value = packet.clearance, packet.bytes, packet.value
    kept.made_s = packet.made_s


@inner
def _send_missing(topics: Topics, node: int, packet: Packet, now_s: float, out: Effects) -> None:
    rules = topics.stations[node]
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
