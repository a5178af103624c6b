"""Filters tried one by one and found through the index answer alike, and the index comes when it is asked."""

from __future__ import annotations

import builtins
import itertools
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.interest import Event, Filter, filter_tests
from sojourn.interest.matcher import ONE_BY_ONE_MAX, Matcher
from sojourn.interest.topics import TopicPattern
from sojourn.interest.topicsets import Node
from tests.interest.languages import filters_of, flat_events

EVENTS = list(flat_events())


@given(st.lists(filters_of("a", "b"), min_size=1, max_size=8), st.data())
@settings(max_examples=60, deadline=None)
def test_answers_do_not_depend_on_the_way(texts: list[str], data: st.DataObject) -> None:
    """With and without the index, also when filters come and go between, and when it comes in between."""
    filters = {number: Filter.parse(text) for number, text in enumerate(texts)}
    plain, indexed = Matcher(filters), Matcher(filters)
    assert indexed.use_index()
    gone = data.draw(st.sets(st.sampled_from(sorted(filters))))
    late = Matcher(filters)
    late.match(EVENTS[0])
    for number in gone:
        del filters[number]
    filters[100] = Filter.parse("a > 0")
    for matcher in (plain, indexed, late):
        matcher.removed(gone)
        matcher.added(100)
    assert late.use_index()
    for event in EVENTS:
        expected = sorted(number for number, wanted in filters.items() if wanted.matches(event))
        assert plain.match(event) == indexed.match(event) == late.match(event) == expected


def test_many_filters_ask_for_the_index_and_wait_if_told_to() -> None:
    """Who must not stand still goes on one by one until told; others take the index when there are many."""
    filters = {number: Filter.parse(f"n = {number}") for number in range(ONE_BY_ONE_MAX + 1)}
    patient, hasty = Matcher(filters), Matcher(filters)
    patient.waits_for_index = True
    assert [matcher.wants_index for matcher in (patient, hasty)] == [True, True]
    assert [matcher.match(Event({"n": 7})) for matcher in (patient, hasty)] == [[7], [7]]
    assert [matcher.wants_index for matcher in (patient, hasty)] == [True, False]
    assert patient.use_index()
    assert not patient.wants_index
    assert patient.match(Event({"n": 7})) == [7]
    assert not Matcher(dict(list(filters.items())[:-1])).wants_index, "a few are quicker without"


@pytest.mark.parametrize("missing", ["numba", "numpy"])
def test_without_its_libraries_filters_are_tried_one_by_one(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are the same, and nobody goes on asking for what cannot be had."""
    for name in list(sys.modules):
        if name.startswith("sojourn.interest.index"):
            monkeypatch.delitem(sys.modules, name)
    usual = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    matcher = Matcher({number: Filter.parse(f"n >= {number}") for number in range(3 * ONE_BY_ONE_MAX)})
    assert matcher.match(Event({"n": 2})) == [0, 1, 2]
    assert not matcher.wants_index
    assert not matcher.use_index()


@pytest.mark.parametrize("count", [30, 60])
def test_a_deep_topic_is_not_followed_once_for_each_pattern(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one or through the index, many patterns of many levels are compared without their diagrams."""
    filters = {
        number: Filter.of_topic(TopicPattern.parse("+/" * (100 + number) + "#")) for number in range(count)
    }
    matcher = Matcher(filters)
    followed: list[str] = []
    follow = Node.follow

    def counted(node: Node, level: str) -> Node:
        followed.append(level)
        return follow(node, level)

    monkeypatch.setattr(Node, "follow", counted)
    event = Event({"topic": "/".join(["a"] * 130)})
    assert matcher.match(event) == [number for number in range(count) if 100 + number <= 130]
    assert not followed
    assert matcher.match(Event({"topic": "$" + "/".join(["a"] * 130)})) == []


def test_patterns_mean_the_same_to_the_index_one_by_one_and_by_themselves() -> None:
    """Every pattern and topic of a few short levels, hidden ones among them."""
    levels = ["a", "b", "+", "$a", ""]
    texts = ["#", *("/".join(way) for size in (1, 2, 3) for way in itertools.product(levels, repeat=size))]
    texts += [f"{text}/#" for text in texts[1:]]
    patterns = dict(enumerate(TopicPattern.parse(text) for text in texts if text))
    filters = {number: Filter.of_topic(pattern) for number, pattern in patterns.items()}
    one_by_one, indexed = Matcher(filters), Matcher(filters)
    one_by_one.waits_for_index = True
    assert indexed.use_index()
    names = ["a", "b", "$a", ""]
    topics = ["/".join(way) for size in (1, 2, 3, 4) for way in itertools.product(names, repeat=size)]
    for topic in filter(None, topics):
        expected = [number for number, pattern in patterns.items() if pattern.matches(topic)]
        event = Event({"topic": topic})
        assert one_by_one.match(event) == indexed.match(event) == expected, topic


def test_filters_for_one_topic_are_found_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, an event is compared with none of them, and nobody asks for the index."""
    compared: list[Filter] = []
    build = filter_tests.test_of

    def counted(wanted: Filter) -> filter_tests.Test:
        compared.append(wanted)
        return build(wanted)

    monkeypatch.setattr("sojourn.interest.matcher.test_of", counted)
    topics = [f"a/{number}" for number in range(3 * ONE_BY_ONE_MAX)]
    filters = {number: Filter.of_topic(TopicPattern.parse(topic)) for number, topic in enumerate(topics)}
    filters |= {1_000: Filter.parse("topic LIKE 'a/+'"), 1_001: Filter.parse("topic = 'a/7' AND n = 1")}
    matcher = Matcher(filters)
    assert matcher.match(Event({"topic": "a/7", "n": 1})) == [7, 1_000, 1_001]
    assert matcher.match(Event({"n": 1})) == []
    assert compared == [filters[1_000], filters[1_001]]
    assert not matcher.wants_index
    del filters[7], filters[1_000]
    matcher.removed((7, 1_000))
    filters[2_000] = Filter.parse("topic = 'a/8'")
    matcher.added(2_000)
    assert matcher.match(Event({"topic": "a/7"})) == []
    assert matcher.match(Event({"topic": "a/8"})) == [8, 2_000]
    matcher.removed((8,))
    assert matcher.match(Event({"topic": "a/8"})) == [2_000]
    matcher.begin_anew({3: Filter.parse("topic = 'b'")})
    assert [matcher.match(Event({"topic": topic})) for topic in ("a/8", "b")] == [[], [3]]
