"""The index agrees with trying every filter, whatever is added, removed and matched."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sojourn.errors import SojournError
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.interest.index import (
    BadKeyError,
    ColumnError,
    ColumnFilters,
    ColumnFiltersError,
    FilterIndex,
    KeyTakenError,
    UnknownKeyError,
)
from sojourn.interest.index.layout import LEAF_RECORDS

TESTS = (
    *(f"a = {n}" for n in range(4)),
    *(f"a >= {n} AND a < {n + w}" for n in range(4) for w in (1, 3)),
    *(f"b > {n}" for n in (-1, 1.5, 3)),
    "b <= 2",
    "b <> 2",
    "a IN (1, 3)",
    "p.q = 1",
    "p.q < 2",
    "s = 'x'",
    "s = 'xy'",
    "s IN ('x', 'y')",
    "s <> 'x'",
    "s < 'xy'",
    "s LIKE 'x%'",
    "s LIKE 'xy%'",
    "s IS NULL",
    "s IS NOT NULL",
    "p IS NULL",
    "p IS NOT NULL",
    "p = 'x'",
    "f = TRUE",
    "f = FALSE",
    "f IS NULL",
    "topic = 'a/b'",
    "topic LIKE 'a/+'",
    "topic LIKE 'a/#'",
    "topic LIKE '+/b'",
    "topic LIKE '#'",
    "topic LIKE 'a/b%'",
    "topic NOT LIKE 'a/#'",
    "topic <> 'a/b'",
    "topic IN ('a', 'c')",
)

conjunctions = st.lists(st.sampled_from(TESTS), min_size=1, max_size=4).map(" AND ".join)
texts = st.one_of(
    st.lists(conjunctions, min_size=1, max_size=3).map(
        lambda parts: " OR ".join(f"({part})" for part in parts)
    ),
    st.sampled_from(("TRUE", "FALSE")),
)
filters = texts.map(cache(Filter.parse))
keys = st.one_of(st.integers(0, 40), st.sampled_from((-(2**63), 2**63 - 1, -1, 10**12)))
events = st.builds(
    lambda attributes, topic: Event({k: v for k, v in attributes.items() if v is not None}, topic=topic),
    st.fixed_dictionaries(
        {
            "a": st.sampled_from((None, 0, 1, 2, 3, 1.5, "x", True)),
            "b": st.sampled_from((None, -1, 0, 1.5, 2, 2.5, 3, 4)),
            "s": st.sampled_from((None, "", "a", "x", "xy", "xyz", "y", 1, False)),
            "p": st.sampled_from((None, "x", 1, {"q": 1}, {"q": 2.5}, {"r": 1})),
            "f": st.sampled_from((None, True, False, "x")),
        }
    ),
    st.sampled_from((None, "a", "a/b", "a/bc", "a/b/c", "c", "c/b", "$x", "$x/b")),
)


def columns_of(batch: list[Event]) -> dict[str, np.ndarray]:
    """Turn events into columns of Python objects, None where an attribute is missing."""
    columns = {}
    for path in sorted({path for event in batch for path in event.flat} | {"a"}):
        column = np.empty(len(batch), object)
        column[:] = [event.flat.get(path) for event in batch]
        columns[path] = column
    return columns


class ComingAndGoing(RuleBasedStateMachine):
    """Filters come and go; after every step the index matches as trying every filter does."""

    def __init__(self) -> None:
        super().__init__()
        self.index = FilterIndex()
        self.filters: dict[int, Filter] = {}

    @rule(key=keys, wanted=filters)
    def add(self, key: int, wanted: Filter) -> None:
        """A key that is taken is refused."""
        if key in self.filters:
            with pytest.raises(KeyTakenError):
                self.index.add(key, wanted)
        else:
            self.index.add(key, wanted)
            self.filters[key] = wanted

    @rule(some=st.dictionaries(keys, filters, max_size=8))
    def add_many(self, some: dict[int, Filter]) -> None:
        """All of some filters come, or none."""
        if some.keys() & self.filters.keys():
            with pytest.raises(KeyTakenError):
                self.index.add_many(some.keys(), some.values())
        else:
            self.index.add_many(some.keys(), some.values())
            self.filters |= some

    @rule(key=keys)
    def remove(self, key: int) -> None:
        """A key that is unknown is refused."""
        if key in self.filters:
            self.index.remove(key)
            del self.filters[key]
        else:
            with pytest.raises(UnknownKeyError):
                self.index.remove(key)

    @precondition(lambda self: self.filters)
    @rule(data=st.data())
    def remove_many(self, data: st.DataObject) -> None:
        """Some filters go at once."""
        gone = data.draw(st.sets(st.sampled_from(sorted(self.filters))))
        self.index.remove_many(gone)
        for key in gone:
            del self.filters[key]

    @rule()
    def pickle(self) -> None:
        """The index travels."""
        self.index = pickle.loads(pickle.dumps(self.index))

    @rule(batch=st.lists(events, min_size=1, max_size=4))
    def match(self, batch: list[Event]) -> None:
        """Events find the filters that match them."""
        found = self.index.match_batch(columns_of(batch))
        for i, event in enumerate(batch):
            expected = sorted(key for key, wanted in self.filters.items() if wanted.matches(event))
            assert self.index.match(event) == expected
            assert found[i].tolist() == expected

    @invariant()
    def holds_its_keys(self) -> None:
        """The index knows its keys."""
        assert len(self.index) == len(self.filters)
        assert all(key in self.index for key in self.filters)


ComingAndGoing.TestCase.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestComingAndGoing = ComingAndGoing.TestCase


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(wanted=filters, event=events)
def test_one_filter_matches_in_the_index_as_it_does_alone(wanted: Filter, event: Event) -> None:
    """A filter alone in the index is found exactly when it matches, one by one and in a batch."""
    index = FilterIndex()
    index.add(7, wanted)
    expected = [7] if wanted.matches(event) else []
    assert index.match(event) == expected
    assert index.match_batch(columns_of([event]))[0].tolist() == expected


def random_filter(draw: random.Random) -> Filter:
    """Draw a filter of equalities and ranges, sometimes with an OR, sometimes with neither."""
    parts = []
    for _ in range(draw.choice((1, 1, 1, 2))):
        tests = [f"c{i} = 'v{min(9, int(draw.expovariate(0.5)))}'" for i in range(3) if draw.random() < 0.3]
        for i in range(3):
            if draw.random() < 0.6:
                low = draw.randrange(50)
                tests.append(f"n{i} BETWEEN {low} AND {low + draw.randrange(1, 40)}")
        parts.append(" AND ".join(tests) or "n0 IS NULL")
    return Filter.parse(" OR ".join(f"({part})" for part in parts))


def random_event(draw: random.Random) -> Event:
    """Draw an event with most of the attributes that `random_filter` speaks of."""
    attributes: dict[str, str | float] = {}
    for i in range(3):
        if draw.random() < 0.9:
            attributes[f"c{i}"] = f"v{min(9, int(draw.expovariate(0.5)))}"
        if draw.random() < 0.95:
            attributes[f"n{i}"] = draw.choice((draw.randrange(90), draw.uniform(0, 90)))
    return Event(attributes)


def test_leaves_split_and_shrink_without_losing_a_filter() -> None:
    """Many times a leaf's filters are found as they come and as they go, and nothing is left of them."""
    draw = random.Random(3)
    index = FilterIndex()
    live: dict[int, Filter] = {}
    probes = [random_event(draw) for _ in range(12)]

    def check() -> None:
        found = index.match_batch(columns_of(probes))
        for i, event in enumerate(probes):
            expected = sorted(key for key, wanted in live.items() if wanted.matches(event))
            assert index.match(event) == expected
            assert found[i].tolist() == expected

    pool = [random_filter(draw) for _ in range(1_000)]
    for key in range(16 * LEAF_RECORDS):
        live[key] = draw.choice(pool)
        index.add(key, live[key])
        if key % 500 == 499:
            check()
    order = sorted(live)
    draw.shuffle(order)
    for i, key in enumerate(order):
        index.remove(key)
        del live[key]
        if i % 400 == 0:
            check()
    check()
    assert len(index) == 0
    assert all(owner is None for owner in index._encoder.owners)


def test_equal_filters_outgrow_a_leaf_that_cannot_be_split() -> None:
    """Filters that no cut can tell apart are all found, and all removed."""
    index = FilterIndex()
    count = 5 * LEAF_RECORDS
    index.add_many(range(count), [Filter.parse("n > 1 AND n < 5")] * count)
    assert index.match(Event({"n": 3})) == list(range(count))
    assert index.match(Event({"n": 5})) == []
    index.add_many(range(count, count + 300), [Filter.parse(f"n > {i} AND n < 400") for i in range(300)])
    assert index.match(Event({"n": 3})) == [*range(count), *range(count, count + 3)]
    index.remove_many(range(count))
    assert index.match(Event({"n": 3})) == [*range(count, count + 3)]


def test_large_batches_go_block_by_block() -> None:
    """A batch longer than a block, with frequent and rare values, matches as its events do one by one."""
    draw = random.Random(5)
    index = FilterIndex()
    index.add_many(range(1_500), [random_filter(draw) for _ in range(1_500)])
    batch = [random_event(draw) for _ in range(2_500)]
    found = index.match_batch(columns_of(batch))
    assert len(found) == 2_500
    for i, event in enumerate(batch):
        assert found[i].tolist() == index.match(event)


@pytest.mark.parametrize("spread", [1, 10**15])
def test_or_reports_a_filter_once(spread: int) -> None:
    """A filter of which several conjunctions match is reported once, whether keys are dense or far apart."""
    index = FilterIndex()
    for key in range(50):
        index.add((key - 25) * spread, Filter.parse("(a > 0 AND b > 0) OR (a < 9 AND b < 9) OR s = 'x'"))
    expected = [(key - 25) * spread for key in range(50)]
    event = Event({"a": 3, "b": 3, "s": "x"})
    assert index.match(event) == expected
    found = index.match_batch({"a": [3, 3], "b": [3, 3], "s": ["x", None]})
    assert found[0].tolist() == expected
    assert found[1].tolist() == expected


def test_columns_come_as_numpy_or_arrow() -> None:
    """The same events in NumPy, Arrow, dictionary, struct and chunked columns give the same matches."""
    index = FilterIndex()
    texts = (
        "s = 'x'",
        "s LIKE 'y%'",
        "s IS NULL",
        "n > 1",
        "n IS NULL",
        "p.q = 2",
        "p IS NOT NULL",
        "f = TRUE",
    )
    index.add_many(range(len(texts)), [Filter.parse(text) for text in texts])
    strings, numbers, flags = ["x", None, "yz"], [1, None, 2], [True, None, False]
    inner = [None, 2, 3]
    objects = [{"q": q} if q is not None else None for q in inner]
    expected = [[0, 7], [2, 4, 5, 6], [1, 3, 6]]
    plain = {
        "s": np.array(strings, object),
        "n": np.array([1, np.nan, 2]),
        "f": np.array(flags, object),
        "p.q": np.array([np.nan, 2, 3]),
    }
    arrow = pa.record_batch(
        {"s": pa.array(strings), "n": pa.array(numbers), "f": pa.array(flags), "p": pa.array(objects)}
    )
    coded = {
        "s": pa.array(strings).dictionary_encode(),
        "n": pa.chunked_array([[1, None], [2]]),
        "f": pa.array(flags),
        "p.q": pa.array(inner, pa.int8()),
    }
    for columns in (plain, arrow, pa.Table.from_batches([arrow]), coded):
        found = index.match_batch(columns)
        assert [found[i].tolist() for i in range(3)] == expected


def test_bunched_and_extreme_numbers_are_ranked_exactly() -> None:
    """Ranges over numbers that crowd together, repeat, or end at the largest doubles match exactly."""
    numbers = np.array([0.0, 5e-324, -5e-324, 1.0, np.nextafter(1, 2), 1e308, -1e308, 1.0, 3.0] * 30)
    texts = (
        "n >= 0",
        "n > 0",
        "n < 0",
        "n <= 1",
        "n > 1 AND n < 3",
        "n >= 3",
        "n BETWEEN -1 AND 1",
        "n <> 1",
    )
    index = FilterIndex()
    index.add_many(range(len(texts)), [Filter.parse(text) for text in texts])
    found = index.match_batch({"n": numbers})
    for i, number in enumerate(numbers.tolist()):
        assert found[i].tolist() == index.match(Event({"n": number}))


def test_bad_keys_leave_the_index_as_it_was() -> None:
    """A key taken, given twice, unknown or too large is refused with a sentence and nothing changes."""
    index = FilterIndex()
    wanted, other = Filter.parse("a = 1"), Filter.parse("z = 'new'")
    index.add(1, wanted)
    refusals: tuple[tuple[type[SojournError], Callable[[], object]], ...] = (
        (KeyTakenError, lambda: index.add(1, other)),
        (KeyTakenError, lambda: index.add_many([2, 1], [other, other])),
        (KeyTakenError, lambda: index.add_many([2, 2], [other, other])),
        (UnknownKeyError, lambda: index.remove(2)),
        (UnknownKeyError, lambda: index.remove_many([1, 2])),
        (UnknownKeyError, lambda: index.remove_many([1, 1])),
        (BadKeyError, lambda: index.add(2**63, other)),
        (BadKeyError, lambda: index.remove(2**63)),
        (BadKeyError, lambda: index.add_many(np.array([1.5]), [other])),
    )
    for error, act in refusals:
        with pytest.raises(error, match=r"\.$"):
            act()
        assert len(index) == 1
        assert 1 in index
        assert 2 not in index
        assert "new" not in index
        assert index.match(Event({"a": 1, "z": "new"})) == [1]
    index.remove(1)
    assert not index._encoder.paths


def test_bad_columns_are_refused() -> None:
    """Columns of different lengths, of other types or with integers too large are refused with a sentence."""
    index = FilterIndex()
    index.add(1, Filter.parse("a = 1"))
    for columns in (
        {"a": [1, 2], "b": [1]},
        {"a": pa.array([b"x"])},
        {"a": np.array([2**60])},
        {"a": pa.array([2**60, None])},
    ):
        with pytest.raises(ColumnError, match=r"\.$"):
            index.match_batch(columns)


def test_batches_may_be_empty() -> None:
    """No columns, no events or no filters give no matches."""
    index = FilterIndex()
    assert index.match(Event({"a": 1})) == []
    assert index.match_batch({"a": [1, 2]}).offsets.tolist() == [0, 0, 0]
    index.add(1, Filter.parse("a = 1"))
    assert len(index.match_batch({})) == 0
    assert len(index.match_batch({"a": np.array([])})) == 0
    assert index.match_batch({"b": [1]})[0].tolist() == []


def test_numbers_of_atoms_are_used_again() -> None:
    """Clients that come and go with a value of their own leave no trace."""
    index = FilterIndex()
    for key in range(2_000):
        index.add(key, Filter.parse(f"user = 'u{key}' AND n > {key}"))
        if key >= 10:
            index.remove(key - 10)
    assert len(index._encoder.owners) < 20
    assert len(index._store.nodes) < 2 * LEAF_RECORDS * 3
    assert index.match(Event({"user": "u1999", "n": 5_000})) == [1999]


def test_filters_come_as_arrays() -> None:
    """Filters given as arrays match as the same filters given one by one."""
    arrays: dict[str, Any] = {
        "keys": np.array([10, 20, 30]),
        "tokens": [("c", "x"), ("d", 4.0), ("c", "unused")],
        "equality_starts": np.array([0, 1, 3, 3]),
        "equality_tokens": np.array([0, 0, 1]),
        "paths": ["n", "m"],
        "range_starts": np.array([0, 1, 1, 3]),
        "range_paths": np.array([0, 0, 1]),
        "lows": np.array([1.0, 0, 0]),
        "highs": np.array([2.0, 5, 5]),
    }
    index = FilterIndex()
    index.add_columns(ColumnFilters(**arrays))
    other = FilterIndex()
    texts = ("c = 'x' AND n BETWEEN 1 AND 2", "c = 'x' AND d = 4", "n BETWEEN 0 AND 5 AND m BETWEEN 0 AND 5")
    other.add_many([10, 20, 30], [Filter.parse(text) for text in texts])
    for event in (
        Event({"c": "x", "d": 4, "n": 2, "m": 0}),
        Event({"c": "x", "n": 5, "m": 5}),
        Event({"c": "unused"}),
    ):
        assert index.match(event) == other.match(event)
    index.remove_many([10, 20, 30])
    assert all(owner is None for owner in index._encoder.owners)
    for wrong in (
        {"equality_starts": np.array([0, 1, 3])},
        {"range_paths": np.array([0, 0, 2])},
        {"range_starts": np.array([0, 2, 1, 3])},
        {"highs": np.array([0.0, 5, 5])},
        {"lows": np.array([1.0, 0])},
    ):
        with pytest.raises(ColumnFiltersError):
            ColumnFilters(**(arrays | wrong))


def test_a_pickled_index_is_small_and_lives_on() -> None:
    """An index sent elsewhere takes under 200 bytes a filter, matches the same and can still change."""
    index = FilterIndex()
    count = 20_000
    numbers = np.random.default_rng(1).uniform(0, 500, (count, 3))
    index.add_columns(
        ColumnFilters(
            keys=np.arange(count),
            tokens=[("c", "x")],
            equality_starts=np.arange(count + 1),
            equality_tokens=np.zeros(count, np.int64),
            paths=["n0", "n1", "n2"],
            range_starts=np.arange(count + 1) * 3,
            range_paths=np.tile(np.arange(3), count),
            lows=numbers.ravel(),
            highs=numbers.ravel() + 200,
        )
    )
    sent = pickle.dumps(index)
    assert len(sent) < 200 * count
    assert index.nbytes < 200 * count
    copy = pickle.loads(sent)
    event = Event({"c": "x", "n0": 300, "n1": 300, "n2": 300})
    assert copy.match(event) == index.match(event)
    copy.add(count, Filter.parse("c = 'x'"))
    copy.remove(0)
    assert count in copy.match(event)
    assert count not in index
    assert 0 in index
