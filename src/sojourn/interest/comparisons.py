"""What each comparison of the language means, as two sets of values.

A `Meaning` is the set of values a comparison is true for, and that for which its negation is. Neither holds
for a missing attribute or for a value of another kind than the literal, as a comparison with NULL is neither
true nor false in SQL; that is why the second set is not just the complement of the first. It is worked out
only where a NOT asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from sojourn.interest.topics import TopicPattern, check_topic
from sojourn.interest.topicsets import STEPS_MAX, TopicSet
from sojourn.interest.values import (
    ALL_NUMBERS,
    ALL_STRINGS,
    BOTH_BITS,
    FALSE_BIT,
    NO_STRINGS,
    NUMBER_MAX,
    TRUE_BIT,
    NumberRanges,
    Scalar,
    StringRanges,
    ValueSet,
    after,
    after_prefix,
)
from sojourn.interest.work import Work, current, within

TOPIC = "topic"
PATTERNS_MAX, PATTERN_CHARS_MAX = 256, 128
"""How many MQTT patterns have their topics remembered, and how long they are at the most."""
ORDERINGS = ("<", "<=", ">", ">=")


class Meaning(NamedTuple):
    """The values that a comparison, and its negation, is true for."""

    true_for: ValueSet
    negation: Callable[[], ValueSet]


class ComparisonError(ValueError):
    """A comparison that the language does not have; the text says why and what to write instead."""


def kind_of(value: Scalar) -> str:
    """Return what a literal is called in sentences."""
    return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"


def nothing(path: str) -> ValueSet:
    """Return the empty set of values of an attribute."""
    return ValueSet(strings=TopicSet.none() if path == TOPIC else NO_STRINGS)


def missing(path: str) -> ValueSet:
    """Return the set that only a missing attribute is in."""
    return ValueSet(missing=True, strings=TopicSet.none() if path == TOPIC else NO_STRINGS)


def present(path: str) -> ValueSet:
    """Return the set that every attribute but a missing one is in."""
    if path == TOPIC:
        return ValueSet(strings=TopicSet.every())
    return ValueSet(objects=True, numbers=ALL_NUMBERS, strings=ALL_STRINGS, booleans=BOTH_BITS)


def anything(path: str) -> ValueSet:
    """Return the set that every attribute is in, missing or not: what an unconstrained one may be."""
    return missing(path) | present(path)


def complement(path: str, values: ValueSet) -> ValueSet:
    """Return what an attribute may be besides `values`."""
    return anything(path) & ~values


def is_null(path: str) -> Meaning:
    """`IS NULL`."""
    return Meaning(missing(path), lambda: present(path))


def compare(path: str, operator: str, value: Scalar) -> Meaning:
    """`= <> < <= > >=` with a literal."""
    if operator == "=":
        return one_of(path, [value])
    if operator == "<>":
        equal = one_of(path, [value])
        return Meaning(equal.negation(), lambda: equal.true_for)
    if path == TOPIC:
        raise ComparisonError("topics have no order; compare them with =, <>, IN or LIKE")
    if isinstance(value, bool):
        raise ComparisonError("booleans have no order; compare them with = or <>")
    return _order_strings(operator, value) if isinstance(value, str) else _order_numbers(operator, value)


def _order_numbers(operator: str, value: float) -> Meaning:
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    low, high = {
        "<": (-NUMBER_MAX, below),
        "<=": (-NUMBER_MAX, value),
        ">": (above, NUMBER_MAX),
        ">=": (value, NUMBER_MAX),
    }[operator]
    ranges = NumberRanges.of((low, high))
    return Meaning(ValueSet(numbers=ranges), lambda: ValueSet(numbers=~ranges))


def _order_strings(operator: str, value: str) -> Meaning:
    low, high = {
        "<": ("", value),
        "<=": ("", after(value)),
        ">": (after(value), None),
        ">=": (value, None),
    }[operator]
    ranges = StringRanges.of((low, high))
    return _strings(ranges)


def between(path: str, low: Scalar, high: Scalar) -> Meaning:
    """`BETWEEN low AND high`, both ends included."""
    if kind_of(low) != kind_of(high):
        raise ComparisonError(f"the ends of BETWEEN are a {kind_of(low)} and a {kind_of(high)}; use one kind")
    if not isinstance(low, str | bool) and not isinstance(high, str | bool) and path != TOPIC:
        numbers = NumberRanges.of((low, high))
        return Meaning(ValueSet(numbers=numbers), lambda: ValueSet(numbers=~numbers))
    at_least, at_most = compare(path, ">=", low), compare(path, "<=", high)
    return Meaning(at_least.true_for & at_most.true_for, lambda: at_least.negation() | at_most.negation())


def one_of(path: str, values: list[Scalar]) -> Meaning:
    """`IN (…)`, and `=` as the list of one."""
    kinds = {kind_of(value) for value in values}
    if len(kinds) > 1:
        raise ComparisonError(f"the list mixes a {' and a '.join(sorted(kinds))}; use one kind")
    (kind,) = kinds
    if path == TOPIC:
        return _one_of_topics(values)
    if kind == "boolean":
        bits = 0
        for value in values:
            bits |= TRUE_BIT if value else FALSE_BIT
        return Meaning(ValueSet(booleans=bits), lambda: ValueSet(booleans=BOTH_BITS & ~bits))
    if kind == "string":
        return _strings(StringRanges.of(*((str(value), after(str(value))) for value in values)))
    numbers = NumberRanges.of(*((float(value), float(value)) for value in values))
    return Meaning(ValueSet(numbers=numbers), lambda: ValueSet(numbers=~numbers))


def _one_of_topics(values: list[Scalar]) -> Meaning:
    patterns: list[TopicPattern] = []
    for value in values:
        if not isinstance(value, str):
            raise ComparisonError(f"a topic is a string, not a {kind_of(value)}")
        check_topic(value)
        patterns.append(TopicPattern(tuple(value.split("/"))))
    return _strings(TopicSet.of(*patterns))


def _strings(strings: StringRanges | TopicSet) -> Meaning:
    return Meaning(ValueSet(strings=strings), lambda: ValueSet(strings=~strings))


def like(path: str, pattern: str) -> Meaning:
    r"""`LIKE`: a prefix and a last `%`, with `\%`, `\_`, `\\` for themselves; for topics MQTT's wildcards."""
    if path == TOPIC and any(level in {"+", "#"} for level in pattern.split("/")):
        text, is_prefix = _read_like(pattern, underscore_is_plain=True)  # topics often contain one
        if is_prefix:
            raise ComparisonError(
                r"LIKE takes MQTT wildcards or one % at the end, not both; write \% for the sign"
            )
        return _strings(_topics_like(text))
    text, is_prefix = _read_like(pattern)
    if not is_prefix:
        return one_of(path, [text])
    if path == TOPIC:
        return _strings(TopicSet.of(TopicPattern.starting_with(text)))
    return _strings(StringRanges.of((text, after_prefix(text))))


def _topics_like(text: str) -> TopicSet:
    """Return the topics of an MQTT pattern, taking the steps that it takes to find them (`work.py`)."""
    if len(text) > PATTERN_CHARS_MAX:
        return TopicSet.of(TopicPattern.parse(text))
    topics, steps = _topics_and_steps(text)
    current(STEPS_MAX).spend(steps)
    return topics


@lru_cache(maxsize=PATTERNS_MAX)
def _topics_and_steps(text: str) -> tuple[TopicSet, int]:
    with within(Work(STEPS_MAX)) as work:
        topics = TopicSet.of(TopicPattern.parse(text))
    return topics, int(STEPS_MAX - work.left)


def _read_like(pattern: str, *, underscore_is_plain: bool = False) -> tuple[str, bool]:
    """Split a LIKE pattern into its literal text and whether anything may follow."""
    text: list[str] = []
    characters = iter(enumerate(pattern))
    for at, character in characters:
        if character == "\\":
            escaped = next(characters, (at, ""))[1]
            if escaped not in ("%", "_", "\\"):
                raise ComparisonError(r"a backslash in LIKE stands before %, _ or \ only")
            text.append(escaped)
        elif character == "%":
            if at != len(pattern) - 1:
                raise ComparisonError(r"LIKE takes a prefix: one % at the end; write \% for the sign itself")
            return "".join(text), True
        elif character == "_" and not underscore_is_plain:
            raise ComparisonError(r"LIKE takes a prefix: one % at the end; write \_ for an underscore")
        else:
            text.append(character)
    return "".join(text), False
