"""The compiled clock of a mobile network, as plain Python: it gives events back as a sorted list would."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sojourn.sim.manet.heap import drop_first, plan
from sojourn.sim.manet.state import HAPPENING, HEAP_SIZE, ORDER, OVERFLOW, RUN, Net

ROOM = 12
PLAN, DROP = plan.py_func, drop_first.py_func  # type: ignore[attr-defined]  # the function that was compiled


def _clock() -> Net:
    """A network of which nothing but its clock is there."""
    parts = dict.fromkeys(Net._fields)
    parts["heap"] = np.zeros(ROOM, HAPPENING).view(np.recarray)
    parts["run"] = np.zeros(1, RUN).view(np.recarray)
    return Net(**parts)  # type: ignore[arg-type]  # the clock asks for no more


@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=60))
def test_events_come_by_time_then_in_the_order_of_planning(script: list[int | None]) -> None:
    """Whatever is planned and taken in between: a time is planned, None takes the first event."""
    net, model, order = _clock(), list[tuple[float, int]](), 0
    numbers = net.run[0].numbers
    for time_s in script:
        if time_s is None:
            if not model:
                continue
            expected = heapq.heappop(model)
            first = net.heap[0]
            assert (first.time_s, first.a) == expected
            DROP(net)
        elif len(model) < ROOM:
            PLAN(net, float(time_s), 1, order, 0, 0)
            heapq.heappush(model, (float(time_s), order))
            order += 1
        assert numbers[HEAP_SIZE] == len(model)
        assert numbers[ORDER] == order


def test_a_full_clock_counts_what_it_cannot_take() -> None:
    """No event is overwritten, and the world can say that it was too small."""
    net = _clock()
    for at in range(ROOM + 3):
        PLAN(net, float(-at), 1, at, 0, 0)
    numbers = net.run[0].numbers
    assert (numbers[HEAP_SIZE], numbers[OVERFLOW]) == (ROOM, 3)
    assert net.heap[0].a == ROOM - 1
