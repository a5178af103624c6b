"""Whose turn it is: the work of one client, or of one neighbour, is done behind that of the others.

What came and was not taken in yet waits in two places: bytes of clients in a circle (`mqtt/input.py`), frames
of neighbours in lines (`pressure.py`). What brings much text waits until that has been read (`preparing.py`).
What a broker tells of itself it tells some clients at once (`mqtt/system_topics.py`).
A *slice* is what is taken of one of them at once: some work for one client (`mqtt/costs.py`), some text, some
frames of neighbours, fewer if their events go to many. A driver has slices taken (`ReadyForMore`) for as long
as a loop turn may last, and ends the turn. So how long a turn lasts is the driver's to say, but for the
length of a slice.

Clients that wait their turn are not read from until it has come. There is another reason for that (a full
link), and a driver is told to read again when neither holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from sojourn.broker.preparing import PreparedClients
from sojourn.broker.settings import AtOnce
from sojourn.mqtt import costs
from sojourn.mqtt.core import Core
from sojourn.mqtt.cutting import let_go
from sojourn.mqtt.system_topics import Telling

FRAMES_A_SLICE = 8
EVENTS_A_FRAME = 4
"""Events of a run, or retained values, that count for one more frame: together they take less than alone."""
DELIVERIES_A_FRAME = 256
"""Deliveries that count for one more frame."""


class Slices:
    """Who waits at one broker, and who is not read from."""

    def __init__(self, core: Core, at_once: AtOnce) -> None:
        self._core = core
        self._waiting: set[int] = set()
        """Connections that are not read from because they wait their turn."""
        self._pressed: set[int] = set()
        """Connections that are not read from because a link is full."""
        self._leaving: set[int] = set()
        """Connections that are gone, and of which something waits its turn."""
        self.late: deque[int] = deque()
        """Connections that are gone, many at once, and that are to be noted in turn."""
        self.clients = PreparedClients(core, at_once.read)
        """Clients that are let in once what they say has been read."""
        self.telling = Telling(core.state, core.deliverer)
        """What clients are told of this broker, some in each slice."""
        self.has_held = False
        """Whether somebody is not read from."""
        self.frames_wait = False
        """Whether frames of neighbours wait for nothing but their turn."""

    def restarted(self) -> None:
        """No connection is left."""
        self._waiting.clear()
        self._pressed.clear()
        self._leaving.clear()
        self.late.clear()
        self.clients.waiting.clear()
        self.telling.stop()
        self.has_held = self.frames_wait = False
        self._core.state.input.dissolve_line()

    def lost(self, number: int) -> bool:
        """A client's connection is gone; say whether something that came on it before waits its turn."""
        self._waiting.discard(number)
        self._pressed.discard(number)
        connection = self._core.state.connections.get(number)
        if connection is None or not connection.waits:
            self._leaving.discard(number)
            return False
        self._leaving.add(number)
        let_go(connection)
        self._core.state.input.go_on(connection)
        return True

    def cost_of_loss(self, number: int) -> int:
        """What it costs that a connection is gone (`mqtt/costs.py`)."""
        state = self._core.state
        connection = state.connections.get(number)
        if connection is None:
            return 1
        return costs.of_loss(connection.session) + state.cost_of_will(connection.session)

    def is_put_off(self, number: int) -> bool:
        """Whether the loss of a connection has its turn later, since much was done in this one."""
        gate = self._core.gate
        if gate.unsliced <= 0:
            self.late.append(number)
            return True
        gate.unsliced -= self.cost_of_loss(number)
        return False

    def left(self) -> Iterator[int]:
        """Yield connections that are gone and of which nothing waits any more, as many as a slice has."""
        connections = self._core.state.connections
        if self._leaving:
            self.late.extend(
                number
                for number in sorted(self._leaving)
                if (connection := connections.get(number)) is None or not connection.waits
            )
            self._leaving.difference_update(self.late)
        budget = costs.SLICE
        while self.late and budget > 0:
            number = self.late.popleft()
            cost = self.cost_of_loss(number)
            budget -= cost
            self._core.gate.unsliced -= cost  # or the end of the turn would take another slice
            yield number

    def settle(self, holds: Iterable[int], releases: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return who is not to be read from any more, and who is again, given whom a full link concerns."""
        connections = self._core.state.connections
        self._core.state.input.end_turn(connections)
        before = self._waiting | self._pressed
        self._pressed.update(holds)
        self._pressed.difference_update(releases)
        lined_up = self._core.effects.waiting
        self._waiting.update(lined_up)
        lined_up.clear()
        self._waiting = {
            number
            for number in self._waiting
            if (connection := connections.get(number)) is not None and connection.waits
        }
        self._waiting -= self._leaving
        self._pressed -= self._leaving
        after = self._waiting | self._pressed
        self.has_held = bool(after)
        return sorted(after - before), sorted(number for number in before - after if number in connections)
