"""Simulated time: a heap of what is going to happen, keyed (time, priority, sequence).

Priority and sequence share one integer, the priority above the 48th bit, so that two events compare in two
steps and never by what they carry. Events of one instant happen in the order in which they were planned,
but for the two priorities around the ordinary one: measuring begins before everything else of its instant,
and the run ends after it.

An event is a plain tuple (time, order, what, thing). If `what` is a tuple of ports, `thing` is a message that
arrives there; otherwise `what` is called with `thing`. The loop over the heap is in `world.py`, since it is
the one place where a function call a message would be felt.
"""

from collections.abc import Callable
from heapq import heappush
from itertools import count
from typing import Any

FIRST, ORDINARY, LAST = 0, 1, 2
_PRIORITY_SHIFT = 48

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
