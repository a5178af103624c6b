"""Random filters over small domains, and every event that can tell two of them apart."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from sojourn.interest import Event
from sojourn.interest.values import after, after_prefix

NUMBERS = (0, 1, 2.5)
STRINGS = ("", "a", "ab", "b")
TOPIC_PATTERNS = ("a/b", "a", "a/+", "+/b", "a/#", "#", "+", "$s/+", "$s/#", "+/+/b", "ab/+/#")
TOPIC_PREFIXES = ("a", "a/", "a/b", "", "$", "ab/a")
TOPICS = ("a", "a/b", "ab/a/b", "$s/b")

NUMBER_VALUES = (-1, 0, 0.5, 1, 1.75, 2.5, 3)
STRING_VALUES = tuple(
    sorted(
        {v for s in STRINGS for v in (s, after(s), s + "zz", after_prefix(s)) if v is not None} - {""} | {""}
    )
)
_LEVELS = ("", "a", "ab", "abc", "b", "b0", "$s", "$", "c")
TOPIC_VALUES = tuple(
    topic
    for depth in (1, 2, 3)
    for levels in itertools.product(_LEVELS, repeat=depth)
    if (topic := "/".join(levels))
)

OBJECT = {"other": True}
VALUES = (None, OBJECT, True, False, *NUMBER_VALUES, *STRING_VALUES)


def quote(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("'", "''") + "'"


def comparisons_of(path: str) -> st.SearchStrategy[str]:
    """Return single comparisons of an attribute of any kind."""
    number = st.sampled_from([str(n) for n in NUMBERS])
    string = st.sampled_from([quote(s) for s in STRINGS])
    order = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(lambda o, v: f"{path} {o} {v}", order, st.one_of(number, string)),
        st.builds(
            lambda o, v: f"{path} {o} {v}", st.sampled_from(["=", "<>"]), st.sampled_from(["TRUE", "FALSE"])
        ),
        st.builds(
            lambda n, a, b: f"{path} {n}BETWEEN {a} AND {b}", st.sampled_from(["", "NOT "]), number, number
        ),
        st.builds(
            lambda n, a, b: f"{path} {n}BETWEEN {a} AND {b}", st.sampled_from(["", "NOT "]), string, string
        ),
        st.builds(
            lambda n, vs: f"{path} {n}IN ({', '.join(vs)})",
            st.sampled_from(["", "NOT "]),
            st.one_of(st.lists(number, min_size=1, max_size=3), st.lists(string, min_size=1, max_size=3)),
        ),
        st.builds(
            lambda n, p: f"{path} {n}LIKE {quote(p + '%')}",
            st.sampled_from(["", "NOT "]),
            st.sampled_from(STRINGS),
        ),
        st.sampled_from(
            [f"{path} IS NULL", f"{path} IS NOT NULL", f"{path} IS TRUE", f"{path} IS NOT FALSE", path]
        ),
    )


def topic_comparisons() -> st.SearchStrategy[str]:
    """Return single comparisons of the topic."""
    negation = st.sampled_from(["", "NOT "])
    return st.one_of(
        st.builds(lambda n, p: f"topic {n}LIKE {quote(p)}", negation, st.sampled_from(TOPIC_PATTERNS)),
        st.builds(lambda n, p: f"topic {n}LIKE {quote(p + '%')}", negation, st.sampled_from(TOPIC_PREFIXES)),
        st.builds(
            lambda o, t: f"topic {o} {quote(t)}", st.sampled_from(["=", "<>"]), st.sampled_from(TOPICS)
        ),
        st.sampled_from(["topic IS NULL", "topic IN ('a', 'a/b')", "topic NOT IN ('a', '$s/b')"]),
    )


def combined(tests: st.SearchStrategy[str], leaves: int = 5) -> st.SearchStrategy[str]:
    """Return comparisons joined by AND, OR and NOT."""
    return st.recursive(
        tests,
        lambda inner: st.one_of(
            st.builds(lambda a, b: f"({a} AND {b})", inner, inner),
            st.builds(lambda a, b: f"({a} OR {b})", inner, inner),
            st.builds(lambda a: f"NOT ({a})", inner),
        ),
        max_leaves=leaves,
    )


def filters_of(*paths: str) -> st.SearchStrategy[str]:
    """Return filters over some attributes."""
    return combined(st.one_of(*(comparisons_of(path) for path in paths)))


def flat_events() -> list[Event]:
    """Return an event for each pair of values of `a` and `b` that a filter over them can tell apart."""
    return [Event({"a": a, "b": b}) for a in VALUES for b in VALUES]


def nested_events() -> list[Event]:
    """Return an event for each way that `a` and `a.b` can be."""
    plain = [Event({"a": value}) for value in VALUES]
    below = [Event({"a": {"b": value, "other": True}}) for value in VALUES]
    return plain + below


def topic_events() -> list[Event]:
    """Return an event for each topic that the patterns can tell apart, and one without a topic."""
    return [Event({}), *(Event({}, topic=topic) for topic in TOPIC_VALUES)]
