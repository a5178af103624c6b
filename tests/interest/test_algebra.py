"""The algebra of filters against brute force over every event that matters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sojourn.interest import Event, Filter, common_example, covers, example, intersects, merge
from tests.interest.languages import (
    combined,
    filters_of,
    flat_events,
    nested_events,
    topic_comparisons,
    topic_events,
)

FLAT, NESTED, TOPICS = flat_events(), nested_events(), topic_events()

S1 = "product = 'computer' AND brand = 'IBM' AND price <= 1600"


@pytest.mark.parametrize(
    ("s2", "s1_covers", "s2_covers"),
    [
        ("product = 'computer' AND brand = 'IBM' AND price <= 1500", True, False),
        ("product = 'computer' AND price <= 1600", False, True),
        ("product = 'computer' AND brand = 'Dell' AND price <= 1500", False, False),
    ],
)
def test_covering_of_table_1(s2: str, s1_covers: bool, s2_covers: bool) -> None:
    """Table 1 of paper 000, both ways round."""
    one, other = Filter.parse(S1), Filter.parse(s2)
    assert covers(one, other) is s1_covers
    assert covers(other, one) is s2_covers


def _check_pair(one_text: str, other_text: str, events: list[Event]) -> None:
    one, other = Filter.parse(one_text), Filter.parse(other_text)
    hits = [(one.matches(event), other.matches(event)) for event in events]
    assert covers(one, other) == all(a for a, b in hits if b)
    assert intersects(one, other) == any(a and b for a, b in hits)
    both = merge([one, other])
    assert [both.matches(event) for event in events] == [a or b for a, b in hits]
    shared = common_example(one, other)
    assert (shared is not None) == intersects(one, other)
    if shared is not None:
        assert one.matches(shared)
        assert other.matches(shared)


@settings(max_examples=150, deadline=None)
@given(filters_of("a", "b"), filters_of("a", "b"))
def test_relations_are_what_brute_force_says(one: str, other: str) -> None:
    """Covers is sound and complete, intersects has a witness, merge is the union."""
    _check_pair(one, other, FLAT)


@settings(max_examples=150, deadline=None)
@given(filters_of("a", "`a`.b"), filters_of("a", "a.b"))
def test_relations_know_that_an_object_is_not_a_value(one: str, other: str) -> None:
    """Where a.b is present, a is an object; the relations draw the conclusions."""
    _check_pair(one, other, NESTED)


@settings(max_examples=150, deadline=None)
@given(combined(topic_comparisons(), 4), combined(topic_comparisons(), 4))
def test_relations_of_topics(one: str, other: str) -> None:
    """Wildcards, prefixes, hidden topics and their combinations are decided exactly."""
    _check_pair(one, other, TOPICS)


@settings(max_examples=300, deadline=None)
@given(filters_of("a", "b"))
def test_a_filter_that_can_match_has_an_example(text: str) -> None:
    """An example is found exactly when some event matches."""
    one = Filter.parse(text)
    found = example(one)
    assert (found is not None) == any(one.matches(event) for event in FLAT)
    if found is not None:
        assert one.matches(found)


def test_merging_drops_what_is_already_asked_for() -> None:
    """The combined expression of quenching is simplified."""
    texts = ["value > 10", "value > 20", "kind = 'a' AND value < 3", "kind = 'b' AND value < 3"]
    assert str(merge(map(Filter.parse, texts))) == "kind IN ('a', 'b') AND value < 3 OR value > 10"


def test_a_union_can_cover_what_none_of_its_parts_covers() -> None:
    """Covering looks at all alternatives together."""
    wide = Filter.parse("a < 5 AND b = 1 OR a >= 5 AND c = 1")
    assert covers(wide, Filter.parse("b = 1 AND c = 1 AND a <> 7"))
    assert not covers(wide, Filter.parse("b = 1 AND a <> 7"))


def test_covering_gives_up_on_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that takes more pieces than allowed is answered with no, though the truth is yes."""
    steps = 6
    wide = Filter.parse(" OR ".join(f"x{i} < {i} OR x{i} >= {i} AND y{i} = 1" for i in range(steps)))
    narrow = Filter.parse(" AND ".join(f"x{i} BETWEEN -9 AND 9 AND y{i} = 1" for i in range(steps)))
    assert covers(wide, narrow)
    monkeypatch.setattr("sojourn.interest.algebra.PIECES_MAX", 1)
    assert not covers(wide, narrow)
