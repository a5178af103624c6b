"""Which of many filters a message passes.

Equal filters are tried once a message. A few are tried one by one, many through the index: its fixed price is
that of about a dozen trials.
"""

from __future__ import annotations

from collections.abc import Collection

from sojourn.interest import Event, Filter
from sojourn.interest.index import FilterIndex

ONE_BY_ONE_MAX = 16


class FilterBook:
    """The distinct filters of all subscriptions, numbered and counted."""

    def __init__(self) -> None:
        self._numbers: dict[Filter, int] = {}
        self._filters: dict[int, Filter] = {}
        self._uses: dict[Filter, int] = {}
        self._index = FilterIndex()
        self._last = 0

    def add(self, wanted: Filter) -> Filter:
        """Count a use of a filter; return the one object that stands for all equal ones."""
        number = self._numbers.get(wanted)
        if number is None:
            self._last += 1
            number = self._numbers[wanted] = self._last
            self._filters[number] = wanted
            self._uses[wanted] = 0
            self._index.add(number, wanted)
        kept = self._filters[number]
        self._uses[kept] += 1
        return kept

    def remove(self, wanted: Filter) -> None:
        """Count one use less."""
        self._uses[wanted] -= 1
        if not self._uses[wanted]:
            number = self._numbers.pop(wanted)
            del self._uses[wanted], self._filters[number]
            self._index.remove(number)

    def passed(self, event: Event, wanted: Collection[Filter]) -> set[Filter]:
        """Return those of some filters that an event passes."""
        if len(wanted) <= ONE_BY_ONE_MAX:
            return {condition for condition in wanted if condition.matches(event)}
        filters = self._filters
        return {filters[number] for number in self._index.match(event)}
