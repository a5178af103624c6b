"""What a client has been sent: each event once, in a queue with a limit, and the marks to prove it.

An event is known twice over. The broker that took it from its publisher gave it a source and a sequence; they
grow along the way the event takes, so the last one seen by source tells old from new; the last one that the
application is done with (the *mark*) goes to the next broker when the client moves. And a publisher that uses
this library numbers its events itself, so that one it had to send twice, to two brokers, is still one event.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from sojourn.mqtt import conventions
from sojourn.mqtt.json_weight import is_heavy

if TYPE_CHECKING:
    import mqtt5

    from sojourn.live.client.link import Link

Known = TypeVar("Known", bound=Hashable)

REMEMBERED_PUBLISHERS = 10_000
REMEMBERED_NUMBERS = 1_024
"""Numbers remembered of one publisher: more than it may have under way unacknowledged."""
REMEMBERED_COPIES = 100_000
"""Retained copies remembered, by source and by number."""


@dataclass(frozen=True, slots=True)
class Received:
    """One event, as the application gets it."""

    topic: str
    payload: bytes
    attributes: Mapping[str, Any]
    """Its user properties and, for a JSON object as payload, its fields."""
    retained: bool = False
    """Whether it is a copy that the broker had kept and sent for a subscription."""
    source: str = ""
    sequence: int = 0
    """Which broker-given source and sequence it has; empty and 0 from a broker that is no Sojourn."""
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    publisher: str = ""
    number: int = 0
    """Who published it and under which number, where the publisher said so."""
    qos: int = 1
    """At which quality of service it came; what came at 0 no broker keeps."""
    passed_on: bool = False
    """Whether somebody else passed it on, who says who published it; no broker knows whether that is so."""

    @property
    def numbered_by(self) -> str:
        """In whose numbers it is known; what is said of a publisher hides nothing that the publisher says."""
        return f"{self.publisher} (passed on)" if self.passed_on else self.publisher

    def json(self) -> Any:
        """The payload read as JSON."""
        return json.loads(self.payload)


class Receipt(NamedTuple):
    """On which connection an event came, and how it is acknowledged there."""

    link: Link
    qos: mqtt5.QoS
    packet_id: int | None


Key = tuple[bool, str, int]
"""What an event is known by: whether it is a retained copy, then its source and sequence or its number."""


class Pending:
    """An event that the application is not done with, and every delivery of it that is to be acknowledged."""

    __slots__ = ("event", "keys", "receipts")

    def __init__(self, event: Received) -> None:
        self.event = event
        self.keys: set[Key] = set()
        self.receipts: list[Receipt] = []

    def came(self, receipt: Receipt) -> None:
        """Note a delivery; those on connections that are gone can be acknowledged no more."""
        self.receipts = [one for one in self.receipts if one.link.alive]
        self.receipts.append(receipt)


class Inbox:
    """Events that wait for the application or that it is at work on, none of them twice.

    What has arrived and what the application is done with are two things. The first tells a repeated event
    from a new one. Only the second, the `marks`, goes to the next broker, which forgets what they cover. An
    event in between that comes again is not acknowledged before the application is done with it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.repeated = 0
        """Events that came again and were not passed on."""
        self.marks: OrderedDict[str, int] = OrderedDict()
        """By source: the application is done with everything up to this sequence."""
        self._arrived: OrderedDict[str, int] = OrderedDict()
        """By source: the last sequence that has come."""
        self._numbers: OrderedDict[str, OrderedDict[int, None]] = OrderedDict()
        self._copies: OrderedDict[Key, None] = OrderedDict()
        """The retained copies that came since the application subscribed last."""
        self._pending: dict[Key, Pending] = {}
        self._unsettled: dict[str, dict[int, None]] = {}
        """By source: the sequences of what is pending, the oldest first."""
        self._waiting: deque[Pending] = deque()
        self._there = asyncio.Event()
        self._closed = False

    def put(self, packet: mqtt5.PublishPacket, receipt: Receipt) -> bool:
        """Queue the event of a packet unless it came before; whether its acknowledgement is to wait."""
        event = _read(packet)
        if self._came_before(event):
            self.repeated += 1
            pending = self._find(event)
            if pending is None:
                self._advance(event.source)
                return False
        else:
            pending = Pending(event)
            self._waiting.append(pending)
            self._there.set()
        pending.came(receipt)
        for key in _keys(event):
            pending.keys.add(key)
            self._pending[key] = pending
        if not event.retained and event.sequence == self._arrived.get(event.source):
            self._unsettled.setdefault(event.source, {})[event.sequence] = None
        return True

    def settle(self, pending: Pending) -> list[Receipt]:
        """Note that the application is done with an event; return what is to be acknowledged."""
        for key in pending.keys:
            self._pending.pop(key, None)
            retained, source, sequence = key
            unsettled = {} if retained else self._unsettled.get(source, {})
            if sequence in unsettled:
                del unsettled[sequence]
                if not unsettled:
                    del self._unsettled[source]
                self._advance(source)
        pending.keys = set()
        receipts, pending.receipts = pending.receipts, []
        return receipts

    def open(self) -> None:
        """Go on after `close`."""
        self._closed = False

    def close(self) -> None:
        """Let whoever waits go on: what is queued comes first, then the end."""
        self._closed = True
        self._there.set()

    async def take(self) -> Pending | None:
        """The next event, which is pending until `settle`; None at the end."""
        while not self._waiting:
            if self._closed:
                return None
            self._there.clear()
            await self._there.wait()
        return self._waiting.popleft()

    def __len__(self) -> int:
        return len(self._waiting)

    def seen(self, marks: Mapping[str, int]) -> None:
        """Take events up to these, by source, for settled."""
        self._arrived.update(marks)
        self.marks.update(marks)

    def subscribed(self) -> None:
        """The application asks for retained events: those that came before may come anew."""
        self._copies.clear()

    def marks_text(self) -> str:
        """The marks of the sources heard last, as the next broker reads them."""
        recent = list(self.marks.items())[-conventions.MARKS_MAX :]
        return json.dumps(dict(recent), separators=(",", ":"))

    def _find(self, event: Received) -> Pending | None:
        return next((self._pending[key] for key in _keys(event) if key in self._pending), None)

    def _came_before(self, event: Received) -> bool:
        """Whether an event came before; from now on it did."""
        if event.retained:  # a copy of an old event, sent for a subscription, and not part of the stream
            return any(_remember(self._copies, key, REMEMBERED_COPIES) for key in _keys(event))
        return bool((event.source and self._marked(event)) or (event.publisher and self._numbered(event)))

    def _marked(self, event: Received) -> bool:
        if event.sequence <= self._arrived.get(event.source, -1):
            return True
        _note(self._arrived, event.source, event.sequence)
        return False

    def _advance(self, source: str) -> None:
        """Raise a source's mark to just before the oldest event that is pending, or to the last that came."""
        arrived = self._arrived.get(source)
        if arrived is not None:
            oldest = next(iter(self._unsettled.get(source, ())), None)
            mark = arrived if oldest is None else oldest - 1
            _note(self.marks, source, max(mark, self.marks.get(source, -1)))

    def _numbered(self, event: Received) -> bool:
        publisher, number = event.numbered_by, event.number
        numbers = self._numbers.setdefault(publisher, OrderedDict())
        self._numbers.move_to_end(publisher)
        if len(self._numbers) > REMEMBERED_PUBLISHERS:
            self._numbers.popitem(last=False)
        return _remember(numbers, number, REMEMBERED_NUMBERS)


def _keys(event: Received) -> list[Key]:
    """What an event is known by: nothing, where neither a broker nor its publisher numbered it."""
    known = ((event.source, event.sequence), (event.publisher and f"{event.numbered_by}:", event.number))
    return [(event.retained, name, number) for name, number in known if name]


def _note(marks: OrderedDict[str, int], source: str, sequence: int) -> None:
    marks[source] = sequence
    marks.move_to_end(source)
    if len(marks) > REMEMBERED_PUBLISHERS:
        marks.popitem(last=False)


def _remember(known: OrderedDict[Known, None], one: Known, limit: int) -> bool:
    """Whether something is known; from now on it is, among so many."""
    if one in known:
        return True
    known[one] = None
    if len(known) > limit:
        known.popitem(last=False)
    return False


def _read(packet: mqtt5.PublishPacket) -> Received:
    """The event of a packet; what anybody may have put into it and is malformed counts for nothing."""
    source, sequence, publisher, number = "", 0, "", 0
    attributes: dict[str, Any] = {}
    is_passed_on = False
    for name, value in packet.user_properties:
        if name == conventions.SOURCE:
            source = value
        elif name == conventions.SEQUENCE:
            sequence = conventions.number_of(value) or 0
        elif name == conventions.ORIGIN or (name == conventions.NUMBER and not is_passed_on):
            is_passed_on = name == conventions.ORIGIN
            publisher, _, digits = value.rpartition(":")
            number = conventions.number_of(digits) or 0
        elif name == conventions.NUMBER:
            pass  # of who passed it on
        else:
            attributes[name] = conventions.value_of(value)
    payload = packet.payload or b""
    if payload[:1] == b"{" and not is_heavy(payload):
        try:
            fields = msgspec.json.decode(payload)  # as brokers read it: NaN is no JSON
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
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
        int(packet.qos),
        is_passed_on,
    )
