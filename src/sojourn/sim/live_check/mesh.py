"""The connections between machines over which copies are kept, with all that can go wrong with them.

There is one between any two machines that run and can see each other. One that breaks loses what is on its
way, and each side notices in its own time; one that is deaf carries nothing, and nobody is told.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from sojourn.broker.seats.messages import Message

if TYPE_CHECKING:
    from sojourn.sim.live_check.stations import Station
    from sojourn.sim.live_check.world import World

LATENCY_S = (0.001, 0.015)
PAUSE_S = (0.02, 0.5)
"""How long after a connection broke it is made again."""
DRIP_S = 0.001
"""The pause between messages that were held back."""


class Wire:
    """One connection of two machines."""

    def __init__(self, mesh: Mesh, ends: tuple[Station, Station]) -> None:
        self._mesh, self.ends = mesh, ends
        self.is_cut = False
        self._last_s = [0.0, 0.0]
        self._deaf_until_s = 0.0

    def send(self, sender: Station, message: Message) -> None:
        """Let a message arrive at the other end, after those before it."""
        if self.is_cut:
            return
        mesh = self._mesh
        to = 0 if sender is self.ends[1] else 1
        low, high = LATENCY_S
        at_s = max(mesh.world.now, self._deaf_until_s) + low + (high - low) * mesh.draw.random()
        self._last_s[to] = max(self._last_s[to] + 1e-9, at_s)
        mesh.world.clock.plan(self._last_s[to], partial(self._arrive, to, sender), message)

    def _arrive(self, to: int, sender: Station, message: Message) -> None:
        if self.is_cut:
            return
        if self._mesh.world.now < self._deaf_until_s:  # it has become deaf meanwhile
            self._last_s[to] = max(self._last_s[to], self._deaf_until_s) + DRIP_S
            self._mesh.world.clock.plan(self._last_s[to], partial(self._arrive, to, sender), message)
            return
        self.ends[to].heard(sender.name, message)

    def silence(self, seconds: float) -> None:
        """Let nothing arrive for a while."""
        self._deaf_until_s = max(self._deaf_until_s, self._mesh.world.now + seconds)


class Mesh:
    """All connections of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.draw = random.Random(f"{world.script.spec.seed}/mesh")
        self.stations: dict[str, Station] = {}
        self._wires: dict[frozenset[str], Wire] = {}
        self._parted_s: dict[frozenset[str], float] = {}
        self._calling: set[frozenset[str]] = set()

    def can_see(self, one: str, other: str) -> bool:
        """Whether two machines can reach each other."""
        return one == other or self._parted_s.get(frozenset({one, other}), 0.0) <= self.world.now

    def send(self, sender: Station, peer: str, message: Message) -> None:
        """Tell another machine something, if there is a connection."""
        wire = self._wires.get(frozenset({sender.name, peer}))
        if wire is not None:
            wire.send(sender, message)

    def call(self, name: str) -> None:
        """A machine has begun to run: connect it to all others."""
        for other in self.stations:
            if other != name:
                self._retry(frozenset({name, other}))

    def _retry(self, pair: frozenset[str]) -> None:
        if pair not in self._calling:
            self._calling.add(pair)
            low, high = PAUSE_S
            after_s = low + (high - low) * self.draw.random() if self.world.now else low
            self.world.clock.plan(self.world.now + after_s, self._try, pair)

    def _try(self, pair: frozenset[str]) -> None:
        self._calling.discard(pair)
        one, other = sorted(pair)
        ends = self.stations[one], self.stations[other]
        if pair in self._wires or not all(end.is_up for end in ends):
            return
        if not self.can_see(one, other):
            self._retry(pair)
            return
        self._wires[pair] = Wire(self, ends)
        ends[0].connected(other)
        ends[1].connected(one)

    def break_(self, one: str, other: str, notice_s: float = 0.05) -> None:
        """Break a connection; both sides notice, each in its own time."""
        pair = frozenset({one, other})
        wire = self._wires.pop(pair, None)
        if wire is None:
            return
        wire.is_cut = True
        for end, far in zip(wire.ends, reversed(wire.ends), strict=True):
            at_s = self.world.now + notice_s * self.draw.random()
            self.world.clock.plan(at_s, partial(self._notice, end, pair), far.name)
        self.world.clock.plan(self.world.now + notice_s, self._retry_later, pair)

    def _notice(self, end: Station, pair: frozenset[str], far: str) -> None:
        if pair not in self._wires:  # else a newer one has told it
            end.lost(far)

    def _retry_later(self, pair: frozenset[str]) -> None:
        self._retry(pair)

    def part(self, group: frozenset[str], seconds: float) -> None:
        """Let a group of machines and all others not see each other for a while."""
        self.world.counts["machines parted"] += 1
        for one in sorted(group):
            for other in sorted(self.stations.keys() - group):
                self._parted_s[frozenset({one, other})] = self.world.now + seconds
                self.break_(one, other, notice_s=min(seconds, 3.0))

    def silence(self, name: str, seconds: float) -> None:
        """Let a machine's connections carry nothing for a while, though its links and clients are well."""
        self.world.counts["machines silenced"] += 1
        for pair, wire in self._wires.items():
            if name in pair:
                wire.silence(seconds)

    def mend(self) -> None:
        """Let all see each other again."""
        self._parted_s.clear()
