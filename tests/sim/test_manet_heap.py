"""The compiled clock of a mobile network, as plain Python: it gives events back as a sorted list would."""

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sojourn.sim.manet import heap as clock
from sojourn.sim.manet.state import ATTEMPT, HAPPENING, ORDER, OVERFLOW, RUN, Net

ROOM = 12
KINDS = (0, ATTEMPT)
"""One that is planned seconds ahead, and one of the radio's."""


def plain(function: Any) -> Callable[..., Any]:
    """Return the function that was compiled."""
    found: Callable[..., Any] = function.py_func
    return found


PLAN, DROP, NEXT = plain(clock.plan), plain(clock.drop_first), plain(clock.next_heap)


@pytest.fixture(autouse=True)
def _as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_move", plain(clock._move))


def _clock() -> Net:
    """A network of which nothing but its clock is there."""
    parts = dict.fromkeys(Net._fields)
    parts["heap"] = np.zeros((len(KINDS), ROOM), HAPPENING).view(np.recarray)
    parts["run"] = np.zeros(1, RUN).view(np.recarray)
    return Net(**parts)  # type: ignore[arg-type]  # the clock asks for no more


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 4), st.sampled_from(KINDS))), max_size=60))
def test_events_come_by_time_then_in_the_order_of_planning(script: list[tuple[int, int] | None]) -> None:
    """Whatever is planned and taken in between: a time of either kind, and None for the first event."""
    net, model, order = _clock(), list[tuple[float, int]](), 0
    numbers = net.run[0].numbers
    for step in script:
        which = NEXT(net)
        assert (which < 0) == (not model)
        if step is None:
            if model:
                first = net.heap[which, 0]
                assert (first.time_s, first.a) == heapq.heappop(model)
                DROP(net, which)
        elif len(model) < ROOM:
            time_s, kind = step
            PLAN(net, float(time_s), kind, order, 0, 0)
            heapq.heappush(model, (float(time_s), order))
            order += 1
        assert sum(net.run[0].heap_sizes) == len(model)
        assert numbers[ORDER] == order


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_clock_counts_what_it_cannot_take(kind: int) -> None:
    """No event is overwritten, and the world can say that it was too small."""
    net = _clock()
    for at in range(ROOM + 3):
        PLAN(net, float(-at), kind, at, 0, 0)
    assert (max(net.run[0].heap_sizes), net.run[0].numbers[OVERFLOW]) == (ROOM, 3)
    assert net.heap[NEXT(net), 0].a == ROOM - 1
