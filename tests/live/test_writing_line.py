"""What is put out for clients leaves in turn, in order, and not faster than it is read."""

from __future__ import annotations

import asyncio
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn.live.brokers import writing
from sojourn.live.brokers.connection import ClientConnection
from sojourn.live.brokers.reading import FrameLine, ReadingLine
from sojourn.live.brokers.websocket import Gate, WebSocketConnection
from sojourn.live.brokers.writing import PIECE, WritingLine
from sojourn.mqtt.limits import Limits
from tests.live.test_hostile_web import HELLO
from tests.live.web_client import PING, frame

MIB = 1_048_576
LARGE = bytes(range(256)) * (MIB // 256) * 2
AT_ONCE = 10
"""How many pieces are written in a round, where the clock goes by how often it is asked."""


class Socket(asyncio.Transport):
    """A transport that takes so many bytes before its client has to read."""

    def __init__(self, peer: str = "here", room: int = 1 << 60) -> None:
        super().__init__({"peername": (peer, 1)})
        self.room = room
        self.taken = b""
        self.pieces: list[Any] = []
        self.is_over = self.is_read = False
        self.left = b""
        self.protocol: ClientConnection | None = None

    def write(self, data: Any) -> None:
        """Take what there is room for, and keep the rest."""
        assert not self.is_over
        self.pieces.append(data)
        was_full, self.left = bool(self.left), self.left + bytes(data)
        self._take()
        if self.left and not was_full:
            assert self.protocol is not None
            self.protocol.pause_writing()

    def _take(self) -> None:
        size = min(self.room, len(self.left))
        self.taken, self.left, self.room = self.taken + self.left[:size], self.left[size:], self.room - size

    def read(self, size: int) -> None:
        """Let the client read."""
        was_full, self.room = bool(self.left), self.room + size
        self._take()
        if was_full and not self.left:
            assert self.protocol is not None
            self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        """What was not taken."""
        return len(self.left)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say when everything was taken."""
        assert (high, low) == (1, 0)

    def is_closing(self) -> bool:
        """Whether it ends."""
        return self.is_over

    def can_write_eof(self) -> bool:
        """As TCP can."""
        return True

    def write_eof(self) -> None:
        """Nothing more is written."""
        self.is_over = True

    def pause_reading(self) -> None:
        """What comes waits."""
        self.is_read = False

    def resume_reading(self) -> None:
        """What comes is read again."""
        self.is_read = True


class Hall:
    """A node without a broker, whose loop goes round when it is told to."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.soon: list[Any] = []
        loop: Any = SimpleNamespace(call_later=lambda *_: None, call_soon=self.soon.append)
        self.loop, self.reading_line, self.frame_line = loop, ReadingLine(loop), FrameLine(loop)
        self.config = SimpleNamespace(limits=limits or Limits())
        self.doorkeeper = SimpleNamespace(authority="")
        self.connections: dict[int, ClientConnection] = {}
        self.worked: list[object] = []
        self.writing = WritingLine(loop, self.connections, lambda: self.config.limits, self.worked.append)
        self.told: list[tuple[str, int]] = []
        self.has_room_for_another = lambda: True
        self.tell = lambda _: None

    def opened(self, client: ClientConnection, *_: Any, **__: Any) -> int:
        """Take a connection."""
        number = len(self.connections) + 1
        self.connections[number] = client
        return number

    def blocked(self, number: int) -> None:
        """A client does not read."""
        self.told.append(("blocked", number))

    def drained(self, number: int) -> None:
        """A client reads."""
        self.told.append(("drained", number))

    def lost(self, number: int) -> None:
        """A connection is gone."""
        del self.connections[number]

    def visit(self, socket: Socket, client: ClientConnection | None = None) -> int:
        """Let a client come."""
        node: Any = self
        client = client or ClientConnection(node)
        socket.protocol = client
        client.connection_made(socket)
        return client.number

    def go_round(self) -> None:
        """Call what was to be called soon."""
        due, self.soon[:] = self.soon[:], []
        for one in due:
            one()

    def go_on(self) -> int:
        """Go round until nothing is left to do; say how often that was."""
        for rounds in count():
            if not self.soon:
                return rounds
            self.go_round()
        raise AssertionError


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(writing, "perf_counter", lambda: next(ticks) * writing.ROUND_S / AT_ONCE)


def test_a_large_event_for_many_is_written_in_rounds() -> None:
    """A round writes some pieces, in turn; all have everything in the end, and share the payload."""
    hall = Hall()
    sockets = [Socket(f"there-{number % 3}") for number in range(30)]
    numbers = [hall.visit(one) for one in sockets]
    payload = memoryview(LARGE)
    hall.writing.write([(number, data) for number in numbers for data in (b"head", payload)], [])
    most = AT_ONCE + len(sockets)  # besides pieces short packets, for as long as a round lasts
    written = sum(len(one.pieces) for one in sockets)
    assert 0 < written <= most
    rounds = 0
    while hall.soon:
        hall.go_round()
        before, written = written, sum(len(one.pieces) for one in sockets)
        assert written - before <= AT_ONCE + 1
        rounds += 1
    assert rounds == len(hall.worked) > len(sockets) * len(LARGE) // PIECE // (AT_ONCE + 2)
    for one in sockets:
        assert one.taken == b"head" + LARGE
        assert max(len(piece) for piece in one.pieces) <= PIECE
        assert all(piece.obj is LARGE for piece in one.pieces if isinstance(piece, memoryview))
        assert sum(isinstance(piece, memoryview) for piece in one.pieces) > len(LARGE) // PIECE - 1
    assert hall.writing.bytes == 0
    assert not hall.writing.by_address


def test_others_have_their_turn_while_much_is_written() -> None:
    """A short packet for another address is written within a round, one for the same client in order."""
    hall = Hall()
    sockets, other = [Socket("there") for _ in range(30)], Socket("elsewhere")
    numbers, last = [hall.visit(one) for one in sockets], hall.visit(other)
    hall.writing.write([(number, LARGE) for number in numbers], [])
    hall.writing.write([(last, b"pong"), (numbers[0], b"behind")], [])
    hall.go_round()
    assert other.taken == b"pong"
    hall.go_on()
    assert sockets[0].taken == LARGE + b"behind"
    assert all(one.taken == LARGE for one in sockets[1:])


def test_a_connection_is_closed_after_what_was_put_out() -> None:
    """Also where its client reads late; one that was not told everything when it goes leaves no trace."""
    hall = Hall()
    reads, late, goes = Socket(), Socket(room=100), Socket(room=100)
    numbers = [hall.visit(one) for one in (reads, late, goes)]
    hall.writing.write([(number, LARGE) for number in numbers], numbers)
    hall.go_on()
    assert (reads.taken, reads.is_over) == (LARGE, True)
    assert (late.taken, late.is_over) == (LARGE[:100], False)
    while not late.is_over:
        late.read(100_000)
        hall.go_on()
    assert late.taken == LARGE
    assert hall.writing.bytes == len(LARGE) - 100
    hall.connections[numbers[2]].connection_lost(None)
    assert (hall.writing.bytes, hall.writing.by_address) == (0, {})


def test_a_websocket_is_closed_after_what_was_put_out() -> None:
    """Its last frame comes behind all others."""
    hall, socket = Hall(), Socket(room=500)
    node: Any = hall
    number = hall.visit(socket, WebSocketConnection(node, Gate(None, on_loopback=True), "listen_ws"))
    hall.connections[number].data_received(HELLO)
    hall.writing.write([(number, bytes(200_000))], [number])
    hall.go_on()
    assert len(socket.taken) == 500
    while not socket.is_over:
        socket.read(50_000)
        hall.go_on()
    socket.read(1_000)
    assert len(socket.taken) > 200_000
    assert socket.taken.endswith(b"\x88\x02\x03\xe8")


def test_who_pings_without_reading_is_read_no_more() -> None:
    """Answers to pings of a WebSocket are written past the line, and count as what waits does."""
    hall, socket = Hall(Limits(output_bytes_max=5_000)), Socket(room=500)
    node: Any = hall
    number = hall.visit(socket, WebSocketConnection(node, Gate(None, on_loopback=True), "listen_ws"))
    client = hall.connections[number]
    client.data_received(HELLO)
    hall.writing.write([(number, b"welcome")], [])
    for _ in range(1_000):
        client.data_received(frame(bytes(100), PING) * 20)
        hall.go_on()
        if hall.told:
            break
    assert hall.told == [("blocked", number)]
    assert len(socket.left) == client.unread < 10_000
    socket.read(20_000)
    hall.go_on()
    assert hall.told == [("blocked", number), ("drained", number)]


def test_who_leaves_too_much_unread_is_blocked_until_it_has_read() -> None:
    """By what was put out for it, whether its socket has been given that or not."""
    hall = Hall(Limits(output_bytes_max=1_000_000))
    socket = Socket(room=100)
    number = hall.visit(socket)
    for _ in range(100):
        if hall.told:
            break
        hall.writing.write([(number, bytes(50_000))], [])
    assert hall.told == [("blocked", number)]
    assert 1_000_000 < hall.connections[number].unread <= 1_050_000
    assert not socket.is_read
    assert len(socket.left) <= PIECE
    while len(hall.told) == 1:
        assert hall.connections[number].unread > 250_000
        socket.read(50_000)
        hall.go_on()
    assert hall.told[1:] == [("drained", number)]
    assert hall.connections[number].unread <= 250_000
    assert socket.is_read


def test_who_reads_a_large_event_as_it_comes_is_not_blocked() -> None:
    """It is taken by its socket before it is asked who has left too much unread."""
    hall = Hall(Limits(output_bytes_max=100_000))
    number = hall.visit(Socket())
    hall.writing.write([(number, bytes(300_000))], [])
    assert hall.told == []


def test_what_an_address_leaves_unread_has_a_limit() -> None:
    """Beyond it who of the address has left anything unread is blocked, until it has read everything."""
    hall = Hall(Limits(output_bytes_max=1_000_000, output_bytes_address_max=2_000_000))
    idle = [Socket("there", room=0) for _ in range(10)]
    reads, other = Socket("there"), Socket("elsewhere", room=0)
    numbers = [hall.visit(one) for one in idle]
    mine, theirs = hall.visit(reads), hall.visit(other)
    for _ in range(3):
        hall.writing.write([(number, bytes(150_000)) for number in (*numbers, mine, theirs)], [])
        hall.go_on()
    assert {number for what, number in hall.told if what == "blocked"} == {*numbers}
    assert ("blocked", mine) not in hall.told
    assert ("blocked", theirs) not in hall.told
    assert hall.writing.by_address["there"] == 10 * 450_000
    assert len(reads.taken) == 450_000
    hall.told.clear()
    idle[0].read(449_999)
    hall.go_on()
    assert hall.told == []
    idle[0].read(1)
    hall.go_on()
    assert hall.told == [("drained", numbers[0])]
    for one in idle[1:7]:
        one.read(450_000)
        hall.go_on()
    idle[7].read(300_000)
    hall.go_on()
    assert hall.writing.by_address["there"] < 2_000_000
    assert hall.told[-1] == ("drained", numbers[7]), "the address is within its limit again"


def test_what_waits_for_copies_counts_as_unread() -> None:
    """Nothing more is put out for a client because it has not left yet."""
    hall = Hall(Limits(output_bytes_max=100_000))
    socket = Socket()
    number = hall.visit(socket)
    writes = [(number, bytes(60_000))]
    for _ in range(2):
        hall.writing.expect(writes, 1)
        hall.writing.settle(writes)
    assert hall.told == [("blocked", number)]
    assert not socket.taken
    for _ in range(2):
        hall.writing.expect(writes, -1)
        hall.writing.write(writes, [])
        hall.writing.settle(writes)
    assert hall.told == [("blocked", number), ("drained", number)]
    assert len(socket.taken) == 120_000
    assert hall.writing.bytes == 0
