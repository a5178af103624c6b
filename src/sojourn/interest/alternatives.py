"""Filters with many alternatives, as functions that look at every attribute once.

`filter_tests.py` tries one alternative after the other, each with all its comparisons. Here each alternative
is a bit. For an attribute the bits of the alternatives that a value satisfies are found by the place of the
value among the ends of all intervals; an event is wanted if a bit is left that all attributes have in common.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import Any

from sojourn.interest.filter_tests import Attributes, Test
from sojourn.interest.filters import Filter
from sojourn.interest.topicsets import TopicSet
from sojourn.interest.values import FALSE_BIT, TRUE_BIT, Scalar, ValueSet

Cut = tuple[Any, int]
"""Where intervals begin or end: at a value (0), or right after it (1)."""


def test_of_many(wanted: Filter) -> Test | None:
    """Return a filter as a function; None where it speaks of topics, which are no intervals."""
    constraints = [dict(one.constraints) for one in wanted.conjunctions]
    allowed = [values for one in constraints for values in one.values()]
    if any(isinstance(values.strings, TopicSet) for values in allowed):
        return None
    paths = sorted({path for one in constraints for path in one})
    axes = [(path, _Axis([one.get(path) for one in constraints])) for path in paths]
    every = (1 << len(constraints)) - 1

    def any_of(flat: Attributes, objects: Collection[str]) -> bool:
        left = every
        for path, axis in axes:
            value = flat.get(path)
            if value is not None:
                left &= axis.of(value)
            else:
                left &= axis.objects if path in objects else axis.missing
            if not left:
                return False
        return bool(left)

    return any_of


class _Axis:
    """One attribute: which alternatives each of its values satisfies, as bits."""

    __slots__ = ("_cuts", "_false", "_masks", "_true", "missing", "objects")

    def __init__(self, allowed: list[ValueSet | None]) -> None:
        """Take what each alternative allows; None for anything."""
        self.missing = _mask(one is None or one.missing for one in allowed)
        self.objects = _mask(one is None or one.objects for one in allowed)
        self._false = _mask(one is None or bool(one.booleans & FALSE_BIT) for one in allowed)
        self._true = _mask(one is None or bool(one.booleans & TRUE_BIT) for one in allowed)
        self._cuts: dict[bool, list[Cut]] = {}
        """By whether it is of strings: where the satisfied alternatives change."""
        self._masks: dict[bool, list[int]] = {}
        """The same: those below the first cut, and after each."""
        anything = _mask(one is None for one in allowed)
        for is_text in (False, True):
            flips: dict[Cut, int] = {}
            for place, one in enumerate(allowed):
                for cut in () if one is None else _cuts(one, is_text=is_text):
                    flips[cut] = flips.get(cut, 0) ^ 1 << place
            self._cuts[is_text], mask = sorted(flips), anything
            self._masks[is_text] = [mask, *(mask := mask ^ flips[cut] for cut in self._cuts[is_text])]

    def of(self, value: Scalar) -> int:
        """The alternatives that a value satisfies."""
        if value.__class__ is bool:
            return self._true if value else self._false
        is_text = value.__class__ is str
        return self._masks[is_text][bisect_right(self._cuts[is_text], (value, 0))]


def _mask(bits: Iterable[bool]) -> int:
    return sum(1 << place for place, bit in enumerate(bits) if bit)


def _cuts(allowed: ValueSet, *, is_text: bool) -> Iterable[Cut]:
    """Where the intervals of strings, or of numbers, begin and end."""
    if is_text:
        assert not isinstance(allowed.strings, TopicSet), "that was looked at"
        for text, end in allowed.strings.ranges:
            yield text, 0
            if end is not None:
                yield end, 0
    else:
        for low, high in allowed.numbers.ranges:
            yield low, 0
            yield high, 1
