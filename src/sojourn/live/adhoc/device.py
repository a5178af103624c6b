"""One device: the core of `adhoc.election` on a network segment, with a door for MQTT clients.

    device = Device(Settings(name="ann", folder=folder, segment=segment, listen=listen, door=door))
    await device.open()
    …
    await device.close()

It repeats the same beats: tell the core what happened, write down what it notes, do what it wants. It
decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sojourn.adhoc.election.messages import (
    Fact,
    Heard,
    Keep,
    Message,
    Offer,
    Say,
    SetTimer,
    Show,
    Started,
    Subscribed,
    TimerFired,
)
from sojourn.adhoc.election.node import Node
from sojourn.adhoc.election.states import Role
from sojourn.adhoc.election.timing import Timing
from sojourn.adhoc.election.upstream import EVERYTHING
from sojourn.live.adhoc.air import Air
from sojourn.live.adhoc.door import Door
from sojourn.live.adhoc.fixed import FixedNetwork
from sojourn.live.adhoc.notebook import Notebook, NotebookError
from sojourn.live.adhoc.segment import Segment
from sojourn.live.config import Address

JITTER = 0.1
SKEW_S = 30.0
"""By so much clocks of devices may differ, and nothing is missed that is published after a device's start."""

_log = logging.getLogger("sojourn.adhoc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a device is told when it is started."""

    name: str
    folder: Path
    """Where its custody log and its broker's store are."""
    segment: Segment
    listen: Address
    """Where other devices reach it."""
    door: Address
    """Where MQTT clients reach it."""
    timing: Timing
    fixed: str | None = None
    """The address of a broker of the fixed network, which may be out of reach."""
    secret: bytes = b""
    """What devices of one group know; without one anybody on the segment is of the group."""
    power_safe: bool = False


class Device:
    """One process of a group."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._notebook = Notebook.open(settings.folder, power_safe=settings.power_safe)
        self.node = Node(self._notebook.number, settings.timing, self._notebook.read())
        self._air = Air(self.node.number, settings.segment, settings.secret, self._on_heard)
        self.door = Door(settings.name, settings.door, settings.folder, self.tell)
        self.fixed = (
            None
            if settings.fixed is None
            else FixedNetwork(settings.fixed, self.node.number, self.tell, every_s=settings.timing.refresh_s)
        )
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._was: tuple[Role, int | None] = (Role.SEARCHING, None)
        self.failure: Exception | None = None
        """Why it cannot go on, if so."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the device stands to the broker otherwise than before."""

    @property
    def address(self) -> Address:
        """Where other devices reach it, with the true port."""
        return self._air.address

    @property
    def counts(self) -> dict[str, int]:
        """What was said, heard and dropped on the segment."""
        return dict(self._air.counts)

    async def open(self) -> None:
        """Begin: serve clients, and look for a broker."""
        await self._air.open(self.settings.listen)
        await self.door.open()
        self.tell(Started())
        if self.node.user.wanted is None:
            self.tell(Subscribed(EVERYTHING, time.time() - SKEW_S))
        if self.fixed is not None:
            self.fixed.open()

    async def close(self) -> None:
        """Stop in order; what is not settled waits in the folder."""
        if self.fixed is not None:
            await self.fixed.close()
        for timer in self._timers.values():
            timer.cancel()
        self._air.close()
        await self.door.close()
        self._notebook.close()

    def tell(self, fact: Fact) -> None:
        """Tell the core a fact, make its notes safe, and do what it wants; raise what keeps it from that."""
        if self.failure is not None:
            raise self.failure  # it has forgotten something: what it would do now it could not stand by
        effects = self.node.handle(fact, time.time())
        notes = [effect.note for effect in effects if isinstance(effect, Keep)]
        try:
            self._notebook.write(notes)
            if self._notebook.is_long:
                self._notebook.replace(self.node.memory())
        except (NotebookError, OSError) as error:
            self.failure = error
            self.on_change()
            raise
        for effect in effects:
            match effect:
                case Say(message):
                    self._air.say(message)
                case SetTimer():
                    self._set(effect)
                case Show():
                    self.door.show(effect)
                case Offer(kept) if self.fixed is not None:
                    self.fixed.offer(kept)
                case _:
                    pass
        self._look_for_change()

    def _on_heard(self, message: Message) -> None:
        self._try(Heard(message))

    def _try(self, fact: Fact) -> None:
        """Tell the core what nobody waits for; if that fails, whoever runs the device sees it."""
        with suppress(NotebookError, OSError):
            self.tell(fact)

    def _set(self, timer: SetTimer) -> None:
        delay_s = timer.delay_s
        if timer.periodic:
            delay_s *= 1 + JITTER * random.uniform(-1, 1)  # noqa: S311 - so that devices do not speak in step
        before = self._timers.get(timer.name)
        if before is not None:
            before.cancel()
        loop = asyncio.get_running_loop()
        self._timers[timer.name] = loop.call_later(delay_s, self._try, TimerFired(timer.name))

    def _look_for_change(self) -> None:
        now = self.node.state, self.node.broker
        if now != self._was:
            self._was = now
            _log.info("%s is %s, its broker is %s", self.settings.name, now[0].value, now[1])
            self.on_change()
