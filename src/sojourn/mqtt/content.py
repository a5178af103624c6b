"""Content: attributes of messages and subscribers, filters and policies, as MQTT packets carry them.

- A message's attributes are its user properties, where `12`, `1.5`, `true` and `false` are read as numbers
  and booleans and `"12"` in double quotes as text, and the fields of its payload where that is a JSON object;
  a user property wins over a field of the same name. Its topic is the attribute `topic`. What cannot be an
  attribute (a list, a number beyond 2**53, a name with a dot) is left out, as the message is not ours to
  refuse; it still travels in it. A payload with NaN, Infinity or `1e999` is no JSON: it has no fields. One
  that would take long to read (`json_weight.py`) is not looked into at all, and of any other the first
  `FIELDS_MAX` fields are looked at: reading is done at once, and others wait for it.
- A filter that does not parse is refused with the reason code "implementation specific error" and a reason
  string that says where; so is a policy. In a network so is one that is too long once OR is distributed over
  AND: in that form brokers tell each other, and they would not read it (`check_tellable`).

Texts are parsed once and kept, within limits. So are the attributes of the messages that were read last, and
of no others: a message may wait for days, and its attributes take far more room than it does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
from mqtt5 import ConnectPacket

from sojourn.errors import SojournError
from sojourn.interest import Advertisement, Event, Filter, FilterSyntaxError, Policy, TopicPattern
from sojourn.interest.events import (
    ATTRIBUTES_MAX,
    NESTING_MAX,
    TOPIC,
    EventError,
    check_name,
    check_scalar,
)
from sojourn.interest.values import Scalar
from sojourn.interest.work import Work, within
from sojourn.mqtt.conventions import ADVERTISE, ATTRIBUTE_PREFIX, POLICY, value_of
from sojourn.mqtt.json_weight import is_heavy
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message

JSON_STARTS = b"{ \t\r\n"
"""The bytes that a JSON object, perhaps after blanks, begins with."""
KNOWN_NAMES_MAX = 10_000
KNOWN_NAME_CHARS_MAX = 64
"""Longer names are checked each time: nobody fills memory with them."""
FIELDS_MAX = 4 * ATTRIBUTES_MAX
"""Fields of a payload that are looked at, in objects at any depth together."""
PREFIX_CHARS = 32
"""So many characters of names above a field make it count for one more: each path repeats them."""
READ_MAX = 256
READ_BYTES_MAX = 8 << 20
"""How many messages keep their attributes, and about how many bytes all that may take: few, so that memory is
used again while it is near the processor."""
ATTRIBUTE_BYTES = 128
"""What an attribute takes besides its path and value, about."""
TEXT_WIDTH = 4
"""Bytes that a character of a value may take, and one byte of a payload did."""
TEXTS_MAX = 1_024
STATED_CHARS_MAX, NAME_CHARS_MAX = 16_384, 4_096
"""Characters of all attributes that a client states of itself, and of a user name; a session has both."""
ADVERTISED_AT_ONCE = 4
"""How many of the longest texts one client may advertise: they are read in one turn, when some change."""
ADVERTISED_STEPS = 80_000
"""What reading them may take in all, but for the last one."""
MANY_STEPS = 1_000_000_000
"""More than reading one may take."""
PLAIN_MAX = 512
SIMPLE_MAX = 512
"""Characters of conditions that need no second look: even a list of numbers has fewer than 200 in them."""
_PLAIN = re.compile(r"[A-Za-z0-9_/+#$.:-]+")
"""Topic filters that need no quotes or escapes, and are not long."""
Parsed = TypeVar("Parsed")
Fields = Mapping[str, object]
"""What a JSON object says, as it was read."""

read_json = msgspec.json.Decoder().decode
_known_names: dict[str, bool] = {}
"""Names of attributes that were checked before, and whether they may be used; a cache."""


class _LastRead:
    """The messages that keep their attributes; a cache."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages: deque[tuple[Message, int]] = deque()
        self.bytes = 0

    def note(self, message: Message, flat: dict[str, Scalar], objects: set[str]) -> None:
        """Let a message keep what was read of it, and others that were read earlier nothing."""
        size = (1 + TEXT_WIDTH) * len(message.frame) + ATTRIBUTE_BYTES * (len(flat) + len(objects))
        if objects:  # else every name stands in the frame, and is counted with that
            size += sum(map(len, flat)) + sum(map(len, objects))
        self.messages.append((message, size))
        self.bytes += size
        while len(self.messages) > 1 and (self.bytes > READ_BYTES_MAX or len(self.messages) > READ_MAX):
            earlier, size = self.messages.popleft()
            self.bytes -= size
            earlier.attributes = earlier.event = None


_last_read = _LastRead()


class ContentError(SojournError):
    """A filter, policy or advertisement in a user property cannot be used; the text says why."""


@lru_cache(maxsize=TEXTS_MAX)
def parse_filter(text: str) -> Filter:
    """Return the filter of a user property, or raise a `ContentError`."""
    return _parsed(text, Filter.parse)


@lru_cache(maxsize=TEXTS_MAX)
def parse_policy(text: str) -> Policy:
    """Return the policy of a user property, or raise a `ContentError`."""
    return _parsed(text, Policy.parse)


def parse_advertisement(text: str) -> Advertisement:
    """Return the advertisement of a user property or control message, or raise a `ContentError`."""
    return _read_advertisement(text)[0]


@lru_cache(maxsize=TEXTS_MAX)
def _read_advertisement(text: str) -> tuple[Advertisement, int]:
    """Return an advertisement and the steps that it took to read it, or raise a `ContentError`."""
    with within(Work(MANY_STEPS)) as work:
        advertisement = _parsed(text, Advertisement.parse)
    return advertisement, MANY_STEPS - int(work.left)


@lru_cache(maxsize=TEXTS_MAX)
def interest_of(topic_filter: str, condition: Filter | None) -> Filter:
    """Return what a subscription wants as one filter over topic and attributes, or raise a `ContentError`."""
    if is_tellable(topic_filter, condition):
        pattern = TopicPattern.parse(topic_filter)
        return Filter.of_topic(pattern) if condition is None else condition.on_topics(pattern)
    if "+" in topic_filter or "#" in topic_filter:
        comparison, topic = "LIKE", topic_filter.replace("\\", r"\\").replace("%", r"\%")
    else:
        comparison, topic = "=", topic_filter
    literal = topic.replace("\\", r"\\").replace("'", "''")
    return _parsed(
        f"topic {comparison} '{literal}'" + (f" AND ({condition})" if condition is not None else ""),
        Filter.parse,
    )


def is_tellable(topic_filter: str, condition: Filter | None) -> bool:
    """Whether it is clear without further ado that other brokers can read what a subscription wants."""
    return _is_plain(topic_filter) and (condition is None or _is_simple(condition))


def _is_plain(topic_filter: str) -> bool:
    """Whether a topic filter means itself within a text, as nearly all do."""
    return len(topic_filter) <= PLAIN_MAX and _PLAIN.fullmatch(topic_filter) is not None


@lru_cache(maxsize=TEXTS_MAX)
def _is_simple(condition: Filter) -> bool:
    """Whether a condition has no alternatives, says nothing of topics, and is far from every limit."""
    if len(condition.conjunctions) != 1 or len(str(condition)) > SIMPLE_MAX:
        return False
    return all(path != TOPIC for path, _ in condition.conjunctions[0].constraints)


@lru_cache(maxsize=TEXTS_MAX)
def check_tellable(said: Filter | Policy | Advertisement) -> None:
    """Raise a `ContentError` for what other brokers, which are told it in normal form, could not read."""
    try:
        type(said).parse(str(said))
    except SojournError as error:
        why = error.sentence if isinstance(error, FilterSyntaxError) else str(error)
        raise ContentError(
            f"With OR distributed over AND that is too much for other brokers: {why}; say it in several, or "
            "with IN."
        ) from None


def _parsed(text: str, parse: Callable[[str], Parsed]) -> Parsed:
    try:
        return parse(text)
    except FilterSyntaxError as error:
        raise ContentError(f"{error}.") from None
    except SojournError as error:
        raise ContentError(str(error)) from None


def attributes_of(message: Message, fields: Fields | None = None) -> tuple[dict[str, Scalar], set[str]]:
    """Return a message's attributes by path, and the paths that are objects; read once for a while.

    `fields`: what its payload says, where that is known already.
    """
    found = message.attributes
    if found is None:
        flat: dict[str, Scalar] = {}
        objects: set[str] = set()
        payload_at = message.payload_at
        frame = message.frame
        if fields is None and payload_at < len(frame) and frame[payload_at] in JSON_STARTS:
            fields = fields_of(message.payload)
        if fields:
            _flatten(fields, "", 1, flat, objects, FIELDS_MAX)
        user = message.properties.user
        if objects:
            _displace(flat, objects, {"topic", *(name for name, _ in user)} & objects)
        for name, text in user:
            _enter_at(flat, "", name, value_of(text))
        flat["topic"] = message.topic
        found = message.attributes = flat, objects
        _last_read.note(message, flat, objects)
    return found


def event_of(message: Message) -> Event:
    """Return a message's attributes as an event; read once for a while."""
    event = message.event
    if event is None:
        flat, objects = attributes_of(message)
        event = message.event = Event.of_checked(flat, frozenset(objects), message.source, message.sequence)
    return event


def fields_of(payload: bytes) -> Fields | None:
    """Return what a JSON payload says; None if it cannot be read, or would take too long."""
    if is_heavy(payload):
        return None
    try:
        fields = read_json(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else {}


def _flatten(
    fields: Fields,
    prefix: str,
    depth: int,
    flat: dict[str, Scalar],
    objects: set[str],
    left: int,
) -> int:
    """Enter the fields of an object, so many at the most; return how many more may be looked at."""
    each = 1 + len(prefix) // PREFIX_CHARS
    for name, value in fields.items():
        if left < each:
            break
        left -= each
        if isinstance(value, dict):
            if depth < NESTING_MAX and _is_name(name):
                before = len(flat)
                left = _flatten(value, f"{prefix}{name}.", depth + 1, flat, objects, left)
                if len(flat) > before:
                    objects.add(prefix + name)
        elif value is not None:
            _enter_at(flat, prefix, name, value)
    return left


def _displace(flat: dict[str, Scalar], objects: set[str], names: set[str]) -> None:
    """Let user properties, or the topic, win over objects of the payload, all of each."""
    if not names:
        return

    def is_displaced(path: str) -> bool:
        levels = path.split(".")
        return any(".".join(levels[:depth]) in names for depth in range(1, len(levels) + 1))

    objects.difference_update([path for path in objects if is_displaced(path)])
    for path in [path for path in flat if "." in path and is_displaced(path)]:
        del flat[path]


def _enter_at(flat: dict[str, Scalar], prefix: str, name: str, value: object) -> None:
    if len(flat) < ATTRIBUTES_MAX and _is_name(name):
        kind = type(value)
        if kind is bool or (kind is int and -(2**53) <= value <= 2**53):  # type: ignore[operator]  # an int
            flat[prefix + name] = value  # type: ignore[assignment]  # what is left is a value
            return
        try:
            flat[prefix + name] = check_scalar(name, value)
        except EventError:
            return


def _is_name(name: str) -> bool:
    known = _known_names.get(name)
    if known is None:
        try:
            check_name(name)
            known = True
        except EventError:
            known = False
        if len(name) <= KNOWN_NAME_CHARS_MAX:
            if len(_known_names) >= KNOWN_NAMES_MAX:
                _known_names.clear()
            _known_names[name] = known
    return known


def subscriber_event(attributes: Mapping[str, Scalar]) -> Event:
    """Return the attributes of a subscriber, for policies; what cannot be one is left out."""
    flat: dict[str, Scalar] = {}
    for name, value in attributes.items():
        _enter_at(flat, "", name, value)
    flat.pop("topic", None)
    return Event.of_checked(flat, frozenset(), "", 0)


def stated_attributes(pairs: Sequence[tuple[str, str]]) -> dict[str, Scalar]:
    """Return the attributes that a client states of itself in the user properties of its CONNECT."""
    found: dict[str, Scalar] = {}
    for name, text in pairs:
        if _is_attribute(name):
            _enter_at(found, "", name.removeprefix(ATTRIBUTE_PREFIX), value_of(text))
    return found


def _is_attribute(name: str) -> bool:
    return name.startswith(ATTRIBUTE_PREFIX)


def property_values(pairs: Sequence[tuple[str, str]], name: str) -> list[str]:
    """Return the values of all user properties of a name, in order."""
    return [text for key, text in pairs if key == name]


def advertised_bytes_max(limits: Limits) -> int:
    """How long the advertisements of one client may be together."""
    return ADVERTISED_AT_ONCE * limits.filter_bytes_max


def check_advertisements(texts: Iterable[str], *, in_network: bool) -> None:
    """Raise a `ContentError` if the advertisements of one client cannot be used, or are too much work.

    What is known already counts for as much as if it were read now, so that a broker which is told of them
    again, and knows something else, says the same.
    """
    left = ADVERTISED_STEPS
    for text in texts:
        left -= _steps_to_read(text, in_network=in_network)
        if left < 0:
            raise ContentError("The topic patterns are too entangled for one client; have several advertise.")


@lru_cache(maxsize=TEXTS_MAX)
def _steps_to_read(text: str, *, in_network: bool) -> int:
    """Read an advertisement, as other brokers do too, or raise a `ContentError`; return what that takes."""
    advertisement, steps = _read_advertisement(text)
    with within(Work(MANY_STEPS)) as work:
        if in_network:
            check_tellable(advertisement)
    return steps + MANY_STEPS - int(work.left)


def excessive_content(packet: ConnectPacket, limits: Limits) -> str | None:
    """Return what is too much of a CONNECT's advertisements or its will's policy, without reading them.

    And of what is kept with its session as it is: the name, and the attributes that the client states.
    """
    stated = sum(len(name) + len(text) for name, text in packet.user_properties if _is_attribute(name))
    if stated > STATED_CHARS_MAX:
        return f"The attributes that a client states have at most {STATED_CHARS_MAX} characters together."
    if packet.username is not None and len(packet.username) > NAME_CHARS_MAX:
        return f"A user name has at most {NAME_CHARS_MAX} characters."
    advertisements = property_values(packet.user_properties, ADVERTISE)
    policies = [] if packet.will is None else property_values(packet.will.user_properties, POLICY)
    most, each = limits.advertisements_max, limits.filter_bytes_max
    if len(advertisements) > most:
        return f"A client has at most {most} advertisements."
    if any(len(text.encode()) > each for text in (*advertisements, *policies)):
        return f"An advertisement or a policy has at most {each} bytes."
    if sum(len(text.encode()) for text in advertisements) > advertised_bytes_max(limits):
        return f"The advertisements of a CONNECT have at most {advertised_bytes_max(limits)} bytes together."
    return "A will has one policy." if len(policies) > 1 else None


def unclear_content(packet: ConnectPacket, *, in_network: bool) -> str | None:
    """Return what is wrong with a CONNECT's advertisements or its will's policy.

    These are read, which takes a while: only for a client that proved who it is.
    """
    try:
        check_advertisements(property_values(packet.user_properties, ADVERTISE), in_network=in_network)
        if packet.will is not None:
            for policy in map(parse_policy, property_values(packet.will.user_properties, POLICY)):
                if in_network:
                    check_tellable(policy)
    except ContentError as error:
        return str(error)
    return None
