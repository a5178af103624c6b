"""Whether an event says what its publisher may say (`publish_if`), however its readers look at it.

Brokers and filters read a user property before the field of that name in the payload, and of several the
last. Subscribers need not: many look at the payload alone. A permission that went by one reading would be
evaded by a property that says one thing beside a payload that says another. So an event must meet it in every
reading: with each of properties that have one name, and with what the payload says of an attribute where it
says something, also behind so many others that it is none where events are routed. Where that is more than
can be compared, it meets nothing: a payload that begins like a JSON object, perhaps after a byte order mark,
and cannot be read here, as it is none or would take too long, may still be read by others; so may a number or
text that is too large for an attribute. What a payload of another format says is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from math import prod

from sojourn.interest import Event, Filter
from sojourn.interest.events import TOPIC, EventError, check_scalar
from sojourn.interest.values import Scalar
from sojourn.mqtt.content import Fields, attributes_of, event_of, fields_of
from sojourn.mqtt.conventions import value_of
from sojourn.mqtt.message import Message

READINGS_MAX = 16
"""Ways to choose one of the values of each property; with more of them an event meets nothing."""
_LIKE_AN_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{")
"""How payloads begin that somebody may read as an object. Lists have no fields for anybody."""


class _UnclearError(Exception):
    """An attribute that a permission speaks of has a value which cannot be compared."""


def meets(allowed: Filter, message: Message) -> bool:
    """Whether a message is what a permission allows in every reading of it."""
    paths = {path for each in allowed.conjunctions for path, _ in each.constraints if path != TOPIC}
    if not paths:
        return allowed.matches(event_of(message))
    fields = {} if _LIKE_AN_OBJECT.match(message.payload) is None else fields_of(message.payload)
    if fields is None:
        return False
    attributes_of(message, fields)  # so that it is not read again
    as_routed = event_of(message)
    if not allowed.matches(as_routed):
        return False
    said = _said(message, paths)
    if not (said or fields):
        return True
    if prod(map(len, said.values())) > READINGS_MAX:
        return False
    try:
        return all(allowed.matches(reading) for reading in _others(as_routed, said, fields, paths))
    except _UnclearError:
        return False


def _said(message: Message, paths: set[str]) -> dict[str, set[str]]:
    """What the user properties say that hide what a permission speaks of, or something above it."""
    found: dict[str, set[str]] = {}
    for name, text in message.properties.user:
        if name in found:
            found[name].add(text)
        elif any(path == name or path.startswith(name + ".") for path in paths):
            found[name] = {text}
    return found


def _others(as_routed: Event, said: dict[str, set[str]], fields: Fields, paths: set[str]) -> Iterator[Event]:
    """The other readings, with what is the same in all of them taken from one."""
    for texts in product(*said.values()):
        flat, objects = dict(as_routed.flat), set(as_routed.objects)
        for name, text in zip(said, texts, strict=True):
            _enter(flat, name, value_of(text))
        yield Event.of_checked(dict(flat), frozenset(objects), as_routed.source, as_routed.sequence)
        for path in paths:
            _enter_own(flat, objects, path, fields)
        yield Event.of_checked(flat, frozenset(objects), as_routed.source, as_routed.sequence)


def _enter_own(flat: dict[str, Scalar], objects: set[str], path: str, fields: Fields) -> None:
    """Enter what the payload says at a path, if it says anything there."""
    value: object = fields
    above: list[str] = []
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return
        above.append(name)
    for depth in range(1, len(above)):
        flat.pop(".".join(above[:depth]), None)
        objects.add(".".join(above[:depth]))
    if isinstance(value, dict):
        flat.pop(path, None)
        objects.add(path)
    else:
        objects.discard(path)
        _enter(flat, path, value)


def _enter(flat: dict[str, Scalar], path: str, value: object) -> None:
    """Enter a value; a list is none, and one that is too large may be anything."""
    flat.pop(path, None)
    try:
        flat[path] = check_scalar(path, value)
    except EventError:
        if not isinstance(value, list):
            raise _UnclearError from None
