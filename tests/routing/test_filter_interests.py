"""Relations found by the index are those that comparing everything with everything finds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.algebra import Looks, covers
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.interest.index import FilterIndex
from sojourn.routing.box_tree import BoxTree
from sojourn.routing.effects import Effects
from sojourn.routing.filter_interests import WIDER_MAX, FilterInterests
from sojourn.routing.interests import LOOKS_MAX, Above
from sojourn.routing.messages import Advertise, Subscribe, Unsubscribe
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.router import Router
from tests.interest.languages import combined, comparisons_of, topic_comparisons

TESTS = (
    "a = 1",
    "a = 2",
    "a >= 1",
    "a BETWEEN 0 AND 3",
    "a IS NULL",
    "b = 'x'",
    "b LIKE 'x%'",
    "b = 'xy'",
    "c = TRUE",
    "c = FALSE",
    "d.e = 1",
    "d.e > 0",
    "d IS NOT NULL",
    "topic LIKE 'a/%'",
)
conjunctions = st.lists(st.sampled_from(TESTS), min_size=1, max_size=3).map(" AND ".join)
texts = st.lists(conjunctions, min_size=1, max_size=2).map(lambda parts: " OR ".join(f"({p})" for p in parts))
mixtures = combined(
    st.one_of(comparisons_of("a"), comparisons_of("b"), comparisons_of("b.c"), topic_comparisons())
)
"""Filters over topics with wildcards, numbers, strings, booleans, objects and what is missing."""
ads = st.lists(
    st.sampled_from([test for test in TESTS if "IS NULL" not in test]), min_size=1, max_size=3
).map(" AND ".join)
events = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(0, 3),
        "b": st.sampled_from(["x", "xy", "z"]),
        "c": st.booleans(),
        "d": st.fixed_dictionaries({"e": st.integers(0, 2)}),
    },
)


STRINGS = st.text("ab", max_size=3)
levels = st.sampled_from(["a", "ab", "b", "$s", "+"])
TOPIC_PATTERNS = st.builds(
    lambda parts, end: "/".join([*parts, *end]),
    st.lists(levels, min_size=1, max_size=4),
    st.sampled_from([(), ("#",)]),
) | st.sampled_from(["#", "a%", "a/b%", "ab/%", "$%"])
numbers = st.integers(-3, 3) | st.sampled_from([0.5, -1e300, 1e-300, 1e15])
RANGES = st.one_of(
    st.builds(lambda d, v: f"device = 'd{d}' AND value > {v}", st.integers(0, 2), numbers),
    st.builds(lambda low, high: f"value BETWEEN {low} AND {high}", numbers, numbers),
    st.builds(lambda v: f"value <= {v}", numbers),
    st.builds(lambda d, v: f"device IN ('d{d}', 'd9') OR value = {v}", st.integers(0, 2), numbers),
    st.builds(lambda low, high: f"name BETWEEN '{low}' AND '{high}'", STRINGS, STRINGS),
    st.builds(lambda text: f"name LIKE '{text}%'", STRINGS),
)


@settings(max_examples=150, deadline=None)
@given(wanted=st.lists(texts, max_size=7), offered=st.lists(ads, max_size=5), order=st.randoms())
def test_relations_are_complete(wanted: list[str], offered: list[str], order: object) -> None:
    """Whatever the order of entering, intersections and coverings are exact."""
    assert hasattr(order, "shuffle")
    entries: list[Filter | Advertisement] = [
        *map(Filter.parse, wanted),
        *map(Advertisement.parse, offered),
    ]
    order.shuffle(entries)
    interests = FilterInterests()
    _enter(interests, entries)
    _check_relations(interests)


@settings(max_examples=400, deadline=None)
@given(wanted=st.lists(mixtures, max_size=8), offered=st.lists(conjunctions, max_size=3))
def test_relations_of_mixed_filters_are_complete(wanted: list[str], offered: list[str]) -> None:
    """Topics with wildcards, ranges, lists, prefixes, unions and negations relate as the algebra says."""
    interests = FilterInterests()
    _enter(interests, [*map(Filter.parse, wanted), *map(Advertisement.parse, offered)])
    _check_relations(interests)


@settings(max_examples=300, deadline=None)
@given(patterns=st.lists(TOPIC_PATTERNS, max_size=25), conditions=st.lists(RANGES, max_size=8))
@example(patterns=[], conditions=["value BETWEEN 0 AND 0", "value BETWEEN 0 AND 1e-300"])
def test_relations_of_many_patterns_and_ranges_are_complete(
    patterns: list[str], conditions: list[str]
) -> None:
    """Patterns of several levels, alone and with conditions, relate as the algebra says."""
    topics = [f"topic LIKE '{pattern}'" for pattern in patterns]
    both = [f"{topic} AND {condition}" for topic, condition in zip(topics, conditions, strict=False)]
    interests = FilterInterests()
    _enter(interests, [Filter.parse(text) for text in (*topics, *both, *conditions)])
    _check_relations(interests)


@settings(max_examples=150, deadline=None)
@given(
    wanted=st.lists(texts, max_size=7),
    offered=st.lists(ads, max_size=5),
    gone=st.sets(st.integers(0, 11)),
    contents=events,
)
def test_what_is_forgotten_leaves_nothing_behind(
    wanted: list[str], offered: list[str], gone: set[int], contents: dict[str, object]
) -> None:
    """Those that stay relate and match as if the others had never been; all may come back, and all may go."""
    entries: list[Filter | Advertisement] = [*map(Filter.parse, wanted), *map(Advertisement.parse, offered)]
    event = Event(contents)  # type: ignore[arg-type]  # drawn, not typed
    interests, without = FilterInterests(), FilterInterests()
    assert interests.matcher.use_index()
    _enter(interests, entries)
    leaving = [entry for place, entry in enumerate(entries) if place in gone]
    ads_gone = {number for number, ad in interests.ads.items() if ad in leaving}
    subs_gone = {number for number, sub in interests.subs.items() if sub in leaving}
    interests.forget(ads_gone, subs_gone)
    _enter(without, [entry for entry in entries if entry not in leaving])
    _check_relations(interests)
    assert list(interests.subs.values()) == list(without.subs.values())
    assert [interests.subs[sub] for sub in interests.match(event)] == [
        without.subs[sub] for sub in without.match(event)
    ]
    _enter(interests, entries)
    _check_relations(interests)
    assert not ads_gone & interests.ads.keys()
    assert not subs_gone & interests.subs.keys()
    interests.forget(set(interests.ads), set(interests.subs))
    for name, book in vars(interests).items():
        if isinstance(book, (dict, BoxTree)):
            assert not book, name
        assert not isinstance(book, list), name
    assert not interests.matcher._tests
    assert interests.matcher._index is not None
    assert interests.matcher._index.nbytes == FilterIndex().nbytes


def _enter(interests: FilterInterests, entries: list[Filter | Advertisement]) -> None:
    for entry in entries:
        if isinstance(entry, Filter):
            interests.subscription(entry)
        else:
            interests.advertisement(entry)


def _check_relations(interests: FilterInterests) -> None:
    """Compare everything with everything."""
    for ad, advertisement in interests.ads.items():
        intersecting = {sub for sub, one in interests.subs.items() if advertisement.intersects(one)}
        assert set(interests.subs_of[ad]) == intersecting
        assert all(ad in interests.ads_of[sub] for sub in intersecting)
        above = interests.ad_above[ad]
        expected = {x for x, one in interests.ads.items() if x != ad and one.covers(advertisement)}
        assert (above.all() if above is not None else set()) == expected
    for sub, narrow in interests.subs.items():
        above = interests.sub_above[sub]
        expected = {x for x, wide in interests.subs.items() if x != sub and covers(wide, narrow)}
        assert (above.all() if above is not None else set()) == expected, narrow


@settings(max_examples=100, deadline=None)
@given(wanted=st.lists(texts, max_size=8), attributes=events)
def test_matching_agrees_with_the_filters(wanted: list[str], attributes: dict[str, object]) -> None:
    """An event matches the subscriptions whose filters say so, in ascending order."""
    interests = FilterInterests()
    for text in wanted:
        interests.subscription(Filter.parse(text))
    event = Event(attributes)  # type: ignore[arg-type]  # drawn, not typed
    expected = tuple(sub for sub, one in interests.subs.items() if one.matches(event))
    assert interests.match(event) == expected


def test_equal_interests_share_a_number() -> None:
    """The same condition written twice is one interest."""
    interests = FilterInterests()
    one = interests.subscription(Filter.parse("a >= 1 AND a <= 1"))
    assert interests.subscription(Filter.parse("a = 1")) == one


def test_covering_can_be_turned_off() -> None:
    """Without covering nothing is above anything, but intersections stand."""
    interests = FilterInterests(covering=False)
    wide = interests.subscription(Filter.parse("a >= 1"))
    narrow = interests.subscription(Filter.parse("a = 2"))
    ad = interests.advertisement(Advertisement.parse("a = 2"))
    assert interests.sub_above[wide] is None
    assert interests.sub_above[narrow] is None
    assert list(interests.subs_of[ad]) == [wide, narrow]


def test_entering_many_unrelated_interests_compares_few() -> None:
    """The n-th interest looks at those that could be related, not at all n."""
    calls = 0

    class Counting(Advertisement):
        def intersects(self, subscription: Filter) -> bool:
            nonlocal calls
            calls += 1
            return super().intersects(subscription)

    interests = FilterInterests()
    for number in range(300):
        interests.subscription(Filter.parse(f"publication = {number}"))
    for number in range(300):
        interests.advertisement(Counting(Advertisement.parse(f"publication = {number}").allowed))
    assert calls == 300


class Counting(FilterInterests):
    """Interests that count how often two subscriptions are compared."""

    questions = 0

    def sub_covers(self, wide: int, narrow: int, looks: Looks) -> bool:
        """Whether a subscription wants all that another does."""
        self.questions += 1
        return super().sub_covers(wide, narrow, looks)


def _router(interests: FilterInterests) -> Router:
    """A router that has heard from one neighbour, which announces whatever there is."""
    router = Router(Neighbours((1,)), interests, Effects())
    everything = "topic LIKE '%' OR " + " OR ".join(
        f"{name} IS NOT NULL" for name in ("device", "value", "x")
    )
    router.advertise(Advertise(interests.advertisement(Advertisement.parse(everything))), 2)
    return router


def _subscribe(router: Router, interests: FilterInterests, texts: Iterable[str]) -> int:
    """Let local clients subscribe; say how many of the subscriptions were sent on."""
    router.effects.clear()
    for text in texts:
        router.client_subscribes(1, interests.subscription(Filter.parse(text)))
    return len(router.effects.sends)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("topic LIKE 'device/{n}/#'", 500),
        ("topic LIKE 'd/{n}/{n}/+'", 500),
        ("device = 'd{n}' AND value > {n}", 500),
        ("value BETWEEN {n}.1 AND {n}.9", 500),
        ("topic LIKE 'plant/#' AND device IN ('d{n}', 'e{n}')", 500),
        ("topic LIKE 'plant/+/{n}' AND value > 17", 500),
        ("value > {n}", 1),
    ],
)
def test_many_subscriptions_are_hardly_compared(text: str, sent: int) -> None:
    """Those that no other covers are not compared at all, and those that one covers are compared once."""
    interests = Counting()
    router = _router(interests)
    assert _subscribe(router, interests, [text.format(n=n) for n in range(500)]) == sent
    assert interests.questions == 500 - sent


def test_what_one_covers_is_compared_with_it_alone() -> None:
    """Under `#` each pattern takes one comparison; withdrawing it takes none where nothing else covers."""
    interests = Counting()
    router = _router(interests)
    patterns = [f"topic LIKE 'device/{n}/#'" for n in range(300)]
    assert _subscribe(router, interests, ["topic LIKE '#'", *patterns]) == 1
    assert interests.questions == 300
    router.effects.clear()
    router.client_unsubscribes(1, interests.subscription(Filter.parse("topic LIKE '#'")))
    *freed, (_, last) = router.effects.sends
    assert [message for _, message in freed] == [Subscribe(number) for number in range(1, 301)]
    assert isinstance(last, Unsubscribe)
    assert interests.questions == 300


def test_a_search_for_what_covers_has_limits() -> None:
    """Where very many could cover a subscription, a few dozen are looked at and it is sent if none does."""
    interests = Counting()
    router = _router(interests)
    assert _subscribe(router, interests, [f"x IN (1, {n}, 9999)" for n in range(2, 302)]) == 300
    assert interests.questions <= 300 * WIDER_MAX


def test_comparing_long_filters_has_limits() -> None:
    """A subscription of many alternatives that could cover another is given up when it takes too long."""
    wide = Filter.parse(" OR ".join(f"(a > {n} AND b < {n} AND c > {-n})" for n in range(40)))
    narrow = Filter.parse(" OR ".join(f"(a > {n} AND b < {n} AND c > {-n} AND d = 1)" for n in range(40)))
    assert covers(wide, narrow)
    assert not covers(wide, narrow, Looks(100))
    spent: list[float] = []

    class Watched(FilterInterests):
        def sub_covers(self, wide: int, narrow: int, looks: Looks) -> bool:
            before = looks.left
            is_wider = super().sub_covers(wide, narrow, looks)
            spent.append(before - looks.left if looks.left >= 0 else 0)
            return is_wider

    interests = Watched()
    for n in range(30):
        text = " OR ".join(f"(a{i % 5} > {i + n} AND b{(i + n) % 4} < {i})" for i in range(30))
        interests.subscription(Filter.parse(text))
    for number in interests.subs:
        above = interests.sub_above[number]
        if above is not None:
            spent.clear()
            above.first(lambda _: True)
            assert sum(spent) <= LOOKS_MAX
    assert spent


def test_what_was_asked_before_changes_no_answer() -> None:
    """A question is given up at the same comparison whether the earlier ones are remembered or not."""
    asked: list[int] = []

    def covers_slowly(wide: int, narrow: int, looks: Looks) -> bool:
        assert narrow == 9
        asked.append(wide)
        return looks.take(LOOKS_MAX // 2) and wide >= 2

    above = Above(9, [0, 1, 2, 3], covers_slowly)
    assert above.first(lambda _: True) is None
    assert above.first(lambda _: True) is None
    assert above.first(lambda wide: wide >= 2) == 2
    assert above.first(lambda wide: wide != 1) == 2
    assert above.first(lambda _: True) is None
    assert [asked.count(0), asked.count(1)] == [1, 1]


@settings(max_examples=100, deadline=None)
@given(
    patterns=st.lists(TOPIC_PATTERNS, max_size=25),
    conditions=st.lists(RANGES, max_size=8),
    gone=st.sets(st.integers(0, 30)),
)
def test_a_table_made_from_what_another_holds_names_the_same_first(
    patterns: list[str], conditions: list[str], gone: set[int]
) -> None:
    """Also when the other one has forgotten some: of many that would do, both find the same."""
    topics = [f"topic LIKE '{pattern}'" for pattern in patterns]
    both = [f"{topic} AND {condition}" for topic, condition in zip(topics, conditions, strict=False)]
    unions = [f"({one}) OR ({other})" for one, other in pairwise((*conditions, *topics))]
    interests, again = FilterInterests(), FilterInterests()
    _enter(interests, [Filter.parse(text) for text in (*topics, *both, *conditions, *unions)])
    _enter(interests, [Advertisement.parse(text) for text in conditions if "OR" not in text])
    interests.forget(gone & interests.ads.keys(), gone & interests.subs.keys())
    again.restore(interests.ads, interests.subs, interests.ads_of)
    assert again.subs_of == interests.subs_of
    for number in interests.subs:
        assert list(again.wider_subs(number)) == list(interests.wider_subs(number))
    for number in interests.ads:
        assert list(again.wider_ads(number)) == list(interests.wider_ads(number))
    _check_relations(again)


class _Slow(FilterInterests):
    """Files one interest anew at a time."""

    def refile(self, most: int = 1) -> None:
        super().refile(most)


@settings(max_examples=100, deadline=None)
@given(
    patterns=st.lists(TOPIC_PATTERNS, min_size=3, max_size=20),
    later=st.lists(TOPIC_PATTERNS, max_size=5),
    conditions=st.lists(RANGES, max_size=5),
    gone=st.sets(st.integers(0, 25), min_size=1),
    steps=st.integers(0, 12),
)
def test_what_was_forgotten_is_in_nobodys_way_while_the_rest_is_filed_anew(
    patterns: list[str], later: list[str], conditions: list[str], gone: set[int], steps: int
) -> None:
    """A table made in the middle of it names the same first, and in the end it is as if nothing had been."""
    slow, again, fresh = _Slow(), _Slow(), FilterInterests()
    _enter(slow, [Filter.parse(f"topic LIKE '{pattern}'") for pattern in patterns])
    _enter(slow, [Advertisement.parse(text) for text in conditions if "OR" not in text])
    slow.forget(gone & slow.ads.keys(), gone & slow.subs.keys())
    for _ in range(steps):
        slow.refile()
    _enter(slow, [Filter.parse(f"topic LIKE '{pattern}'") for pattern in later])
    again.restore(slow.ads, slow.subs, slow.ads_of)
    if slow.is_refiling:
        again.restore_refiling(*slow.refiling())
    assert again.is_refiling == slow.is_refiling
    _check_relations(slow)
    for number in slow.subs:
        assert list(again.wider_subs(number)) == list(slow.wider_subs(number))
    while slow.is_refiling:
        slow.refile()
        again.refile()
    assert not again.is_refiling
    fresh.restore(slow.ads, slow.subs, slow.ads_of)
    for number in slow.subs:
        assert list(fresh.wider_subs(number)) == list(slow.wider_subs(number))
        assert list(fresh.wider_subs(number)) == list(again.wider_subs(number))
    for number in slow.ads:
        assert list(fresh.wider_ads(number)) == list(slow.wider_ads(number))


def test_a_table_with_topics_of_very_many_levels_is_made_again() -> None:
    """Where interests stand is built again, however deep that is."""
    deep = "/".join(["a"] * 250)
    interests, back = FilterInterests(), FilterInterests()
    for text in (
        f"topic LIKE '{deep}/#'",
        f"topic = '{deep}/b/c'",
        "topic LIKE 'a/#'",
        "value > 3",
        "value > 4",
    ):
        interests.subscription(Filter.parse(text))
    interests.advertisement(Advertisement.parse("value > 0"))
    back.restore(interests.ads, interests.subs, interests.ads_of)
    above = [back.sub_above[number] for number in (1, 4)]
    assert [one.all() for one in above if one is not None] == [{0, 2}, {3}]
    back.forget({0}, {0, 1, 2, 3, 4})
    assert not back._filing.boxes
