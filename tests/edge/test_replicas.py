"""Displayer filters and the three properties: small runs in full, large ones at random."""

import math
import random

import pytest

from sojourn.edge.enumeration import EVENTS_MAX, small_runs, story, table_of_properties
from sojourn.edge.filters import (
    FILTER_NAMES,
    DisplayerError,
    DisplayerFilter,
    DuplicateFilter,
    NoFilter,
    OrderedFilter,
    displayer_filter,
)
from sojourn.edge.properties import complete, consistent, ordered, violations

TABLE_1 = {
    "none": (False, False, True),
    "duplicates": (False, True, True),
    "ordered": (True, True, False),
}
"""Ordered, consistent, complete, as the paper has them."""


def test_table_1_follows_from_all_runs_of_four_events() -> None:
    """Every tick holds in every run and every cross has a story that ends in its violation."""
    cells = table_of_properties(events_max=4)
    found = {name: tuple(cell.holds for cell in cells if cell.filter == name) for name in FILTER_NAMES}
    assert found == TABLE_1
    for cell in cells:
        text = story(cell)
        if cell.holds:
            assert "No counterexample" in text
        else:
            assert cell.example is not None
            assert len(cell.example.events) <= 2
            assert text.endswith(("comes after S1#2.", "shown twice.", "received it."))


def test_small_runs_are_all_runs_and_each_once() -> None:
    """For two events of one source: sixteen loss patterns with every interleaving, none repeated."""
    runs = [run for run in small_runs(2, 1) if len(run.events) == 2]
    # By how many each broker received: the ways to choose them, and to interleave them.
    chosen = {0: 1, 1: 2, 2: 1}
    total = sum(chosen[a] * chosen[b] * math.comb(a + b, a) for a in chosen for b in chosen)
    assert len(runs) == len(set(runs)) == total
    assert EVENTS_MAX == 5


class _ForgetfulFilter(NoFilter):
    """Drops every third copy: neither of the promises of `duplicates` holds."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def accept(self, source: str, sequence: int) -> bool:  # noqa: ARG002  the same door
        self.count += 1
        return self.count % 3 != 0


def test_a_wrong_filter_is_noticed() -> None:
    """Put a broken filter in the place of one, and a tick turns into a cross."""

    def make(name: str) -> DisplayerFilter:
        return _ForgetfulFilter() if name == "duplicates" else displayer_filter(name)

    cells = table_of_properties(events_max=3, sources_max=1, make=make)
    row = tuple(cell.holds for cell in cells if cell.filter == "duplicates")
    assert row == (False, False, False)


def test_predicates_name_the_event_that_fails() -> None:
    """Out of order, twice, never published, missing; and nothing to complain of."""
    shown = [("a", 1), ("b", 1), ("a", 3), ("a", 2)]
    late = ordered(shown)
    assert late is not None
    assert (late.event, late.other) == (("a", 2), ("a", 3))
    assert ordered([("a", 1), ("a", 1), ("b", 0)]) is None
    assert consistent([("a", 1), ("a", 1)], {("a", 1)}) == ("shown twice", ("a", 1), None)
    assert consistent([("a", 9)], {("a", 1)}) == ("never to be shown", ("a", 9), None)
    assert complete([("a", 1)], {("a", 1), ("a", 2)}) == ("missing", ("a", 2), None)
    assert set(violations([("a", 1)], {("a", 1)}, {("a", 1)}).values()) == {None}


@pytest.mark.parametrize("brokers", [2, 3])
def test_ticks_hold_in_large_random_runs(brokers: int) -> None:
    """Hundreds of events over several sources, brokers and losses: what Table 1 ticks stays true."""
    draw = random.Random(brokers)
    for _ in range(50):
        events = [(f"s{draw.randrange(4)}", number) for number in range(200)]
        streams = [[event for event in events if draw.random() > 0.2] for _ in range(brokers)]
        received = {event for stream in streams for event in stream}
        arrivals = []
        while any(streams):
            stream = draw.choice([stream for stream in streams if stream])
            arrivals.append(stream.pop(0))
        for name, ticks in TABLE_1.items():
            keep = displayer_filter(name)
            shown = [event for event in arrivals if keep.accept(*event)]
            assert keep.dropped == len(arrivals) - len(shown)
            found = violations(shown, set(events), received)
            for holds, violation in zip(ticks, found.values(), strict=True):
                assert not holds or violation is None


def test_duplicates_are_remembered_up_to_a_limit() -> None:
    """Beyond it the oldest count as shown, so that nothing is ever shown twice."""
    keep = DuplicateFilter(remembered_max=3)
    assert all(keep.accept("a", number) for number in (5, 1, 7, 9))
    assert not keep.accept("a", 5)
    assert not keep.accept("a", 4)
    assert keep.accept("a", 6)
    assert keep.accept("b", 4)
    with pytest.raises(DisplayerError, match="remembered_max must be at least 1"):
        DuplicateFilter(0)


def test_the_ordered_filter_counts_what_it_dropped() -> None:
    """Late copies and duplicates alike."""
    keep = OrderedFilter()
    shown = [number for number in (1, 3, 2, 3, 4) if keep.accept("a", number)]
    assert shown == [1, 3, 4]
    assert keep.dropped == 2
    with pytest.raises(DisplayerError, match="filter may be none, duplicates, ordered, not 'some'"):
        displayer_filter("some")
