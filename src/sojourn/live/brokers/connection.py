"""One client's connection, by TCP or TLS: bytes between the socket and the node, nothing more."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import termios
from collections import deque
from collections.abc import Callable

from sojourn.broker.facts import ClientSent
from sojourn.live.addresses import address_of
from sojourn.live.brokers.doors import Guest, certificate_of
from sojourn.live.brokers.node import LINGER_S, Node
from sojourn.live.brokers.writing import PIECE
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.payload import Data

TURN_BYTES = 131_072
"""What one client may send in a loop turn before the others are looked at."""

QUIET_S = 0.05
"""For how long nothing comes of a client that is being closed before it counts as having stopped."""


def _ignore(_data: object) -> None:
    """Write nothing, as there is nobody to read it."""


def _is_sending(transport: asyncio.Transport) -> bool:
    """Whether a client sent something that was not read yet."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.is_closing():
        return False
    try:
        return any(fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4)))
    except OSError:  # it is gone already
        return False


class ClientConnection(asyncio.Protocol):
    """Tells the node what came and went, and writes what it is given."""

    __slots__ = (
        "_authority",
        "_closing",
        "_door",
        "_held",
        "_is_full",
        "_is_lined_up",
        "_is_noisy",
        "_is_over",
        "_node",
        "_paused",
        "_transport",
        "_untaken",
        "_waiting",
        "is_busy",
        "is_counted",
        "number",
        "party",
        "unread",
        "write",
    )

    def __init__(self, node: Node, door: str = "listen") -> None:
        self._node = node
        self._door = door
        """By which of the broker's addresses it came."""
        self._authority = node.doorkeeper.authority
        """Whom a handshake of TLS asks, which begins now."""
        self.number = 0
        self.party = ""
        """What the address counts as that it comes from."""
        """Where it comes from."""
        self.is_counted = False
        """Whether it was counted when its handshake began (`entrance.py`), which is not over yet."""
        self._transport: asyncio.Transport | None = None
        self.write: Callable[[Data], None] = _ignore
        self._waiting: deque[Data] = deque()
        """What is written when the socket has taken what was written before, and it is its turn."""
        self._untaken = 0
        """Bytes that were written and that the socket has not taken."""
        self.unread = 0
        """Bytes that were put out for the client and that the socket has not taken (`writing.py`)."""
        self._is_full = False
        """Whether the socket takes no more for now."""
        self.is_busy = False
        """Whether what is put out has to wait behind something."""
        self._is_lined_up = False
        """Whether it waits for its turn to write."""
        self._is_over = False
        """Whether nothing is written any more."""
        self._closing = False
        self._is_noisy = False
        """Whether the client sent something since it was last looked, although it is being closed."""
        self._paused = False
        """Whether the client does not read, so that nothing is read of it either."""
        self._held = False
        """Whether the broker has no room for what the client publishes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Take the connection, unless there are far too many."""
        node = self._node
        self._transport = transport
        self.write = self._writer(transport)
        if not self.is_counted and not node.has_room_for_another():
            transport.abort()
            return
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(high=1, low=0)  # it is to say when the socket has taken everything
        address = address_of(transport.get_extra_info("peername"))
        self.party = party_of(address)
        guest = Guest(self._door, certificate_of(transport.get_extra_info("peercert")), self._authority)
        is_counted, self.is_counted = self.is_counted, False
        self.number = node.opened(self, address, guest, is_counted=is_counted)

    def _writer(self, transport: asyncio.Transport) -> Callable[[Data], None]:
        """What MQTT's bytes are written with; other ways to carry them have their own."""
        return transport.write

    def _came(self, data: bytes) -> None:
        """Take what came on the socket."""
        if self.number and not self._closing:
            self._node.tell(ClientSent(self.number, data))

    def data_received(self, data: bytes) -> None:
        """Pass on what came; a client that sends a lot at once waits for the others' turn."""
        transport = self._transport
        if len(data) >= TURN_BYTES and transport is not None and not transport.is_closing():
            transport.pause_reading()
            self._node.reading_line.join(self._read_again)
        if self.number and not self._closing:
            self._came(data)
        else:
            self._is_noisy = True

    def _read_again(self) -> None:
        """Read again in its turn, or let pass what a client sends that is being closed."""
        if not self._closing:
            self._go_on()
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _go_on(self) -> None:
        """Read again, unless the client does not read itself."""
        if self._transport is not None and not (self._closing or self._paused or self._held):
            self._transport.resume_reading()

    def put(self, data: Data) -> None:
        """Let something wait to be written, behind what waits."""
        self._waiting.append(data)
        self.is_busy = True
        self.count(len(data))
        if not (self._is_full or self._is_lined_up):
            self._is_lined_up = True
            self._node.writing.line_up(self)

    def write_piece(self) -> bool:
        """Write some of what waits; return whether more may be written."""
        self._is_lined_up = False
        waiting = self._waiting
        if not waiting or self._transport is None or self._is_full:
            return False
        piece = waiting[0]
        if len(piece) > PIECE:
            rest = memoryview(piece)
            piece, waiting[0] = rest[:PIECE], rest[PIECE:]
        else:
            piece = self._several()
        self.count(-len(piece))
        self.write(piece)
        self._is_lined_up = bool(waiting) and not self._is_full
        if not waiting:
            self._all_written()
        return self._is_lined_up

    def _several(self) -> Data:
        """Take as much of what waits as makes a piece."""
        waiting = self._waiting
        first, size = waiting.popleft(), 0
        some = [first]
        size = len(first)
        while waiting and size + len(waiting[0]) <= PIECE:
            size += len(waiting[0])
            some.append(waiting.popleft())
        return first if len(some) == 1 else b"".join(some)

    def _all_written(self) -> None:
        """Go on where nothing waits any more."""
        self.is_busy = self._is_full
        if self._closing and not self._is_over:
            self._end()
        self.settle()

    def count(self, size: int) -> None:
        """Count that the client has so many bytes more to read, or fewer."""
        self.unread += size
        self._node.writing.count(self.party, size)

    def settle(self) -> None:
        """Say if the client leaves too much unread, and if it has read; it is to feel that it is not read."""
        if not self.number or self._transport is None:
            return
        most = self._node.writing.unread_max(self.party)
        if self._paused and self.unread <= most // 4:
            self._paused = False
            self._go_on()
            self._node.drained(self.number)
        elif not self._paused and self.unread > most:
            self._paused = True
            self._node.blocked(self.number)
            if not self._closing:
                self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Note that the socket has not taken everything."""
        self._is_full = self.is_busy = True
        self._count_untaken()

    def _count_untaken(self) -> None:
        """Count what was written and the socket has not taken."""
        if self._transport is not None:
            before, self._untaken = self._untaken, self._transport.get_write_buffer_size()
            self.count(self._untaken - before)
            self.settle()

    def resume_writing(self) -> None:
        """Write on, since the socket has taken everything."""
        self._is_full = False
        untaken, self._untaken = self._untaken, 0
        self.count(-untaken)
        if not self._waiting:
            self._all_written()
            return
        self.settle()
        if not self._is_lined_up:
            self._is_lined_up = True
            self._node.writing.go_on(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is gone, and let go of it: nobody else tidies up soon."""
        if exc is not None and not self._closing:
            self._take_last_words()
        self._transport = None
        self.write = _ignore
        self._waiting.clear()
        if self.unread:
            self.count(-self.unread)
        if self.number:
            number, self.number = self.number, 0
            self._node.lost(number)

    def _take_last_words(self) -> None:
        """Read what came before a connection was reset.

        A client that answers, disconnects and closes while something for it is still unread resets the
        connection. A write then fails before its last answers have been read, although the kernel has
        them; without them it would get the same events again at its next broker.
        """
        transport = self._transport
        if not self.number or transport is None or transport.get_extra_info("sslcontext") is not None:
            return
        reset = transport.get_extra_info("socket")
        if reset is None:
            return
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(reset.fileno())) as rest:
            data = rest.recv(TURN_BYTES, socket.MSG_DONTWAIT)
            if data:
                self._came(data)

    def hold(self) -> None:
        """Read no further: the broker has no room for what the client publishes."""
        self._held = True
        if self._transport is not None and not self._closing:
            self._transport.pause_reading()

    def release(self) -> None:
        """Read again."""
        self._held = False
        self._go_on()

    def close(self) -> None:
        """Close after what was put out has been read, or soon.

        Not at once: a client that is still sending would reset the connection, and might never read why it
        is closed. It is told that nothing more comes, where TLS does not forbid that, and what it sends is
        let pass until it has closed, or has been quiet for a moment.
        """
        transport = self._transport
        if transport is not None and not self._closing:
            self._closing = True
            with contextlib.suppress(OSError, RuntimeError):  # it may just have gone itself
                transport.resume_reading()
            if not self._waiting:
                self._end()
            self._node.loop.call_later(LINGER_S, transport.abort)

    def _end(self) -> None:
        """Say that nothing more comes, and close soon."""
        self._is_over = True
        with contextlib.suppress(OSError, RuntimeError):
            if self._transport is not None and self._transport.can_write_eof():
                self._transport.write_eof()
        self._node.loop.call_later(QUIET_S, self._close_when_quiet)

    def _close_when_quiet(self) -> None:
        """Let pass what a client sends, and close once it has stopped; it is not waited for without end."""
        transport = self._transport
        if transport is None:
            return
        if self._is_noisy or _is_sending(transport):
            self._is_noisy = False
            self._node.loop.call_later(QUIET_S, self._close_when_quiet)
        else:
            transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
