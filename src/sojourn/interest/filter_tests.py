"""Filters as functions over a message's attributes, for brokers that try a few filters on every message.

`test_of(filter)` answers exactly as `filter.matches` does on the event with the same attributes; it only asks
quicker, because what a set of values looks like is decided once and not with every message: most constraints
are one range of numbers or one string.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.values import Scalar, ValueSet

Attributes = Mapping[str, Scalar]
Test = Callable[[Attributes, Collection[str]], bool]
"""Given the values by path, and the paths that are objects."""

_NUMBERS = frozenset((int, float))


def test_of(wanted: Filter) -> Test:
    """Return a filter as a function."""
    tests = [_conjunction_test(conjunction) for conjunction in wanted.conjunctions]
    if not tests:
        return lambda _flat, _objects: False
    if len(tests) == 1:
        return tests[0]

    def any_of(flat: Attributes, objects: Collection[str]) -> bool:
        for test in tests:  # noqa: SIM110  (a generator takes longer than the tests)
            if test(flat, objects):
                return True
        return False

    return any_of


def _conjunction_test(conjunction: Conjunction) -> Test:
    tests = [_constraint_test(path, allowed) for path, allowed in conjunction.constraints]
    if not tests:
        return lambda _flat, _objects: True
    if len(tests) == 1:
        return tests[0]

    def all_of(flat: Attributes, objects: Collection[str]) -> bool:
        for test in tests:  # noqa: SIM110  (the same)
            if not test(flat, objects):
                return False
        return True

    return all_of


def _constraint_test(path: str, allowed: ValueSet) -> Test:
    only_scalars = not allowed.missing and not allowed.objects
    ranges = allowed.numbers.ranges
    if only_scalars and not allowed.strings and not allowed.booleans and len(ranges) == 1:
        return _range_test(path, *ranges[0])
    text = allowed.only_value
    if only_scalars and isinstance(text, str):
        return lambda flat, _objects: flat.get(path) == text

    def general(flat: Attributes, objects: Collection[str]) -> bool:
        value = flat.get(path)
        if value is not None:
            return value in allowed
        return allowed.objects if path in objects else allowed.missing

    return general


def _range_test(path: str, low: float, high: float) -> Test:
    def in_range(flat: Attributes, _objects: Collection[str]) -> bool:
        value = flat.get(path)
        # Comparing a string would fail, and a boolean is no number here.
        return value.__class__ in _NUMBERS and low <= value <= high  # type: ignore[operator]

    return in_range
