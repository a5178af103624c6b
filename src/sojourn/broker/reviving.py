"""The broker that a store leaves: a snapshot, and what was noted after it, told again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sojourn.broker import facts
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import load_state

if TYPE_CHECKING:
    from sojourn.broker.live_broker import LiveBroker
    from sojourn.broker.network import Network
    from sojourn.broker.settings import Settings
    from sojourn.mqtt.core import Core


def remembered(
    kind: type[LiveBroker], settings: Settings, life: str, snapshot: bytes | None, entries: Iterable[bytes]
) -> LiveBroker:
    """Return a broker as it was when it last noted something; a new one if it never did."""
    broker: LiveBroker | None = None
    if snapshot is not None:
        found = Snapshot.read(snapshot)
        broker = kind(found.settings, life, remembers=True)
        load_state(found.state, broker.core, broker.network)
        broker.now_s = found.now
    for data in entries:
        entry = facts.read_entry(data)
        if broker is None:
            first = entry.fact
            assert isinstance(first, facts.Started), "a journal begins with the start of its broker"
            broker = kind(first.settings, first.life, remembers=True)
        broker.replay(entry)
    return broker if broker is not None else kind(settings, life, remembers=True)


def forget_effects(core: Core, network: Network | None) -> None:
    """Let go of what was done in an earlier life."""
    core.effects.forget()
    core.take_kept()
    if network is not None:
        network.clients.notes.clear()
        network.links.congested.clear()
