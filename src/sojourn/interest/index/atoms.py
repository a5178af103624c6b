"""Atoms: "attribute X has a value in set S", numbered, and found from a value without trying them all.

Numeric ranges go to the kernels as they are; everything else a filter asks of an attribute becomes an atom.
Equal sets share one. The values of an event find their atoms by hash (equality, members of IN), by walking
the prefixes of a string, by a trie over the levels of a topic, or, for other intervals (`<>`, string ranges),
by the segment between neighbouring ends of intervals that a value falls into, which is remembered.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from sojourn.interest.topics import ANY, HIDDEN, Prefix, TopicPattern
from sojourn.interest.topicsets import TopicSet
from sojourn.interest.values import FALSE_BIT, TRUE_BIT, Scalar, StringRanges, ValueSet, after, after_prefix

End = TypeVar("End", float, str)
Group = TypeVar("Group")

Atoms = tuple[int, ...]

_SEGMENTS_MAX = 1_024
"""Each remembered segment can name every interval, so only so many are remembered."""
_EVERY_TOPIC = TopicPattern.starting_with("")


class Intervals(Generic[End]):
    """Closed-below intervals with an atom each; which of them hold a value is remembered by segment.

    Between two neighbouring ends all values lie in the same intervals. A change forgets what was remembered.
    """

    __slots__ = ("_ends", "_inside", "_items")

    def __init__(self) -> None:
        self._items: dict[tuple[int, End, End | None], None] = {}
        self._ends: list[End] | None = None
        self._inside: dict[int, Atoms] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, atom: int, low: End, high: End | None) -> None:
        """Enter `[low, high)`, without an upper end when `high` is None."""
        self._items[atom, low, high] = None
        self._ends = None

    def discard(self, atom: int, low: End, high: End | None) -> None:
        """Remove an interval."""
        del self._items[atom, low, high]
        self._ends = None

    def atoms(self, value: End) -> Atoms:
        """Return the atoms of the intervals that hold a value."""
        if self._ends is None:
            self._ends = sorted(
                {end for _, low, high in self._items for end in (low, high) if end is not None}
            )
            self._inside = {}
        segment = bisect_right(self._ends, value)
        inside = self._inside.get(segment)
        if inside is None:
            if len(self._inside) >= _SEGMENTS_MAX:
                self._inside.clear()
            inside = self._inside[segment] = tuple(
                atom for atom, low, high in self._items if low <= value and (high is None or value < high)
            )
        return inside


class TopicTrie:
    """Topic patterns by level; a topic finds those it may meet by walking its own levels."""

    __slots__ = ("_children", "_ends", "_prefixes", "_rests")

    def __init__(self) -> None:
        self._children: dict[str, TopicTrie] = {}
        self._prefixes: dict[str, TopicTrie] = {}
        self._ends: set[int] = set()
        self._rests: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._children or self._prefixes or self._ends or self._rests)

    def add(self, atom: int, pattern: TopicPattern) -> None:
        """Enter a pattern."""
        node = self
        for level in pattern.levels:
            children, text = node._branch(level)
            node = children.setdefault(text, TopicTrie())
        (node._rests if pattern.rest else node._ends).add(atom)  # noqa: SLF001 - of its own class

    def discard(self, atom: int, pattern: TopicPattern) -> None:
        """Remove a pattern and the levels that only it has."""
        self._discard(atom, pattern, 0)

    def _branch(self, level: str | Prefix) -> tuple[dict[str, TopicTrie], str]:
        return (self._prefixes, level.text) if isinstance(level, Prefix) else (self._children, level)

    def _discard(self, atom: int, pattern: TopicPattern, depth: int) -> None:
        if depth == len(pattern.levels):
            (self._rests if pattern.rest else self._ends).discard(atom)
            return
        children, text = self._branch(pattern.levels[depth])
        children[text]._discard(atom, pattern, depth + 1)  # noqa: SLF001 - of its own class
        if not children[text]:
            del children[text]

    def candidates(self, levels: list[str]) -> set[int]:
        """Return the atoms with a pattern these levels meet; the caller sees to $ topics."""
        # 100,000 patterns and more may agree with a topic up to their last levels: what is done for
        # each node is all that counts.
        found: set[int] = set()
        nodes = [self]
        for level in levels:
            further: list[TopicTrie] = []
            for node in nodes:
                if node._rests:  # noqa: SLF001 - of its own class
                    found |= node._rests  # noqa: SLF001 - of its own class
                children = node._children  # noqa: SLF001 - of its own class
                if level in children:
                    further.append(children[level])
                if ANY in children:
                    further.append(children[ANY])
                if node._prefixes:  # noqa: SLF001 - of its own class
                    further.extend(node._beginning(level))  # noqa: SLF001 - of its own class
            if not further:
                return found
            nodes = further
        for node in nodes:
            found |= node._rests | node._ends  # noqa: SLF001 - of its own class
        return found

    def _beginning(self, level: str) -> Iterator[TopicTrie]:
        """Return what follows where only the beginning of a level is fixed."""
        for length in range(len(level) + 1):
            if (child := self._prefixes.get(level[:length])) is not None:
                yield child


class PathAtoms:
    """The atoms of one attribute."""

    __slots__ = (
        "_members",
        "_prefix_lengths",
        "_prefixes",
        "_sets",
        "_sure",
        "_topics",
        "attribute",
        "by_number",
        "by_string",
        "count",
        "number_intervals",
        "on_false",
        "on_missing",
        "on_object",
        "on_true",
        "string_intervals",
    )

    def __init__(self) -> None:
        self.attribute = -1
        """Its number as a range attribute, or -1 when no filter has a range on it."""
        self.count = 0
        """How many atoms it has."""
        self.by_string: dict[str, int] = {}
        """The atom of each equality with a string; the commonest kind, so it has its own way."""
        self.by_number: dict[float, int] = {}
        self.on_missing: dict[int, None] = {}
        self.on_object: dict[int, None] = {}
        self.on_true: dict[int, None] = {}
        self.on_false: dict[int, None] = {}
        self.number_intervals: Intervals[float] = Intervals()
        self.string_intervals: Intervals[str] = Intervals()
        self._members: dict[float | str, dict[int, None]] = {}
        self._prefixes: dict[str, dict[int, None]] = {}
        self._prefix_lengths: list[int] = []
        self._topics = TopicTrie()
        self._sets: dict[int, TopicSet] = {}
        self._sure: set[int] = set()
        """Those of them in which all topics are that meet one of their patterns, and are not hidden."""

    def atoms(self, value: Scalar) -> list[int]:
        """Return the atoms that a value satisfies."""
        found: list[int] = []
        if isinstance(value, bool):
            found.extend(self.on_true if value else self.on_false)
        elif isinstance(value, str):
            if (atom := self.by_string.get(value)) is not None:
                found.append(atom)
            self._add_string_atoms(value, found)
        else:
            if (atom := self.by_number.get(value)) is not None:
                found.append(atom)
            if self._members:
                found.extend(self._members.get(value, ()))
            if self.number_intervals:
                found.extend(self.number_intervals.atoms(float(value)))
        return found

    @property
    def has_plain_strings_only(self) -> bool:
        """Whether all that strings can satisfy are equalities, each of which is one atom."""
        return not (self._members or self._prefix_lengths or self.string_intervals or self._sets)

    def _add_string_atoms(self, value: str, found: list[int]) -> None:
        if self._members:
            found.extend(self._members.get(value, ()))
        for length in self._prefix_lengths:
            if length > len(value):
                break
            found.extend(self._prefixes.get(value[:length], ()))
        if self.string_intervals:
            found.extend(self.string_intervals.atoms(value))
        if self._sets:
            candidates = self._topics.candidates(value.split("/"))
            sure = () if value.startswith(HIDDEN) else self._sure
            found.extend(atom for atom in candidates if atom in sure or value in self._sets[atom])

    def enter(self, atom: int, allowed: ValueSet) -> bool:
        """Make an atom findable; return whether it's broad, that is, satisfied by many values."""
        broad = allowed.missing or allowed.objects
        for kept, applies in self._flags(allowed):
            if applies:
                kept[atom] = None
                broad = True
        for low, high in allowed.numbers.ranges:
            if low == high:
                self._members.setdefault(low, {})[atom] = None
            else:
                self.number_intervals.add(atom, low, _above(high))
                broad = True
        if isinstance(allowed.strings, StringRanges):
            for text, end in allowed.strings.ranges:
                broad |= self._enter_strings(atom, text, end)
        elif allowed.strings:
            self._sets[atom] = allowed.strings
            if not any(term.without for term in allowed.strings.terms):
                self._sure.add(atom)
            for pattern in _patterns(allowed.strings):
                self._topics.add(atom, pattern)
                broad |= not pattern.levels or pattern == _EVERY_TOPIC
        return broad

    def _enter_strings(self, atom: int, low: str, high: str | None) -> bool:
        if high == after(low):
            self._members.setdefault(low, {})[atom] = None
            return False
        if low and high == after_prefix(low):
            if low not in self._prefixes and not self._has_length(len(low)):
                insort(self._prefix_lengths, len(low))
            self._prefixes.setdefault(low, {})[atom] = None
            return False
        self.string_intervals.add(atom, low, high)
        return True

    def leave(self, atom: int, allowed: ValueSet) -> None:
        """Undo `enter`."""
        for kept, applies in self._flags(allowed):
            if applies:
                del kept[atom]
        for low, high in allowed.numbers.ranges:
            if low == high:
                _discard(self._members, low, atom)
            else:
                self.number_intervals.discard(atom, low, _above(high))
        if isinstance(allowed.strings, StringRanges):
            for text, end in allowed.strings.ranges:
                self._leave_strings(atom, text, end)
        elif allowed.strings:
            del self._sets[atom]
            self._sure.discard(atom)
            for pattern in _patterns(allowed.strings):
                self._topics.discard(atom, pattern)

    def _leave_strings(self, atom: int, low: str, high: str | None) -> None:
        if high == after(low):
            _discard(self._members, low, atom)
        elif low and high == after_prefix(low):
            _discard(self._prefixes, low, atom)
        else:
            self.string_intervals.discard(atom, low, high)

    def _has_length(self, length: int) -> bool:
        at = bisect_left(self._prefix_lengths, length)
        return at < len(self._prefix_lengths) and self._prefix_lengths[at] == length

    def _flags(self, allowed: ValueSet) -> tuple[tuple[dict[int, None], bool], ...]:
        return (
            (self.on_missing, allowed.missing),
            (self.on_object, allowed.objects),
            (self.on_true, bool(allowed.booleans & TRUE_BIT)),
            (self.on_false, bool(allowed.booleans & FALSE_BIT)),
        )


def _above(number: float) -> float:
    """Return the next double up, so that closed intervals of numbers become half-open ones."""
    return math.nextafter(number, math.inf)


def _discard(groups: dict[Group, dict[int, None]], group: Group, atom: int) -> None:
    del groups[group][atom]
    if not groups[group]:
        del groups[group]


def _patterns(topics: TopicSet) -> Iterable[TopicPattern]:
    """Return patterns that all topics of a set meet; what they allow beyond it is checked afterwards."""
    return dict.fromkeys(term.pattern for term in topics.terms)
