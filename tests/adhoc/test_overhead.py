"""Overhead, metrics and cells against the paper's examples and against brute force."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import interval, subscriptions, topic
from sojourn.adhoc.tree.connectivity import neighbours, require_connected, require_tree
from sojourn.adhoc.tree.enumeration import best_of_all
from sojourn.adhoc.tree.metrics import Candidate, Station, combo, metric_named, nhop, ovhd
from sojourn.adhoc.tree.node import Timing
from sojourn.adhoc.tree.overhead import Costs, proxied_subscriptions, tree_overhead, tree_work
from sojourn.adhoc.tree.whole_graph import system
from sojourn.interest.measure import MeasuredSet, TopicTree
from sojourn.sim.adhoc.layout import Layout, draw_positions

NONE = MeasuredSet()
UNIT = Costs()


def events(*numbers: int) -> MeasuredSet:
    """The interest in exactly these numbered events."""
    return MeasuredSet.of([(number, number + 1) for number in numbers])


# Figure 4's five nodes, numbered from 0: the root, 2, 3, 4 and 5 of the paper.
HALF = events(*range(5))
ALL = events(*range(10))
EXAMPLE_3 = [NONE, ALL, NONE, ALL, HALF]
EXAMPLE_4 = [NONE, ALL, ALL, ALL, HALF]
TREE_A, TREE_B = [-1, 0, 1, 4, 0], [-1, 0, 1, 2, 0]
FIGURE_4 = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]


def test_examples_1_and_2() -> None:
    """Hanging both nodes below the root costs 4, hanging one below the other 6."""
    inherent = [NONE, events(1), events(2)]
    assert tree_overhead([-1, 0, 0], inherent, UNIT) == 4
    assert tree_overhead([-1, 0, 1], inherent, UNIT) == 6
    assert [work.overhead for work in tree_work([-1, 0, 1], inherent, UNIT)] == [4, 2, 0]


@pytest.mark.parametrize(("inherent", "of_3", "of_5"), [(EXAMPLE_3, 40, 15), (EXAMPLE_4, 20, 15)])
def test_examples_3_and_4_metrics(inherent: list[MeasuredSet], of_3: int, of_5: int) -> None:
    """Node 4 sees the metrics 40 and 15, then 20 and 15, and takes node 5."""
    three = Candidate(
        2, (Station(inherent[2], NONE), Station(inherent[1], inherent[2]), Station(NONE, ALL)), 0
    )
    five = Candidate(4, (Station(inherent[4], NONE), Station(NONE, ALL)), 0)
    assert combo(three, inherent[3], UNIT) == of_3
    assert combo(five, inherent[3], UNIT) == of_5
    assert (nhop(three, inherent[3], UNIT), nhop(five, inherent[3], UNIT)) == (2, 1)
    assert ovhd(five, inherent[3], UNIT) == 15


def test_example_4_the_greedy_tree_is_not_optimal() -> None:
    """The tree node 4 chooses costs 45, the other 40, and enumeration finds 40; in example 3 it finds a's."""
    assert tree_overhead(TREE_A, EXAMPLE_4, UNIT) == 45
    assert tree_overhead(TREE_B, EXAMPLE_4, UNIT) == 40
    graph = np.zeros((5, 5), dtype=bool)
    for one, other in FIGURE_4:
        graph[one, other] = graph[other, one] = True
    best = best_of_all(system(graph, subscriptions(EXAMPLE_4), UNIT))
    assert (best.overhead, best.parents.tolist(), best.trees) == (40, TREE_B, 5)
    assert best_of_all(system(graph, subscriptions(EXAMPLE_3), UNIT)).parents.tolist() == TREE_A


@given(
    st.lists(st.lists(st.integers(0, 11), max_size=5), min_size=2, max_size=7),
    st.randoms(use_true_random=False),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_overhead_is_the_work_counted_event_by_event(
    wanted: list[list[int]], chance: object, receive: int, process: int, forward: int
) -> None:
    """Following every event down the tree and adding r, p and f gives the cost formula's sum."""
    inherent = [events(*numbers) for numbers in wanted]
    parents = [-1, *(chance.randrange(node) for node in range(1, len(wanted)))]  # type: ignore[attr-defined]  # a seeded generator
    costs = Costs(receive=receive, process=process, forward=forward)
    below = proxied_subscriptions(parents, inherent)
    total = own = 0
    for event in range(12):
        for node in range(len(parents)):
            mine, theirs = event in inherent[node], event in below[node]
            total += receive * (mine or theirs) + process * mine + forward * theirs
            own += (receive + process) * mine
    work = tree_work(parents, inherent, costs)
    assert sum(each.cost for each in work) == total
    assert sum(each.overhead for each in work) == total - own


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), min_size=1, max_size=8), st.data())
def test_cells_answer_as_measured_sets_do(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Union, intersection, difference and measure are the same on cells and on intervals."""
    whole = [MeasuredSet.of([(low, low + length)]) for low, length in pairs]
    cut = subscriptions(whole).sets()
    one, other = (data.draw(st.integers(0, len(pairs) - 1)) for _ in range(2))
    for exact, cells in (
        (whole[one] | whole[other], cut[one] | cut[other]),
        (whole[one] & whole[other], cut[one] & cut[other]),
        (whole[one] - whole[other], cut[one] - cut[other]),
    ):
        assert exact.measure() == cells.measure()
        assert bool(exact) == bool(cells)


def test_topic_trees_are_measured_in_leaves() -> None:
    """A node that forwards a group of topics for a child works for each of its leaves."""
    tree = TopicTree(branching=3, depth=2)
    names = ["sports", "news", "art"]
    inherent = [NONE, topic(tree, names, "sports.news"), topic(tree, names, "sports")]
    assert tree_overhead([-1, 0, 1], inherent, UNIT) == 2 * 3 + (2 * 2 + 1)
    assert topic(tree, names, "").measure() == 9
    assert interval(Fraction(1, 3), 1).measure() == Fraction(2, 3)


def test_bad_input_is_one_sentence() -> None:
    """Whatever cannot be is refused by a sentence that names it."""
    apart = np.array([[0.0, 0.0], [1.0, 0.0], [50.0, 0.0]])
    with pytest.raises(AdhocError, match=r"not connected: 1 of 3 nodes, node 2 first"):
        require_connected(neighbours(apart, 2.0))
    with pytest.raises(AdhocError, match=r"range_m must be above 0 .* not 0\."):
        neighbours(apart, 0.0)
    with pytest.raises(AdhocError, match=r"finite numbers only"):
        neighbours(np.array([[0.0, np.nan]]), 1.0)
    with pytest.raises(AdhocError, match=r"4 > 3; swap them"):
        interval(4, 3)
    with pytest.raises(AdhocError, match=r"topic 'sport.golf' is unknown"):
        topic(TopicTree(branching=2, depth=2), ["sport", "art"], "sport.golf")
    with pytest.raises(AdhocError, match=r"metric may be nhop, .*, not 'best'"):
        metric_named("best")
    with pytest.raises(AdhocError, match=r"receive must be a cost"):
        Costs(receive=-1)
    with pytest.raises(AdhocError, match=r"timeout_s must be above beacon_s"):
        Timing(beacon_s=2, timeout_s=1)
    with pytest.raises(AdhocError, match=r"round in a circle"):
        require_tree(np.array([-1, 2, 1]), np.ones((3, 3), dtype=bool))
    with pytest.raises(AdhocError, match=r"range_m must be above 0"):
        draw_positions(Layout(range_m=0.0))
    with pytest.raises(AdhocError, match=r"reaches to infinity"):
        subscriptions([MeasuredSet.of([(-100, float("inf"))])])
