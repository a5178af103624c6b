"""What worlds share: links, what moves cost, knowing the future, scripts cut down to what they need."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.routing.messages import Kind
from sojourn.sim.causes import KINDS, NEVER, Causes
from sojourn.sim.foreknowledge import Foreknowledge
from sojourn.sim.links import Links
from sojourn.sim.roaming.run import Paths, Sojourn
from sojourn.sim.scenario import Scenario
from sojourn.sim.shortening import shorten

SCENARIO = Scenario(control_bytes=100, event_bytes=200)


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from([Kind.PUBLISH, Kind.SUBSCRIBE])), max_size=30))
def test_a_link_keeps_the_order_and_is_never_faster_than_it_can(sent: list[tuple[int, Kind]]) -> None:
    """Messages arrive in the order they were sent, at least a transmission apart and a latency later."""
    links = Links(1, 0.5, 800.0, SCENARIO)
    takes = {Kind.PUBLISH: 2.0, Kind.SUBSCRIBE: 1.0}
    arrivals = [links.send(0, kind, float(now)) for now, kind in sorted(sent)]
    for (now, kind), arrival in zip(sorted(sent), arrivals, strict=True):
        assert arrival >= now + takes[kind] + 0.5
    for (earlier, later), (_, kind) in zip(pairwise(arrivals), sorted(sent)[1:], strict=True):
        assert later - earlier >= takes[kind] - 1e-9


def test_links_do_not_wait_for_each_other() -> None:
    """A message on one link does not hold up another link's."""
    links = Links(2, 0.0, 800.0, SCENARIO)
    assert [links.send(link, Kind.PUBLISH, 0.0) for link in (0, 0, 1)] == [2.0, 4.0, 2.0]


def test_a_cause_is_active_while_any_of_its_messages_is_on_the_way() -> None:
    """Its time is that of its spells, and what lies between them does not count."""
    causes = Causes()
    cause = causes.add_pair()
    assert (cause, causes.ended_s[cause]) == (2, NEVER), "the first pair is the set-up's"
    for opened, ended in ((10.0, 12.0), (20.0, 21.0)):
        causes.open(cause, opened)
        causes.open(cause, opened + 0.5)  # a second message in the same spell
        causes.pending[cause] = 0
        causes.close(cause, ended)
    assert (causes.active_s[cause], causes.ended_s[cause]) == (3.0, 21.0)
    assert causes.active_s[cause + 1] == 0.0, "tearing down is a cause of its own"


def test_hops_are_added_up_by_kind() -> None:
    """Over all causes."""
    causes = Causes()
    cause = causes.add_pair()
    causes.hops[cause * KINDS + Kind.SUBSCRIBE] += 3
    causes.hops[Kind.SUBSCRIBE] += 1
    assert causes.totals()[Kind.SUBSCRIBE] == 4
    assert sum(causes.totals()) == 4


class _OnePath:
    """The path of the only client."""

    def __init__(self, brokers: list[int]) -> None:
        self.stays = [Sojourn(broker, 10.0 * at, 10.0 * at + 8.0) for at, broker in enumerate(brokers)]

    def sojourns(self, client: int):  # type: ignore[no-untyped-def]  # as `Paths` has it
        assert client == 0
        return iter(self.stays)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_foreknowledge_is_never_wrong(brokers: list[int]) -> None:
    """Asked at each stay, it names the next other broker, or none where there is no other one to come."""
    path: Paths = _OnePath(brokers)  # type: ignore[assignment]  # all that is asked of one
    known = Foreknowledge(path, 1)
    for at, broker in enumerate(brokers):
        to_come = [other for other in brokers[at + 1 :] if other != broker]
        found = known.next_brokers(0, broker, None, 10.0 * at + 4.0)
        assert found == tuple(to_come[:1])
    assert known.next_brokers(7, 0, None, 0.0) is None, "publishers have paths of their own"


@given(st.sets(st.integers(0, 29), min_size=1, max_size=4))
def test_a_script_is_cut_down_to_what_it_needs(needed: set[int]) -> None:
    """Where a failure needs some steps, and no run is spared, nothing else is left, in the same order."""
    steps = list(range(30))
    best, found = shorten(steps, lambda tried: "failed" if needed <= set(tried) else None, runs_max=10_000)
    assert best == sorted(needed)
    assert found == "failed"


@pytest.mark.parametrize("runs_max", [0, 1, 5])
def test_shortening_runs_no_more_often_than_it_may(runs_max: int) -> None:
    """Whatever it has found by then stands."""
    runs = 0

    def fails(tried: list[int]) -> str | None:
        nonlocal runs
        runs += 1
        return "failed" if 7 in tried else None

    best, _ = shorten(range(100), fails, runs_max)
    assert runs <= runs_max
    assert 7 in best
