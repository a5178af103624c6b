"""Who sent a lot at once is read again in its turn, some clients in each round of the loop.

A round reads every socket that has something, a quarter of a megabyte of each. Of a hundred clients that
send without pause this would be tens of milliseconds a round, whether what they send is read, kept until it
has come whole, or thrown away because they are being closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

AT_ONCE = 16
"""Clients that are read again in one round."""


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
