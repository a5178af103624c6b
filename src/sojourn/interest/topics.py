"""Topics: levels, and patterns with MQTT's wildcards.

A topic is a string of levels joined by `/`. A pattern is a topic in which `+` stands for one level and a
last `#` for any number of them, the parent included; as in MQTT a wildcard in first place does not stand
for a level that starts with `$`. A pattern can also fix only the beginning of a level (`LIKE 'a/b%'`).

Combinations of patterns are `topicsets.py`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sojourn.errors import SojournError

TOPIC_BYTES_MAX = 65_535
"""What an MQTT string can hold."""
TOPIC_LEVELS_MAX = 256
"""MQTT sets no limit; combining patterns takes two calls a level, and Python allows a thousand."""

ANY: Final = "+"
REST: Final = "#"
WILDCARDS_AND_SLASH = frozenset("+#/")
"""The characters that no level contains."""
HIDDEN = "$"
"""What a first level starts with that no wildcard stands for."""


class TopicError(SojournError):
    """A topic or a pattern is malformed."""


def check_topic(topic: str) -> None:
    """Refuse what cannot be the topic of an event."""
    if not topic:
        raise TopicError("A topic has at least one character.")
    if "+" in topic or "#" in topic:
        raise TopicError(f"The topic {topic!r} contains a wildcard; + and # belong into patterns.")
    _check_text(topic)


def _check_text(text: str) -> None:
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise TopicError(f"The topic {text!r} contains U+0000 or half a surrogate pair; leave it out.")
    if len(text.encode()) > TOPIC_BYTES_MAX:
        raise TopicError(f"A topic has at most {TOPIC_BYTES_MAX} bytes; this one has {len(text.encode())}.")
    if text.count("/") >= TOPIC_LEVELS_MAX:
        raise TopicError(
            f"A topic has at most {TOPIC_LEVELS_MAX} levels; this one has {text.count('/') + 1}."
        )


@dataclass(frozen=True, slots=True, order=True)
class Prefix:
    """A level of which only the beginning is fixed."""

    text: str


Level = str | Prefix
"""A literal level, `+`, or a `Prefix`."""


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Levels to be met one by one, and whether any levels may follow."""

    levels: tuple[Level, ...]
    rest: bool = False

    @classmethod
    def parse(cls, text: str) -> TopicPattern:
        """Read an MQTT topic filter such as `city/+/temperature/#`."""
        _check_text(text)
        if not text:
            raise TopicError("A topic pattern has at least one character.")
        levels = text.split("/")
        rest = levels[-1] == REST
        if rest:
            levels.pop()
        for level in levels:
            if level != ANY and not WILDCARDS_AND_SLASH.isdisjoint(level):
                raise TopicError(f"In the topic pattern {text!r}, + must fill a level and # the last one.")
        return cls(tuple(levels), rest)

    @classmethod
    def starting_with(cls, prefix: str) -> TopicPattern:
        """Make the pattern of all topics whose text starts with `prefix`."""
        if prefix:
            check_topic(prefix)
        *levels, last = prefix.split("/")
        # Past the first level, a level of which nothing is fixed is `+`: one way to write it is enough.
        return cls((*levels, ANY if levels and not last else Prefix(last)), rest=True)

    def __str__(self) -> str:
        texts = [f"{level.text}*" if isinstance(level, Prefix) else level for level in self.levels]
        return "/".join([*texts, REST] if self.rest else texts)

    @property
    def prefix_at(self) -> int | None:
        """Where the level of which only the beginning is fixed stands; there is at most one."""
        return next((i for i, level in enumerate(self.levels) if isinstance(level, Prefix)), None)

    @property
    def is_exact(self) -> bool:
        """Whether it matches one topic only."""
        return not self.rest and all(isinstance(level, str) and level != ANY for level in self.levels)

    def matches(self, topic: str) -> bool:
        """Whether a topic meets the pattern."""
        levels = topic.split("/")
        if len(levels) < len(self.levels) or (len(levels) > len(self.levels) and not self.rest):
            return False
        if topic.startswith(HIDDEN) and (self.levels[0] == ANY if self.levels else self.rest):
            return False
        for mine, level in zip(self.levels, levels, strict=False):
            if isinstance(mine, Prefix):
                if not level.startswith(mine.text):
                    return False
            elif mine not in (ANY, level):
                return False
        return True

    def contains(self, other: TopicPattern) -> bool:
        """Whether every topic that meets the other meets this one."""
        mine, theirs = self.levels, other.levels
        if len(theirs) < len(mine) or (not self.rest and (other.rest or len(theirs) > len(mine))):
            return False
        if not mine and theirs:  # the pattern # stands for no hidden topic
            return _within_any(theirs[0], first=True) == theirs[0]
        for i, (level, narrower) in enumerate(zip(mine, theirs, strict=False)):
            if level == narrower:
                continue
            if isinstance(level, str) and level != ANY:
                return False  # the quick way out of most comparisons
            if _meet_levels(level, narrower, first=i == 0) != narrower:
                return False
        return True

    def meet(self, other: TopicPattern) -> TopicPattern | None:
        """Return the pattern of the topics that meet both, or None when there are none."""
        long, short = (self, other) if len(self.levels) >= len(other.levels) else (other, self)
        if len(long.levels) > len(short.levels) and not short.rest:
            return None
        levels: list[Level] = []
        for i, level in enumerate(long.levels):
            mine: Level | None
            if i < len(short.levels):
                mine = _meet_levels(level, short.levels[i], first=i == 0)
            else:
                mine = _meet_levels(level, ANY, first=i == 0)
            if mine is None:
                return None
            levels.append(mine)
        return TopicPattern(tuple(levels), rest=long.rest and short.rest)


def _meet_levels(one: Level, other: Level, *, first: bool) -> Level | None:
    if one == other:
        return one
    if ANY in (one, other):
        return _within_any(other if one == ANY else one, first=first)
    if isinstance(one, Prefix) and isinstance(other, Prefix):
        return max(one, other) if one.text.startswith(other.text) or other.text.startswith(one.text) else None
    if isinstance(one, Prefix):
        one, other = other, one
    if isinstance(one, str) and isinstance(other, Prefix) and one.startswith(other.text):
        return one
    return None


def _within_any(level: Level, *, first: bool) -> Level | None:
    """Return what of a level `+` stands for: at the first one, nothing that starts with $."""
    text = level.text if isinstance(level, Prefix) else level
    if not first or not text:
        return ANY if isinstance(level, Prefix) and not text else level
    return None if text.startswith(HIDDEN) else level
