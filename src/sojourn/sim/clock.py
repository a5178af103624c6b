"""Simulated time: a heap of what is going to happen, keyed (time, priority, sequence).

Priority and sequence share one integer, the priority above the 48th bit, so that two events compare in two
steps and never by what they carry. Events of one instant happen in the order in which they were planned,
but for the two priorities around the ordinary one: measuring begins before everything else of its instant,
and the run ends after it.

An event is a plain tuple (time, order, what, thing). If `what` is a tuple of ports, `thing` is a message that
arrives there; otherwise `what` is called with `thing`. `Clock.run` is the loop over the heap. Only the worlds
whose events carry ports (`publishers/`, `roaming/`) write it out, since there one more function call for each
message would be felt.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from math import inf, nextafter
from typing import Any

FIRST, ORDINARY, LAST = 0, 1, 2
_PRIORITY_SHIFT = 48
PROGRESS_STEPS = 200

Event = tuple[float, int, Any, Any]


class Clock:
    """The heap of planned events and the present time."""

    __slots__ = ("heap", "next_order", "now")

    def __init__(self) -> None:
        self.heap: list[Event] = []
        self.now = 0.0
        self.next_order: Callable[[], int] = count(ORDINARY << _PRIORITY_SHIFT).__next__
        """The order of one more ordinary event."""

    def plan(self, time_s: float, what: Callable[[Any], None], thing: object = None) -> None:
        """Have something happen at a time that has not passed."""
        assert time_s >= self.now, "nothing can be planned for the past"
        heappush(self.heap, (time_s, self.next_order(), what, thing))

    def plan_apart(
        self, time_s: float, priority: int, what: Callable[[Any], None], thing: object = None
    ) -> None:
        """Have something happen before (`FIRST`) or after (`LAST`) everything else of its instant."""
        sequence = self.next_order() & ((1 << _PRIORITY_SHIFT) - 1)
        heappush(self.heap, (time_s, priority << _PRIORITY_SHIFT | sequence, what, thing))

    def plan_progress(self, end_s: float, progress: Callable[[float], None] | None) -> None:
        """Have somebody told, now and then, which share of the time until `end_s` has passed."""
        if progress is not None:
            for step in range(1, PROGRESS_STEPS + 1):
                share = step / PROGRESS_STEPS
                self.plan_apart(share * end_s, LAST, progress, share)

    def run(self, before_s: float = inf, *, most: int | None = None) -> int:
        """Let what is due before a time happen, at most so many events; return how many there were."""
        heap, pop = self.heap, heappop
        happened = 0
        while heap and heap[0][0] < before_s and happened != most:
            self.now, _, what, thing = pop(heap)
            happened += 1
            what(thing)
        return happened

    def run_until(self, time_s: float) -> None:
        """Let everything happen that is due before a time; then it is that time."""
        self.run(time_s)
        self.now = max(self.now, time_s)

    def run_through(self, time_s: float, *, most: int | None = None) -> int:
        """Let everything happen that is due until a time, that instant included; then it is that time."""
        happened = self.run(nextafter(time_s, inf), most=most)
        self.now = time_s
        return happened


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for cycles: a world makes few, and has much to look through."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
