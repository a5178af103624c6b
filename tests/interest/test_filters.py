"""Filters: their text, their normal form, their limits."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings

from sojourn.interest import Event, Filter, FilterSyntaxError, FilterTooComplexError
from tests.interest.languages import combined, filters_of, flat_events, topic_comparisons, topic_events

FLAT, TOPICS = flat_events(), topic_events()


@settings(max_examples=300, deadline=None)
@given(filters_of("a", "b"))
def test_text_is_canonical(text: str) -> None:
    """Reading back what was written gives the same object and the same matches."""
    once = Filter.parse(text)
    again = Filter.parse(str(once))
    assert again == once
    assert hash(again) == hash(once)
    assert str(again) == str(once)
    assert pickle.loads(pickle.dumps(once)) == once


@settings(max_examples=200, deadline=None)
@given(combined(topic_comparisons(), 4))
def test_topics_are_written_back_with_the_same_meaning(text: str) -> None:
    """Any combination of topic patterns survives the way through its text."""
    once = Filter.parse(text)
    again = Filter.parse(str(once))
    assert [again.matches(event) for event in TOPICS] == [once.matches(event) for event in TOPICS]
    assert pickle.loads(pickle.dumps(once)) == once


@settings(max_examples=200, deadline=None)
@given(filters_of("a"), filters_of("a"))
def test_filters_of_one_attribute_are_equal_when_they_mean_the_same(one_text: str, other_text: str) -> None:
    """Over a single attribute the normal form is unique."""
    one, other = Filter.parse(one_text), Filter.parse(other_text)
    same = all(one.matches(event) == other.matches(event) for event in FLAT)
    assert (one == other) == same


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("price<=1600 and brand='IBM'", "brand = 'IBM' AND price <= 1600"),
        ("value > 10 OR value > 20", "value > 10"),
        ("NOT (a = 1 AND b = 2)", "a <> 1 OR b <> 2"),
        ("a >= 1 AND a <= 2", "a BETWEEN 1 AND 2"),
        ("a = 2 OR a = 1 OR a = 1", "a IN (1, 2)"),
        ("a <> 1 AND a <> 2 AND a < 9", "a < 9 AND a NOT IN (1, 2)"),
        ("a LIKE 'x\\_y%'", "a LIKE 'x\\_y%'"),
        ("a = 1 AND (b = 1 OR b IS NULL)", "a = 1 AND (b IS NULL OR b = 1)"),
        ("(a = 1 OR b = 1) AND (a = 1 OR c = 1)", "a = 1 OR b = 1 AND c = 1"),
        ("a > 1 AND a < 1", "FALSE"),
        ("TRUE OR a = 1", "TRUE"),
        ("`not` = 1 AND `a b`.c = .5", "`a b`.c = 0.5 AND `not` = 1"),
        ("name = 'it''s'", "name = 'it''s'"),
        ("name = 'it\\'s' OR name = 'a\\\\b'", "name IN ('a\\\\b', 'it''s')"),
        ("a LIKE 'x\\\\\\\\y\\%%'", "a LIKE 'x\\\\\\\\y\\%%'"),
        ("flag AND NOT other", "flag = TRUE AND other = FALSE"),
        ("topic LIKE 'a/#' AND topic LIKE '+/b_c/#'", "topic LIKE 'a/b_c/#'"),
        ("a = -0.0", "a = 0"),
    ],
)
def test_normal_forms(text: str, canonical: str) -> None:
    """Each way of saying a thing comes back as the one way."""
    assert str(Filter.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "position", "part"),
    [
        ("", 0, "empty"),
        ("price <", 7, "ends where"),
        ("price = ", 8, "ends where"),
        ("price <= 1600 AND brand == 'IBM'", 25, "found ="),
        ('brand = "IBM"', 8, "single quotes"),
        ("brand = 'IBM", 8, "never closed"),
        ("`brand = 1", 0, "never closed"),
        ("lower(brand) = 'ibm'", 0, "no functions"),
        ("a = 1 b = 2", 6, "AND, OR or the end"),
        ("a = b", 4, "found b"),
        ("1 = a", 0, "name of an attribute"),
        ("a + 1 = 2", 2, "found +"),
        ("a = 1 -- so it is", 6, "found -"),
        ("a = NULL", 4, "IS NULL"),
        ("a < TRUE", 4, "no order"),
        ("topic > 'a'", 8, "no order"),
        ("topic.x = 1", 0, "no attributes below"),
        ("topic LIKE 'a/b+'", 11, "wildcard"),
        ("topic LIKE '+/b%'", 11, "not both"),
        ("a LIKE '%x'", 7, "one % at the end"),
        ("a LIKE 'x_'", 7, "\\_"),
        ("a LIKE 5", 7, "single quotes"),
        ("a IN (1, 'x')", 5, "one kind"),
        ("a IN ()", 6, "a number"),
        ("a BETWEEN 1 AND 'x'", 10, "one kind"),
        ("a IS 5", 5, "NULL, TRUE or FALSE"),
        ("a NOT 5", 6, "after NOT"),
        ("(a = 1", 6, "closing parenthesis"),
        ("a = 1)", 5, "found )"),
        ("a = 1e999", 4, "largest"),
        ("a = 9007199254740993", 4, "2**53"),
        ("a = 'x\x00y'", 6, "U+0000"),
        ("a = 'x\\ny'", 6, "for a backslash"),
        ("a = 'x\\'", 4, "never closed"),
        ("SELECT * FROM t", 7, "found *"),
        ("a = 1; DROP TABLE t", 5, "found ;"),
        ("a RLIKE '(x+)+y'", 2, "found RLIKE"),
    ],
)
def test_refusals_point_at_the_character(text: str, position: int, part: str) -> None:
    """What is not in the language is refused at its position with a sentence that helps."""
    with pytest.raises(FilterSyntaxError) as refused:
        Filter.parse(text)
    assert refused.value.position == position
    assert part in str(refused.value)
    mark = refused.value.pointer().splitlines()[-1]
    assert mark == " " * position + "^"


def test_limits_are_kept() -> None:
    """Length, predicates, nesting and alternatives have limits, and one below each limit passes."""
    with pytest.raises(FilterSyntaxError, match="at most 4096 characters"):
        Filter.parse("a = '" + "x" * 4096 + "'")
    assert Filter.parse("a = '" + "x" * 4090 + "'")
    many = [f"a{i} = 1" for i in range(201)]
    assert Filter.parse(" AND ".join(many[:200]))
    with pytest.raises(FilterSyntaxError, match="at most 200 predicates"):
        Filter.parse(" AND ".join(many))
    assert Filter.parse("(" * 64 + "a = 1" + ")" * 64)
    with pytest.raises(FilterSyntaxError, match="nest at most 64"):
        Filter.parse("(" * 65 + "a = 1" + ")" * 65)
    pairs = [f"(a{i} = 1 OR b{i} = 1)" for i in range(7)]
    assert len(Filter.parse(" AND ".join(pairs[:6])).conjunctions) == 64
    with pytest.raises(FilterTooComplexError, match="128 alternatives"):
        Filter.parse(" AND ".join(pairs))


def test_a_missing_attribute_satisfies_neither_a_test_nor_its_negation() -> None:
    """As NULL in SQL; only IS NULL asks for it."""
    nothing = Event({})
    for text in ("a = 1", "a <> 1", "NOT a = 1", "a LIKE 'x%'", "NOT a LIKE 'x%'", "a NOT IN (1)"):
        assert not Filter.parse(text).matches(nothing)
    assert Filter.parse("a IS NULL").matches(nothing)
    assert Filter.parse("NOT a IS NOT NULL").matches(nothing)
    assert not Filter.parse("a <> 1").matches(Event({"a": "text"}))
