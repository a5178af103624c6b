"""What a broker tells others of its retained messages, all of it at once."""

from __future__ import annotations

from sojourn.mqtt.message import Message
from sojourn.mqtt.retained import Retained


def values_of(retained: Retained, now: float) -> list[Message]:
    """All messages, and an empty one for each tombstone, in the order of their keys."""
    told = [retained.value(topic, now) for topic in retained.topics(now)]
    found = [one for one in told if one is not None]
    return sorted(found, key=lambda one: (one.sequence, one.source, one.topic))
