"""Bytes of clients that cannot be read yet: packets that have not come whole, or that wait their turn.

A client may send as much as it likes at once; it is read in slices, in turn with all others that have
something to be read (`ring`), so that nobody waits for more than a slice of each other address, and of each
client of its own. Those that wait their turn
are not read any further by the driver (`Effects.waiting`), so what waits of one client is what one read of
its socket brought.

Who was sent much in a turn has none before the next, and while a client does not read, retained events for it
wait with what it sent behind them (`greeting.py`).

A packet that has not come whole takes room that others may need, and it takes it for as long as its client
likes. So there is a limit in time, and two in bytes: for an address, and for all. Beyond those the largest
packet gives way, not whoever happens to come last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.mqtt import costs
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.turns import Turns

if TYPE_CHECKING:
    from sojourn.mqtt.state import State


class Input:
    """What came and waits, of all connections."""

    __slots__ = ("aside", "by_address", "bytes", "ring", "since", "unread")

    def __init__(self) -> None:
        self.bytes = 0
        """Of packets that have not come whole."""
        self.by_address: dict[str, int] = {}
        """The same by the address that they come from."""
        self.since: dict[int, float] = {}
        """By connection: when the packet began to come that has not come whole, the earliest first."""
        self.ring = Turns()
        """Connections with something to be read, by address."""
        self.aside: list[int] = []
        """Connections with something to be read, in the next turn of all."""
        self.unread: set[int] = set()
        """Connections with something to be read once their client has read what it was sent."""

    def rename(self) -> None:
        """Count by what addresses count as today; an earlier build counted each by itself."""
        before, self.by_address = self.by_address, {}
        for address, size in before.items():
            party = party_of(address)
            self.by_address[party] = self.by_address.get(party, 0) + size

    def put_by(self, connection: Connection, data: bytes, now: float, at: int = 0) -> None:
        """Keep what came on a connection, from a place on, and cannot be read yet."""
        if at:
            assert not connection.pieces, "what was kept was read first"
            connection.offset = at
        connection.pieces.append(data)
        size = len(data) - at
        connection.have += size
        if not connection.waits:
            self._count(connection, size)
            self.since.setdefault(connection.number, now)

    def line_up(self, connection: Connection) -> None:
        """Let a connection wait its turn."""
        if not connection.waits:
            self._count(connection, -connection.have)
            connection.waits = True
            self.ring.append(connection.party, connection.number)

    def take_turn(self, state: State, now: float) -> Connection | None:
        """Return the connection whose turn it is to be read."""
        while self.ring:
            connection = state.connections.get(self.ring.popleft())
            if connection is not None and connection.waits and not self._must_wait(connection, state):
                connection.waits = False
                self._count(connection, connection.have)
                self.since.setdefault(connection.number, now)
                return connection
        return None

    def _must_wait(self, connection: Connection, state: State) -> bool:
        """Whether enough was sent to a client, or retained events to all, or it does not read those."""
        if connection.is_gone:
            return False
        if connection.greets and connection.blocked:
            self.unread.add(connection.number)
            return True
        is_enough = connection.greets and state.put_out >= costs.OUTPUT_A_TURN
        if is_enough or connection.put_out >= state.limits.output_bytes_max:
            self.aside.append(connection.number)
            return True
        return False

    def go_on(self, connection: Connection) -> None:
        """Let a connection have its turn again whose client has read, or is gone."""
        if connection.number in self.unread:
            self.unread.discard(connection.number)
            self.ring.append(connection.party, connection.number)

    def end_turn(self, connections: dict[int, Connection]) -> None:
        """Let those wait for their turn who were to have none before the next."""
        aside, self.aside = self.aside, []
        for number in aside:
            connection = connections.get(number)
            if connection is not None and connection.waits:
                connection.put_out = 0  # also where nothing was written, since there was no room
                self.ring.append(connection.party, number)

    def take_up(self, connection: Connection) -> tuple[bytes, int]:
        """Return what was kept of a connection, and the place in it from which it is to be read now."""
        pieces, offset = connection.pieces, connection.offset
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.let_go(connection)
        return data, offset

    def let_go(self, connection: Connection) -> None:
        """Keep nothing of a connection any more."""
        if connection.waits:
            connection.waits = False
        else:
            self._count(connection, -connection.have)
        self.since.pop(connection.number, None)
        self.unread.discard(connection.number)
        connection.pieces.clear()
        connection.offset = connection.have = 0
        connection.needed = 0  # what comes next is another packet, even if it has to wait its turn

    def dissolve_line(self) -> None:
        """Let nobody wait: no connection is left."""
        self.ring.clear()
        self.aside.clear()
        self.unread.clear()

    def largest(self, address: str | None, among: dict[int, Connection]) -> Connection | None:
        """Return the connection with most of an unfinished packet, of one address or of all."""
        found = [
            connection
            for number in self.since
            if (connection := among.get(number)) is not None
            and address in (None, connection.party)
            and not connection.waits
        ]
        return max(found, key=lambda one: one.have, default=None)

    def _count(self, connection: Connection, size: int) -> None:
        self.bytes += size
        left = self.by_address.get(connection.party, 0) + size
        if left:
            self.by_address[connection.party] = left
        else:
            self.by_address.pop(connection.party, None)
