"""`Matcher`: which of many numbered filters an event matches.

A few filters are tried one by one (`filter_tests.py`), many through the index (`index/`), whose fixed price
is that of some dozens of trials. The answers are the same either way.

The index needs NumPy and compiled kernels, which take a moment to load and memory to keep, so they are loaded
when there are many filters and not before. Who must not stand still for that moment sets `waits_for_index`:
then filters go on being tried one by one, `wants_index` says that there are many, and `use_index` is called
once somebody has loaded the kernels. Where they are not installed, filters are always tried one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from sojourn.interest.events import Event
from sojourn.interest.filter_tests import Test, test_of
from sojourn.interest.filters import Filter

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


class Matcher:
    """Finds which filters of a table an event matches; its owner keeps the table and tells what changes."""

    def __init__(self, filters: Mapping[int, Filter]) -> None:
        self._filters = filters
        self.waits_for_index = False
        """Whether somebody else loads the kernels and then says `use_index`."""
        self._tests: dict[int, Test] = {}
        self._index: FilterIndex | None = None
        self._cannot_index = False

    @property
    def is_indexed(self) -> bool:
        """Whether filters are found through the index."""
        return self._index is not None

    @property
    def wants_index(self) -> bool:
        """Whether there are so many filters that the index should be used, and it is not."""
        return self._index is None and len(self._filters) > ONE_BY_ONE_MAX and not self._cannot_index

    def use_index(self) -> bool:
        """Use the index from now on; False if it cannot be had."""
        self.waits_for_index = False
        if self._index is None and not self._cannot_index:
            index = new_index()
            if index is None:
                self._cannot_index = True
                return False
            index.add_many(self._filters.keys(), self._filters.values())
            self._tests.clear()
            self._index = index
        return self._index is not None

    def added(self, number: int) -> None:
        """Take in a filter that is new in the table."""
        if self._index is not None:
            self._index.add(number, self._filters[number])

    def removed(self, numbers: Collection[int]) -> None:
        """Forget filters that are no longer in the table."""
        for number in numbers:
            self._tests.pop(number, None)
        if self._index is not None:
            self._index.remove_many(numbers)

    def begin_anew(self, filters: Mapping[int, Filter]) -> None:
        """Read this table from now on."""
        self._filters = filters
        self._tests.clear()
        if self._index is not None:
            self._index = None
            self.use_index()

    def match(self, event: Event) -> list[int]:
        """Return the numbers of the filters that an event matches, sorted."""
        if self._index is None and self.wants_index and not self.waits_for_index:
            self.use_index()
        if self._index is not None:
            return self._index.match(event)
        flat, objects = event.flat, event.objects
        return sorted(number for number, test in self._all_tests().items() if test(flat, objects))

    def _all_tests(self) -> dict[int, Test]:
        tests = self._tests
        if len(tests) < len(self._filters):
            for number, wanted in self._filters.items():
                if number not in tests:
                    tests[number] = test_of(wanted)
        return tests
