"""What clients publish and subscribe to, as the clients themselves and the oracle know it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from sojourn.interest import Event as Content
from sojourn.interest import Filter

IDENTITY = "id"
"""The user property that names an event."""
VALUE = "x"


class Send(NamedTuple):
    """An event left its publisher, perhaps not for the first time."""

    at_s: float
    broker: int
    connection: int
    """Which connection of the publisher this was."""


class Event:
    """One event of a client."""

    __slots__ = (
        "acked_s",
        "is_anew",
        "is_doubtful",
        "is_numbered",
        "is_refused",
        "made_s",
        "name",
        "order",
        "publisher",
        "qos",
        "retain",
        "sends",
        "topic",
        "value",
    )

    def __init__(self, publisher: str, order: int, topic: str, value: int, qos: int, *, retain: bool) -> None:
        self.publisher = publisher
        self.order = order
        """Its place among the events of its publisher."""
        self.name = f"{publisher}.{order}"
        self.topic, self.value, self.qos, self.retain = topic, value, qos, retain
        self.made_s: float | None = None
        """When a broker was given it as a will, to be published at a time that only brokers know."""
        self.is_numbered = False
        """Whether it carries its publisher's own number."""
        self.sends: list[Send] = []
        self.acked_s: float | None = None
        """When its publisher was told that it is safe."""
        self.is_refused = False
        self.is_anew = False
        """Whether it was published again because the publisher's session was lost."""
        self.is_doubtful = False
        """Whether it was sent again in what may be another session than it was first sent in."""

    @property
    def may_repeat(self) -> bool:
        """Whether brokers cannot know a repetition from another event."""
        return (
            self.is_anew
            or self.is_doubtful
            or (self.qos == 1 and len(self.sends) > 1 and not self.is_numbered)
        )

    @property
    def payload(self) -> bytes:
        """What it carries: nothing if its value is below 0."""
        return b"" if self.value < 0 else self.name.encode()


class Wish(NamedTuple):
    """What a client wants to be told."""

    pattern: str
    condition: str
    qos: int
    retain_handling: int

    @property
    def is_shared(self) -> bool:
        """Whether its client shares what it gets with others that want the same."""
        return self.pattern.startswith("$share/")

    def fits(self, event: Event) -> bool:
        """Whether an event is wanted, found out without any of the brokers' tables."""
        pattern = self.pattern.split("/", 2)[2] if self.is_shared else self.pattern
        return topic_fits(pattern, event.topic) and (
            not self.condition or _condition_fits(self.condition, event.topic, event.value)
        )


@lru_cache(maxsize=4_096)
def topic_fits(pattern: str, topic: str) -> bool:
    """Whether a topic meets a topic filter."""
    wanted, levels = pattern.split("/"), topic.split("/")
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)


@lru_cache(maxsize=65_536)
def _condition_fits(condition: str, topic: str, value: int) -> bool:
    return _parsed(condition).matches(Content({"topic": topic, VALUE: value}))


@lru_cache(maxsize=1_024)
def _parsed(condition: str) -> Filter:
    return Filter.parse(condition)
