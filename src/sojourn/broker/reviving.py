"""The broker that a store leaves: a snapshot, and what was noted after it, told again.

That takes as long as the two are. So it is a generator that stops after every few objects of the snapshot and
after every line: whoever has other things to do meanwhile goes on when it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, TypeVar

from sojourn.broker import facts
from sojourn.broker.ruling import Rights
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import load_in_parts

if TYPE_CHECKING:
    from sojourn.broker.live_broker import LiveBroker
    from sojourn.broker.network import Network
    from sojourn.broker.settings import Settings
    from sojourn.mqtt.core import Core

T = TypeVar("T")

Revival = Generator[None, None, "LiveBroker"]
"""Stops now and then, and returns the broker in the end."""


def reviving(
    kind: type[LiveBroker],
    settings: Settings,
    life: str,
    clock: Callable[[], float],
    snapshot: bytes | None,
    entries: Iterable[bytes],
    rights: Rights,
) -> Revival:
    """Return the broker that a store leaves, begun a new life with these settings and `rights`."""
    broker = yield from _remembering(kind, settings, life, snapshot, entries)
    broker.settings_before, broker.ruling.rights = broker.settings, rights
    now = max(clock(), broker.now_s)  # time does not go back over a restart, whatever the clock says
    for fact in list(rights(broker.core.state.sessions.values())):
        broker.handle(fact, now)  # first, since wills of clients that are gone are published next
    broker.handle(facts.Started(life, settings, hushes_banned=True), now)
    return broker


def _remembering(
    kind: type[LiveBroker], settings: Settings, life: str, snapshot: bytes | None, entries: Iterable[bytes]
) -> Revival:
    """Return a broker as it was when it last noted something; a new one if it never did."""
    broker: LiveBroker | None = None
    if snapshot is not None:
        found = Snapshot.read(snapshot)
        broker = kind(found.settings, life, remembers=True)
        yield from load_in_parts(found.state, broker.core, broker.network)
        broker.now_s = found.now
    for data in entries:
        entry = facts.read_entry(data)
        if broker is None:
            first = entry.fact
            assert isinstance(first, facts.Started), "a journal begins with the start of its broker"
            broker = kind(first.settings, first.life, remembers=True)
        broker.replay(entry)
        yield
    return broker if broker is not None else kind(settings, life, remembers=True)


def forget_effects(core: Core, network: Network | None) -> None:
    """Let go of what was done in an earlier life."""
    core.effects.forget()
    core.take_kept()
    if network is not None:
        network.clients.notes.clear()
        network.links.congested.clear()


def remembered(
    kind: type[LiveBroker], settings: Settings, life: str, snapshot: bytes | None, entries: Iterable[bytes]
) -> LiveBroker:
    """Return a broker as it was when it last noted something, at once; no other life begins."""
    return at_once(_remembering(kind, settings, life, snapshot, entries))


def at_once(work: Generator[None, None, T]) -> T:
    """Do all of it without a stop, and return what it leads to."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
