"""Where interests stand by the values they ask for, so that only those that could be related are compared.

An interest is filed under an attribute and the set of values it allows there. One single value (`brand =
'IBM'`, by far the most frequent) has a place of its own, numbers also in ascending order so that a range
finds those inside it; any other set stands in the attribute's loose pile, which every search of that
attribute looks through. Nested attributes share the pile of the object they lie in, since one may speak of
`p` and another of `p.q`. A search gives a superset of what overlaps, never less.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterable, Iterator

from sojourn.interest.values import Scalar, ValueSet


class _Shelf:
    """The interests filed under one attribute."""

    __slots__ = ("loose", "numbers", "single")

    def __init__(self) -> None:
        self.single: dict[Scalar, list[int]] = {}
        self.numbers: list[float] = []
        self.loose: list[int] = []


class Shelves:
    """Interests by attribute and value."""

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}

    def file(self, interest: int, path: str, allowed: ValueSet) -> None:
        """Put an interest where a search for these values finds it."""
        top = path.partition(".")[0]
        shelf = self._shelves.get(top)
        if shelf is None:
            shelf = self._shelves[top] = _Shelf()
        value = _place(path, allowed)
        if value is None:
            shelf.loose.append(interest)
            return
        place = shelf.single.get(value)
        if place is None:
            place = shelf.single[value] = []
            if not isinstance(value, str):
                insort(shelf.numbers, value)
        place.append(interest)

    def clear_out(self, gone: Container[int], filed: Iterable[tuple[str, ValueSet]]) -> None:
        """Take interests away, given all that they were filed under; each place is looked through once."""
        places = {(path.partition(".")[0], _place(path, allowed)) for path, allowed in filed}
        for top, value in places:
            shelf = self._shelves[top]
            if value is None:
                shelf.loose = [interest for interest in shelf.loose if interest not in gone]
            else:
                left = [interest for interest in shelf.single[value] if interest not in gone]
                if left:
                    shelf.single[value] = left
                else:
                    del shelf.single[value]
                    if not isinstance(value, str):
                        del shelf.numbers[bisect_left(shelf.numbers, value)]
            if not shelf.single and not shelf.loose:
                del self._shelves[top]

    def find(self, path: str, allowed: ValueSet) -> Iterator[int]:
        """The interests filed under an attribute whose values may overlap these; some may not."""
        top, _, below = path.partition(".")
        shelf = self._shelves.get(top)
        if shelf is None:
            return
        yield from shelf.loose
        if below or allowed.objects:
            for place in shelf.single.values():
                yield from place
            return
        value = allowed.only_value
        if value is not None:
            yield from shelf.single.get(value, ())
            return
        for low, high in allowed.numbers.ranges:
            first, last = bisect_left(shelf.numbers, low), bisect_right(shelf.numbers, high)
            for number in shelf.numbers[first:last]:
                yield from shelf.single[number]
        if allowed.strings:
            for text, place in shelf.single.items():
                if isinstance(text, str) and text in allowed.strings:
                    yield from place


def _place(path: str, allowed: ValueSet) -> float | str | None:
    """The value under which an interest is filed; None for the loose pile."""
    value = allowed.only_value
    return None if "." in path or isinstance(value, bool) else value
