"""The packets that a client makes, and what the answers to them mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import mqtt5

from sojourn.interest.events import check_scalar
from sojourn.live.client.link import ClientError
from sojourn.mqtt import conventions

UNDECIDED = 1
"""The packet id of a publish that waits for one: the codec wants some id from the start."""
QOS_MAX = 2

UserProperties = list[tuple[str, str]]


def hello_properties(
    previous: str | None,
    marks: str | None,
    advertisements: Sequence[str],
    attributes: UserProperties,
    *,
    quench: bool = False,
) -> UserProperties:
    """What a client tells a broker of Sojourn's when it connects (`conventions.py`)."""
    properties = [(conventions.NUMBERED, "1")]
    if quench:
        properties.append((conventions.QUENCH, "1"))
    if previous is not None:
        properties.append((conventions.PREVIOUS, previous))
    if marks is not None:
        properties.append((conventions.MARKS, marks))
    properties += [(conventions.ADVERTISE, text) for text in advertisements]
    properties += [(conventions.ATTRIBUTE_PREFIX + name, text) for name, text in attributes]
    return properties


def attribute_properties(attributes: Mapping[str, Any]) -> UserProperties:
    """Attributes as user properties, of which brokers and clients read the same values; None is none.

    What can be no attribute is refused, as with an `Event`: a list, NaN, a number beyond 2**53.
    """
    return [
        (name, conventions.text_of(check_scalar(name, value)))
        for name, value in attributes.items()
        if value is not None
    ]


def publish_packet(
    topic: str,
    payload: bytes | str | Mapping[str, Any],
    properties: UserProperties,
    *,
    qos: int = 1,
    retain: bool = False,
    expires_s: int | None = None,
) -> mqtt5.PublishPacket:
    """An event as a packet, a mapping as JSON; or why it cannot be one."""
    _check_qos(qos)
    _check_kinds(topic, payload)
    if not topic:
        raise ClientError("An event needs a topic, and a topic cannot be empty.")
    if isinstance(payload, Mapping):
        try:
            payload = json.dumps(payload, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ClientError(
                f"The payload for {topic!r} cannot be JSON ({error}); NaN and Infinity are no numbers there."
            ) from None
    try:
        body = payload.encode() if isinstance(payload, str) else bytes(payload)
        for text in (topic, *(text for pair in properties for text in pair)):
            text.encode()  # a lone surrogate is no character, and would be found when the packet is written
        return mqtt5.PublishPacket(
            topic,
            body,
            qos=mqtt5.QoS(qos),
            retain=retain,
            packet_id=UNDECIDED if qos else None,
            message_expiry_interval=expires_s,
            user_properties=properties,
        )
    except UnicodeEncodeError as error:
        raise ClientError(
            f"An event for {topic!r} has a text that is no UTF-8 (a lone surrogate, "
            f"{error.object[error.start]!r}); send such bytes as bytes."
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ClientError(
            f"An event cannot be published to {topic!r} so ({error}); a topic has no wildcards, and texts "
            "have at most 65,535 bytes."
        ) from None


def check_size(packet: mqtt5.PublishPacket, limit: int, broker: str) -> None:
    """Refuse an event that the broker would not take."""
    size = len(packet.write())
    if size > limit:
        raise ClientError(
            f"The event on {packet.topic!r} makes a packet of {size} bytes and {broker} takes {limit}; send "
            "less, or raise packet_bytes_max there."
        )


def queue_properties(
    keep: str | None = None, expiry_s: float | None = None, budget_bytes: int | None = None
) -> UserProperties:
    """What a subscription wants of the events that its client misses (`mqtt/queue_policies.py`)."""
    told = ((conventions.KEEP, keep), (conventions.EXPIRY, expiry_s), (conventions.BUDGET, budget_bytes))
    return [(name, str(value)) for name, value in told if value is not None]


def subscribe_packet(
    packet_id: int, topic: str, properties: UserProperties, *, qos: int
) -> mqtt5.SubscribePacket:
    """A subscription as a packet, or why it cannot be one."""
    _check_qos(qos)
    try:
        # The flag is left to the copies that are sent for a subscription: live events are told from them.
        wanted = mqtt5.TopicFilter(topic, max_qos=mqtt5.QoS(qos), retain_as_published=False)
        return mqtt5.SubscribePacket(packet_id, [wanted], user_properties=properties)
    except ValueError as error:
        raise ClientError(
            f"{topic!r} is no topic filter ({error}); + stands for one level and # for all below."
        ) from None


def _check_kinds(topic: object, payload: object) -> None:
    """Refuse what no type checker was asked about."""
    if not isinstance(topic, str):
        raise ClientError(f"The topic of an event is a text, not {type(topic).__name__}.")
    if not isinstance(payload, (bytes, bytearray, memoryview, str, Mapping)):
        raise ClientError(
            f"The payload of an event is bytes, a text or a mapping, not {type(payload).__name__}."
        )


def _check_qos(qos: int) -> None:
    if not isinstance(qos, int) or not 0 <= qos <= QOS_MAX:
        raise ClientError(f"qos is 0, 1 or 2, not {qos!r}.")


def with_id(packet: mqtt5.PublishPacket, packet_id: int, *, duplicate: bool = False) -> mqtt5.PublishPacket:
    """The same event under a packet id."""
    return mqtt5.PublishPacket(
        packet.topic,
        packet.payload,
        qos=packet.qos,
        retain=packet.retain,
        packet_id=packet_id,
        duplicate=duplicate,
        message_expiry_interval=packet.message_expiry_interval,
        user_properties=packet.user_properties,
    )


def again(packet: mqtt5.PublishPacket) -> mqtt5.PublishPacket:
    """The same event, said to be sent a second time."""
    assert packet.packet_id is not None
    return with_id(packet, packet.packet_id, duplicate=True)


def may_pass(code: int) -> bool:
    """Whether a refusal may be over soon."""
    return code in (
        mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE,
        mqtt5.ConnAckReasonCode.SERVER_BUSY,
        mqtt5.ConnAckReasonCode.CONNECTION_RATE_EXCEEDED,
        mqtt5.ConnAckReasonCode.QUOTA_EXCEEDED,
    )
