"""The clock that all simulated worlds share: what happens when, in which order, and what time it is then."""

from __future__ import annotations

from sojourn.sim.clock import FIRST, LAST, Clock


def planned() -> tuple[Clock, list[str]]:
    """Return a clock with one thing at 1 s, three at 2 s and one at 3 s, and the list they write into."""
    clock = Clock()
    happened: list[str] = []
    clock.plan(3.0, happened.append, "at three")
    clock.plan_apart(2.0, LAST, happened.append, "last at two")
    clock.plan(2.0, happened.append, "at two")
    clock.plan_apart(2.0, FIRST, happened.append, "first at two")
    clock.plan(1.0, happened.append, "at one")
    return clock, happened


def test_things_of_one_instant_happen_by_priority_and_then_in_the_order_of_planning() -> None:
    """Everything happens in the order of time; within an instant, measuring begins first and ends last."""
    clock, happened = planned()
    assert clock.run() == 5
    assert happened == ["at one", "first at two", "at two", "last at two", "at three"]
    assert clock.now == 3.0


def test_running_until_a_time_leaves_out_what_happens_at_that_very_time() -> None:
    """`run_until` ends just before its time, `run_through` just after it; both set the clock to it."""
    clock, happened = planned()
    clock.run_until(2.0)
    assert (happened, clock.now) == (["at one"], 2.0)
    assert clock.run_through(2.0) == 3
    assert (happened[-1], clock.now) == ("last at two", 2.0)


def test_a_limit_of_events_ends_a_run_with_the_rest_still_planned() -> None:
    """A world that never comes to rest is stopped by a count; the time is that of the last event."""
    clock, happened = planned()
    assert clock.run(most=2) == 2
    assert (happened, clock.now, len(clock.heap)) == (["at one", "first at two"], 2.0, 3)


def test_what_happens_may_plan_more() -> None:
    """An event that is planned by another one happens in its turn, also within the same run."""
    clock = Clock()
    happened: list[int] = []

    def again(left: int) -> None:
        happened.append(left)
        if left:
            clock.plan(clock.now + 1.0, again, left - 1)

    clock.plan(0.0, again, 3)
    clock.run_until(2.5)
    assert (happened, clock.now) == ([3, 2, 1], 2.5)


def test_progress_is_told_in_shares_of_the_whole_time() -> None:
    """Whoever waits for a run is told ever larger shares, the last of them 1."""
    clock = Clock()
    shares: list[float] = []
    clock.plan_progress(50.0, shares.append)
    clock.run()
    assert shares == sorted(shares)
    assert (shares[-1], clock.now) == (1.0, 50.0)
