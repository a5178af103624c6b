"""Clients that send without pause are read some at a time, also those that are being closed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from sojourn.live.brokers.connection import TURN_BYTES, ClientConnection
from sojourn.live.brokers.reading import AT_ONCE, ReadingLine
from sojourn.mqtt.limits import Limits


class Line(asyncio.Transport):
    """A transport that knows whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = self.is_closed = False

    def pause_reading(self) -> None:
        """What comes waits."""
        assert not self.is_closed
        self.is_paused = True

    def resume_reading(self) -> None:
        """What comes is read again."""
        assert not self.is_closed
        self.is_paused = False

    def is_closing(self) -> bool:
        """Whether it ends."""
        return self.is_closed

    def can_write_eof(self) -> bool:
        """As TLS cannot."""
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There are none."""

    def write(self, data: Any) -> None:
        """Nobody reads it."""


class Hall:
    """A node without a broker, whose loop goes round when it is told to."""

    def __init__(self) -> None:
        self.soon: list[Any] = []
        loop: Any = SimpleNamespace(call_later=lambda *_: None, call_soon=self.soon.append)
        self.loop, self.reading_line = loop, ReadingLine(loop)
        self.config = SimpleNamespace(limits=Limits())
        self.doorkeeper = SimpleNamespace(authority="")
        self.told: list[Any] = []
        self.tell = self.told.append

    def has_room_for_another(self) -> bool:
        """There always is."""
        return True

    def opened(self, *_: Any, **__: Any) -> int:
        """Take a connection."""
        return 1

    def go_round(self) -> None:
        """Call what was to be called soon."""
        due, self.soon[:] = self.soon[:], []
        for one in due:
            one()


def visitors(hall: Any, count: int) -> list[tuple[ClientConnection, Line]]:
    """Some connections."""
    found = []
    for _ in range(count):
        connection, line = ClientConnection(hall), Line()
        connection.connection_made(line)
        found.append((connection, line))
    return found


def test_many_that_send_a_lot_are_read_some_at_a_time() -> None:
    """Each is read again after the others, and no round of the loop reads more than a few."""
    hall = Hall()
    crowd = visitors(hall, 3 * AT_ONCE)
    for connection, _ in crowd:
        connection.data_received(bytes(TURN_BYTES))
    assert len(hall.told) == len(crowd)
    for rounds in range(1, 4):
        hall.go_round()
        assert [line.is_paused for _, line in crowd] == [
            place >= rounds * AT_ONCE for place in range(len(crowd))
        ]
    assert not hall.soon


def test_who_is_being_closed_is_read_no_faster() -> None:
    """What it still sends is let pass in its turn: it would be read without end otherwise, before others."""
    hall = Hall()
    (connection, line), (gone, end) = visitors(hall, 2)
    for one in (connection, gone):
        one.close()
        one.data_received(bytes(TURN_BYTES))
    assert line.is_paused
    assert not hall.told
    end.is_closed = True
    hall.go_round()
    assert not line.is_paused


def test_who_waits_for_another_reason_stays_waiting() -> None:
    """Its turn to be read comes, and it is held for a full link: then it is not read."""
    hall = Hall()
    [(connection, line)] = visitors(hall, 1)
    connection.data_received(bytes(TURN_BYTES))
    connection.hold()
    hall.go_round()
    assert line.is_paused
    connection.release()
    assert not line.is_paused
