"""Interests that can be measured: number intervals and topic trees (paper 002, sections 2 and 4.2).

The overhead of a publish/subscribe tree is a sum of measures of such interests: how large a share of all
events satisfies this and not that. A `MeasuredSet` is a union of half-open intervals with exact union,
intersection, difference and measure. The topics of a tree are numbered so that every node's leaves are one
interval; so both models of the paper are the same sets, one measured in length and one in leaves.

Bounds may be ints, floats or Fractions. With ints and Fractions every result is exact; with floats the sum
is correctly rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from sojourn.errors import SojournError

Bound = int | float | Fraction


class MeasureError(SojournError):
    """An interest cannot be measured as given."""


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """A union of half-open intervals `[low, high)`: sorted, disjoint, never touching."""

    intervals: tuple[tuple[Bound, Bound], ...] = ()

    @classmethod
    def of(cls, intervals: Iterable[tuple[Bound, Bound]]) -> MeasuredSet:
        """Join and order intervals that may overlap, touch or be empty."""
        joined: list[tuple[Bound, Bound]] = []
        for low, high in sorted(intervals):
            if low >= high:
                continue
            if joined and low <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
            else:
                joined.append((low, high))
        return cls(tuple(joined))

    @classmethod
    def around(cls, centre: Bound, length: Bound) -> MeasuredSet:
        """Make the interval of a length around a centre."""
        if length < 0:
            raise MeasureError(f"An interval has a length of at least 0, not {length}.")
        half = Fraction(length, 2) if isinstance(length, int) else length / 2
        return cls.of([(centre - half, centre + half)])

    @classmethod
    def union(cls, sets: Iterable[MeasuredSet]) -> MeasuredSet:
        """Unite any number of sets at once."""
        return cls.of(interval for each in sets for interval in each.intervals)

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __contains__(self, value: Bound) -> bool:
        return any(low <= value < high for low, high in self.intervals)

    def __or__(self, other: MeasuredSet) -> MeasuredSet:
        return MeasuredSet.of((*self.intervals, *other.intervals))

    def __and__(self, other: MeasuredSet) -> MeasuredSet:
        return MeasuredSet(tuple(_common(self.intervals, other.intervals)))

    def __sub__(self, other: MeasuredSet) -> MeasuredSet:
        return MeasuredSet(tuple(_common(self.intervals, _gaps(other.intervals))))

    def measure(self) -> Bound:
        """Return the total length; infinite for an unbounded set, which `&` with a range of events bounds."""
        lengths = [high - low for low, high in self.intervals]
        return math.fsum(lengths) if any(isinstance(length, float) for length in lengths) else sum(lengths)


def _common(
    one: Iterable[tuple[Bound, Bound]], other: Iterable[tuple[Bound, Bound]]
) -> Iterator[tuple[Bound, Bound]]:
    """Yield the intersections of two sorted lists of disjoint intervals, in one pass."""
    ones, others = iter(one), iter(other)
    a, b = next(ones, None), next(others, None)
    while a is not None and b is not None:
        low, high = max(a[0], b[0]), min(a[1], b[1])
        if low < high:
            yield low, high
        if a[1] <= b[1]:
            a = next(ones, None)
        else:
            b = next(others, None)


def _gaps(intervals: tuple[tuple[Bound, Bound], ...]) -> Iterator[tuple[Bound, Bound]]:
    start: Bound = -math.inf
    for low, high in intervals:
        yield start, low
        start = high
    yield start, math.inf


@dataclass(frozen=True, slots=True)
class TopicTree:
    """Topics as a complete tree; an event belongs to a leaf, an interest is any node (Topic Tree model)."""

    branching: int
    depth: int
    """Levels below the root; the leaves are on the last one."""

    def __post_init__(self) -> None:
        if self.branching < 1 or self.depth < 0:
            raise MeasureError(
                f"A topic tree has at least 1 branch and 0 levels, not {self.branching} and {self.depth}."
            )

    @property
    def leaves(self) -> int:
        """How many topics an event can have."""
        return int(self.branching**self.depth)

    @property
    def nodes(self) -> int:
        """How many interests there are."""
        return sum(self.branching**level for level in range(self.depth + 1))

    def node(self, *path: int) -> MeasuredSet:
        """Return the leaves below the node reached by taking these branches from the root."""
        if len(path) > self.depth or any(not 0 <= branch < self.branching for branch in path):
            raise MeasureError(
                f"{path} leads to no node of a tree with {self.branching} branches and {self.depth} levels."
            )
        width = self.leaves
        low = 0
        for branch in path:
            width //= self.branching
            low += branch * width
        return MeasuredSet(((low, low + width),))

    def numbered(self, number: int) -> MeasuredSet:
        """Return the interest with a number from 0 to `nodes` - 1, counted level by level from the root."""
        if not 0 <= number < self.nodes:
            raise MeasureError(
                f"The interests of this tree are numbered 0 to {self.nodes - 1}; {number} is none."
            )
        level, first = 0, 0
        while number >= first + self.branching**level:
            first += self.branching**level
            level += 1
        width = self.branching ** (self.depth - level)
        low = (number - first) * width
        return MeasuredSet(((low, low + width),))
