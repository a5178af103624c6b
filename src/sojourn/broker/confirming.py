"""What SUBACK promises: every broker in reach knows of the subscription when its client is told.

An event that any broker in reach accepts after a SUBACK is delivered. Links are FIFO, so a question that
follows a subscription along a link is answered after the subscription was taken in there. The question goes
to all brokers over the tree and the answers come back along it (`Wave`, `Echo`): each broker answers when all
brokers behind it have. One wave at a time confirms everything that was asked for before it began.

A link that breaks takes its part of the tree out of the wave: those brokers are out of reach, and learn of
the subscription when they are back. A wave that is not answered in `WAVE_S` is over too, and that is counted.

A restart ends all of this: a client whose broker dies was told nothing, and asks again.
"""

from __future__ import annotations

from typing import NamedTuple

from sojourn.broker.links import Links
from sojourn.broker.messages import Echo, Wave

WAVE_S = 5.0
"""How long a wave may take before those who wait for it are answered without it."""
WAVES_MAX = 1_000
"""Waves of other brokers that are under way here; the oldest is forgotten first."""


class Answer(NamedTuple):
    """A SUBACK that waits."""

    connection: int
    packet: bytes


class Passing:
    """A wave that came from one neighbour and was passed on to others."""

    __slots__ = ("came_from", "silent")

    def __init__(self, came_from: int, silent: set[int]) -> None:
        self.came_from = came_from
        self.silent = silent


class Confirming:
    """The waves of one broker."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.waiting: list[Answer] = []
        """What the next wave confirms."""
        self._running: list[Answer] = []
        """What the wave under way confirms."""
        self._silent: set[int] = set()
        """The neighbours whose part of the tree has not answered it."""
        self._number = 0
        self._deadline_s = 0.0
        self._passing: dict[tuple[int, int], Passing] = {}
        self.confirmed: list[Answer] = []
        """Answers that may leave now."""
        self.unconfirmed = 0
        """Answers that left because a wave took too long."""

    def ask(self, answer: Answer) -> None:
        """Let an answer wait for the next wave."""
        self.waiting.append(answer)

    def restarted(self) -> None:
        """No connection is left: nobody waits for an answer."""
        for waiting in (self.waiting, self._running, self._silent, self._passing, self.confirmed):
            waiting.clear()

    def settle(self, now: float) -> None:
        """Begin a wave if answers wait for one and none is under way."""
        while self.waiting and not self._silent:
            self._running, self.waiting = self.waiting, []
            # A date, so that an answer to a wave of an earlier life is told from one to this.
            self._number = max(self._number + 1, int(now * 1_000))
            self._deadline_s = now + WAVE_S
            wave = Wave(self._links.number, self._number)
            self._silent = set(self._links.flood_volatile(wave, None, now))
            if not self._silent:
                self._finish()

    def next_moment(self) -> float | None:
        """When a wave has taken too long."""
        return self._deadline_s if self._silent else None

    def time_passed(self, now: float) -> None:
        """Give up on a wave that takes too long."""
        if self._silent and now >= self._deadline_s:
            self.unconfirmed += len(self._running)
            self._silent.clear()
            self._finish()

    def on_wave(self, wave: Wave, sender: int, now: float) -> None:
        """Pass another broker's wave on, or answer it where the tree ends."""
        told = set(self._links.flood_volatile(wave, sender, now))
        if not told:
            self._links.send_volatile(sender, Echo(wave.origin, wave.number), now)
            return
        self._passing[wave.origin, wave.number] = Passing(sender, told)
        if len(self._passing) > WAVES_MAX:
            del self._passing[next(iter(self._passing))]

    def on_echo(self, echo: Echo, sender: int, now: float) -> None:
        """All brokers behind a neighbour have answered."""
        if echo.origin == self._links.number:
            if echo.number == self._number:
                self._heard(sender)
            return
        passing = self._passing.get((echo.origin, echo.number))
        if passing is not None:
            passing.silent.discard(sender)
            self._answer_if_done(echo.origin, echo.number, now)

    def lost(self, peer: int, now: float) -> None:
        """A neighbour is out of reach: nobody waits for it."""
        self._heard(peer)
        for (origin, number), passing in list(self._passing.items()):
            if passing.came_from == peer:
                del self._passing[origin, number]
            else:
                passing.silent.discard(peer)
                self._answer_if_done(origin, number, now)

    def _answer_if_done(self, origin: int, number: int, now: float) -> None:
        passing = self._passing[origin, number]
        if not passing.silent:
            del self._passing[origin, number]
            self._links.send_volatile(passing.came_from, Echo(origin, number), now)

    def _heard(self, peer: int) -> None:
        if peer in self._silent:
            self._silent.discard(peer)
            if not self._silent:
                self._finish()

    def _finish(self) -> None:
        self.confirmed += self._running
        self._running = []
