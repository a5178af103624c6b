"""A publisher that keeps back what nobody wants, and buffers while it is away (paper 003, sections 3.1, 3.2).

`Client(url, quench=True)` asks its broker for the combined interest of all subscribers. The rules are those
of `edge/source.py`, with these of a live client:

- An event that matches nothing is not sent, and counted (`quenched`). A retained event is always sent: it is
  for later subscribers.
- While there is no connection, `publish` returns at once and the event is buffered, within
  `BUFFER_EVENTS_MAX` and `BUFFER_BYTES_MAX`; when that is full, first those go that nobody wanted by the last
  known interest, then the oldest (`discarded`). Who needs a broker's promise for each event does not quench.
- On a connection, the buffer waits until the broker has told the interest, or `ANSWER_S`; a broker that does
  not quench says so on CONNACK, and gets everything. What is known of one broker is nothing to the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import mqtt5
import msgspec

from sojourn.edge.quench import QuenchFilter, QuenchUpdate
from sojourn.edge.source import (
    AnswerTimedOut,
    AskQuench,
    Connected,
    Discard,
    Disconnected,
    Effect,
    EventSource,
    Generated,
    Publish,
    Quenched,
    SourceRules,
)
from sojourn.errors import SojournError
from sojourn.interest import Event
from sojourn.mqtt.content import event_of
from sojourn.mqtt.message import Properties, new_message

BUFFER_EVENTS_MAX = 1_000
BUFFER_BYTES_MAX = 1 << 20
ANSWER_S = 5.0
EARLY_MAX = 16

Send = Callable[[], Coroutine[Any, Any, None]]


class _Update(msgspec.Struct, frozen=True):
    """An update as it comes."""

    version: int
    base: int
    dropped: tuple[int, ...]
    added: tuple[tuple[int, str], ...]


_read = msgspec.json.Decoder(_Update).decode


class Quench:
    """What one client knows of what is wanted, and what waits until it knows."""

    def __init__(self) -> None:
        self.quenched = 0
        """Events that were not sent because nobody wanted them."""
        self.discarded = 0
        """Events that were let go because the buffer was full, or that no broker took."""
        self._source = EventSource(
            SourceRules(
                quench=True,
                discarding="quench",
                buffer_events_max=BUFFER_EVENTS_MAX,
                buffer_bytes_max=BUFFER_BYTES_MAX,
                answer_timeout_s=ANSWER_S,
            )
        )
        self._sends: dict[int, Send] = {}
        """By identity of a buffered event: how to send it."""
        self._sending: set[asyncio.Task[None]] = set()
        self._early: deque[bytes] = deque(maxlen=EARLY_MAX)
        """Updates that came right behind the CONNACK, before the client had looked at that."""

    @property
    def buffered(self) -> int:
        """Events that wait for a connection."""
        return self._source.buffered

    @property
    def version(self) -> int:
        """The version of the interest that is known; -1 for none."""
        return self._source.filter.version

    async def passes(self, packet: mqtt5.PublishPacket, send: Send, connected: bool) -> bool:  # noqa: FBT001 - here or away
        """Whether an event is to be sent now; else it was kept back, or `send` is called when it is time."""
        if not connected and self._source.connected:
            self._source.handle(Disconnected(), 0.0)
        event = _event_of(packet)
        self._sends[id(event)] = send
        effects = self._source.handle(Generated(event, len(packet.payload or b"") + len(packet.topic)), 0.0)
        sends_now = any(isinstance(effect, Publish) for effect in effects)
        if sends_now:
            del self._sends[id(event)]
            if self._sending:
                await asyncio.sleep(0)  # what was buffered has begun by then, and takes its turn before
        else:
            self._carry_out(effects)
        return sends_now

    def connected(self, *, answers: bool) -> None:
        """A broker was reached; it will tell what is wanted if it `answers`."""
        self._source.handle(Disconnected(), 0.0)
        self._source.filter = QuenchFilter()
        asked = self._source.handle(Connected(), 0.0)
        for effect in asked:
            if isinstance(effect, AskQuench) and not answers:
                self._carry_out(self._source.handle(AnswerTimedOut(effect.token), 0.0))
            elif isinstance(effect, AskQuench):
                asyncio.get_running_loop().call_later(effect.timeout_s, self._timed_out, effect.token)
        while self._early:
            self.told(self._early.popleft())

    def told(self, payload: bytes, *, early: bool = False) -> None:
        """Take an update; one that cannot be used means that nothing is known any more."""
        if early:
            self._early.append(payload)
            return
        try:
            update = _read(payload)
            effects = self._source.handle(
                Quenched(QuenchUpdate(update.version, update.base, update.dropped, update.added)), 0.0
            )
        except (msgspec.MsgspecError, SojournError):
            effects = [AskQuench(0, 0, 0.0)]
        if any(isinstance(effect, AskQuench) for effect in effects):
            self._source.filter = QuenchFilter()
            return
        self._carry_out(effects)

    def _timed_out(self, token: int) -> None:
        self._carry_out(self._source.handle(AnswerTimedOut(token), 0.0))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Publish | Discard):
                send = self._sends.pop(id(effect.event))
                if isinstance(effect, Publish):
                    task = asyncio.get_running_loop().create_task(send())
                    self._sending.add(task)
                    task.add_done_callback(self._sent)
                elif effect.reason == "quenched":
                    self.quenched += 1
                else:
                    self.discarded += 1

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.discarded += 1


def _event_of(packet: mqtt5.PublishPacket) -> Event:
    """The event as a broker reads it."""
    properties = Properties(user=tuple(packet.user_properties))
    return event_of(new_message(packet.topic, packet.payload or b"", qos=0, now=0.0, properties=properties))
