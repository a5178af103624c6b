"""Wills as CONNECT brings them; when they are due is `handshake.py`'s business."""

from __future__ import annotations

from mqtt5 import Will as WillPacket

from sojourn.interest import TopicError
from sojourn.interest.topics import check_topic
from sojourn.mqtt.content import parse_policy, property_values
from sojourn.mqtt.conventions import ADVERTISE_TOPIC, POLICY, without_numbers_of_others
from sojourn.mqtt.message import Properties, new_message
from sojourn.mqtt.packets import is_reserved
from sojourn.mqtt.session import Will


def is_will_topic(topic: str) -> bool:
    """Whether a will may be published to a topic; nobody advertises when it is gone."""
    try:
        check_topic(topic)
    except TopicError:
        return False
    return not is_reserved(topic) and topic != ADVERTISE_TOPIC


def read_will(will: WillPacket, client_id: str, now: float, *, reads_policy: bool = True) -> Will:
    """Return the will of a client; its time to live begins when it is published.

    Whoever only wants to know how large it is leaves its policy unread, which takes a while.
    """
    policies = property_values(will.user_properties, POLICY) if reads_policy else []
    message = new_message(
        will.topic,
        will.payload or b"",
        qos=int(will.qos),
        now=now,
        publisher=client_id,
        retain=will.retain,
        expiry=will.message_expiry_interval,
        properties=Properties(
            will.payload_format_indicator,
            will.content_type,
            will.response_topic,
            will.correlation_data,
            without_numbers_of_others(will.user_properties, client_id),
        ),
        policy=parse_policy(policies[0]) if policies else None,
    )
    return Will(message, will.will_delay_interval)
