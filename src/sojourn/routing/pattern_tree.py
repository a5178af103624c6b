"""Places by topic pattern, level by level, so that those around a pattern, or that meet it, are found.

A node has a way on for each literal level, one for `+`, and one for each beginning of a level; the patterns
that end there and those that end there with `#` are its places. A search follows at most a few ways a level
instead of looking at every pattern. What is found may be too much, since it does not mind that a wildcard in
first place stands for no level that begins with `$`; it is never too little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from sojourn.interest.topics import ANY, HIDDEN, Level, Prefix, TopicPattern
from sojourn.interest.topicsets import TopicSet
from sojourn.routing.meter import Meter

T = TypeVar("T")


class _Node(Generic[T]):
    """What follows after some levels."""

    __slots__ = ("beginnings", "ends", "levels", "rest", "some")

    def __init__(self) -> None:
        self.ends: dict[T, None] | None = None
        """The places of patterns that end here."""
        self.rest: dict[T, None] | None = None
        """The places of patterns of which any levels may follow."""
        self.levels: dict[str, _Node[T]] | None = None
        self.some: _Node[T] | None = None
        """The way on for `+`."""
        self.beginnings: dict[str, _Node[T]] | None = None
        """The way on for a level of which only the beginning is fixed."""

    def is_bare(self) -> bool:
        """Whether nothing is here or below."""
        return not (self.ends or self.rest or self.levels or self.some or self.beginnings)

    def step(self, level: Level) -> _Node[T] | None:
        """The node after one level of a pattern that is filed."""
        if isinstance(level, Prefix):
            return self.beginnings.get(level.text) if self.beginnings else None
        if level == ANY:
            return self.some
        return self.levels.get(level) if self.levels else None

    def grow(self, level: Level) -> _Node[T]:
        """The node after one level, made if there is none."""
        node = self.step(level)
        if node is not None:
            return node
        node = _Node()
        if isinstance(level, Prefix):
            self.beginnings = self.beginnings or {}
            self.beginnings[level.text] = node
        elif level == ANY:
            self.some = node
        else:
            self.levels = self.levels or {}
            self.levels[level] = node
        return node

    def around(self, level: Level) -> Iterator[_Node[T]]:
        """The nodes after whatever contains a level."""
        text = level.text if isinstance(level, Prefix) else level
        if self.levels and text is level and level != ANY:
            node = self.levels.get(text)
            if node is not None:
                yield node
        if self.beginnings:
            yield from self._shorter("" if level == ANY else text)
        if self.some is not None:
            yield self.some

    def meeting(self, level: Level) -> Iterator[_Node[T]]:
        """The nodes after whatever has a level in common with one."""
        if self.some is not None:
            yield self.some
        if level == ANY:
            yield from (self.levels or {}).values()
            yield from (self.beginnings or {}).values()
            return
        if not isinstance(level, Prefix):
            if self.levels and level in self.levels:
                yield self.levels[level]
            if self.beginnings:
                yield from self._shorter(level)
            return
        for text, node in (self.levels or {}).items():
            if text.startswith(level.text):
                yield node
        for text, node in (self.beginnings or {}).items():
            if text.startswith(level.text) or level.text.startswith(text):
                yield node

    def _shorter(self, text: str) -> Iterator[_Node[T]]:
        """The nodes after a beginning of a text."""
        assert self.beginnings is not None, "asked for only where there are some"
        if len(self.beginnings) < len(text):
            yield from (node for short, node in self.beginnings.items() if text.startswith(short))
            return
        for length in range(len(text) + 1):
            node = self.beginnings.get(text[:length])
            if node is not None:
                yield node

    def children(self) -> Iterator[_Node[T]]:
        """Every node one level further."""
        yield from (self.levels or {}).values()
        yield from (self.beginnings or {}).values()
        if self.some is not None:
            yield self.some


class PatternTree(Generic[T]):
    """Places of topic patterns."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def __bool__(self) -> bool:
        return not self._root.is_bare()

    def add(self, pattern: TopicPattern, place: T) -> None:
        """File a place."""
        node = self._root
        for level in pattern.levels:
            node = node.grow(level)
        if pattern.rest:
            node.rest = node.rest or {}
            node.rest[place] = None
        else:
            node.ends = node.ends or {}
            node.ends[place] = None

    def containing(self, pattern: TopicPattern, meter: Meter) -> Iterator[T]:
        """The places of patterns that may contain one."""
        levels = pattern.levels or (ANY,)  # a topic has a level, so # and +/# are the same topics
        stack = [(self._root, 0)]
        while stack and meter.step():
            node, at = stack.pop()
            if node.rest:
                yield from node.rest
            if at < len(levels):
                stack += [(child, at + 1) for child in node.around(levels[at])]
            elif not pattern.rest and node.ends:
                yield from node.ends

    def overlapping(self, pattern: TopicPattern, meter: Meter) -> Iterator[T]:
        """The places of patterns that may have a topic in common with one."""
        stack = [(self._root, 0)]
        while stack and meter.step():
            node, at = stack.pop()
            if node.rest:
                yield from node.rest
            if at < len(pattern.levels):
                stack += [(child, at + 1) for child in node.meeting(pattern.levels[at])]
                continue
            if node.ends:
                yield from node.ends
            if pattern.rest:
                stack += [(child, at + 1) for child in node.children()]


def hull(topics: TopicSet) -> TopicPattern | None:
    """One pattern that contains all topics of a set, or None where no pattern but one for all does."""
    patterns = [term.pattern for term in topics.terms]
    if len(patterns) == 1:
        return patterns[0]
    count = min(len(pattern.levels) for pattern in patterns)
    first: list[Level] = [pattern.levels[0] if pattern.levels else ANY for pattern in patterns]
    if len(set(first)) > 1 and any(_may_be_hidden(level) for level in first):
        return None
    levels = [
        column[0] if len(set(column)) == 1 else ANY
        for column in zip(*(pattern.levels[:count] for pattern in patterns), strict=True)
    ]
    rest = any(pattern.rest or len(pattern.levels) > count for pattern in patterns)
    return TopicPattern(tuple(levels), rest)


def _may_be_hidden(level: Level) -> bool:
    text = level.text if isinstance(level, Prefix) else level
    return not text or text.startswith(HIDDEN)


def inner(topics: TopicSet) -> TopicPattern:
    """One pattern all of whose topics a set has: whatever contains the set contains the pattern."""
    for term in topics.terms:
        if not term.without:
            return term.pattern
    return TopicPattern(tuple(topics.witness().split("/")))
