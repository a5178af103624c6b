"""Turns whose lines are safe here, and that wait until they are safe at other processes too.

A turn's acknowledgements, frames and deliveries leave in order, once all lines before them are held by every
process that keeps a copy (`broker/seats/`). When too much waits, nobody is read from until it has left: that
is the limit of this queue. What was written for a connection between brokers leaves on that connection or not
at all; the next one begins with another hello.

While a broker is held up, clients that connect are refused, and told so at once; those whose answer waits by
then are told instead of it. That promises nothing, so it need not wait.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mqtt5 import ConnAckReasonCode

from sojourn.broker.addresses import Refused
from sojourn.broker.effects import Turn
from sojourn.broker.facts import ClientSent
from sojourn.broker.seats.waiting import Electorate
from sojourn.live.brokers.writing import moment
from sojourn.live.config import Address
from sojourn.live.seldom import Seldom
from sojourn.mqtt.answers import instead_of

if TYPE_CHECKING:
    from sojourn.live.brokers.node import Node
    from sojourn.live.links.peers import Connection

TURNS_MAX = 20_000
BYTES_MAX = 32 << 20
"""More than that does not wait: clients and neighbours are not read from until it has left."""

DISCONNECT = b"\xe0\x00"
"""The packet with which a client of any version goes in an orderly way."""

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
    voters: Electorate = Electorate((), (), 0)
    """Which processes can vote about who plays a broker."""
    why: str = ""
    """What the broker waits for before it acknowledges anything; nothing if its copies are whole."""
    least: int = 0
    """The same as `whole` of the broker that has the fewest, of all that this process plays."""
    sessions_at_risk: int = 0
    """Sessions of all these brokers that have fewer whole copies than they should."""
    guests_why: tuple[str, ...] = ()
    """Of guests: what each waits for whose copies are not whole."""
    unplayed: tuple[str, ...] = ()
    """Brokers of the network that nobody plays, as far as this process knows."""


class Copying(Protocol):
    """What a broker that is copied to other processes is told and tells."""

    store: str
    """Where its journal is."""

    process: str
    """Which process plays it here."""

    def logged(self) -> None:
        """More was noted."""

    def released(self) -> int:
        """Return the number of the batch before which everything is safe at all processes that it must be."""

    def find(self, peer: str, at_home: Address | None) -> Address | None:
        """Return where a neighbour is called, given where it is if it is at home and in reach."""

    def state(self) -> CopyState:
        """Return how the copies are."""

    def process_of(self, peer: str) -> str:
        """Return the name of the process that plays a neighbour."""


class _Waiting(NamedTuple):
    number: int
    turn: Turn
    size: int
    links: dict[str, Connection]
    since_s: float


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
        self.held_up = ""
        """Why clients are refused, since nothing leaves for long; nothing while they are not."""
        self._refused: set[int] = set()
        """Connections of clients that are refused because of that, until they have gone."""

    @property
    def waits_since_s(self) -> float | None:
        """Since when the oldest turn has waited, by the loop's clock; None if none does."""
        return self._waiting[0].since_s if self._waiting else None

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
        if self._refused:
            self._tell_refused(turn)
        self._waiting.append(_Waiting(keeper.journal.next, turn, size, connections, self._node.loop.time()))
        self.bytes += size
        self._node.writing.expect(turn.writes, 1)
        self.copying.logged()
        self._leave()
        self._node.writing.settle(turn.writes)
        if len(self._waiting) > TURNS_MAX or self.bytes > BYTES_MAX:
            self._stop_reading()

    def leave(self) -> None:
        """Carry out what may leave by now; that is a turn of its own."""
        if self._waiting and self._waiting[0].number <= self.copying.released():
            began = moment()
            self._leave()
            self._node.worked(began)

    def _leave(self) -> None:
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
            node.writing.expect(one.turn.writes, -1)
            node.carry_out(one.turn)
            node.writing.settle(one.turn.writes)
        if self.is_full and len(waiting) < TURNS_MAX // 2 and self.bytes < BYTES_MAX // 2:
            self._go_on_reading()

    # Held up -------------------------------------------------------------------------------------------

    def hold_up(self, why: str) -> None:
        """Refuse clients that connect from now on, and those whose answer waits."""
        self.held_up = why
        told: dict[int, bytes] = {}
        for one in self._waiting:
            for number, data in one.turn.writes:
                answer = instead_of(bytes(data[:2]), ConnAckReasonCode.SERVER_UNAVAILABLE, why)
                if answer is not None and number in self._node.connections:
                    told.setdefault(number, answer)
        for one in self._waiting:
            self._node.writing.expect([each for each in one.turn.writes if each[0] in told], -1)
            one.turn.writes = [each for each in one.turn.writes if each[0] not in told]
        self._refused.update(told)
        for number in told:  # it has not been let in: its last will is not for anybody
            self._node.tell(ClientSent(number, DISCONNECT))
        self._node.carry_out(Turn(writes=list(told.items()), closes=list(told)))

    def go_on(self) -> None:
        """Let clients in again."""
        self.held_up = ""

    def refusal(self, number: int) -> Refused | None:
        """Return why a client is not let in at present; None if it is."""
        if not self.held_up:
            return None
        self._refused.add(number)
        return Refused(ConnAckReasonCode.SERVER_UNAVAILABLE, self.held_up)

    def _tell_refused(self, turn: Turn) -> None:
        """Take out of a turn what it says to clients that are refused, and say it."""
        connections, refused = self._node.connections, self._refused
        self._refused = refused & connections.keys()
        leaves = Turn(
            writes=[each for each in turn.writes if each[0] in refused],
            closes=[each for each in turn.closes if each in refused],
        )
        turn.writes = [each for each in turn.writes if each[0] not in refused]
        turn.closes = [each for each in turn.closes if each not in refused]
        self._node.carry_out(leaves)

    # Full ----------------------------------------------------------------------------------------------

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
