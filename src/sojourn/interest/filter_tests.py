"""Filters as functions over a message's attributes, for brokers that try a few filters on every message.

`test_of(filter)` answers exactly as `filter.matches` does on the event with the same attributes; it only asks
quicker, because what a set of values looks like is decided once and not with every message: most constraints
are one range of numbers or one string.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.topics import ANY, HIDDEN, TopicPattern
from sojourn.interest.topicsets import TopicSet
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
    topics = allowed.strings
    if only_scalars and not ranges and not allowed.booleans and isinstance(topics, TopicSet):
        terms = topics.terms
        if len(terms) == 1 and not terms[0].without and terms[0].pattern.prefix_at is None:
            return _pattern_test(path, terms[0].pattern)
    text = allowed.only_value
    if only_scalars and isinstance(text, str):
        return lambda flat, _objects: flat.get(path) == text

    def general(flat: Attributes, objects: Collection[str]) -> bool:
        value = flat.get(path)
        if value is not None:
            return value in allowed
        return allowed.objects if path in objects else allowed.missing

    return general


def _pattern_test(path: str, pattern: TopicPattern) -> Test:
    """Compare level by level, those before the first wildcard at once."""
    least, rest = len(pattern.levels), pattern.rest
    is_blind = pattern.levels[:1] == (ANY,) or not least  # to topics that are hidden
    lead = pattern.levels.index(ANY) if ANY in pattern.levels else least
    head = pattern.levels[:lead]
    others = [(at, level) for at, level in enumerate(pattern.levels) if at > lead and level != ANY]

    def meets(flat: Attributes, _objects: Collection[str]) -> bool:
        topic = flat.get(path)
        if topic.__class__ is not str or (is_blind and topic.startswith(HIDDEN)):
            return False
        levels = _levels(topic)
        if levels[:lead] != head or len(levels) < least or (len(levels) > least and not rest):
            return False
        for at, level in others:  # noqa: SIM110  (the same)
            if levels[at] != level:
                return False
        return True

    return meets


@lru_cache(maxsize=16)
def _levels(topic: str) -> tuple[str, ...]:
    """The levels of a topic, which many filters are tried on."""
    return tuple(topic.split("/"))


def _range_test(path: str, low: float, high: float) -> Test:
    def in_range(flat: Attributes, _objects: Collection[str]) -> bool:
        value = flat.get(path)
        # Comparing a string would fail, and a boolean is no number here.
        return value.__class__ in _NUMBERS and low <= value <= high  # type: ignore[operator]  # a number by its class

    return in_range
