"""Messages between brokers as bytes.

A core names clients and interests by the small numbers of its own process. On the wire a client is its
identifier and an interest its canonical text, so that brokers share nothing but the configuration: the number
of a broker is its place in it. A `Translator` knows both names; `Wire` turns messages into the bodies of a
channel's frames and back, each kind with exactly the fields of its class.

An event travels as an MQTT packet, with its source and sequence; its attributes are read from that again
where somebody asks for them. Several of one publisher may travel together (`runs.py`). How long one may still
live travels as a span of time, since the clocks of two machines differ.

Whatever a peer sends is checked: it becomes a message or a `WireError`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Protocol

import mqtt5
import msgspec

from sojourn.broker.messages import (
    Echo,
    Offer,
    Order,
    Part,
    Reach,
    Retain,
    RetainAsk,
    Roll,
    Run,
    Settled,
    Slow,
    Spread,
    Status,
    SyncEnd,
    Wave,
)
from sojourn.errors import SojournError
from sojourn.interest import Event
from sojourn.mobility.finding_messages import EVERYBODY, Cleared, Find, Forgot, Found
from sojourn.mqtt import packets
from sojourn.mqtt.content import event_of, parse_policy
from sojourn.mqtt.message import PLAIN, Properties, new_message
from sojourn.mqtt.message import Message as MqttMessage
from sojourn.mqtt.packets import PUBLISH, remaining_length
from sojourn.routing import messages
from sojourn.routing.messages import Kind, Publish

LIVES_S_MAX = 0xFFFF_FFFF
"""As long as MQTT's message expiry interval may be."""
PLAIN_HEADS = (b"\x30", b"\x32", b"\x34")
"""The first bytes of PUBLISH packets of QoS 0, 1 and 2 that are neither retained nor repeated."""
SEQUENCE_MAX = (1 << 63) - 1
"""More than any sequence: they are dates in microseconds."""


class WireError(SojournError):
    """Bytes from a peer that are no message."""


class Carried(Publish):
    """An event on its way through live brokers, with the MQTT message that it is.

    What the message says is only read where somebody asks for it.
    """

    __slots__ = ("message", "topic")

    def __init__(self, message: MqttMessage, cause: int = 0) -> None:
        self.message = message
        self.topic = message.address or message.topic
        self.source, self.sequence = message.source, message.sequence
        self.cause = cause
        self.size = message.size
        self.matched = ()
        self.version = -1

    @property
    def event(self) -> Event:  # type: ignore[override]  # read from the message, and kept there
        """Its topic and attributes; of an event for one member of a group, where it is to go."""
        if self.message.address:
            return Event.of_checked({"topic": self.topic}, frozenset(), self.source, self.sequence)
        return event_of(self.message)


class EventFrame(msgspec.Struct, array_like=True, frozen=True, tag_field="kind", tag=int(Kind.PUBLISH)):
    """An event as it travels."""

    source: str
    sequence: int
    publisher: str
    lives_s: float | None
    """Seconds it may still live; None for ever."""
    retain: bool
    packet: bytes
    policy: str | None
    cause: int
    topic: str = ""
    """Given with the two places below where the packet has no properties, and need not be read again."""
    id_at: int = 0
    payload_at: int = 0
    address: str = ""
    """The one member of a shared subscription that it is for (`mqtt/members.py`)."""
    party: str = ""
    """On whose account it is retained (`mqtt/shares.py`)."""


class RunFrame(msgspec.Struct, array_like=True, frozen=True, tag_field="kind", tag=Run.kind):
    """Several events as they travel together; their numbers follow one another."""

    count: int
    """How many there are, in one byte, for whoever counts events in frames."""
    source: str
    first: int
    publisher: str
    topic: str
    packets: list[bytes]


class Translator(Protocol):
    """Who knows the numbers of this process and the names that all brokers share."""

    def client_name(self, number: int, /) -> str:
        """Return the identifier of a client."""

    def client_number(self, name: str, /) -> int:
        """Return the number of a client, a new one if it was never heard of."""

    def subscription_text(self, number: int, /) -> str:
        """Return a subscription as text."""

    def subscription_number(self, text: str, /) -> int:
        """Return the number of a subscription, entered if it is new."""

    def advertisement_text(self, number: int, /) -> str:
        """Return an advertisement as text."""

    def advertisement_number(self, text: str, /) -> int:
        """Return the number of an advertisement, entered if it is new."""


MESSAGES: tuple[type, ...] = (
    messages.Advertise,
    messages.Unadvertise,
    messages.Subscribe,
    messages.Unsubscribe,
    messages.Prepare,
    messages.Release,
    messages.Copy,
    messages.Activate,
    messages.Activated,
    messages.Deactivate,
    messages.Delete,
    messages.Moved,
    messages.Forward,
    messages.ForwardEnd,
    messages.Ask,
    messages.Context,
    Find,
    Found,
    Retain,
    Spread,
    Status,
    SyncEnd,
    Wave,
    Echo,
    Slow,
    Part,
    Reach,
    RetainAsk,
    Order,
    Settled,
    Cleared,
    Forgot,
    Roll,
    Offer,
)
_TYPES: dict[str, Any] = {
    "interest": str,
    "client": str,
    "subscriptions": list[str] | None,
    "advertisements": list[str],
    "others": list[int],
    "holders": list[int],
    "waits_for": list[int],
    **dict.fromkeys(("source", "verb", "scope", "whom"), str),
    "done": tuple[int, ...],
    "declined": tuple[int, ...],
    "marks": dict[str, int] | None,
    "publications": list[EventFrame],
    "state": bytes | None,
    "report": bytes,
    "joined": list[list[str]],
    "left": list[str],
    "piece": bytes,
    **dict.fromkeys(("is_last", "up", "found", "for_good", "wants", "keep"), bool),
    **dict.fromkeys(("everywhere", "present", "holds"), bool),
    "since_s": float | None,
    **dict.fromkeys(("owner", "refused", "party"), str | None),
    "lost": int | None,
}
"""By field: its type on the wire; a field that is not named is a whole number."""
_MAY_BE_MISSING = (
    ("marks", int(Kind.MOVED)),
    ("subscriptions", int(Kind.ACTIVATE)),
    ("state", Found.kind),
    ("owner", Find.kind),
    ("owner", Offer.kind),
    ("since_s", Find.kind),
    ("refused", Found.kind),
    ("since_s", Found.kind),
    ("party", int(Kind.ACTIVATE)),
    ("lost", Cleared.kind),
)
"""The fields that a message of some kind may go without."""
_ADDED = ("owner", "since_s", "refused", "party", "lost")
"""Fields that frames in the journals of earlier builds lack; they are last, and None then."""
_ABOUT_ADVERTISEMENTS = (int(Kind.ADVERTISE), int(Kind.UNADVERTISE))


def _frame_type(message_type: Any) -> Any:
    fields: list[Any] = []
    for field in dataclasses.fields(message_type):
        default = (None,) if field.name in _ADDED else ()
        fields.append((field.name, _TYPES.get(field.name, int), *default))
    return msgspec.defstruct(
        f"{message_type.__name__}Frame",
        fields,
        array_like=True,
        frozen=True,
        tag_field="kind",
        tag=int(message_type.kind),
    )


class Wire:
    """Messages to bytes and back, for one broker."""

    _FRAMES: ClassVar[dict[int, Any]] = {int(cls.kind): _frame_type(cls) for cls in MESSAGES}  # type: ignore[attr-defined]  # every message has a kind
    _MESSAGES: ClassVar[dict[int, Any]] = {int(cls.kind): cls for cls in MESSAGES}  # type: ignore[attr-defined]  # every message has a kind

    def __init__(self, translator: Translator, brokers: int) -> None:
        self._names = translator
        self._brokers = brokers
        self._encode = msgspec.msgpack.Encoder().encode
        union: Any = EventFrame | RunFrame
        for frame in self._FRAMES.values():
            union = union | frame
        self._decode = msgspec.msgpack.Decoder(union).decode

    def grow(self, brokers: int) -> None:
        """Take numbers of so many brokers from now on."""
        self._brokers = brokers

    def __reduce__(self) -> tuple[Any, ...]:
        return Wire, (self._names, self._brokers)

    def encode(self, message: Any, now: float) -> bytes:
        """Return the body of the frame that carries a message."""
        if message.kind == Kind.PUBLISH:
            return self._encode(event_frame(message, now))
        if message.kind == Run.kind:
            return self._encode(run_frame(message))
        frame = self._FRAMES[message.kind]
        values = [
            self._out(message.kind, name, getattr(message, name), now) for name in frame.__struct_fields__
        ]
        return self._encode(frame(*values))

    def decode(self, body: bytes, now: float) -> Any:
        """Return the message that a peer sent, or refuse it."""
        message = self.read(body, now)
        if isinstance(message, WireError):
            raise message
        return message

    def read(self, body: bytes, now: float) -> Any:
        """Return the message that a peer sent, or a `WireError` that says why it is none."""
        try:
            frame: Any = self._decode(body)
            if isinstance(frame, EventFrame):
                return carried(frame, now)
            if isinstance(frame, RunFrame):
                return run_of(frame, now)
            message_type = self._MESSAGES[frame.__struct_config__.tag]
            fields = {
                name: self._in(message_type.kind, name, getattr(frame, name), now)
                for name in frame.__struct_fields__
            }
            return message_type(**fields)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return WireError(f"A peer sent what is no message: {error}.")
        except packets.PacketError as error:
            return WireError(f"A peer sent an event that is no MQTT packet: {error.text}")
        except WireError as error:
            return error
        except SojournError as error:
            return WireError(f"A peer sent a message that cannot be used: {error}")

    def _out(self, kind: int, name: str, value: Any, now: float) -> Any:
        names = self._names
        if name == "client":
            return names.client_name(value)
        if name == "interest":
            if kind in _ABOUT_ADVERTISEMENTS:
                return names.advertisement_text(value)
            return names.subscription_text(value)
        if name == "subscriptions" and value is not None:
            return [names.subscription_text(number) for number in value]
        if name == "advertisements":
            return [names.advertisement_text(number) for number in value]
        if name == "publications":
            return [event_frame(publication, now) for publication in value]
        if name == "marks" and value is not None:
            # Some are what a client says that it has seen, which may be any number.
            return {source: max(0, min(mark, SEQUENCE_MAX)) for source, mark in value.items()}
        return value

    def _in(self, kind: int, name: str, value: Any, now: float) -> Any:
        names = self._names
        lowest = EVERYBODY if name == "destination" and kind == Find.kind else 0
        if value is None and (name, kind) not in _MAY_BE_MISSING:
            raise WireError(f"A peer sent a message of kind {kind} without its {name}.")
        if (
            name in {"destination", "sender", "holder", "held_at", "origin", "peer"}
            and not lowest <= value < self._brokers
        ):
            raise WireError(f"A peer named broker number {value}; there are {self._brokers}.")
        if name in ("stamp", "since_s"):
            value = _checked_date(name, value)
        if name == "client":
            return names.client_number(value)
        if name == "interest":
            if kind in _ABOUT_ADVERTISEMENTS:
                return names.advertisement_number(value)
            return names.subscription_number(value)
        if name == "subscriptions" and value is not None:
            return tuple(names.subscription_number(text) for text in value)
        if name == "advertisements":
            return tuple(names.advertisement_number(text) for text in value)
        if name == "publications":
            return tuple(carried(frame, now) for frame in value)
        if name in {"others", "holders", "waits_for"}:
            if not all(0 <= number < self._brokers for number in value):
                raise WireError(f"A peer named brokers {value}; there are {self._brokers}.")
            return tuple(value)
        return value


def _checked_date(name: str, value: Any) -> Any:
    if value is not None and not (math.isfinite(value) and 0 <= value <= SEQUENCE_MAX):
        raise WireError(f"A peer sent {value} as {name}.")
    return value


def kind_of(body: bytes) -> int:
    """The kind of message that a frame carries: the first thing in its array."""
    return body[1]


def event_frame(publication: Carried, now: float) -> EventFrame:
    """Return an event as it travels."""
    message = publication.message
    is_plain = message.properties is PLAIN and message.expiry is None and not message.frame[0] & 1
    return EventFrame(
        message.source,
        message.sequence,
        message.publisher,
        # The difference of two dates may be a little more than what was added to the one.
        None if message.expiry is None else min(max(0.0, message.expires_s - now), LIVES_S_MAX),
        message.retain,
        message.frame,
        None if message.policy is None else str(message.policy),
        publication.cause,
        message.topic if is_plain else "",
        message.id_at if is_plain else 0,
        message.payload_at if is_plain else 0,
        message.address,
        message.party,
    )


def carried(frame: EventFrame, now: float) -> Carried:
    """Return the event that came, or raise a `WireError`."""
    if not 0 <= frame.sequence <= SEQUENCE_MAX:
        raise WireError(f"A peer sent an event with the number {frame.sequence}.")
    message = _plain_message(frame, now) if frame.topic else _any_message(frame, frame.packet, now)
    message.source, message.sequence = frame.source, frame.sequence
    message.address, message.party = frame.address, frame.party
    return Carried(message, frame.cause)


def _plain_message(frame: EventFrame, now: float) -> MqttMessage:
    """The message of a packet without properties, which is used as it came."""
    packet, topic_end, payload_at = frame.packet, frame.id_at, frame.payload_at
    topic = frame.topic.encode()
    qos = packet[0] >> 1 & 3 if packet else 3
    is_sound = (
        packet[:1] in PLAIN_HEADS
        and frame.lives_s is None
        and packet[topic_end - len(topic) : topic_end] == topic
        and packet[payload_at - 1 : payload_at] == b"\0"
        and payload_at == topic_end + (3 if qos else 1)
    )
    if not is_sound:
        raise WireError("A peer sent an event whose places do not fit its packet.")
    return MqttMessage(
        frame.topic,
        packet,
        payload_at,
        topic_end,
        qos,
        now,
        frame.publisher,
        retain=frame.retain,
        policy=None if frame.policy is None else parse_policy(frame.policy),
    )


def run_frame(run: Run) -> RunFrame:
    """Return events that came together as they travel."""
    first = run.publications[0].message
    return RunFrame(
        len(run.publications),
        first.source,
        first.sequence,
        first.publisher,
        first.topic,
        [one.message.frame for one in run.publications],
    )


def run_of(frame: RunFrame, now: float) -> Run:
    """Return the events that came together, or raise a `WireError`."""
    count, first = len(frame.packets), frame.first
    if not 0 < frame.count == count or not 0 <= first <= SEQUENCE_MAX - count:
        raise WireError(f"A peer sent {count} events as {frame.count}, with numbers from {first} on.")
    source, head = frame.source, frame.packets[0][:1]
    found = []
    for sequence, packet in enumerate(frame.packets, first):
        message = _message_of_run(frame, packet, now)
        if packet[:1] != head or message.topic != frame.topic:
            raise WireError("A peer sent events together that differ in topic or QoS.")
        message.source, message.sequence = source, sequence
        found.append(Carried(message))
    return Run(tuple(found))


def _message_of_run(frame: RunFrame, packet: bytes, now: float) -> MqttMessage:
    """One message of a run; a packet without properties is used as it came."""
    topic = frame.topic.encode()
    size = remaining_length(packet, 0, len(packet)) if packet[:1] in PLAIN_HEADS else None
    if size is not None:
        length, at = size
        qos, topic_end = packet[0] >> 1 & 3, at + 2 + len(topic)
        payload_at = topic_end + (3 if qos else 1)
        if (
            at + length == len(packet) >= payload_at
            and packet[at:topic_end] == len(topic).to_bytes(2) + topic
            and not packet[payload_at - 1]
        ):
            return MqttMessage(frame.topic, packet, payload_at, topic_end, qos, now, frame.publisher)
    return _any_message(frame, packet, now)


def _any_message(frame: EventFrame | RunFrame, data: bytes, now: float) -> MqttMessage:
    # Nothing else is read: a CONNECT of another version, say, would be no message but a fault.
    packet = packets.decode(data) if len(data) > 1 and data[0] >> 4 == PUBLISH else None
    if not isinstance(packet, mqtt5.PublishPacket):
        raise WireError("A peer sent an event that is no PUBLISH packet.")
    retain, lives_s, policy = False, None, None
    if isinstance(frame, EventFrame):
        retain, lives_s, policy = frame.retain, frame.lives_s, frame.policy
    if lives_s is not None and not 0 <= lives_s <= LIVES_S_MAX:
        raise WireError(f"A peer sent an event that lives {lives_s} s; it may be up to {LIVES_S_MAX}.")
    try:
        return new_message(
            packet.topic,
            packet.payload,
            qos=int(packet.qos),
            now=now,
            publisher=frame.publisher,
            retain=retain,
            properties=Properties(
                packet.payload_format_indicator,
                packet.content_type,
                packet.response_topic,
                packet.correlation_data,
                tuple(packet.user_properties),
            ),
            expiry=None if lives_s is None else max(1, round(lives_s)),
            policy=None if policy is None else parse_policy(policy),
        )
    except ValueError as error:
        raise WireError(f"A peer sent an event that nobody can be sent: {error}.") from None
