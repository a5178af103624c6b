"""What the world did to its brokers and links, for an oracle that has to know what could be promised.

It holds when links were out of use, which brokers forgot what and how far clocks jumped: nothing of what a
broker thinks. A broker that forgot something is *settled* once all its links have been in use for a while.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from sojourn.sim.live_check.disk import ROOM_CHECK_S

if TYPE_CHECKING:
    from sojourn.sim.live_check.process import Process
    from sojourn.sim.live_check.wires import Link
    from sojourn.sim.live_check.world import World

SETTLING_S = 1.0
"""How long after it was connected a link is in use at the latest."""
CALM_S = 3.0
"""What was to be said over links that were in use for so long has been said."""


class Forgotten(NamedTuple):
    """A broker lost a part of its memory."""

    broker: int
    died_s: float
    since_s: float
    """What it had taken in since then may be lost."""
    held_s: float
    """The sessions that it had since then may be lost, or be there again as they were before."""


class Jump(NamedTuple):
    """A clock was set ahead at a restart."""

    broker: int
    at_s: float
    ahead_s: float


class Log:
    """The faults of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        count = world.script.brokers
        self._bad: list[list[tuple[float, float]]] = [[] for _ in world.script.links]
        """By link: when it was out of use."""
        self._down_s: dict[int, float] = dict.fromkeys(range(len(world.script.links)), 0.0)
        """By link that is out of use now: since when."""
        self._deaf: list[tuple[float, float]] = []
        """When some broker took nothing in because its disk was full: it leaves its neighbours' words with
        them, over links that are in use."""
        self._waited: list[tuple[float, float]] = []
        """When turns of some broker waited for copies, for longer than a link takes to settle."""
        self.forgotten: list[Forgotten] = []
        self.jumps: list[Jump] = []
        near: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for number, (one, other) in enumerate(world.script.links):
            near[one].append((other, number))
            near[other].append((one, number))
        self._near = near
        self._paths = [_paths_from(near, start) for start in range(count)]
        """By two brokers: the links between them."""

    # What happened -------------------------------------------------------------------------------------

    def link_up(self, link: Link) -> None:
        """A link was connected."""
        since_s = self._down_s.pop(link.number, None)
        if since_s is not None:
            self._bad[link.number].append((since_s, self._world.now + SETTLING_S))

    def link_down(self, link: Link) -> None:
        """A link broke."""
        self._down_s.setdefault(link.number, self._world.now)

    def link_stalled(self, link: Link, seconds: float) -> None:
        """A link carries nothing for a while."""
        now = self._world.now
        self._bad[link.number].append((now, now + seconds + SETTLING_S))

    def disk_filled(self, seconds: float) -> None:
        """A broker can note nothing for a while, and looks only now and then whether it can again."""
        now = self._world.now
        self._deaf.append((now, now + seconds + ROOM_CHECK_S + SETTLING_S))

    def waited(self, since_s: float) -> None:
        """A turn of some broker has waited for copies, and does no longer."""
        now = self._world.now
        if now - since_s > SETTLING_S / 2:
            self._waited.append((since_s, now + SETTLING_S))

    def died(self, process: Process) -> None:
        """A process died."""

    def forgot(self, process: Process, since_s: float | None) -> None:
        """A process died and its store lost what was learnt since then; None if nothing."""
        if since_s is not None:
            died_s = self._world.now
            # A store that is gone brings nothing back: what it had given away before is no loss.
            self.forgotten.append(Forgotten(process.number, died_s, since_s, since_s or died_s))

    def jumped(self, process: Process, ahead_s: float) -> None:
        """A process was started with another clock."""
        if ahead_s > 0:
            self.jumps.append(Jump(process.number, self._world.now, ahead_s))

    # What follows --------------------------------------------------------------------------------------

    def path(self, one: int, other: int) -> tuple[int, ...]:
        """Return the links between two brokers."""
        return self._paths[one][other]

    def brokers_between(self, one: int, other: int) -> set[int]:
        """Return the brokers on the way from one to another, both included."""
        links = self._world.script.links
        return {one, other}.union(*(links[number] for number in self.path(one, other)))

    def was_whole(self, one: int, other: int, since_s: float, until_s: float) -> bool:
        """Whether all links between two brokers were in use all the time."""
        return all(self._was_in_use(link, since_s, until_s) for link in self.path(one, other))

    def _was_in_use(self, link: int, since_s: float, until_s: float) -> bool:
        if self._down_s.get(link, math.inf) <= until_s:
            return False
        return not any(low <= until_s and since_s <= high for low, high in self._bad[link])

    def whole_from(self, links: tuple[int, ...], after_s: float) -> float:
        """Return from when on, after a time, links had all been in use for `CALM_S`; infinity if never."""
        at_s = after_s
        for _ in range(10_000):
            blocking = [
                high
                for link in links
                for low, high in [*self._bad[link], (self._down_s.get(link, math.inf), math.inf)]
                if low <= at_s + CALM_S and high >= at_s
            ]
            blocking += [high for low, high in self._waits() if low <= at_s + CALM_S and high >= at_s]
            if not blocking:
                return at_s + CALM_S
            at_s = max(blocking) + 1e-6
            if math.isinf(at_s):
                break
        return math.inf

    def settled_s(self, one: Forgotten) -> float:
        """Return when a broker that forgot something was told everything again."""
        return self.whole_from(tuple(number for _, number in self._near[one.broker]), one.died_s)

    def is_over(self, began_s: float) -> bool:
        """Whether what one broker said to all others then has been heard by now."""
        links = tuple(range(len(self._bad)))
        now = self._world.now
        deaf = [*self._deaf, *self._waits()]
        if any(low <= now and began_s <= high + CALM_S for low, high in deaf):
            began_s = max(high for low, high in deaf if low <= now)
            return now >= self.whole_from(links, began_s)
        if all(self._was_in_use(link, began_s - CALM_S, now) for link in links):
            return True
        return now >= self.whole_from(links, began_s)

    def was_deaf(self, since_s: float, until_s: float) -> bool:
        """Whether some broker took nothing in at some time between."""
        return any(low <= until_s and since_s <= high for low, high in [*self._deaf, *self._waits()])

    def _waits(self) -> list[tuple[float, float]]:
        """Return when turns waited for copies, those that still do included."""
        now = self._world.now
        open_s = [one for one in self._world.waiting_since() if now - one > SETTLING_S / 2]
        return [*self._waited, *((one, math.inf) for one in open_s)]

    def ahead_s(self, since_s: float, until_s: float) -> float:
        """Return by how much all clocks together jumped ahead in a time."""
        return sum(one.ahead_s for one in self.jumps if since_s <= one.at_s <= until_s)


def _paths_from(near: list[list[tuple[int, int]]], start: int) -> list[tuple[int, ...]]:
    paths: dict[int, tuple[int, ...]] = {start: ()}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for there, link in near[here]:
            if there not in paths:
                paths[there] = (*paths[here], link)
                waiting.append(there)
    return [paths[broker] for broker in range(len(near))]
