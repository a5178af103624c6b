"""Events on their way through live brokers, and as they travel between two of them.

An event travels as an MQTT packet, with its source and sequence; its attributes are read from that again
where somebody asks for them. Several of one publisher may travel together (`runs.py`). How long one may still
live travels as a span of time, since the clocks of two machines differ.

Whatever a peer sends is checked: it becomes an event or a `WireError`.
"""

from __future__ import annotations

import mqtt5
import msgspec

from sojourn.broker.messages import Run
from sojourn.errors import SojournError
from sojourn.interest import Event
from sojourn.mqtt import packets
from sojourn.mqtt.content import event_of, parse_policy
from sojourn.mqtt.message import PLAIN, Properties, new_message
from sojourn.mqtt.message import Message as MqttMessage
from sojourn.mqtt.packets import PUBLISH, remaining_length
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
        self.matched = ()
        self.version = -1

    @property
    def size(self) -> int:  # type: ignore[override]  # counted where somebody asks for it
        """What it takes in a queue."""
        return self.message.size

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
    head, found = frame.packets[0][:1], []
    for sequence, packet in enumerate(frame.packets, first):
        message = _message_of_run(frame, packet, sequence, now)
        if packet[:1] != head or message.topic != frame.topic:
            raise WireError("A peer sent events together that differ in topic or QoS.")
        found.append(Carried(message))
    return Run(tuple(found))


def _message_of_run(frame: RunFrame, packet: bytes, sequence: int, now: float) -> MqttMessage:
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
            publisher, source = frame.publisher, frame.source
            return MqttMessage(
                frame.topic, packet, payload_at, topic_end, qos, now, publisher, source, sequence
            )
    message = _any_message(frame, packet, now)
    message.source, message.sequence = frame.source, sequence
    return message


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
