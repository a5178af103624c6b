"""How the connections between a broker and its neighbours begin and end.

On a new connection both say hello (`hello.py`): which life this is, which stream of frames, how far each has
come, and what its memory is called. From the two hellos follows what happens next:

| the hellos say | what happens |
| --- | --- |
| both know how to go on | frames flow from where they stopped (`PeerGreeted` if life or stream is new) |
| one has forgotten something | the connection closes; both begin a new stream (`LinkReset`) on the next one |
| another memory than last time | that is noted (`PeerMet`), whichever of the two above follows |

A link is in use from the agreement until the connection is lost (`LinkChanged`). All of this is noted, so
that a broker which is told it again ends with the same streams. Frames themselves are not taken in here: they
come far too often, and the broker does that itself (`live_broker.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sojourn.broker import facts
from sojourn.broker.effects import Note
from sojourn.broker.hello import ChannelError
from sojourn.broker.network import Network
from sojourn.broker.settings import Settings

FORGOTTEN = "has forgotten what was said between them"
"""Why a connection of two brokers is closed that both know how to go on from."""


class Meetings:
    """One broker and its neighbours meet and part."""

    def __init__(self, network: Network, note: Callable[[facts.Remembered, float], None]) -> None:
        """Arrange the meetings of a broker that notes facts with `note`."""
        self._network, self._note = network, note
        self.writes: list[tuple[str, bytes]] = []
        """Hellos for neighbours, to go out with this turn before all else."""
        self.closes: list[tuple[str, str]] = []
        """Connections to close with this turn, and why."""

    def handle(self, fact: facts.Fact, now: float) -> None:
        """Take one of the facts in `FACTS`."""
        self._HANDLERS[type(fact)](self, fact, now)

    # A connection begins -------------------------------------------------------------------------------

    def _on_connected(self, fact: facts.PeerConnected, _now: float) -> None:
        channel = self._network.links.channels[fact.peer]
        channel.opened()
        memory = self._network.core.state.origin
        self.writes.append((fact.peer, channel.greet(memory=memory)))

    def meet(self, peer: str, data: bytes, now: float) -> bool:
        """Read a neighbour's hello; return whether both go on where they were."""
        channel = self._network.links.channels[peer]
        for _ in channel.arrived(data):
            raise ChannelError(f"{peer} sent a frame before its hello.")
        hello = channel.peer_hello
        if hello is None:
            return False
        has_memory = hello.memory == self._network.reconciling.memories.get(peer)
        if not has_memory:
            self._on_met(facts.PeerMet(peer, hello.memory), now)
        if channel.has_forgotten:
            if has_memory and channel.forgotten:  # a store that is lost as a whole is counted as such
                note = Note("forgot_events", (peer, channel.forgotten, now))
                self._network.clients.notes.append(note)
            self._reset(peer, now)
            return False
        if (hello.life, hello.stream) != (channel.peer_life, channel.peer_stream):
            self._on_greeted(facts.PeerGreeted(peer, hello.life, hello.stream), now)
        channel.agreed()
        self._on_link_changed(facts.LinkChanged(peer, up=True), now)
        return True

    def _reset(self, peer: str, now: float) -> None:
        """Begin anew with a neighbour; the next connection carries it."""
        self.closes.append((peer, f"{peer} or this broker {FORGOTTEN}: both tell it anew."))
        channel = self._network.links.channels[peer]
        taken = max(channel.shared, channel.kept)
        self._on_reset(facts.LinkReset(peer, taken, channel.has_lost_memory, is_told=True), now)

    def _on_met(self, fact: facts.PeerMet, now: float) -> None:
        self._network.reconciling.met(fact.peer, fact.memory, now)
        self._note(fact, now)

    def _on_greeted(self, fact: facts.PeerGreeted, now: float) -> None:
        self._network.links.channels[fact.peer].greeted(fact.life, fact.stream)
        self._note(fact, now)

    def _on_reset(self, fact: facts.LinkReset, now: float) -> None:
        self._network.reconciling.reset(fact.peer, now, fact.taken)
        self._network.arrivals.doubts.met(self._network.links.numbers[fact.peer])
        if fact.is_own_loss:
            self._network.arrivals.confront(now)
            if fact.is_told:
                self._network.reconciling.doubt_copies(None, now)
        self._note(fact, now)

    def _on_link_changed(self, fact: facts.LinkChanged, now: float) -> None:
        self._network.link_changed(fact.peer, now, up=fact.up)
        self._network.clients.notes.append(Note("link", (fact.peer, fact.up, now)))
        self._note(fact, now)

    # A connection ends ---------------------------------------------------------------------------------

    def give_up(self, peer: str, why: str, now: float) -> None:
        """Close the connection to a neighbour that said what no broker says."""
        self.closes.append((peer, why))
        self._on_lost(facts.PeerLost(peer), now)

    def _on_lost(self, fact: facts.PeerLost, now: float) -> None:
        channel = self._network.links.channels[fact.peer]
        was_open = channel.open
        channel.closed()
        self._network.pressure.forget(fact.peer)
        if was_open:
            self._on_link_changed(facts.LinkChanged(fact.peer, up=False), now)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any, float], None]]] = {
        facts.PeerConnected: _on_connected,
        facts.PeerMet: _on_met,
        facts.PeerGreeted: _on_greeted,
        facts.LinkReset: _on_reset,
        facts.LinkChanged: _on_link_changed,
        facts.PeerLost: _on_lost,
    }
    FACTS = frozenset(_HANDLERS)
    """The facts that are about meeting and parting."""


def arranged(
    network: Network | None,
    note: Callable[[facts.Remembered, float], None],
    on_settings: Callable[[Settings], None],
) -> Meetings | None:
    """Return the meetings of a broker that is told of other settings; None if it has no neighbours."""
    if network is None:
        return None
    network.on_settings = on_settings
    return Meetings(network, note)
