"""Bytes that are no WebSocket, or a broken one: nothing is raised, and what MQTT gets is what frames held."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn.live.brokers.reading import FRAMES_A_ROUND, FrameLine, ReadingLine
from sojourn.live.brokers.websocket import IDLE_FRAMES_MAX, PIECE_BYTES, Gate, WebSocketConnection
from sojourn.mqtt.limits import Limits
from tests.live.web_client import BINARY, CLOSE, CONTINUED, KEY, PING, PONG, TEXT, frame

HELLO = (
    "GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1:1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
).encode()


class Line(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.writes = 0
        self.is_over = self.is_paused = False

    def write(self, data: Any) -> None:
        """Keep it."""
        assert not self.is_over
        self.written += bytes(data)
        self.writes += 1

    def can_write_eof(self) -> bool:
        """As TCP can."""
        return True

    def write_eof(self) -> None:
        """Nothing more is written."""
        self.is_over = True

    def is_closing(self) -> bool:
        """Whether it ends."""
        return self.is_over

    def resume_reading(self) -> None:
        """What comes is read again."""
        self.is_paused = False

    def pause_reading(self) -> None:
        """What comes waits."""
        self.is_paused = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There are none."""


def round_of(soon: list[Any]) -> None:
    """One round of the loop: what was to be called when it began."""
    due = soon[:]
    soon.clear()
    for each in due:
        each()


def visited(soon: list[Any], line: FrameLine | None = None) -> tuple[WebSocketConnection, Line, list[bytes]]:
    """A connection, its socket, and what MQTT got of it; `soon` is what the loop calls next."""
    got: list[bytes] = []
    loop: Any = SimpleNamespace(call_later=lambda *_: None, call_soon=soon.append)
    node: Any = SimpleNamespace(
        has_room_for_another=lambda: True,
        config=SimpleNamespace(limits=Limits()),
        doorkeeper=SimpleNamespace(authority=""),
        opened=lambda *_, **__: 1,
        tell=lambda fact: got.append(fact.data),
        loop=loop,
        reading_line=ReadingLine(loop),
        frame_line=FrameLine(loop) if line is None else line,
        lost=lambda _: got.append(b"lost"),
        blocked=lambda _: None,
        drained=lambda _: None,
    )
    connection, socket = WebSocketConnection(node, Gate(None, on_loopback=True), "listen_ws"), Line()
    connection.connection_made(socket)
    return connection, socket, got


@pytest.mark.parametrize("seed", range(5))
def test_frames_of_every_kind_and_cut_hold_the_same_bytes(seed: int) -> None:
    """Data of every length in frames of every kind, cut anywhere on the way."""
    draw = random.Random(seed)
    soon: list[Any] = []
    connection, socket, got = visited(soon)
    sent, stream, is_open = b"", HELLO, False
    for _ in range(100):
        data = draw.randbytes(draw.choice((0, 1, 20, 125, 126, 300, 70_000)))
        last = draw.random() < 0.6
        stream += frame(data, CONTINUED if is_open else BINARY, last=last)
        sent, is_open = sent + data, not last
        if draw.random() < 0.2:
            stream += frame(b"ping", draw.choice((PING, PONG)))
    head, stream = stream[: len(HELLO)], stream[len(HELLO) :]
    connection.data_received(head)  # a client waits for the answer before it goes on
    assert socket.written.startswith(b"HTTP/1.1 101")
    connection.write(b"welcome")
    while stream:
        size = draw.choice((1, 7, 1_000, 100_000))
        connection.data_received(stream[:size])
        stream = stream[size:]
        while soon:
            round_of(soon)
    assert b"".join(got) == sent
    assert not socket.is_over


@pytest.mark.parametrize("seed", range(10))
def test_mutated_frames_end_the_connection_at_worst(seed: int) -> None:
    """Nothing is raised, and after the end nothing is written or passed on."""
    draw = random.Random(seed)
    ends = 0
    for _ in range(300):
        soon: list[Any] = []
        connection, socket, got = visited(soon)
        hello = bytearray(HELLO)
        if draw.random() < 0.3:
            for _ in range(draw.randrange(1, 4)):
                hello[draw.randrange(len(hello))] = draw.randrange(256)
        connection.data_received(bytes(hello))
        kinds = (BINARY, CONTINUED, TEXT, PING, PONG, CLOSE, draw.randrange(16))
        for _ in range(10):
            data = bytearray(
                frame(draw.randbytes(draw.randrange(130)), draw.choice(kinds), last=draw.random() < 0.8)
            )
            if draw.random() < 0.5:
                data[draw.randrange(len(data))] = draw.randrange(256)
            before = len(got)
            was_over = socket.is_over
            connection.data_received(bytes(data[: draw.randrange(len(data)) + 1]))
            round_of(soon)
            connection.write(b"something for the client")
            assert not (was_over and len(got) > before)
        ends += socket.is_over
        connection.close()
        assert socket.is_over
    assert ends > 30


def enter(connection: WebSocketConnection, soon: list[Any]) -> None:
    """Open the WebSocket and be answered, as clients are that sent CONNECT."""
    connection.data_received(HELLO)
    connection.write(b"welcome")
    round_of(soon)


def flood(count: int) -> bytes:
    """Pings, and then an MQTT packet."""
    return frame(b"", PING) * count + frame(b"\xc0\x00")


def pongs(socket: Line) -> int:
    """How many pings were answered."""
    return socket.written.count(bytes((0x80 | PONG, 0)))


def test_a_flood_of_pings_is_answered_in_parts() -> None:
    """Thousands come in one read and once held the loop for a third of a second; then others have a turn."""
    soon: list[Any] = []
    connection, socket, got = visited(soon)
    enter(connection, soon)
    connection.data_received(flood(10_000))
    turns, most, before = 1, pongs(socket), pongs(socket)
    assert socket.is_paused, "nothing more is read until that is done"
    while soon:
        round_of(soon)
        turns, most, before = turns + 1, max(most, pongs(socket) - before), pongs(socket)
    assert turns > 10
    assert most <= FRAMES_A_ROUND + PIECE_BYTES // len(frame(b"", PING))
    assert socket.writes <= turns + 2, "those of one part are answered in one write"
    assert (pongs(socket), got) == (10_000, [b"\xc0\x00"])
    assert not socket.is_paused


def test_who_leaves_after_a_flood_is_heard_to_the_end() -> None:
    """The node is told that it is gone after what it had said."""
    soon: list[Any] = []
    connection, _, got = visited(soon)
    enter(connection, soon)
    connection.data_received(flood(2_000))
    connection.connection_lost(None)
    assert got == []
    while soon:
        round_of(soon)
    assert got == [b"\xc0\x00", b"lost"]


def test_a_client_that_is_held_is_looked_at_no_further() -> None:
    """It goes on when it is released, and is read again after that."""
    soon: list[Any] = []
    connection, socket, got = visited(soon)
    enter(connection, soon)
    connection.data_received(flood(2_000))
    connection.hold()
    while soon:
        round_of(soon)
    assert (got, socket.is_paused) == ([], True)
    connection.release()
    while soon:
        round_of(soon)
    assert (got, socket.is_paused) == ([b"\xc0\x00"], False)


def test_large_frames_are_passed_on_at_once() -> None:
    """Only what is many is cut."""
    soon: list[Any] = []
    connection, _, got = visited(soon)
    connection.data_received(HELLO)
    connection.data_received(frame(bytes(100_000)))
    assert sum(map(len, got)) == 100_000
    round_of(soon)
    assert not soon


def test_floods_of_many_share_what_is_looked_at_in_a_round() -> None:
    """Twenty once had twenty parts looked at in each; they take turns, and all are heard to the end."""
    soon: list[Any] = []
    line = FrameLine(SimpleNamespace(call_soon=soon.append))  # type: ignore[arg-type]  # all that it needs
    all_of_them = [visited(soon, line) for _ in range(20)]
    for connection, _, _ in all_of_them:
        enter(connection, soon)

    def answered() -> list[int]:
        return [pongs(socket) for _, socket, _ in all_of_them]

    for connection, _, _ in all_of_them:
        connection.data_received(flood(2_000))
    most, before, first = sum(answered()), sum(answered()), 0
    while soon:
        round_of(soon)
        now = answered()
        most, before = max(most, sum(now) - before), sum(now)
        first = first or (max(now) if min(now) else 0)
    assert most <= FRAMES_A_ROUND + PIECE_BYTES // len(frame(b"", PING))
    assert first <= 2 * (FRAMES_A_ROUND + PIECE_BYTES // len(frame(b"", PING))), "one after the other"
    assert answered() == [2_000] * 20
    assert all(got == [b"\xc0\x00"] and not socket.is_paused for _, socket, got in all_of_them)


@pytest.mark.parametrize("kind", [PING, PONG, BINARY])
def test_a_stranger_that_says_nothing_in_many_frames_is_closed(kind: int) -> None:
    """Before CONNECT a few are taken, for those in between that ask whether a connection lives."""
    soon: list[Any] = []
    connection, socket, got = visited(soon)
    connection.data_received(HELLO)
    connection.data_received(frame(b"", kind) * IDLE_FRAMES_MAX)
    assert not socket.is_over
    connection.data_received(frame(b"", kind) * 10_000)
    while soon:
        round_of(soon)
    assert (socket.is_over, got) == (True, [])
    assert pongs(socket) == (IDLE_FRAMES_MAX if kind == PING else 0)
    assert socket.written.endswith(b"\x03\xf0CONNECT first."), "1008, a policy"
