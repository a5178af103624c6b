"""Advertisements: what they determine, cover and intersect."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.interest import Advertisement, AdvertisementError, Event, Filter
from tests.interest.languages import comparisons_of, filters_of, flat_events

FLAT = flat_events()


@pytest.mark.parametrize(
    ("subscription", "advertisement", "meet"),
    [
        (
            "product = 'computer' AND brand = 'IBM' AND price <= 1600",
            "product = 'computer' AND brand = 'IBM' AND price <= 1500",
            True,
        ),
        (
            "product = 'computer' AND price <= 1600",
            "product = 'computer' AND brand = 'IBM' AND price <= 1600",
            True,
        ),
        (
            "product = 'computer' AND brand = 'IBM' AND price <= 1600",
            "product = 'computer' AND brand = 'Dell' AND price <= 1500",
            False,
        ),
    ],
)
def test_intersection_of_table_2(subscription: str, advertisement: str, meet: bool) -> None:
    """Table 2 of paper 000."""
    assert Advertisement.parse(advertisement).intersects(Filter.parse(subscription)) is meet


def test_an_advertisement_is_disjunctive() -> None:
    """It determines an event whose every attribute satisfies a predicate, whichever attributes occur."""
    advertisement = Advertisement.parse("product = 'computer' AND price <= 1500")
    assert advertisement.determines(Event({"product": "computer", "price": 1200}))
    assert advertisement.determines(Event({"price": 1200}))
    assert not advertisement.determines(Event({"price": 1600}))
    assert not advertisement.determines(Event({"price": 1200, "brand": "IBM"}))


def test_predicates_of_one_attribute() -> None:
    """In a text AND narrows and OR widens one attribute; a list of predicates is a list of alternatives."""
    ranged = Advertisement.parse("price >= 10 AND price < 20")
    assert ranged.determines(Event({"price": 10}))
    assert not ranged.determines(Event({"price": 20}))
    low, high = Advertisement.parse("price < 10").allowed[0], Advertisement.parse("price > 20").allowed[0]
    assert Advertisement.of([low, high]) == Advertisement.parse("price < 10 OR price > 20")
    assert Advertisement.parse("a = 1 OR b = 2") == Advertisement.parse("a = 1 AND b = 2")


lists = st.lists(st.one_of(comparisons_of("a"), comparisons_of("b")), min_size=1, max_size=3).map(
    " AND ".join
)


@settings(max_examples=200, deadline=None)
@given(lists, filters_of("a", "b"))
def test_intersection_is_what_brute_force_says(advertised: str, wanted: str) -> None:
    """It intersects exactly when some event is both announced and wanted."""
    advertisement, subscription = Advertisement.parse(advertised), Filter.parse(wanted)
    found = any(advertisement.determines(event) and subscription.matches(event) for event in FLAT)
    assert advertisement.intersects(subscription) == found


@settings(max_examples=200, deadline=None)
@given(lists, lists)
def test_covering_is_what_brute_force_says(one_text: str, other_text: str) -> None:
    """It covers exactly when everything the other announces is announced; its text is canonical."""
    one, other = Advertisement.parse(one_text), Advertisement.parse(other_text)
    assert one.covers(other) == all(one.determines(event) for event in FLAT if other.determines(event))
    assert Advertisement.parse(str(one)) == one
    assert pickle.loads(pickle.dumps(one)) == one


def test_objects_announced_as_a_whole() -> None:
    """`p IS NOT NULL` announces whatever lies below p, and an attribute below p makes p an object."""
    whole = Advertisement.parse("position IS NOT NULL")
    assert whole.determines(Event({"position": {"lat": 1, "lon": 2}}))
    assert whole.covers(Advertisement.parse("position.lat > 3"))
    below = Advertisement.parse("position.lat > 3")
    assert below.intersects(Filter.parse("position IS NOT NULL"))
    assert not below.intersects(Filter.parse("position IS NOT NULL AND position.lat < 3"))


@pytest.mark.parametrize("text", ["TRUE", "NOT (a = 1 AND b = 2)", "a = 1 OR FALSE"])
def test_what_is_no_list_of_predicates_is_refused(text: str) -> None:
    """An advertisement lists values; it is not any Boolean expression."""
    with pytest.raises(AdvertisementError, match="lists the values"):
        Advertisement.parse(text)
