"""Events are checked when they are built; policies decide who may see them."""

from __future__ import annotations

import pickle

import pytest

from sojourn.interest import Event, EventError, Filter, Policy, TopicError, TopicPattern, may_receive


def test_nested_attributes_are_reached_by_paths() -> None:
    """Values lie under dotted paths, objects are known, None and empty objects are missing."""
    event = Event(
        {"pos": {"lat": 1.5, "at": {"x": True}}, "gone": None, "empty": {}},
        topic="a/b",
        source="s",
        sequence=7,
    )
    assert dict(event.flat) == {"pos.lat": 1.5, "pos.at.x": True, "topic": "a/b"}
    assert event.objects == {"pos", "pos.at"}
    assert (event.topic, event.source, event.sequence) == ("a/b", "s", 7)
    assert pickle.loads(pickle.dumps(event)) == event


@pytest.mark.parametrize(
    ("attributes", "part"),
    [
        ({"": 1}, "at least one character"),
        ({"a.b": 1}, "a dot"),
        ({"a`": 1}, "backtick"),
        ({"x" * 129: 1}, "129 characters"),
        ({1: 1}, "a string"),
        ({"a": [1]}, "list"),
        ({"a": float("nan")}, "finite"),
        ({"a": float("inf")}, "finite"),
        ({"a": 2**53 + 1}, "2\\*\\*53"),
        ({"a": "\x00"}, "U\\+0000"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": "x" * 65_536}, "65535 bytes"),
        ({"topic": 5}, "topic is a string"),
        ({"topic": {"x": 1}}, "cannot be an object"),
        ({f"a{i}": i for i in range(1001)}, "at most 1000"),
    ],
)
def test_bad_events_are_refused(attributes: dict[str, object], part: str) -> None:
    """Names, kinds and sizes are checked, each with its sentence."""
    with pytest.raises(EventError, match=part):
        Event(attributes)  # type: ignore[arg-type]  # refused when it runs


def test_other_refusals() -> None:
    """Wildcards in topics, two topics, negative numbers, bottomless nesting."""
    with pytest.raises(TopicError, match="wildcard"):
        Event({}, topic="a/+")
    with pytest.raises(EventError, match="two topics"):
        Event({"topic": "a"}, topic="b")
    with pytest.raises(EventError, match="counts from 0"):
        Event({}, sequence=-1)
    deep: dict[str, object] = {"a": 1}
    for _ in range(16):
        deep = {"a": deep}
    with pytest.raises(EventError, match="nest at most 16"):
        Event(deep)  # type: ignore[arg-type]  # refused when it runs
    with pytest.raises(AttributeError, match="does not change"):
        Event({}).source = "x"


@pytest.mark.parametrize(
    ("pattern", "topic", "match"),
    [
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("#", "a/b", True),
        ("#", "$SYS/x", False),
        ("+/x", "$SYS/x", False),
        ("$SYS/#", "$SYS/x", True),
        ("+", "a/b", False),
        ("+/+", "/a", True),
        ("a/+/c", "a//c", True),
        ("a/+", "a", False),
    ],
)
def test_patterns_follow_the_standard(pattern: str, topic: str, match: bool) -> None:
    """Wildcards mean what MQTT says, hidden topics included."""
    assert TopicPattern.parse(pattern).matches(topic) is match
    assert Filter.parse(f"topic LIKE '{pattern}'").matches(Event({}, topic=topic)) is match


@pytest.mark.parametrize("pattern", ["a/#/b", "a+", "#a", "", "/".join("a" * 257)])
def test_bad_patterns_are_refused(pattern: str) -> None:
    """A wildcard fills its level, # stands last, and levels have a limit."""
    with pytest.raises(TopicError):
        TopicPattern.parse(pattern)


def test_an_event_reaches_whom_its_policy_permits() -> None:
    """Topic, content and policy must all agree (paper 004, section 2)."""
    event = Event({"severity": 4}, topic="ward/3")
    policy = Policy.parse("role = 'medic' AND clearance >= 3")
    wanted = Filter.parse("topic LIKE 'ward/+' AND severity > 2")
    medic, visitor = Event({"role": "medic", "clearance": 3}), Event({"role": "visitor"})
    assert may_receive(event, policy, wanted, medic)
    assert not may_receive(event, policy, wanted, visitor)
    assert may_receive(event, None, wanted, visitor)
    assert not may_receive(Event({"severity": 1}, topic="ward/3"), policy, wanted, medic)
