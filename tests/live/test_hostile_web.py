"""Bytes that are no WebSocket, or a broken one: nothing is raised, and what MQTT gets is what frames held."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn.live.brokers.websocket import Gate, WebSocketConnection
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
        self.is_over = False

    def write(self, data: Any) -> None:
        """Keep it."""
        assert not self.is_over
        self.written += bytes(data)

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
        """Nothing was paused."""

    def pause_reading(self) -> None:
        """Nobody looks."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There are none."""


def visited() -> tuple[WebSocketConnection, Line, list[bytes]]:
    """A connection, its socket, and what MQTT got of it."""
    got: list[bytes] = []
    node: Any = SimpleNamespace(
        has_room_for_another=lambda: True,
        config=SimpleNamespace(limits=Limits()),
        opened=lambda *_: 1,
        tell=lambda fact: got.append(fact.data),
        loop=SimpleNamespace(call_later=lambda *_: None, call_soon=lambda *_: None),
    )
    connection, socket = WebSocketConnection(node, Gate(None, on_loopback=True), "listen_ws"), Line()
    connection.connection_made(socket)
    return connection, socket, got


@pytest.mark.parametrize("seed", range(5))
def test_frames_of_every_kind_and_cut_hold_the_same_bytes(seed: int) -> None:
    """Data of every length in frames of every kind, cut anywhere on the way."""
    draw = random.Random(seed)
    connection, socket, got = visited()
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
    while stream:
        size = draw.choice((1, 7, 1_000, 100_000))
        connection.data_received(stream[:size])
        stream = stream[size:]
    assert b"".join(got) == sent
    assert not socket.is_over


@pytest.mark.parametrize("seed", range(10))
def test_mutated_frames_end_the_connection_at_worst(seed: int) -> None:
    """Nothing is raised, and after the end nothing is written or passed on."""
    draw = random.Random(seed)
    ends = 0
    for _ in range(300):
        connection, socket, got = visited()
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
            connection.write(b"something for the client")
            assert not (was_over and len(got) > before)
        ends += socket.is_over
        connection.close()
        assert socket.is_over
    assert ends > 30
