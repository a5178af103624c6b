"""Publishers of the roaming world: each sends as fast as the brokers let it, and may roam as well.

A publisher sends its next event when fewer than `publish_window` of its events are unacknowledged, after a
pause of `sleep_s`. While it roams it is silent without a broker, and goes on where it stopped. Over content
routing it advertises; over flooding there is nobody to tell.
"""

from typing import TYPE_CHECKING

import numpy as np

from sojourn.mobility import facts
from sojourn.sim.roaming.clients import NOWHERE
from sojourn.sim.roaming.run import Sojourn
from sojourn.sim.roaming.workload import VALUES

if TYPE_CHECKING:
    from sojourn.sim.roaming.world import RoamingWorld

_BLOCK = 4096


class Publisher:
    """One publisher."""

    __slots__ = (
        "_draw",
        "_path",
        "_values",
        "_world",
        "broker",
        "number",
        "open",
        "sequence",
        "source",
        "waits",
    )

    def __init__(self, world: "RoamingWorld", number: int, draw: np.random.Generator) -> None:
        self._world = world
        self._draw = draw
        self._values: list[int] = []
        self.number = number
        self.source = f"p{number}"
        self.broker = NOWHERE
        self.sequence = 0
        self.open = 0
        """Events that are not acknowledged yet."""
        self.waits = 0
        """Events it would send if it had a broker."""
        scenario = world.scenario
        self._path = world.setting.paths.sojourns(number, "publishers") if scenario.publishers_move else None

    @property
    def client(self) -> int:
        """Its number among all clients."""
        return self._world.setting.subscribers + self.number

    def start(self) -> None:
        """Connect, and fill the window."""
        world = self._world
        self.waits = world.scenario.publish_window
        if self._path is None:
            world.clock.plan(0.0, self._arrive, Sojourn(world.setting.publisher_broker, 0.0, float("inf")))
        else:
            stay = next((stay for stay in self._path if stay.to_s > 0), None)
            if stay is not None:
                world.clock.plan(max(0.0, stay.from_s), self._arrive, stay)

    def acknowledged(self) -> None:
        """An event has been handled everywhere: send the next one after a pause."""
        world = self._world
        self.open -= 1
        world.clock.plan(world.clock.now + world.scenario.sleep_s, self._send_or_wait)

    def _send_or_wait(self, _nothing: object) -> None:
        if self._world.clock.now >= self._world.end_s:
            return
        if self.broker == NOWHERE:
            self.waits += 1
            return
        self._send()

    def _send(self) -> None:
        world = self._world
        if not self._values:
            self._values = self._draw.integers(VALUES, size=_BLOCK).tolist()
        publication = world.workload.publication(self.number, self.sequence, self._values.pop())
        self.sequence += 1
        self.open += 1
        publication.outstanding = 1
        world.tally.note_published(self, publication)
        fact = facts.ClientPublished(publication)
        world.send_up(world.sites[self.broker], fact, world.scenario.event_bytes)

    def _plan_stay(self) -> None:
        world = self._world
        stay = next(self._path, None) if self._path is not None else None
        if stay is not None and world.clock.now < world.end_s:
            world.clock.plan(max(stay.from_s, world.clock.now), self._arrive, stay)

    def _arrive(self, stay: Sojourn) -> None:
        world = self._world
        self.broker = stay.broker
        if world.scenario.routing == "content":
            fact = facts.ClientArrived(self.client, (world.workload.advertisement,))
            world.send_up(world.sites[self.broker], fact, world.scenario.control_bytes)
        if stay.to_s < world.end_s:
            world.clock.plan(stay.to_s, self._leave, stay)
        waits, self.waits = self.waits, 0
        for _ in range(waits):
            self._send()

    def _leave(self, stay: Sojourn) -> None:
        world = self._world
        self.broker = NOWHERE
        if world.scenario.routing == "content":
            world.submit(world.sites[stay.broker], 0, facts.ClientLeft(self.client))
        self._plan_stay()
