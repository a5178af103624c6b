"""Turns whose lines are safe here, and that wait until they are safe at other processes too.

A turn's acknowledgements, frames and deliveries leave in order, once all lines before them are held by every
process that keeps a copy (`broker/seats/`). When too much waits, nobody is read from until it has left: that
is the limit of this queue. What was written for a connection between brokers leaves on that connection or not
at all; the next one begins with another hello.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sojourn.broker.effects import Turn
from sojourn.live.config import Address
from sojourn.live.seldom import Seldom

if TYPE_CHECKING:
    from sojourn.live.brokers.node import Node
    from sojourn.live.links.peers import Connection

TURNS_MAX = 20_000
BYTES_MAX = 32 << 20
"""More than that does not wait: clients and neighbours are not read from until it has left."""

_log = logging.getLogger("sojourn.copies")


class CopyState(NamedTuple):
    """Where a broker's copies are, and how they are."""

    term: int
    host: str
    """The process that plays it."""
    followers: tuple[str, ...]
    """The processes that keep copies."""
    whole: int
    """How many of these hold everything at present."""
    sent_bytes: int
    """What this process has sent to others about copies, of whatever brokers."""
    takeovers: int
    """How often this process began to play a broker that is not its own."""
    guests: tuple[str, ...] = ()
    """The brokers of other processes that this one plays now."""


class Copying(Protocol):
    """What a broker that is copied to other processes is told and tells."""

    store: str
    """Where its journal is."""

    def logged(self) -> None:
        """More was noted."""

    def released(self) -> int:
        """Return the number of the batch before which everything is safe at all processes that it must be."""

    def is_away(self, peer: str) -> bool:
        """Return whether a neighbour is played by another process than its own."""

    def find(self, peer: str) -> Address | None:
        """Return where such a neighbour is."""

    def state(self) -> CopyState:
        """Return how the copies are."""

    def process_of(self, peer: str) -> str:
        """Return the name of the process that plays a neighbour."""


class _Waiting(NamedTuple):
    number: int
    turn: Turn
    size: int
    links: dict[str, Connection]


class Outbox:
    """What waits to leave, of one broker."""

    def __init__(self, node: Node, copying: Copying) -> None:
        self._node, self.copying = node, copying
        self._waiting: deque[_Waiting] = deque()
        self.bytes = 0
        self.is_full = False
        """Whether nobody is read from until something has left."""
        self.fills = 0
        """How often that was so."""
        self._held: set[int] = set()
        """Clients that the broker itself does not want to be read."""
        self._seldom = Seldom(_log)

    @property
    def turns(self) -> int:
        """How many turns wait."""
        return len(self._waiting)

    def put(self, turn: Turn) -> None:
        """Let a turn leave as soon as it may."""
        keeper, links = self._node.keeper, self._node.links
        assert keeper is not None, "who is copied has a store"
        self._held.update(turn.holds)
        self._held.difference_update(turn.releases)
        size = sum(len(data) for _, data in turn.writes) + sum(len(data) for _, data in turn.peer_writes)
        connections = dict(links.connections) if links is not None else {}
        self._waiting.append(_Waiting(keeper.journal.next, turn, size, connections))
        self.bytes += size
        self.copying.logged()
        self.leave()
        if len(self._waiting) > TURNS_MAX or self.bytes > BYTES_MAX:
            self._stop_reading()

    def leave(self) -> None:
        """Carry out what may leave by now."""
        waiting, node = self._waiting, self._node
        released = self.copying.released()
        while waiting and waiting[0].number <= released:
            one = waiting.popleft()
            self.bytes -= one.size
            links = node.links
            if links is not None:
                here = {peer for peer, link in one.links.items() if links.connections.get(peer) is link}
                one.turn.peer_writes = [each for each in one.turn.peer_writes if each[0] in here]
                one.turn.peer_closes = [each for each in one.turn.peer_closes if each[0] in here]
            node.carry_out(one.turn)
        if self.is_full and len(waiting) < TURNS_MAX // 2 and self.bytes < BYTES_MAX // 2:
            self._go_on_reading()

    def _stop_reading(self) -> None:
        """Read from nobody; also from those who came since."""
        if not self.is_full:
            self.is_full = True
            self.fills += 1
            self._seldom.warning("full", "%s reads no further: its copies are behind", self._node.place.name)
        for client in self._node.connections.values():
            client.hold()
        if self._node.links is not None:
            for link in self._node.links.connections.values():
                link.pause()

    def _go_on_reading(self) -> None:
        self.is_full = False
        for number, client in self._node.connections.items():
            if number not in self._held:
                client.release()
        if self._node.links is not None:
            for link in self._node.links.connections.values():
                link.resume()
