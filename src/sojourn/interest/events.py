"""Events: what publishers say.

An event is a set of attributes (numbers, strings, booleans, or objects of attributes), perhaps a topic,
the source that published it and its number in that source's sequence. It is checked when it is built and
never changes. Nested attributes are reached by dotted paths; `flat` holds them by path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from sojourn.errors import SojournError
from sojourn.interest.topics import check_topic
from sojourn.interest.values import INTEGER_MAX, Scalar

ATTRIBUTES_MAX = 1_000
NAME_CHARACTERS_MAX = 128
STRING_BYTES_MAX = 65_535
NESTING_MAX = 16
TOPIC = "topic"

Attributes = Mapping[str, "Scalar | Attributes | None"]
"""Attributes as given: an attribute that is None counts as missing, as NULL does."""


class EventError(SojournError):
    """An event cannot be built from what was given."""


def check_name(name: object) -> str:
    """Return the name of an attribute, or refuse it."""
    if not isinstance(name, str) or not name:
        raise EventError(f"An attribute's name is a string of at least one character, not {name!r}.")
    if len(name) > NAME_CHARACTERS_MAX:
        raise EventError(
            f"The attribute name {name[:20]!r}… has {len(name)} characters, over {NAME_CHARACTERS_MAX}."
        )
    if "." in name or "`" in name or any(c < " " or "\ud800" <= c <= "\udfff" for c in name):
        raise EventError(f"The attribute name {name!r} contains a dot, a backtick or a control character.")
    return name


def check_scalar(path: str, value: object) -> Scalar:
    """Return the value of an attribute in the one form it is kept in, or refuse it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            raise EventError(
                f"{path} = {value} is beyond 2**53, where numbers lose digits; send it as a string."
            )
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise EventError(f"{path} = {value} is not a finite number; leave the attribute out.")
        return value
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise EventError(f"The string in {path} contains U+0000 or half a surrogate pair; leave it out.")
        if len(value.encode()) > STRING_BYTES_MAX:
            raise EventError(
                f"The string in {path} has over {STRING_BYTES_MAX} bytes; put it into the payload."
            )
        return value
    raise EventError(
        f"{path} is a {type(value).__name__}; an attribute is a number, a string, a boolean or an object."
    )


class Event:
    """One publication: attributes by dotted path, with its topic, source and sequence number."""

    __slots__ = ("flat", "objects", "sequence", "source")

    flat: Mapping[str, Scalar]
    """Every value by its dotted path; the topic, if there is one, under `topic`."""
    objects: frozenset[str]
    """The paths that have attributes below them."""
    source: str
    sequence: int

    def __init__(
        self, attributes: Attributes, *, topic: str | None = None, source: str = "", sequence: int = 0
    ) -> None:
        flat: dict[str, Scalar] = {}
        objects: set[str] = set()
        _flatten(attributes, "", 1, flat, objects)
        if TOPIC in objects:
            raise EventError("The attribute topic is the event's topic, a string, and cannot be an object.")
        if topic is not None and flat.setdefault(TOPIC, topic) != topic:
            raise EventError(f"The event has two topics, {topic!r} and {flat[TOPIC]!r}; give one.")
        if TOPIC in flat:
            given = flat[TOPIC]
            if not isinstance(given, str):
                raise EventError(f"A topic is a string, not {given!r}.")
            check_topic(given)
        if sequence < 0:
            raise EventError(f"A sequence number counts from 0; {sequence} does not.")
        object.__setattr__(self, "flat", MappingProxyType(flat))
        object.__setattr__(self, "objects", frozenset(objects))
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "sequence", sequence)

    @classmethod
    def of_checked(
        cls, flat: Mapping[str, Scalar], objects: frozenset[str], source: str, sequence: int
    ) -> Event:
        """Make an event of values by path that somebody has checked already, by the rules of this module."""
        return _rebuild(dict(flat), objects, source, sequence)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"An event does not change; build another one to set {name}.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return (self.source, self.sequence, self.flat) == (other.source, other.sequence, other.flat)

    def __hash__(self) -> int:
        return hash((self.source, self.sequence, frozenset(self.flat.items())))

    def __repr__(self) -> str:
        return f"Event({dict(self.flat)!r}, source={self.source!r}, sequence={self.sequence})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (dict(self.flat), self.objects, self.source, self.sequence)

    @property
    def topic(self) -> str | None:
        """The topic, or None for an event without one."""
        topic = self.flat.get(TOPIC)
        return topic if isinstance(topic, str) else None

    def get(self, path: str) -> Scalar | None:
        """Return the value at a dotted path, or None when it is missing or an object."""
        return self.flat.get(path)


def _rebuild(flat: dict[str, Scalar], objects: frozenset[str], source: str, sequence: int) -> Event:
    event = Event.__new__(Event)
    object.__setattr__(event, "flat", MappingProxyType(flat))
    object.__setattr__(event, "objects", objects)
    object.__setattr__(event, "source", source)
    object.__setattr__(event, "sequence", sequence)
    return event


def _flatten(
    attributes: Attributes, prefix: str, depth: int, flat: dict[str, Scalar], objects: set[str]
) -> None:
    if depth > NESTING_MAX:
        raise EventError(f"Attributes nest at most {NESTING_MAX} deep; {prefix[:60]}… goes deeper.")
    for name, value in attributes.items():
        path = prefix + check_name(name)
        if value is None:
            continue  # as NULL in SQL: the attribute is missing
        if isinstance(value, Mapping):
            before = len(flat)
            _flatten(value, path + ".", depth + 1, flat, objects)
            if len(flat) > before:  # an object with nothing in it says nothing
                objects.add(path)
        else:
            flat[path] = check_scalar(path, value)
            if len(flat) > ATTRIBUTES_MAX:
                raise EventError(f"An event has at most {ATTRIBUTES_MAX} attributes.")
