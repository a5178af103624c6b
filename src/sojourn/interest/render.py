"""Value sets written back as SQL, one way for each set.

`constraint_text` writes what a parser of filters reads; `spark_text` what Spark SQL reads. They differ in
one place: Spark does not know MQTT's wildcards, so a topic pattern becomes a regular expression there.

A bound that lies between two doubles can be written open or closed; the shorter number wins, so that
`price > 5` comes back as `price > 5` and not as a comparison with the double after 5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from sojourn.interest.comparisons import present
from sojourn.interest.topics import ANY, REST, Prefix, TopicPattern
from sojourn.interest.topicsets import Term, TopicSet
from sojourn.interest.values import (
    FALSE_BIT,
    INTEGER_MAX,
    NUMBER_MAX,
    TRUE_BIT,
    NumberRanges,
    StringRanges,
    ValueSet,
    after,
    after_prefix,
)
from sojourn.interest.words import RESERVED

SPARK_SETTINGS = {
    "spark.sql.caseSensitive": "true",
}
"""With these Spark reads a filter's text as we do: names that differ in case differ."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_REGEX_SPECIAL = re.compile(r"([\\.^$|?*+()\[\]{}])")


def name_text(path: str) -> str:
    """Write a path, its unusual names in backticks."""
    return ".".join(
        name if _PLAIN_NAME.match(name) and name.upper() not in RESERVED else f"`{name}`"
        for name in path.split(".")
    )


def number_text(value: float) -> str:
    """Write a number as briefly as it can be read back."""
    if value == int(value) and abs(value) <= INTEGER_MAX:
        return str(int(value))
    return repr(float(value))


def string_text(value: str) -> str:
    """Write a string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def constraint_text(path: str, allowed: ValueSet) -> tuple[str, bool]:
    """Write what an attribute may be, and tell whether the text has an OR outside parentheses."""
    return _constraint(path, allowed, _mqtt_tests)


def spark_text(path: str, allowed: ValueSet) -> tuple[str, bool]:
    """Write the same for Spark SQL."""
    return _constraint(path, allowed, _regex_tests)


def join_texts(texts: Sequence[tuple[str, bool]]) -> str:
    """Join by AND texts of which some have an OR outside parentheses."""
    if len(texts) == 1:
        return texts[0][0]
    return " AND ".join(f"({text})" if has_or else text for text, has_or in texts)


def _constraint(
    path: str, allowed: ValueSet, topic_tests: Callable[[str, TopicPattern, bool], list[str]]
) -> tuple[str, bool]:
    name = name_text(path)
    if allowed == present(path):
        return f"{name} IS NOT NULL", False
    if allowed.objects:
        return _all_but_booleans(name, allowed), False
    choices: list[str] = []
    if allowed.missing:
        choices.append(f"{name} IS NULL")
    if allowed.numbers:
        choices += _number_choices(name, allowed.numbers)
    if isinstance(allowed.strings, TopicSet):
        choices += _topic_choices(name, allowed.strings, topic_tests)
    elif allowed.strings:
        choices += _string_choices(name, allowed.strings)
    if allowed.booleans == FALSE_BIT | TRUE_BIT:
        choices.append(f"{name} IN (FALSE, TRUE)")
    elif allowed.booleans:
        choices.append(f"{name} = {'TRUE' if allowed.booleans == TRUE_BIT else 'FALSE'}")
    return " OR ".join(choices), len(choices) > 1


def _all_but_booleans(name: str, allowed: ValueSet) -> str:
    """Write a set that admits objects: only IS NOT NULL, IS NOT TRUE and IS NOT FALSE make such sets."""
    tests = [] if allowed.missing else [f"{name} IS NOT NULL"]
    if not allowed.booleans & TRUE_BIT:
        tests.append(f"{name} IS NOT TRUE")
    if not allowed.booleans & FALSE_BIT:
        tests.append(f"{name} IS NOT FALSE")
    return " AND ".join(tests)


def _list_tests(name: str, values: Sequence[str], *, negated: bool = False) -> str:
    if len(values) == 1:
        return f"{name} {'<>' if negated else '='} {values[0]}"
    return f"{name} {'NOT IN' if negated else 'IN'} ({', '.join(values)})"


# -------------------------------------------------------------------------- numbers


def _number_choices(name: str, numbers: NumberRanges) -> list[str]:
    ranges = numbers.ranges
    holes = [
        (math.nextafter(end, math.inf), math.nextafter(start, -math.inf))
        for (_, end), (start, _) in pairwise(ranges)
    ]
    if holes and all(low == high for low, high in holes):
        outer = _number_range(name, ranges[0][0], ranges[-1][1])
        without = _list_tests(name, [number_text(low) for low, _ in holes], negated=True)
        return [without if outer is None else f"{outer} AND {without}"]
    singles = [number_text(low) for low, high in ranges if low == high]
    choices = [_list_tests(name, singles)] if singles else []
    for low, high in ranges:
        if low != high:
            choices.append(_number_range(name, low, high) or f"{name} >= {number_text(-NUMBER_MAX)}")
    return choices


def _number_range(name: str, low: float, high: float) -> str | None:
    """Write a range, or None when it is all numbers."""
    before, beyond = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    at_least, at_most = number_text(low), number_text(high)
    open_low = low > -NUMBER_MAX and len(number_text(before)) < len(at_least)
    open_high = high < NUMBER_MAX and len(number_text(beyond)) < len(at_most)
    if low > -NUMBER_MAX and high < NUMBER_MAX and not open_low and not open_high:
        return f"{name} BETWEEN {at_least} AND {at_most}"
    tests = []
    if low > -NUMBER_MAX:
        tests.append(f"{name} > {number_text(before)}" if open_low else f"{name} >= {at_least}")
    if high < NUMBER_MAX:
        tests.append(f"{name} < {number_text(beyond)}" if open_high else f"{name} <= {at_most}")
    return " AND ".join(tests) or None


# -------------------------------------------------------------------------- strings


def _string_choices(name: str, strings: StringRanges) -> list[str]:
    ranges = strings.ranges
    holes = [(end, start) for (_, end), (start, _) in pairwise(ranges)]
    if holes and all(end is not None and start == after(end) for end, start in holes):
        outer = _string_range(name, ranges[0][0], ranges[-1][1])
        without = _list_tests(name, [string_text(end or "") for end, _ in holes], negated=True)
        return [without if outer == f"{name} LIKE '%'" else f"{outer} AND {without}"]
    singles = [string_text(low) for low, high in ranges if high == after(low)]
    choices = [_list_tests(name, singles)] if singles else []
    choices += [_string_range(name, low, high) for low, high in ranges if high != after(low)]
    return choices


def _string_range(name: str, low: str, high: str | None) -> str:
    if high == after_prefix(low) and (high is not None or not low):
        return f"{name} LIKE {_prefix_text(low)}"
    closed_low = not low.endswith("\x01")
    closed_high = high is not None and high.endswith("\x01")
    if low and closed_low and closed_high and high is not None:
        return f"{name} BETWEEN {string_text(low)} AND {string_text(high[:-1])}"
    tests = []
    if low:
        tests.append(f"{name} >= {string_text(low)}" if closed_low else f"{name} > {string_text(low[:-1])}")
    if high is not None:
        tests.append(
            f"{name} <= {string_text(high[:-1])}" if closed_high else f"{name} < {string_text(high)}"
        )
    return " AND ".join(tests)


def _prefix_text(prefix: str) -> str:
    """Write a LIKE pattern: a backslash is escaped once for LIKE and once for the string."""
    return "'" + _pattern_escape(prefix).replace("_", "\\_") + "%'"


def _pattern_escape(text: str) -> str:
    return text.replace("\\", "\\" * 4).replace("'", "''").replace("%", "\\%")


def _pattern_text(pattern: str) -> str:
    return f"'{_pattern_escape(pattern)}'"


# -------------------------------------------------------------------------- topics


def _topic_choices(
    name: str, topics: TopicSet, tests: Callable[[str, TopicPattern, bool], list[str]]
) -> list[str]:
    plain = [t for t in topics.terms if t.pattern.is_exact and not t.without]
    choices = [_list_tests(name, [string_text(str(t.pattern)) for t in plain])] if plain else []
    choices += [_topic_term(name, t, tests) for t in topics.terms if not t.pattern.is_exact or t.without]
    return choices


def _topic_term(name: str, term: Term, tests: Callable[[str, TopicPattern, bool], list[str]]) -> str:
    texts = [] if term.without and _is_every_topic(term.pattern) else tests(name, term.pattern, False)  # noqa: FBT003 - NOT, or not
    exact = [string_text(str(pattern)) for pattern in term.without if pattern.is_exact]
    if exact:
        texts.append(_list_tests(name, exact, negated=True))
    for pattern in term.without:
        if not pattern.is_exact:
            excluded = tests(name, pattern, True)  # noqa: FBT003 - NOT, or not
            # A pattern that takes two tests to write is excluded where either fails.
            texts.append(excluded[0] if len(excluded) == 1 else f"({' OR '.join(excluded)})")
    return " AND ".join(texts)


def _is_every_topic(pattern: TopicPattern) -> bool:
    return pattern.rest and pattern.levels == (Prefix(""),)


def _mqtt_tests(name: str, pattern: TopicPattern, negated: bool) -> list[str]:  # noqa: FBT001 - NOT, or not
    like = "NOT LIKE" if negated else "LIKE"
    at = pattern.prefix_at
    if at is None:
        return [f"{name} {like} {_pattern_text(str(pattern))}"]
    levels = [level.text if isinstance(level, Prefix) else level for level in pattern.levels]
    # A pattern with a prefix inside is the topics that start so and have that shape.
    tests = [f"{name} {like} {_prefix_text('/'.join(levels[: at + 1]))}"]
    if at != len(levels) - 1 or not pattern.rest:
        shape = "/".join(
            [ANY if i == at else level for i, level in enumerate(levels)] + [REST] * pattern.rest
        )
        tests.append(f"{name} {like} {_pattern_text(shape)}")
    return tests


def _regex_tests(name: str, pattern: TopicPattern, negated: bool) -> list[str]:  # noqa: FBT001 - NOT, or not
    if pattern.is_exact:
        return [_list_tests(name, [string_text(str(pattern))], negated=negated)]
    levels: list[str] = []
    for level in pattern.levels:
        if isinstance(level, Prefix):
            levels.append(_REGEX_SPECIAL.sub(r"\\\1", level.text) + "[^/]*")
        else:
            levels.append("[^/]*" if level == ANY else _REGEX_SPECIAL.sub(r"\\\1", level))
    text = "/".join(levels)
    if not pattern.levels or pattern.levels[0] == ANY:
        text = r"(?!\$)" + text
    if pattern.rest:
        text += "(/.*)?" if pattern.levels else ".+"
    matches = f"{name} RLIKE {string_text('(?s)^' + text + chr(92) + 'z')}"
    return [f"NOT {matches}" if negated else matches]
