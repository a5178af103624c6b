"""Which of many filters a message passes.

Equal filters are one object and tried once a message. A few are tried one by one, many through the index,
whose fixed price is that of some dozens of trials (`interest/matcher.py`). It needs kernels that take a
while to load, so a broker does without it until somebody who has loaded them says `use_index`; `wants_index`
asks for that. The answers are the same either way.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sojourn.interest import Filter
from sojourn.interest.filter_tests import Test, test_of
from sojourn.interest.matcher import ONE_BY_ONE_MAX, new_index
from sojourn.mqtt.content import attributes_of, event_of
from sojourn.mqtt.message import Message

if TYPE_CHECKING:
    from sojourn.interest.index import FilterIndex

Tests = list[tuple[Filter, Test]]


class FilterBook:
    """The distinct filters of all subscriptions, numbered and counted."""

    def __init__(self) -> None:
        self._numbers: dict[Filter, int] = {}
        self._filters: dict[int, Filter] = {}
        self._uses: dict[int, int] = {}
        self._tests: dict[Filter, Test] = {}
        self._index: FilterIndex | None = None
        self._last = 0
        self.indexed = False
        """Whether the index may be used."""
        self.wants_index = False
        """Whether there are so many filters that it should be."""

    def __len__(self) -> int:
        return len(self._filters)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the functions and the index, which are made again."""
        crowded = len(self._filters) > ONE_BY_ONE_MAX
        return self.__dict__ | {"_tests": {}, "_index": None, "indexed": False, "wants_index": crowded}

    def add(self, wanted: Filter) -> Filter:
        """Count a use of a filter; return the one object that stands for all equal ones."""
        number = self._numbers.get(wanted)
        if number is None:
            self._last += 1
            number = self._numbers[wanted] = self._last
            self._filters[number] = wanted
            self._uses[number] = 0
            if self._index is not None:
                self._index.add(number, wanted)
            self.wants_index = len(self._filters) > ONE_BY_ONE_MAX and not self.indexed
        self._uses[number] += 1
        return self._filters[number]

    def remove(self, wanted: Filter) -> None:
        """Count one use less."""
        number = self._numbers[wanted]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._numbers[wanted], self._uses[number], self._filters[number]
            self._tests.pop(wanted, None)
            if self._index is not None:
                self._index.remove(number)

    def use_index(self) -> bool:
        """Use the index from now on; False if it cannot be had."""
        self.wants_index = False
        self.indexed = new_index() is not None
        return self.indexed

    def test(self, wanted: Filter) -> Test:
        """Return a filter as a function."""
        found = self._tests.get(wanted)
        if found is None:
            found = self._tests[wanted] = test_of(wanted)
        return found

    def passes(self, message: Message, wanted: Filter) -> bool:
        """Whether a message passes one filter."""
        return self.test(wanted)(*attributes_of(message))

    def passed(self, message: Message, wanted: Collection[Filter], tests: Tests) -> list[Filter]:
        """Return which of some filters a message passes, in an order that a restart does not change.

        Where there are many it is all that it passes, wanted or not. `tests` are theirs, or empty and
        filled: whoever asks again has them at hand.
        """
        if len(wanted) <= ONE_BY_ONE_MAX or not self.indexed:
            if not tests:
                tests += [(condition, self.test(condition)) for condition in wanted]
            flat, objects = attributes_of(message)
            return [condition for condition, test in tests if test(flat, objects)]
        if self._index is None:
            self._index = self._make_index()
        filters = self._filters
        return [filters[number] for number in sorted(self._index.match(event_of(message)))]

    def _make_index(self) -> FilterIndex:
        index = new_index()
        assert index is not None, "only what can be had is used"
        index.add_many(self._filters.keys(), self._filters.values())
        return index
