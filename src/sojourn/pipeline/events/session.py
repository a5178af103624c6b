"""A session at the brokers, for callers that are no coroutines: Spark calls from a thread of its own.

The client lives in an event loop in a thread of this object. Between two calls it goes on receiving, as far
as its inbox allows, and answering the broker. Nothing is acknowledged before `settle` says so.

**When has everything come?** A silence proves nothing on a slow machine. A question to the broker does: its
answer takes the same way as the events that the broker had to send, so if nothing comes between several
questions and their answers, nothing was waiting.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from sojourn.live.client.client import Client
from sojourn.pipeline.events.rows import Arrived

Result = TypeVar("Result")

BYTES_MAX = 64 << 20
"""Payload that is taken at once, beside one event of any size: a batch goes through the driver as a whole."""
NOBODYS_TOPIC = "sojourn/nothing"
"""To take back a subscription that was never made asks a broker for an answer, and changes nothing."""
QUESTIONS = 3
"""Answered questions in a row between which nothing came: then nothing waits."""
PAUSE_S = 0.1
"""Between two such questions: what a hand-off is about to bring comes in its own time."""
CLOSE_S = 5.0


class Session:
    """A client in a loop of its own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._loop = asyncio.new_event_loop()
        self._back: deque[Arrived] = deque()
        threading.Thread(target=self._loop.run_forever, name="sojourn-session", daemon=True).start()

    def run(self, what: Coroutine[Any, Any, Result]) -> Result:
        """Wait for a coroutine."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def connect(self, marks: Mapping[str, int]) -> bool:
        """Connect and tell what was read before; whether the brokers knew the session."""
        self.client.seen(marks)
        self.run(self.client.connect())
        return self.client.resumed

    def take(self, most: int, wait_s: float, *, retained: bool = False) -> list[Arrived]:
        """What is there, at most so many; wait so long for the first.

        Copies of `retained` events are no part of a stream: the brokers send them at each subscription anew.
        """
        return self.run(self._take(most, wait_s, retained=retained))

    def put_back(self, arrived: Iterable[Arrived]) -> None:
        """Let these come first at the next `take`."""
        self._back.extendleft(reversed(list(arrived)))

    def settle(self, arrived: Arrived) -> None:
        """Let the brokers forget an event."""
        self._loop.call_soon_threadsafe(arrived.settle)

    def all_there_is(self, most: int, *, retained: bool = False) -> Iterator[list[Arrived]]:
        """Everything that the brokers have at present, piece by piece."""
        quiet = 0
        while quiet < QUESTIONS:
            self.run(self.client.unsubscribe(topic=NOBODYS_TOPIC))
            arrived = self.take(most, PAUSE_S, retained=retained)
            quiet = 0 if arrived else quiet + 1
            if arrived:
                yield arrived

    def close(self) -> None:
        """Disconnect; the brokers keep the session, and what was not acknowledged."""
        with suppress(Exception):  # there is nobody left to tell
            asyncio.run_coroutine_threadsafe(self.client.close(), self._loop).result(CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _take(self, most: int, wait_s: float, *, retained: bool) -> list[Arrived]:
        taken: list[Arrived] = []
        size = 0
        until = time.monotonic() + wait_s
        while len(taken) < most and size < BYTES_MAX:
            if self._back:
                arrived = self._back.popleft()
            else:
                left_s = 0.0 if taken else max(0.0, until - time.monotonic())
                try:
                    event, settle = await self.client.take(left_s)
                except TimeoutError:
                    break
                arrived = Arrived(event, time.time_ns() // 1000, settle)
                if event.retained and not retained:
                    settle()
                    continue
            taken.append(arrived)
            size += len(arrived.event.payload)
        return taken
