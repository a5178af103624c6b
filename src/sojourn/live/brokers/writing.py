"""What is put out for clients leaves in turn, so that nobody waits until a large event has left for all.

A turn of a broker may put out very much: one event for thousands of clients, or a large one for some hundred.
What is short is written at once, for as long as a round may last. The rest waits at each connection, in
order, and is written in rounds, between which it is others' turn: piece by piece, in a circle of addresses
and for each of them one of its connections. What is large is not copied for that: all who are sent a payload
share it until it is written.

A connection writes no more until its socket has taken what was written before. So this is also the place that
knows what clients have left unread. A connection with more than `output_bytes_max` of it is *blocked*: what
is new for it waits in its client's queue, until it has read all but a quarter of that. There is a limit for
all connections of an address together, too (`output_bytes_address_max`). Beyond it who has anything left
unread is blocked until it has read everything; who reads as it is sent does not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from sojourn.mqtt.payload import Data
from sojourn.mqtt.turns import Turns

if TYPE_CHECKING:
    import asyncio

    from sojourn.live.brokers.connection import ClientConnection
    from sojourn.mqtt.limits import Limits

PIECE = 65_535
"""What is written of one connection before it is others' turn."""
ROUND_S = 0.01
"""How long is written before it is others' turn."""

Moment = tuple[float, float]
"""A time by a clock that goes on while work lasts, and by the processor's."""


def moment() -> Moment:
    """Return the present one."""
    return perf_counter(), thread_time()


class WritingLine:
    """What waits to be written, of all clients of a broker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connections: Mapping[int, ClientConnection],
        limits: Callable[[], Limits],
        worked: Callable[[Moment], None],
    ) -> None:
        """Begin with nothing; `worked` is told when each round began that has ended."""
        self._loop, self._connections, self._limits, self._worked = loop, connections, limits, worked
        self._line = Turns()
        """Connections that have something to write, and whose sockets may take it."""
        self._is_moving = False
        self.bytes = 0
        """What was put out for clients and not taken by their sockets yet."""
        self.by_address: dict[str, int] = {}
        """The same by the address that they come from."""

    def write(self, writes: Sequence[tuple[int, Data]], closes: Iterable[int]) -> None:
        """Write what a turn put out, at once or soon, and close connections after what was put out."""
        connections, is_late, until = self._connections, self._is_moving, perf_counter() + ROUND_S
        late: list[ClientConnection] = []
        for number, data in writes:
            client = connections.get(number)
            if client is None:
                continue
            if is_late or client.is_busy or len(data) > PIECE:
                client.put(data)
                late.append(client)
            else:
                client.write(data)
                is_late = perf_counter() > until
        if late and not self._is_moving:
            self._go_on(until)
        for client in late:
            client.settle()
        for number in closes:
            client = connections.get(number)
            if client is not None:
                client.close()

    def expect(self, writes: Iterable[tuple[int, Data]], sign: int) -> None:
        """Count what was put out and may not leave yet (1), or may leave now (-1)."""
        for number, data in writes:
            client = self._connections.get(number)
            if client is not None:
                client.count(sign * len(data))

    def settle(self, writes: Iterable[tuple[int, Data]]) -> None:
        """Look which of those are blocked, or are not any more, that something was put out for."""
        for number in {number for number, _ in writes}:
            client = self._connections.get(number)
            if client is not None:
                client.settle()

    def count(self, address: str, size: int) -> None:
        """Count that so many bytes more wait for an address, or fewer."""
        self.bytes += size
        left = self.by_address.get(address, 0) + size
        if left:
            self.by_address[address] = left
        else:
            self.by_address.pop(address, None)

    def unread_max(self, address: str) -> int:
        """What one connection of an address may leave unread before it is blocked."""
        limits = self._limits()
        if self.by_address.get(address, 0) > limits.output_bytes_address_max:
            return 0
        return limits.output_bytes_max

    def line_up(self, client: ClientConnection) -> None:
        """Have something written of a connection when it is its turn, at the end of `write` or soon."""
        self._line.append(client.party, client.number)

    def go_on(self, client: ClientConnection) -> None:
        """Have something written soon of a connection whose socket takes more."""
        self.line_up(client)
        if not self._is_moving:
            self._is_moving = True
            self._loop.call_soon(self._move)

    def _move(self) -> None:
        began = moment()
        self._go_on(began[0] + ROUND_S)
        self._worked(began)

    def _go_on(self, until: float) -> None:
        """Write until a moment, and go on soon if there is more."""
        line, connections = self._line, self._connections
        while line:
            client = connections.get(line.popleft())
            if client is not None and client.write_piece():
                self.line_up(client)
            if perf_counter() > until:
                break
        self._is_moving = bool(line)
        if self._is_moving:
            self._loop.call_soon(self._move)
