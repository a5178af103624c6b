"""Places by a range of numbers or of strings, so that those around a range, or that meet it, are found.

A place is whatever the caller keeps there. Ranges that are open at one end stand in the order of the other
end. Numbers between two ends stand in a grid: a range is filed by its width, rounded up to a power of two,
and by the cell of that size in which it begins, so that whatever contains a number begins in one of two cells
of each size. Strings between two ends stand under the beginning that all of the range share; a prefix is its
own. A set of several ranges counts as the one range from its first to its last value: what is found may be
too much, never too little.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from sojourn.interest.values import NUMBER_MAX, after_prefix

T = TypeVar("T")
K = TypeVar("K", float, str)

Places = dict[T, None]

WIDEST_LEVEL = 1025
"""The level of ranges whose width is no double any more."""


class Ends(Generic[K, T]):
    """Places of ranges that are open at one end, in the order of the other."""

    __slots__ = ("_at", "_keys")

    def __init__(self) -> None:
        self._keys: list[K] = []
        self._at: dict[K, Places[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, end: K, place: T) -> None:
        """File a place."""
        at = self._at.get(end)
        if at is None:
            at = self._at[end] = {}
            insort(self._keys, end)
        at[place] = None

    def up_to(self, end: K) -> Iterator[T]:
        """The places whose end is at most this one, the lowest first."""
        for i in range(bisect_right(self._keys, end)):
            yield from self._at[self._keys[i]]

    def at_least(self, end: K) -> Iterator[T]:
        """The places whose end is at least this one, the highest first."""
        for i in range(len(self._keys) - 1, bisect_left(self._keys, end) - 1, -1):
            yield from self._at[self._keys[i]]


class NumberSpans(Generic[T]):
    """Places of closed ranges of numbers."""

    __slots__ = ("_from", "_grid", "_to")

    def __init__(self) -> None:
        self._from: Ends[float, T] = Ends()
        """Ranges without an upper end, by the lower one."""
        self._to: Ends[float, T] = Ends()
        """Ranges without a lower end, by the upper one."""
        self._grid: dict[int, dict[int, dict[T, tuple[float, float]]]] = {}
        """By level and cell: places of ranges with both ends, and the ends."""

    def __bool__(self) -> bool:
        return bool(self._from or self._to or self._grid)

    def add(self, low: float, high: float, place: T) -> None:
        """File a place."""
        if high == NUMBER_MAX:
            self._from.add(low, place)
        elif low == -NUMBER_MAX:
            self._to.add(high, place)
        else:
            level = _level(low, high)
            self._grid.setdefault(level, {}).setdefault(_cell(low, level), {})[place] = low, high

    def containing(self, low: float, high: float) -> Iterator[T]:
        """The places whose range contains this one."""
        yield from self._from.up_to(low)
        yield from self._to.at_least(high)
        least = _level(low, high)
        for level, cells in self._grid.items():
            if level < least and low < high:  # however narrow a range is, it may contain a single number
                continue
            try:
                cell = _cell(low, level)
            except OverflowError:
                continue  # so far out, doubles are further apart than any range of this level is wide
            for near in (cells.get(cell), cells.get(cell - 1)):
                for place, (start, end) in near.items() if near else ():
                    if start <= low and high <= end:
                        yield place

    def overlapping(self, low: float, high: float) -> Iterator[T]:
        """The places whose range has a number in common with this one, and some beside it."""
        yield from self._from.up_to(high)
        yield from self._to.at_least(low)
        for level, cells in self._grid.items():
            try:
                first, last = _cell(low, level) - 1, _cell(high, level)
            except OverflowError:
                first, last = 0, len(cells) + 1
            if last - first < len(cells):
                for cell in range(first, last + 1):
                    yield from cells.get(cell, ())
            else:
                for places in cells.values():
                    yield from places


def _level(low: float, high: float) -> int:
    """The least power of two that is more than a range is wide."""
    width = high - low
    return math.frexp(width)[1] if math.isfinite(width) else WIDEST_LEVEL


def _cell(number: float, level: int) -> int:
    return math.floor(math.ldexp(number, -level))


class TextSpans(Generic[T]):
    """Places of ranges of strings, from one included to one that is not; None stands for no upper end."""

    __slots__ = ("_from", "_lengths", "_shared", "_to")

    def __init__(self) -> None:
        self._from: Ends[str, T] = Ends()
        self._to: Ends[str, T] = Ends()
        self._shared: dict[str, dict[T, tuple[str, str]]] = {}
        """By the beginning that all strings of a range with two ends share: places, and those ends."""
        self._lengths: dict[int, None] = {}
        """How long such beginnings are."""

    def __bool__(self) -> bool:
        return bool(self._from or self._to or self._shared)

    def add(self, low: str, high: str | None, place: T) -> None:
        """File a place."""
        if high is None:
            self._from.add(low, place)
        elif not low:
            self._to.add(high, place)
        else:
            shared = _shared(low, high)
            places = self._shared.get(shared)
            if places is None:
                places = self._shared[shared] = {}
                self._lengths[len(shared)] = None
            places[place] = low, high

    def containing(self, low: str, high: str | None) -> Iterator[T]:
        """The places whose range contains this one."""
        yield from self._from.up_to(low)
        if high is None:
            return
        yield from self._to.at_least(high)
        for length in self._lengths:
            near = self._shared.get(low[:length]) if length <= len(low) else None
            for place, (start, end) in near.items() if near else ():
                if start <= low and high <= end:
                    yield place

    def overlapping(self, low: str, high: str | None) -> Iterator[T]:
        """The places whose range has a string in common with this one, and some beside it."""
        yield from self._from.at_least("") if high is None else self._from.up_to(high)
        yield from self._to.at_least(low)
        for shared, places in self._shared.items():
            if (high is None or shared < high) and (shared >= low or low.startswith(shared)):
                yield from places


def _shared(low: str, high: str) -> str:
    """What all strings of a range begin with."""
    if after_prefix(low) == high:
        return low
    length = 0
    while length < len(low) and low[length] == high[length]:
        length += 1
    return low[:length]
