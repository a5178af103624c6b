"""Hostile clients in a world: each has a few connections, at any broker, and says what `hostility.py` draws.

A step of a stranger opens a connection, says something on one, ends one, breaks it off, or reads nothing for
a while. A stranger takes in what comes and answers nothing; it keeps no rule, not even that of one connection
for one client identifier.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from sojourn.sim.live_check import hostility
from sojourn.sim.live_check.steps import Step
from sojourn.sim.live_check.wires import ClientWire

if TYPE_CHECKING:
    from sojourn.sim.live_check.world import World

ADDRESS = "elsewhere"
"""Where all of them come from: what one address uses up is not lacking to others."""
STEPS = "hostile steps"
WIRES_MAX = 4
"""Connections of one stranger."""


class Stranger:
    """One that does not keep the rules."""

    def __init__(self, world: World, number: int) -> None:
        self._world, self._number = world, number
        self._latency = random.Random(f"{world.script.spec.seed}/stranger/{number}")
        self._wires: list[ClientWire] = []

    def act(self, step: Step) -> None:
        """Do one thing, which the step's own seed decides."""
        world = self._world
        world.counts[STEPS] += 1
        draw = random.Random(step.detail[0])
        what = draw.random()
        if not self._wires or (what < 0.12 and len(self._wires) < WIRES_MAX):
            self._open(step.where, draw)
            return
        wire = draw.choice(self._wires)
        if what < 0.9:
            self._say(wire, hostility.said(draw))
        elif what < 0.93:
            self._wires.remove(wire)
            wire.vanish(draw.choice((0.0, 0.5, 5.0)))
        elif what < 0.95:
            self._wires.remove(wire)
            wire.close()
        elif what < 0.97:
            wire.cut(draw.choice((0.0, 0.5)))
        else:
            wire.stall(draw.choice((0.01, 1.0, 10.0)))

    def leave(self) -> None:
        """Go for good, without a word."""
        for wire in self._wires:
            wire.vanish(0.0)
        self._wires.clear()

    def _open(self, broker: int, draw: random.Random) -> None:
        process = self._world.processes[broker]
        if process.broker is None:
            return
        wire = ClientWire(self._world, process, self._latency, self._take, self._ended, ADDRESS)
        self._wires.append(wire)
        try:
            hello = hostility.connect(draw) if draw.random() < 0.95 else hostility.good(draw)
        except ValueError:  # a value that the codec does not write
            hello = b"\x10\x00"
        if draw.random() < 0.1:
            hello = hostility.mutated(draw, hello)
        self._say(wire, hello + (hostility.good(draw) if draw.random() < 0.3 else b""))

    def _say(self, wire: ClientWire, data: bytes) -> None:
        self._world.saw(f"stranger {self._number}", wire.number, data)
        wire.write(data)

    def _take(self, wire: ClientWire, data: bytes) -> None:
        """Read, and make nothing of it."""

    def _ended(self, wire: ClientWire) -> None:
        if wire in self._wires:
            self._wires.remove(wire)
