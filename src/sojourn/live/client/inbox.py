"""What a client has been sent: each event once, in a queue with a limit, and the marks to prove it.

An event is known twice over. The broker that took it from its publisher gave it a source and a sequence; they
grow along the way the event takes, so the last one seen by source (the *mark*) tells old from new, and the
marks go to the next broker when the client moves. And a publisher that uses this library numbers its events
itself, so that one it had to send twice, to two brokers, is still one event.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sojourn.mqtt import conventions

if TYPE_CHECKING:
    import mqtt5

REMEMBERED_PUBLISHERS = 10_000
REMEMBERED_NUMBERS = 1_024
"""Numbers remembered of one publisher: more than it may have under way unacknowledged."""


@dataclass(frozen=True, slots=True)
class Received:
    """One event, as the application gets it."""

    topic: str
    payload: bytes
    attributes: Mapping[str, Any]
    """Its user properties and, for a JSON object as payload, its fields."""
    retained: bool = False
    source: str = ""
    sequence: int = 0
    """Which broker-given source and sequence it has; empty and 0 from a broker that is no Sojourn."""
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    publisher: str = ""
    number: int = 0
    """Who published it and under which number, where the publisher said so."""

    def json(self) -> Any:
        """The payload read as JSON."""
        return json.loads(self.payload)


class Inbox:
    """Events that wait for the application, none of them twice."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.repeated = 0
        """Events that came again and were not passed on."""
        self.marks: OrderedDict[str, int] = OrderedDict()
        self._numbers: OrderedDict[str, OrderedDict[int, None]] = OrderedDict()
        self._waiting: deque[tuple[Received, Any]] = deque()
        self._there = asyncio.Event()
        self._closed = False

    def put(self, packet: mqtt5.PublishPacket, receipt: Any) -> bool:
        """Queue the event of a packet unless it came before; `receipt` comes back when it is taken."""
        event = _read(packet)
        numbered = event.publisher and not event.retained
        if (event.source and self._marked(event)) or (numbered and self._numbered(event)):
            self.repeated += 1
            return False
        self._waiting.append((event, receipt))
        self._there.set()
        return True

    def close(self) -> None:
        """Let whoever waits go on: what is queued comes first, then the end."""
        self._closed = True
        self._there.set()

    async def take(self) -> tuple[Received, Any] | None:
        """The next event and its receipt; None at the end."""
        while not self._waiting:
            if self._closed:
                return None
            self._there.clear()
            await self._there.wait()
        return self._waiting.popleft()

    def __len__(self) -> int:
        return len(self._waiting)

    def marks_text(self) -> str:
        """The marks of the sources heard last, as the next broker reads them."""
        recent = list(self.marks.items())[-conventions.MARKS_MAX :]
        return json.dumps(dict(recent), separators=(",", ":"))

    def _marked(self, event: Received) -> bool:
        if event.retained:
            return False  # asked for anew, and not part of the stream
        if event.sequence <= self.marks.get(event.source, -1):
            return True
        self.marks[event.source] = event.sequence
        self.marks.move_to_end(event.source)
        if len(self.marks) > REMEMBERED_PUBLISHERS:
            self.marks.popitem(last=False)
        return False

    def _numbered(self, event: Received) -> bool:
        publisher, number = event.publisher, event.number
        numbers = self._numbers.setdefault(publisher, OrderedDict())
        self._numbers.move_to_end(publisher)
        if number in numbers:
            return True
        numbers[number] = None
        if len(numbers) > REMEMBERED_NUMBERS:
            numbers.popitem(last=False)
        if len(self._numbers) > REMEMBERED_PUBLISHERS:
            self._numbers.popitem(last=False)
        return False


def _read(packet: mqtt5.PublishPacket) -> Received:
    """The event of a packet."""
    source, sequence, publisher, number = "", 0, "", 0
    attributes: dict[str, Any] = {}
    for name, value in packet.user_properties:
        if name == conventions.SOURCE:
            source = value
        elif name == conventions.SEQUENCE and value.isdecimal():
            sequence = int(value)
        elif name == conventions.NUMBER:
            publisher, _, digits = value.rpartition(":")
            number = int(digits) if digits.isdecimal() else 0
        else:
            attributes[name] = conventions.value_of(value)
    payload = packet.payload or b""
    if payload[:1] == b"{":
        try:
            fields = json.loads(payload)
        except ValueError:
            fields = {}
        attributes = {**fields, **attributes}
    return Received(
        packet.topic,
        payload,
        attributes,
        packet.retain,
        source,
        sequence,
        tuple(packet.user_properties),
        publisher,
        number,
    )
