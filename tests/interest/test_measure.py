"""Measured sets: exact lengths and leaf counts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.interest.measure import MeasuredSet, MeasureError, TopicTree

intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=5)


@given(intervals, intervals)
def test_operations_are_what_counting_says(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    """Union, intersection, difference and measure agree with sets of integers."""
    a, b = MeasuredSet.of(one), MeasuredSet.of(other)
    in_a = {x for low, high in one for x in range(low, high)}
    in_b = {x for low, high in other for x in range(low, high)}
    for result, expected in ((a | b, in_a | in_b), (a & b, in_a & in_b), (a - b, in_a - in_b)):
        assert result.measure() == len(expected)
        assert {x for x in range(31) if x in result} == expected
        assert result == MeasuredSet.of(result.intervals)


def test_lengths_are_exact() -> None:
    """Fractions stay fractions, floats are summed without drift, unbounded interests can be bounded."""
    third = Fraction(1, 3)
    assert MeasuredSet.around(third, third).measure() == third
    assert MeasuredSet.around(5, 3).measure() == 3
    assert MeasuredSet.of((i / 10, i / 10 + 0.05) for i in range(10)).measure() == pytest.approx(
        0.5, abs=1e-15
    )
    hot = MeasuredSet.of([(2000, float("inf"))])
    assert (hot & MeasuredSet.of([(0, 2500)])).measure() == 500


@pytest.mark.parametrize(("branching", "share"), [(2, 8 / 15), (10, 1000 / 1111)])
def test_share_of_leaves_in_a_topic_tree(branching: int, share: float) -> None:
    """A random interest is a leaf with 53% at two branches and 90% at ten (paper 002, section 5.7)."""
    tree = TopicTree(branching, 3)
    interests = [tree.numbered(i) for i in range(tree.nodes)]
    leaves = sum(interest.measure() == 1 for interest in interests)
    assert leaves / tree.nodes == pytest.approx(share)
    assert interests[0].measure() == tree.leaves


def test_nodes_of_a_topic_tree() -> None:
    """A node's interest is the union of its children's, and two siblings share nothing."""
    tree = TopicTree(3, 2)
    assert tree.node(1) == MeasuredSet.union(tree.node(1, i) for i in range(3))
    assert not tree.node(1, 0) & tree.node(1, 1)
    assert (tree.node() - tree.node(2)).measure() == 6
    assert tree.numbered(3) == tree.node(2)
    with pytest.raises(MeasureError):
        tree.node(3)
    with pytest.raises(MeasureError):
        tree.numbered(13)
    with pytest.raises(MeasureError):
        TopicTree(0, 2)
    with pytest.raises(MeasureError):
        MeasuredSet.around(0, -1)
