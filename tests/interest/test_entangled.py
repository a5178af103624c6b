"""Topic patterns whose wildcards lie across each other cost little, whatever is asked of them."""

from __future__ import annotations

import pytest

from sojourn.edge.quench import gathered
from sojourn.interest import Advertisement, Filter, FilterTooComplexError
from sojourn.interest.algebra import Looks, covers, intersects, merge
from sojourn.interest.events import Event
from sojourn.interest.work import TopicsTooComplexError, Work, within
from sojourn.mqtt.content import ContentError, check_advertisements, parse_advertisement
from sojourn.routing.filter_interests import FilterInterests


def _entangled(name: str, depth: int) -> str:
    return " OR ".join(f"topic LIKE '{'+/' * (j % 20)}{name}/{'+/' * depth}{j}'" for j in range(60))


@pytest.fixture(scope="module")
def accepted() -> list[Filter]:
    """Filters that once were accepted, as a store may hold them."""
    return [
        Filter.parse(f"topic LIKE '{topics}' AND ({_entangled(f'y{i}', depth)})", limited=False)
        for i, (topics, depth) in enumerate([("+/#", 8), ("#", 7)])
    ]


def test_reading_an_entangled_filter_is_given_up_early() -> None:
    """A text of 3.4 KB that would need a diagram of hundreds of thousands of edges is refused."""
    text = _entangled("x0", 8)
    with pytest.raises(FilterTooComplexError, match="too entangled"):
        Filter.parse(text)
    with pytest.raises(TopicsTooComplexError, match="too entangled"):
        Advertisement.parse(text)
    with pytest.raises(ContentError, match="too entangled"):
        parse_advertisement(text)


def test_several_entangled_advertisements_of_one_client_share_the_work() -> None:
    """Each by itself is read, all of them at once are too much; also where all are known already."""
    texts = [
        " OR ".join(f"topic LIKE '{'+/' * (j % 5)}{name}/{'+/' * 4}{j}'" for j in range(40))
        for name in "abcd"
    ]
    for text in texts:
        check_advertisements([text], in_network=False)
    with pytest.raises(ContentError, match="too entangled for one client"):
        check_advertisements(texts, in_network=False)
    check_advertisements([f"topic LIKE 'site/{number}/#'" for number in range(100)], in_network=True)


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"topic LIKE 'city/+/{j}/#'" for j in range(60)),
        " OR ".join(f"topic LIKE '{'+/' * (j % 6)}s{j}/#'" for j in range(24)),
        " OR ".join(f"(topic LIKE 'a/+/{j}' AND v > {j})" for j in range(60)),
        "topic IN (" + ", ".join(f"'c/{j % 7}/b/{j % 3}/{j}'" for j in range(190)) + ")",
        "topic LIKE '#' " + " ".join(f"AND topic NOT LIKE 'a/{j}/#'" for j in range(60)),
    ],
)
def test_what_people_write_is_read_as_before(text: str) -> None:
    """Many patterns, topics or exclusions in one filter are read, and in the same normal form as ever."""
    assert Filter.parse(text) == Filter.parse(text, limited=False)


def test_a_long_list_of_topics_may_be_advertised() -> None:
    """Whether it is written with IN or with OR."""
    topics = [f"c/{j % 7}/b/{j % 3}/{j}" for j in range(150)]
    listed = "topic IN (" + ", ".join(f"'{topic}'" for topic in topics) + ")"
    assert Advertisement.parse(" OR ".join(f"topic='{topic}'" for topic in topics)) == Advertisement.parse(
        listed
    )


def test_relations_of_entangled_filters_err_on_the_safe_side(accepted: list[Filter]) -> None:
    """Where it takes too long to tell, nothing is covered, everything may intersect, nothing is merged."""
    one, other = accepted
    looks = Looks(2_000)
    assert not covers(one, other, looks)
    assert not covers(one, other)
    assert intersects(one, other)
    merged = merge([one, other])
    for part in accepted:
        assert covers(merged, part)
    assert gathered(merged.conjunctions)


def test_without_work_left_the_answers_are_the_safe_ones() -> None:
    """Covering is denied, a common topic is thought possible, and two conjunctions stay two."""
    wide, narrow = Filter.parse("topic LIKE 'a/+/c'"), Filter.parse("topic LIKE 'a/b/c'")
    apart = Filter.parse("topic LIKE 'a/b/d'")
    assert covers(wide, narrow)
    assert not covers(wide, narrow, Looks(1))
    topics = [each.conjunctions[0].get("topic") for each in (wide, narrow, apart)]
    assert not topics[1].overlaps(topics[2])
    with within(Work(0)):
        assert not topics[1].issubset(topics[0])
        assert topics[1].overlaps(topics[2])
        assert len(merge([narrow, apart]).conjunctions) == 2
    assert len(merge([narrow, apart]).conjunctions) == 1


def test_the_work_counts_as_looks(accepted: list[Filter]) -> None:
    """Comparing entangled topics takes more looks than the one comparison of conjunctions that it is."""
    looks = Looks(2_000)
    covers(accepted[0], accepted[1], looks)
    assert 2_000 - looks.left > 1


def test_a_table_of_entangled_subscriptions_and_advertisements_is_kept(accepted: list[Filter]) -> None:
    """What was accepted is entered, compared and matched without an error."""
    interests = FilterInterests()
    ads = [Advertisement.parse(f"topic LIKE '+/z{i}/+/#' OR topic LIKE '+/+/z{i}/+/+/#'") for i in range(2)]
    numbers = [interests.advertisement(ad) for ad in ads]
    subs = [interests.subscription(wanted) for wanted in accepted]
    for sub in subs:
        above = interests.sub_above[sub]
        assert above is None or above.all() == set()
        assert set(interests.ads_of[sub]) == set(numbers)
    levels = "/".join(["y0", *["x"] * 8, "0"])
    assert interests.match(Event({}, topic=levels)) == (subs[0],)
