"""A neighbour that is to have all retained values is told them in parts, whatever happens in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from sojourn.broker import facts
from sojourn.broker.messages import RetainAsk
from sojourn.broker.offering import left_behind
from sojourn.broker.settings import AtOnce
from tests.live.hall import Hall, line
from tests.retained_values import values_of

COUNT = 9
LEFT = COUNT - 1
"""How many topics of these are left to tell after a first part of one."""


def telling() -> Hall:
    """B2 has lost its store, and was told one of the values of B1."""
    hall = Hall(line(3), at_once=AtOnce(told=1))
    writer = hall.visit(0, "writer")
    for number in range(COUNT):
        writer.publish(f"t/{number}", b"%d" % number, retain=True)
    hall.settle()
    hall.wait(1.0)
    hall.unlink("B2")
    hall.desks[1].delete_store()
    hall.restart("B2")
    hall.relink()
    hall.settle()
    assert len(hall.desks[0].network.reconciling.telling[1]) == LEFT
    assert hall.desks[1].core.state.retained.count < COUNT
    assert hall.desks[0].due_s == 0.0, "time has something to do at once"
    return hall


def nothing(_hall: Hall) -> None:
    """Go on."""


def lines(hall: Hall) -> None:
    """B1 dies, and comes back from its journal."""
    hall.restart("B1")


def snapshot(hall: Hall) -> None:
    """B1 dies, and comes back from a snapshot."""
    hall.desks[0].keep()
    hall.restart("B1")


def again(hall: Hall) -> None:
    """B2 asks for all values, since it had no room for some."""
    hall.desks[0].network.receive(RetainAsk(), "B2", hall.now)
    assert len(hall.desks[0].network.reconciling.telling[1]) == LEFT


def forgetful(hall: Hall) -> None:
    """B2 loses its store once more."""
    hall.unlink("B2")
    hall.desks[1].delete_store()
    hall.restart("B2")


@pytest.mark.parametrize("happens", [nothing, lines, snapshot, again, forgetful])
def test_all_brokers_have_the_same_values_in_the_end(happens: Callable[[Hall], None]) -> None:
    """Those that change meanwhile too, be they told already or still to come."""
    hall = telling()
    hall.desks[0].tell(facts.TimePassed())
    assert len(hall.desks[0].network.reconciling.telling[1]) == LEFT - 1
    happens(hall)
    writer = hall.visit(0, "writer")
    for number in (0, 1, COUNT - 1):
        writer.publish(f"t/{number}", b"new", retain=True)
    writer.publish("t/2", b"", retain=True)
    writer.publish(f"t/{COUNT - 2}", b"", retain=True)
    hall.settle()
    hall.wait(2.0)
    told = [
        [(one.topic, one.payload) for one in values_of(each.core.state.retained, hall.now)]
        for each in hall.desks
    ]
    assert told[0] == told[1] == told[2]
    assert {payload for topic, payload in told[1] if topic in ("t/2", f"t/{COUNT - 2}")} == {b""}
    assert len(told[1]) == COUNT
    assert not any(desk.network.reconciling.telling for desk in hall.desks)


def test_a_broker_that_leaves_tells_the_rest_first() -> None:
    """Its neighbour may have them from nobody else."""
    hall = telling()
    assert left_behind(hall.desks[0].network)["retained values for neighbours"] == LEFT
    hall.wait(2.0)
    assert "retained values for neighbours" not in left_behind(hall.desks[0].network)


def test_many_values_take_many_turns_at_both_ends() -> None:
    """However many there are, and however small: a turn tells, and a slice takes in, a limited number."""
    count = 2_000
    hall = Hall(line(2))
    writer = hall.visit(0, "writer")
    for number in range(count):
        writer.publish(f"t/{number}", b"x", retain=True)
        hall.settle()
    hall.wait(1.0)
    hall.unlink("B2")
    hall.desks[1].delete_store()
    hall.restart("B2")
    hall.relink()
    near, far = (desk.core.state.retained for desk in hall.desks)
    steps: list[int] = []
    left: list[int] = []
    while far.count < count:
        before = far.count
        hall.desks[0].tell(facts.TimePassed())
        left.append(sum(map(len, hall.desks[0].network.reconciling.telling.values())))
        hall.settle()
        steps.append(far.count - before)
    assert near.count == count
    assert left[-1] == 0
    assert max(earlier - later for earlier, later in itertools.pairwise(left)) <= AtOnce().told
    assert max(steps[1:]) <= AtOnce().told
