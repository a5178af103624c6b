"""Sets of attribute values, with exact union, intersection and complement.

A `ValueSet` says which values of one attribute satisfy a constraint. An attribute can be missing, an
object (it has attributes below it), a number, a string or a boolean; a set has a part for each kind.

Two tricks make every operation exact and every set canonical:

- Numbers are the finite IEEE doubles, so `x > 5` is the closed interval from the next double after 5.
  All number intervals are closed, and two that touch are joined.
- Strings are ordered by code point and never contain U+0000, so the string right after `s` is
  `s + U+0001`. All string intervals are half-open `[low, high)`, and a prefix is an interval.

The strings of the attribute `topic` are not ranges but `TopicSet`s (see `topicsets.py`), which offer the
same operations.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.interest.topicsets import TopicSet

Scalar = bool | int | float | str

NUMBER_MAX = sys.float_info.max
INTEGER_MAX = 2**53
"""Beyond it a double can't tell neighbouring integers apart, so such numbers are refused."""

_FIRST_CHARACTER = "\x01"
_SURROGATES = range(0xD800, 0xE000)


def after(text: str) -> str:
    """Return the string that follows directly in code-point order."""
    return text + _FIRST_CHARACTER


def after_prefix(prefix: str) -> str | None:
    """Return the first string above all that start with `prefix`, or None when there is none."""
    while prefix:
        code = ord(prefix[-1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= sys.maxunicode:
            return prefix[:-1] + chr(code)
        prefix = prefix[:-1]
    return None


@dataclass(frozen=True, slots=True)
class NumberRanges:
    """A union of closed intervals of doubles: sorted, disjoint, never touching."""

    ranges: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, *ranges: tuple[float, float]) -> NumberRanges:
        """Join and order intervals that may overlap, touch or be empty."""
        joined: list[tuple[float, float]] = []
        for low, high in sorted(ranges):
            if low > high:
                continue
            if joined and low <= math.nextafter(joined[-1][1], math.inf):
                if high > joined[-1][1]:
                    joined[-1] = (joined[-1][0], high)
            else:
                joined.append((low, high))
        return cls(tuple(joined))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __contains__(self, value: float) -> bool:
        at = bisect_right(self.ranges, value, key=lambda r: r[0]) - 1
        return at >= 0 and value <= self.ranges[at][1]

    def __or__(self, other: NumberRanges) -> NumberRanges:
        return NumberRanges.of(*self.ranges, *other.ranges)

    def __and__(self, other: NumberRanges) -> NumberRanges:
        return NumberRanges(
            tuple(
                (max(low, other_low), min(high, other_high))
                for low, high in self.ranges
                for other_low, other_high in other.ranges
                if max(low, other_low) <= min(high, other_high)
            )
        )

    def __invert__(self) -> NumberRanges:
        gaps: list[tuple[float, float]] = []
        low = -NUMBER_MAX
        for start, end in self.ranges:
            if low < start:
                gaps.append((low, math.nextafter(start, -math.inf)))
            low = math.nextafter(end, math.inf)
        if low <= NUMBER_MAX:
            gaps.append((low, NUMBER_MAX))
        return NumberRanges(tuple(gaps))

    def witness(self) -> float:
        """Return one member, an easy one to read where there is a choice."""
        low, high = self.ranges[0]
        if low <= 0 <= high:
            return 0
        if low == -NUMBER_MAX:
            return high
        whole = math.ceil(low)
        return whole if whole <= high and abs(whole) <= INTEGER_MAX else low


@dataclass(frozen=True, slots=True)
class StringRanges:
    """A union of half-open intervals `[low, high)` of strings; `high` None means no upper end."""

    ranges: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of(cls, *ranges: tuple[str, str | None]) -> StringRanges:
        """Join and order intervals that may overlap, touch or be empty."""
        joined: list[tuple[str, str | None]] = []
        for low, high in sorted(ranges, key=lambda r: r[0]):
            if high is not None and low >= high:
                continue
            if joined and (joined[-1][1] is None or low <= joined[-1][1]):
                last_high = joined[-1][1]
                if last_high is not None and (high is None or high > last_high):
                    joined[-1] = (joined[-1][0], high)
            else:
                joined.append((low, high))
        return cls(tuple(joined))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __contains__(self, value: str) -> bool:
        at = bisect_right(self.ranges, value, key=lambda r: r[0]) - 1
        if at < 0:
            return False
        high = self.ranges[at][1]
        return high is None or value < high

    def __or__(self, other: StringRanges) -> StringRanges:
        return StringRanges.of(*self.ranges, *other.ranges)

    def __and__(self, other: StringRanges) -> StringRanges:
        both: list[tuple[str, str | None]] = []
        for low, high in self.ranges:
            for other_low, other_high in other.ranges:
                start = max(low, other_low)
                end = _lower_end(high, other_high)
                if end is None or start < end:
                    both.append((start, end))
        return StringRanges(tuple(both))

    def __invert__(self) -> StringRanges:
        gaps: list[tuple[str, str | None]] = []
        low: str | None = ""
        for start, end in self.ranges:
            if low is not None and low < start:
                gaps.append((low, start))
            low = end
        if low is not None:
            gaps.append((low, None))
        return StringRanges(tuple(gaps))

    def issubset(self, other: StringRanges) -> bool:
        """Whether every string of this set is in the other."""
        return not self & ~other

    def overlaps(self, other: StringRanges) -> bool:
        """Whether some string is in both."""
        return bool(self & other)

    def witness(self) -> str:
        """Return the least member."""
        return self.ranges[0][0]

    @property
    def only_value(self) -> str | None:
        """The one string in it, or None when there are none or several."""
        if len(self.ranges) != 1:
            return None
        low, high = self.ranges[0]
        return low if high == after(low) else None


def _lower_end(one: str | None, other: str | None) -> str | None:
    if one is None:
        return other
    return one if other is None else min(one, other)


NO_NUMBERS = NumberRanges()
ALL_NUMBERS = NumberRanges(((-NUMBER_MAX, NUMBER_MAX),))
NO_STRINGS = StringRanges()
ALL_STRINGS = StringRanges((("", None),))

FALSE_BIT = 1
TRUE_BIT = 2
BOTH_BITS = FALSE_BIT | TRUE_BIT


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The values of one attribute that satisfy a constraint, by kind of value."""

    missing: bool = False
    """Whether an event without the attribute satisfies it (only `IS NULL` brings this about)."""
    objects: bool = False
    """Whether an attribute that has attributes below it satisfies it (as `IS NOT NULL` does)."""
    numbers: NumberRanges = NO_NUMBERS
    strings: StringRanges | TopicSet = NO_STRINGS
    booleans: int = 0
    """A bit for FALSE and a bit for TRUE."""
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if not self._hash:  # filters are looked up by their sets, over and over
            parts = (self.missing, self.objects, self.numbers, self.strings, self.booleans)
            object.__setattr__(self, "_hash", hash(parts) or 1)
        return self._hash

    def __reduce__(self) -> tuple[type[ValueSet], tuple[object, ...]]:
        # Hashes of strings differ from process to process: the cached one must not travel.
        return ValueSet, (self.missing, self.objects, self.numbers, self.strings, self.booleans)

    def __bool__(self) -> bool:
        return self.missing or self.objects or bool(self.numbers or self.strings or self.booleans)

    def __and__(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            missing=self.missing and other.missing,
            objects=self.objects and other.objects,
            numbers=self.numbers & other.numbers,
            strings=self.strings & other.strings,  # type: ignore[operator]  # both ranges or both topics
            booleans=self.booleans & other.booleans,
        )

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            missing=self.missing or other.missing,
            objects=self.objects or other.objects,
            numbers=self.numbers | other.numbers,
            strings=self.strings | other.strings,  # type: ignore[operator]  # both ranges or both topics
            booleans=self.booleans | other.booleans,
        )

    def __invert__(self) -> ValueSet:
        return ValueSet(
            missing=not self.missing,
            objects=not self.objects,
            numbers=~self.numbers,
            strings=~self.strings,
            booleans=BOTH_BITS & ~self.booleans,
        )

    def __contains__(self, value: Scalar | None) -> bool:
        """Whether a value satisfies it; None stands for a missing attribute."""
        if value is None:
            return self.missing
        if isinstance(value, bool):
            return bool(self.booleans & (TRUE_BIT if value else FALSE_BIT))
        if isinstance(value, str):
            return value in self.strings
        return value in self.numbers

    def issubset(self, other: ValueSet) -> bool:
        """Whether every value of this set is in the other; no, if topics are too entangled to tell."""
        return (
            self.missing <= other.missing
            and self.objects <= other.objects
            and not self.booleans & ~other.booleans
            and not self.numbers & ~other.numbers
            and self.strings.issubset(other.strings)  # type: ignore[arg-type]  # both ranges or both topics
        )

    def overlaps(self, other: ValueSet) -> bool:
        """Whether some value is in both; yes, if topics are too entangled to tell."""
        return (
            (self.missing and other.missing)
            or (self.objects and other.objects)
            or bool(self.booleans & other.booleans)
            or bool(self.numbers & other.numbers)
            or self.strings.overlaps(other.strings)  # type: ignore[arg-type]  # both ranges or both topics
        )

    def witness(self) -> Scalar | None:
        """Return one value of a set that is not empty; None when no scalar is in it."""
        if self.numbers:
            return self.numbers.witness()
        if self.strings:
            return self.strings.witness()
        if self.booleans:
            return bool(self.booleans & TRUE_BIT)
        return None

    @property
    def only_value(self) -> Scalar | None:
        """The one scalar it allows, or None when it allows anything else or more."""
        if self.missing or self.objects:
            return None
        if self.booleans in (FALSE_BIT, TRUE_BIT) and not self.numbers and not self.strings:
            return self.booleans == TRUE_BIT
        if self.booleans:
            return None
        if not self.strings and len(self.numbers.ranges) == 1:
            low, high = self.numbers.ranges[0]
            return low if low == high else None
        if not self.numbers and self.strings:
            return self.strings.only_value
        return None


def number_set(*ranges: tuple[float, float]) -> ValueSet:
    """Make a set of numbers from closed intervals."""
    return ValueSet(numbers=NumberRanges.of(*ranges))


def string_set(*ranges: tuple[str, str | None]) -> ValueSet:
    """Make a set of strings from half-open intervals."""
    return ValueSet(strings=StringRanges.of(*ranges))


MISSING = ValueSet(missing=True)
