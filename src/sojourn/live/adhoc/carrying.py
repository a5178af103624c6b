"""An MQTT event as the core carries it: what it is known by, its topic, and the rest as bytes.

What goes along is the topic, the payload and the user properties. Whether it was retained does not: a value
that comes late would take the place of a later one.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

import msgspec

from sojourn.adhoc.election.messages import EventId, Kept
from sojourn.interest.events import Event
from sojourn.live.client.inbox import Received
from sojourn.mqtt import conventions

_OF_ONE_HOP = (conventions.SOURCE, conventions.SEQUENCE, conventions.NUMBER, conventions.ORIGIN)
"""Properties that say how an event came here, which is not how it comes there."""


class Carried(NamedTuple):
    """What an application said, and what it gets."""

    topic: str
    payload: bytes
    properties: list[tuple[str, str]]


def is_carried(received: Received) -> bool:
    """Whether an event came here from another device."""
    return any(name == conventions.ORIGIN for name, _ in received.properties)


def id_of(received: Received) -> EventId:
    """What an event is known by wherever it goes.

    Its publisher's number, else the source and sequence that a broker gave it; an event of a broker that
    gives none is known by a name that is drawn here, and by another one when it comes again.
    """
    if received.publisher:
        return received.publisher, received.number
    if received.source:
        return received.source, received.sequence
    return f"unnumbered-{uuid.uuid4().hex}", 0


def pack(received: Received) -> tuple[Event, bytes]:
    """An event as the core is told of it."""
    source, sequence = id_of(received)
    properties = [pair for pair in received.properties if pair[0] not in _OF_ONE_HOP]
    body = msgspec.msgpack.encode(Carried(received.topic, received.payload, properties))
    return Event({}, topic=received.topic, source=source, sequence=sequence), body


def unpack(kept: Kept) -> Carried:
    """An event as applications get it, with its first publisher's number."""
    carried = msgspec.msgpack.decode(kept.body, type=Carried)
    source, sequence = kept.id
    return carried._replace(properties=[*carried.properties, (conventions.ORIGIN, f"{source}:{sequence}")])
