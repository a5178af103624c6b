"""Where interests stand by the values they ask for, so that only those that could be related are compared.

A `Shelf` is of one attribute. Each set of values that some interest allows there has one `Place` on it, and
the shelf finds the places whose set may contain another set, or overlap with it: one single value (`brand =
'IBM'`, by far the most frequent) by looking it up, ranges of numbers and strings by `spans.py`, topics by
`pattern_tree.py`, and what else a set may hold (booleans, objects, nothing at all) by four bits. A search
gives a superset of what it is to find, never less; a `Meter` limits its steps.

A place holds the interests that were filed under nothing else, and shelves for those that ask for more
(`box_tree.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

from sojourn.interest.topicsets import TopicSet
from sojourn.interest.values import StringRanges, ValueSet
from sojourn.routing.meter import Meter
from sojourn.routing.pattern_tree import PatternTree, hull, inner
from sojourn.routing.spans import NumberSpans, TextSpans


class Place:
    """The interests filed under one set of values, or under several sets of different attributes."""

    __slots__ = ("interests", "shelves")

    def __init__(self) -> None:
        self.interests: dict[int, None] = {}
        self.shelves: dict[str, Shelf] | None = None
        """By attribute: where those stand that ask for more."""

    def shelf(self, path: str) -> Shelf:
        """The shelf of an attribute, put up if there is none."""
        if self.shelves is None:
            self.shelves = {}
        shelf = self.shelves.get(path)
        if shelf is None:
            shelf = self.shelves[path] = Shelf()
        return shelf

    def is_bare(self) -> bool:
        """Whether nothing stands here or further on."""
        return not self.interests and not self.shelves


class Shelf:
    """The places of one attribute, by the values allowed there."""

    __slots__ = ("_by_bits", "_loose", "_numbers", "_patterns", "_places", "_single", "_sorted", "_texts")

    def __init__(self) -> None:
        self._single: dict[float | str, Place] = {}
        """By the only value that is allowed; topics are among the patterns."""
        self._sorted: tuple[list[float], list[str]] | None = None
        """Those values in ascending order, once somebody asked for a range of them."""
        self._places: dict[ValueSet, Place] = {}
        """By set, where more than one value is allowed."""
        self._numbers: NumberSpans[Place] | None = None
        self._texts: TextSpans[Place] | None = None
        self._patterns: PatternTree[Place] | None = None
        self._loose: dict[Place, None] | None = None
        """Sets of topics that have nothing in common."""
        self._by_bits: dict[int, dict[Place, None]] | None = None
        """By what is allowed besides numbers and strings."""

    def every(self) -> Iterator[Place]:
        """All places."""
        yield from self._single.values()
        yield from self._places.values()

    def make(self, allowed: ValueSet) -> Place:
        """The place of a set, made if it has none."""
        value = _single(allowed)
        if value is None:
            place = self._places.get(allowed)
            if place is None:
                place = self._places[allowed] = Place()
                self._file(allowed, place)
        else:
            place = self._single.get(value)
            if place is None:
                place = self._single[value] = Place()
                if self._sorted is not None:
                    _insert(self._sorted, value)
        return place

    def containing(self, allowed: ValueSet, meter: Meter) -> Iterator[Place]:
        """The places whose set may contain this one, which is not empty."""
        value = _single(allowed)
        if value is not None and value in self._single:
            yield self._single[value]
        strings = allowed.strings
        if allowed.numbers:
            if self._numbers is not None:
                ranges = allowed.numbers.ranges
                yield from self._numbers.containing(ranges[0][0], ranges[-1][1])
        elif isinstance(strings, TopicSet):
            if strings:
                yield from self._loose or ()
                if self._patterns is not None:
                    yield from self._patterns.containing(inner(strings), meter)
            else:
                yield from self._with_bits(_bits(allowed))
        elif strings:
            if self._texts is not None:
                yield from self._texts.containing(strings.ranges[0][0], strings.ranges[-1][1])
        else:
            yield from self._with_bits(_bits(allowed))

    def overlapping(self, allowed: ValueSet, meter: Meter) -> Iterable[Place]:
        """The places whose set may have something in common with this one, each once."""
        return dict.fromkeys(self._overlapping(allowed, meter))

    def _overlapping(self, allowed: ValueSet, meter: Meter) -> Iterator[Place]:
        value = _single(allowed)
        if value is None:
            yield from self._singles_in(allowed)
        elif value in self._single:
            yield self._single[value]
        if self._numbers is not None:
            for low, high in allowed.numbers.ranges:
                yield from self._numbers.overlapping(low, high)
        yield from self._strings_meeting(allowed.strings, meter)
        bits = _bits(allowed)
        for others, places in (self._by_bits or {}).items():
            if others & bits:
                yield from places

    def _strings_meeting(self, strings: StringRanges | TopicSet, meter: Meter) -> Iterator[Place]:
        if isinstance(strings, StringRanges):
            if self._texts is not None:
                for start, end in strings.ranges:
                    yield from self._texts.overlapping(start, end)
        elif strings:
            yield from self._loose or ()
            if self._patterns is not None:
                for term in strings.terms:
                    yield from self._patterns.overlapping(term.pattern, meter)

    def _singles_in(self, allowed: ValueSet) -> Iterator[Place]:
        if not self._single or not (allowed.numbers or allowed.strings):
            return
        if self._sorted is None:
            texts = sorted(value for value in self._single if isinstance(value, str))
            self._sorted = sorted(value for value in self._single if not isinstance(value, str)), texts
        numbers, strings = self._sorted
        for low, high in allowed.numbers.ranges:
            for i in range(bisect_left(numbers, low), bisect_right(numbers, high)):
                yield self._single[numbers[i]]
        if isinstance(allowed.strings, StringRanges):
            for start, end in allowed.strings.ranges:
                last = len(strings) if end is None else bisect_left(strings, end)
                for i in range(bisect_left(strings, start), last):
                    yield self._single[strings[i]]

    def _with_bits(self, bits: int) -> Iterator[Place]:
        for others, places in (self._by_bits or {}).items():
            if others & bits == bits:
                yield from places

    def _file(self, allowed: ValueSet, place: Place) -> None:
        if allowed.numbers:
            self._numbers = self._numbers or NumberSpans()
            self._numbers.add(allowed.numbers.ranges[0][0], allowed.numbers.ranges[-1][1], place)
        strings = allowed.strings
        if strings and isinstance(strings, TopicSet):
            pattern = hull(strings)
            if pattern is None:
                self._loose = self._loose or {}
                self._loose[place] = None
            else:
                self._patterns = self._patterns or PatternTree()
                self._patterns.add(pattern, place)
        elif isinstance(strings, StringRanges) and strings:
            self._texts = self._texts or TextSpans()
            self._texts.add(strings.ranges[0][0], strings.ranges[-1][1], place)
        bits = _bits(allowed)
        if bits:
            self._by_bits = self._by_bits or {}
            self._by_bits.setdefault(bits, {})[place] = None


def _single(allowed: ValueSet) -> float | str | None:
    """The number or string, not a topic, that is all a set allows; None for any other set."""
    value = allowed.only_value
    return None if isinstance(value, bool) or isinstance(allowed.strings, TopicSet) else value


def _bits(allowed: ValueSet) -> int:
    """What a set allows besides numbers and strings."""
    return allowed.missing | allowed.objects << 1 | allowed.booleans << 2


def _insert(values: tuple[list[float], list[str]], value: float | str) -> None:
    if isinstance(value, str):
        insort(values[1], value)
    else:
        insort(values[0], value)
