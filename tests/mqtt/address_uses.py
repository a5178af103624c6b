"""What the clients of each address take, as a core counts it, and counted by hand."""

from __future__ import annotations

from collections import Counter

from sojourn.interest import Filter
from sojourn.mqtt.conditions import EACH
from sojourn.mqtt.core import Core
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.room import levels_of

Uses = dict[str, tuple[int, int, int]]
"""By address: clients, subscriptions, bytes that wait or are on their way."""


def uses(core: Core) -> Uses:
    """As the core counts it."""
    known = core.state.address_uses.by_address.items()
    return {address: (use.clients, use.subscriptions, use.bytes) for address, use in known}


def uses_by_hand(core: Core) -> Uses:
    """From every session, message by message; who is away has no subscriptions that count."""
    found: Uses = {}
    levels: Counter[str] = Counter()
    for session in core.state.sessions.values():
        address, is_here = party_of(session.address or ""), session.connection is not None
        assert session.connection is None or session.connection.peer == session.address
        deliveries = [*session.queue, *(one for one in session.inflight.values() if one is not None)]
        wanted = session.subscriptions.values()
        assert session.levels == sum(levels_of(one.text, one.filter_text) for one in wanted)
        levels[address] += is_here * session.levels
        clients, subscriptions, size = found.get(address, (0, 0, 0))
        found[address] = (
            clients + is_here,
            subscriptions + is_here * len(session.subscriptions),
            size + sum(one.message.size for one in deliveries),
        )
    known = core.state.address_uses.by_address.items()
    waiting: Counter[str] = Counter()
    for session in core.state.sessions.values():
        waiting[party_of(session.address or "")] += len(session.queue)
    assert waiting == Counter({address: use.messages for address, use in known})
    assert core.state.queued == sum(waiting.values())
    groups: dict[str, Counter[str]] = {address: Counter() for address, _ in known}
    conditions: dict[str, set[tuple[str, Filter]]] = {address: set() for address, _ in known}
    for session in core.state.sessions.values():
        groups[party_of(session.address or "")].update(one.text for one in session.shares())
        conditions[party_of(session.address or "")].update(
            (one.text, one.filter) for one in session.shares() if one.filter is not None
        )
    assert groups == {address: use.groups for address, use in known}
    sizes = {
        address: EACH * len(found) + sum(len(str(one)) for one in {wanted for _, wanted in found})
        for address, found in conditions.items()
    }
    assert sizes == {address: use.conditions.size for address, use in known}
    assert levels == Counter({address: use.levels for address, use in known})
    assert core.state.levels == sum(session.levels for session in core.state.sessions.values())
    return found
