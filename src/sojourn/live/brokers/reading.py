"""Who sent a lot at once is read again in its turn, some clients in each round of the loop.

A round reads every socket that has something, a quarter of a megabyte of each. Of a hundred clients that
send without pause this would be tens of milliseconds a round, whether what they send is read, kept until it
has come whole, or thrown away because they are being closed.

Frames of WebSockets take long to look at, and thousands fit into one read: all clients together have so many
of them looked at in a round, and who has more goes on when those have who waited before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

AT_ONCE = 16
"""Clients that are read again in one round."""
FRAMES_A_ROUND = 128
"""Frames of WebSockets, of all clients together, that are looked at in one round: a few milliseconds."""


class ReadingLine:
    """Those who wait to be read again."""

    __slots__ = ("_is_moving", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_moving = False

    def join(self, go_on: Callable[[], None]) -> None:
        """Have somebody read again (`go_on`) when it is its turn; until then it is not read."""
        self._waiting.append(go_on)
        if not self._is_moving:
            self._is_moving = True
            self._loop.call_soon(self._move)

    def _move(self) -> None:
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._waiting.popleft()()
        self._is_moving = bool(self._waiting)
        if self._is_moving:
            self._loop.call_soon(self._move)


class FrameLine:
    """What may be looked at in this round of the loop, and those who wait for one of the next."""

    __slots__ = ("_is_moving", "_loop", "_waiting", "left")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_moving = False
        self.left = FRAMES_A_ROUND
        """How many frames may still be looked at before it is others' turn."""

    def spend(self, count: int) -> None:
        """Note that frames were looked at; the next round has as many as this one had."""
        self.left -= count
        self._move_soon()

    def join(self, go_on: Callable[[], None]) -> None:
        """Have somebody look further (`go_on`) when it is its turn."""
        self._waiting.append(go_on)
        self._move_soon()

    def _move_soon(self) -> None:
        if not self._is_moving:
            self._is_moving = True
            self._loop.call_soon(self._move)

    def _move(self) -> None:
        self._is_moving, self.left = False, FRAMES_A_ROUND
        try:
            for _ in range(len(self._waiting)):
                if self.left <= 0:
                    break
                self._waiting.popleft()()
        finally:
            if self._waiting:
                self._move_soon()
