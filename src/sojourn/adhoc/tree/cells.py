"""Interests as sets of cells: the pieces into which all interests together cut the space of events.

Every interest is a union of cells, so unions, intersections and differences are operations on the bits of an
integer, and a measure is a sum of the cells' weights. Nothing is rounded: with bounds that are integers or
multiples of a power of two, every weight and sum is exact. `CellSet` answers to the same operators as
`MeasuredSet`; a node's core works with either, and a test holds the two to the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError
from sojourn.interest.measure import Bound, MeasuredSet, TopicTree

WORD_BITS = 64


class Interest(Protocol):
    """What a protocol core needs of an interest: set operations, membership, the share that matches."""

    def __or__(self, other: Self, /) -> Self: ...
    def __and__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __bool__(self) -> bool: ...
    def __contains__(self, value: Bound, /) -> bool: ...
    def measure(self) -> Bound:
        """How many events match, of those expected (the Φ of section 2.1)."""


class Cells:
    """The cells of one system and their weights; keeps the measures it has computed."""

    __slots__ = ("_known", "weights")

    def __init__(self, weights: Sequence[float]) -> None:
        self.weights = tuple(weights)
        self._known: dict[int, float] = {0: 0.0}

    def measure(self, bits: int) -> float:
        """The total weight of the cells whose bits are set."""
        known = self._known.get(bits)
        if known is None:
            known, rest = 0.0, bits
            while rest:
                low = rest & -rest
                known += self.weights[low.bit_length() - 1]
                rest ^= low
            self._known[bits] = known
        return known


class CellSet:
    """A set of cells, with the operators of a `MeasuredSet`."""

    __slots__ = ("bits", "cells")

    def __init__(self, bits: int, cells: Cells) -> None:
        self.bits = bits
        self.cells = cells

    def __or__(self, other: CellSet) -> CellSet:
        return CellSet(self.bits | other.bits, self.cells)

    def __and__(self, other: CellSet) -> CellSet:
        return CellSet(self.bits & other.bits, self.cells)

    def __sub__(self, other: CellSet) -> CellSet:
        return CellSet(self.bits & ~other.bits, self.cells)

    def __bool__(self) -> bool:
        return self.bits != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CellSet) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __contains__(self, cell: Bound) -> bool:
        return bool(self.bits >> int(cell) & 1)

    def __repr__(self) -> str:
        return f"CellSet({self.bits:#x})"

    def measure(self) -> float:
        """The total weight of the cells in the set."""
        return self.cells.measure(self.bits)


class Subscriptions(NamedTuple):
    """The inherent subscriptions of a whole system, ready for compiled code."""

    member: NDArray[np.bool_]
    """By node and cell."""
    weights: NDArray[np.float64]
    """By cell: how many events fall into it."""

    def sets(self) -> list[CellSet]:
        """The same as one set for each node, for protocol cores."""
        cells = Cells([float(weight) for weight in self.weights])
        return [CellSet(sum(1 << int(cell) for cell in np.flatnonzero(row)), cells) for row in self.member]


def subscriptions(interests: Sequence[MeasuredSet]) -> Subscriptions:
    """Cut the space of events into cells on which no interest changes; join those that all treat alike."""
    bounds = sorted({bound for each in interests for interval in each.intervals for bound in interval})
    lows = np.array([float(bound) for bound in bounds])
    if not np.isfinite(lows).all():
        raise AdhocError("an interest reaches to infinity: intersect it with the range of events first.")
    if len(lows) < 2:
        return Subscriptions(np.zeros((len(interests), 0), dtype=bool), np.zeros(0))
    member = np.zeros((len(interests), len(lows) - 1), dtype=bool)
    for node, each in enumerate(interests):
        for low, high in each.intervals:
            member[node, np.searchsorted(lows, float(low)) : np.searchsorted(lows, float(high))] = True
    return joined(member, np.diff(lows))


def joined(member: NDArray[np.bool_], weights: NDArray[np.float64]) -> Subscriptions:
    """Drop cells that nobody wants and join cells that the same nodes want."""
    wanted = member.any(axis=0)
    unique, which = np.unique(member[:, wanted], axis=1, return_inverse=True)
    summed = np.zeros(unique.shape[1])
    np.add.at(summed, which.reshape(-1), weights[wanted])
    return Subscriptions(np.ascontiguousarray(unique), summed)


def interval(low: Bound, high: Bound) -> MeasuredSet:
    """A number interval as an interest (the NI model of section 4.2)."""
    if not low <= high:
        raise AdhocError(f"an interval's low end must not lie above its high end: {low} > {high}; swap them.")
    return MeasuredSet.of([(low, high)])


def topic(tree: TopicTree, names: Sequence[str], wanted: str) -> MeasuredSet:
    """A named topic, or group of topics, as an interest (the TT model): `2.0` is branch 0 of branch 2.

    `names` are the branches' names; the empty string is the whole tree.
    """
    path: list[int] = []
    for part in wanted.split(".") if wanted else ():
        if part not in names or len(path) >= tree.depth:
            raise AdhocError(
                f"topic {wanted!r} is unknown: it takes up to {tree.depth} of {', '.join(names)}, "
                "with dots between."
            )
        path.append(names.index(part))
    return tree.node(*path)
