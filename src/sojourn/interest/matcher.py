"""`Matcher`: which of many numbered filters an event matches.

Filters that ask for one topic and nothing else are found by it. Of the others a few are tried one by one
(`filter_tests.py`), many through the index (`index/`), whose fixed price is that of some dozens of trials.
The answers are the same either way.

The index needs NumPy and compiled kernels, which take a moment to load and memory to keep, so they are loaded
when there are many filters and not before. Who must not stand still for that moment sets `waits_for_index`:
then filters go on being tried one by one, `wants_index` says that there are many, and `use_index` is called
once somebody has loaded the kernels. Where they are not installed, filters are always tried one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from sojourn.interest.events import TOPIC, Event
from sojourn.interest.filter_tests import Test, test_of
from sojourn.interest.filters import Filter
from sojourn.interest.values import Scalar

if TYPE_CHECKING:
    from sojourn.interest.index import FilterIndex

ONE_BY_ONE_MAX = 40


def new_index() -> FilterIndex | None:
    """Return an empty index; None where its libraries are not installed."""
    try:
        from sojourn.interest.index import FilterIndex  # noqa: PLC0415 - this is what takes a moment
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] in ("llvmlite", "numba", "numpy"):
            return None
        raise
    return FilterIndex()


def topic_of(wanted: Filter) -> str | None:
    """The topic that a filter asks for, if it asks for that one and nothing else."""
    if len(wanted.conjunctions) != 1 or len(wanted.conjunctions[0].constraints) != 1:
        return None
    path, allowed = wanted.conjunctions[0].constraints[0]
    topic = allowed.only_value if path == TOPIC else None
    return topic if isinstance(topic, str) else None


class Matcher:
    """Finds which filters of a table an event matches; its owner keeps the table and tells what changes."""

    def __init__(self, filters: Mapping[int, Filter]) -> None:
        self._filters = filters
        self.waits_for_index = False
        """Whether somebody else loads the kernels and then says `use_index`."""
        self._topics: dict[int, str] = {}
        """By filter that asks for one topic and nothing else: that topic."""
        self._by_topic: dict[Scalar, tuple[int, ...]] = {}
        """The same the other way round."""
        self._others: dict[int, Filter] = {}
        self._tests: dict[int, Test] = {}
        self._index: FilterIndex | None = None
        self._cannot_index = False
        self._enter_all()

    @property
    def is_indexed(self) -> bool:
        """Whether filters are found through the index."""
        return self._index is not None

    @property
    def others(self) -> int:
        """How many filters are not found by their topic."""
        return len(self._others)

    @property
    def wants_index(self) -> bool:
        """Whether there are so many filters that the index should be used, and it is not."""
        return self._index is None and len(self._others) > ONE_BY_ONE_MAX and not self._cannot_index

    def use_index(self) -> bool:
        """Use the index from now on; False if it cannot be had."""
        self.waits_for_index = False
        if self._index is None and not self._cannot_index:
            index = new_index()
            if index is None:
                self._cannot_index = True
                return False
            index.add_many(self._others.keys(), self._others.values())
            self._tests.clear()
            self._index = index
        return self._index is not None

    def added(self, number: int) -> None:
        """Take in a filter that is new in the table."""
        if self._enter(number, self._filters[number]) and self._index is not None:
            self._index.add(number, self._filters[number])

    def _enter(self, number: int, wanted: Filter) -> bool:
        """Take in a filter; say whether it is one that is not found by its topic."""
        topic = topic_of(wanted)
        if topic is None:
            self._others[number] = wanted
            return True
        self._topics[number] = topic
        self._by_topic[topic] = (*self._by_topic.get(topic, ()), number)
        return False

    def _enter_all(self) -> None:
        for number, wanted in self._filters.items():
            self._enter(number, wanted)

    def removed(self, numbers: Collection[int]) -> None:
        """Forget filters that are no longer in the table."""
        others = [number for number in numbers if number not in self._topics]
        for number in numbers:
            topic = self._topics.pop(number, None)
            if topic is None:
                self._others.pop(number, None)
                self._tests.pop(number, None)
                continue
            left = tuple(one for one in self._by_topic.pop(topic) if one != number)
            if left:
                self._by_topic[topic] = left
        if self._index is not None and others:
            self._index.remove_many(others)

    def begin_anew(self, filters: Mapping[int, Filter]) -> None:
        """Read this table from now on."""
        self._filters = filters
        for book in (self._topics, self._by_topic, self._others, self._tests):
            book.clear()
        self._enter_all()
        if self._index is not None:
            self._index = None
            self.use_index()

    def match(self, event: Event) -> list[int]:
        """Return the numbers of the filters that an event matches, sorted."""
        if self._index is None and self.wants_index and not self.waits_for_index:
            self.use_index()
        flat, objects = event.flat, event.objects
        by_topic = self._by_topic.get(flat.get(TOPIC, ""), ())
        if self._index is not None:
            found = self._index.match(event) if self._others else []
        else:
            found = [number for number, test in self._all_tests().items() if test(flat, objects)]
            found.sort()
        return sorted((*found, *by_topic)) if by_topic else found

    def _all_tests(self) -> dict[int, Test]:
        tests = self._tests
        if len(tests) < len(self._others):
            for number, wanted in self._others.items():
                if number not in tests:
                    tests[number] = test_of(wanted)
        return tests
