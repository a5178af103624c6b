"""The MQTT state of one client, kept as the standard asks: packets in, packets out.

Whatever was not answered is sent again on the next connection if the session is still there, and published
anew if it is not; a message of QoS 2 is taken once by its packet identifier. What the client learns it tells
the oracle (`oracle.py`), and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mqtt5
import msgspec
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    RetainHandling,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
    Will,
)

from sojourn.mqtt import conventions
from sojourn.sim.live_check.events import IDENTITY, VALUE, Event, Send, Wish
from sojourn.sim.live_check.oracle import Diary, FailedCheckError
from sojourn.sim.live_check.script import GROUPS, Persona

REFUSED = 0x80
_DUP = 0x08


class Outgoing:
    """An event that its broker has not answered for good."""

    __slots__ = ("event", "is_received")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.is_received = False
        """Whether the broker said that it has it; at QoS 2 its release is still to be answered."""


class Client:
    """One client identifier, with at most one connection that it listens to."""

    def __init__(self, persona: Persona, diary: Diary) -> None:
        self.persona = persona
        self.diary = diary
        self.wishes: dict[str, Wish] = {}
        """By pattern: what it wants to be told."""
        self.unwanted: set[str] = set()
        """Patterns that it wants no longer, and has not been told of the end of."""
        self.outbox: list[Event] = []
        """What waits for a connection."""
        self.unanswered: dict[int, Outgoing] = {}
        self.received: set[int] = set()
        """Packet identifiers of QoS 2 that came and were not released."""
        self.marks: dict[str, int] = {}
        self.marked: set[str] = set()
        """The events that these marks speak of."""
        self.connections = 0
        self.broker = -1
        """Where its connection goes."""
        self.is_open = False
        self.wants_clean = False
        self._asked: dict[int, Any] = {}
        self._granted: set[str] = set()
        """Patterns of the present session that were answered."""
        self._aliases: dict[int, str] = {}
        self._next_id = 0
        self._published = 0

    # Connecting ----------------------------------------------------------------------------------------

    def connect(self, broker: int, previous: str | None) -> bytes:
        """Return the CONNECT for a new connection."""
        persona = self.persona
        self.connections += 1
        self.broker = broker
        self.is_open = False
        self._aliases.clear()
        self._asked.clear()
        said: list[tuple[str, str]] = []
        if persona.says_previous and previous is not None:
            said.append((conventions.PREVIOUS, previous))
        if persona.says_marks:
            said.append((conventions.NUMBERED, "1"))
            if self.marks:
                said.append((conventions.MARKS, msgspec.json.encode(self.marks).decode()))
        if persona.advertises:
            said.append((conventions.ADVERTISE, f"{VALUE} >= 0"))
        will = None
        if persona.will_delay_s is not None:
            event = self.diary.makes_will(self.connections, persona.will_delay_s, retain=persona.will_retain)
            will = Will(
                event.topic,
                payload=event.payload,
                qos=QoS(event.qos),
                retain=event.retain,
                will_delay_interval=persona.will_delay_s,
                user_properties=[(IDENTITY, event.name), (VALUE, str(event.value))],
            )
        stated = frozenset(self.marked if persona.says_marks else ())
        self.diary.connects(broker, clean=self.wants_clean, stated=stated)
        return ConnectPacket(
            persona.name,
            clean_start=self.wants_clean,
            will=will,
            keep_alive=persona.keep_alive_s,
            session_expiry_interval=persona.expiry_s,
            receive_max=persona.receive_max,
            topic_alias_max=persona.aliases_max,
            user_properties=said,
        ).write()

    def welcomed(self, packet: ConnAckPacket) -> Iterator[bytes]:
        """Take the broker's welcome; return what is said next."""
        self.is_open = True
        self.wants_clean = False
        is_doubtful = self.diary.begins(self.broker, present=packet.session_present)
        if is_doubtful or not packet.session_present:
            self.received.clear()
            self.marks.clear()
            self.marked.clear()
            self._granted.clear()
        unanswered, self.unanswered = self.unanswered, {}
        anew: list[Event] = []
        for number, one in unanswered.items():
            one.event.is_doubtful = one.event.is_doubtful or is_doubtful
            if not packet.session_present:
                if not one.is_received:
                    anew.append(one.event)
                continue
            self.unanswered[number] = one
            if one.is_received:
                yield PubRelPacket(number).write()
            else:
                yield self._publish(number, one.event, again=True)
        for event in anew:
            event.is_anew = True
            yield self._send(event)
        outbox, self.outbox = self.outbox, []
        for event in outbox:
            yield self._send(event)
        yield from self.ask()

    def ask(self) -> Iterator[bytes]:
        """Ask for what is wanted and was not granted, and for the end of what is not wanted."""
        if not self.is_open:
            return
        under_way = {what for _, what in self._asked.values()}
        for wish in self.wishes.values():
            if wish.pattern not in self._granted and wish not in under_way:
                number = self._take_id()
                self._asked[number] = (True, wish)
                self.diary.asks(wish, self.broker)
                properties = [(conventions.FILTER, wish.condition)] if wish.condition else []
                wanted = TopicFilter(
                    wish.pattern,
                    max_qos=QoS(wish.qos),
                    retain_as_published=False,
                    retain_handling=RetainHandling(wish.retain_handling),
                )
                group = 1 + GROUPS.index(wish.pattern) if wish.is_shared else None
                packet = SubscribePacket(number, [wanted], user_properties=properties, subscription_id=group)
                yield packet.write()
        for pattern in sorted(self.unwanted):
            if pattern not in under_way:
                number = self._take_id()
                self._asked[number] = (False, pattern)
                yield UnsubscribePacket(number, [pattern]).write()

    def is_granted(self, pattern: str) -> bool:
        """Whether what it wants of a pattern was granted in the present session."""
        return pattern in self._granted

    def want(self, wish: Wish) -> Iterator[bytes]:
        """Want something from now on, in place of what had the same pattern."""
        self.wishes[wish.pattern] = wish
        self._granted.discard(wish.pattern)
        self.unwanted.discard(wish.pattern)
        self.diary.wants_no_more(wish.pattern)
        yield from self.ask()

    def want_no_more(self, pattern: str) -> Iterator[bytes]:
        """Want something no longer."""
        if self.wishes.pop(pattern, None) is not None:
            self._granted.discard(pattern)
            self.unwanted.add(pattern)
            self.diary.wants_no_more(pattern)
            yield from self.ask()

    # Publishing ----------------------------------------------------------------------------------------

    def publish(self, topic: str, value: int, qos: int, *, retain: bool) -> bytes | None:
        """Publish now, or on the next connection if the event is to arrive at all."""
        if not qos and not self.is_open:
            return None
        self._published += 1
        event = Event(self.persona.name, self._published, topic, value, qos, retain=retain)
        event.is_numbered = self.persona.numbers_own
        self.diary.makes(event)
        if self.is_open:
            return self._send(event)
        self.outbox.append(event)
        return None

    def _send(self, event: Event) -> bytes:
        number = 0
        if event.qos:
            number = self._take_id()
            self.unanswered[number] = Outgoing(event)
        return self._publish(number, event, again=False)

    def _publish(self, number: int, event: Event, *, again: bool) -> bytes:
        event.sends.append(Send(self.diary.now, self.broker, self.connections))
        said = [(IDENTITY, event.name), (VALUE, str(event.value))]
        if event.is_numbered:
            said.append((conventions.NUMBER, f"{event.publisher}:{event.order}"))
        return PublishPacket(
            event.topic,
            event.payload,
            qos=QoS(event.qos),
            retain=event.retain,
            packet_id=number or None,
            duplicate=again,
            user_properties=said,
        ).write()

    def _take_id(self) -> int:
        while True:
            self._next_id = self._next_id % 65_535 + 1
            if self._next_id not in self.unanswered and self._next_id not in self._asked:
                return self._next_id

    # Packets -------------------------------------------------------------------------------------------

    def take(self, packet: mqtt5.Packet) -> bytes | None:
        """Take a packet of an open connection; return the answer, to be sent in its turn."""
        match packet:
            case PublishPacket():
                return self._arrived(packet)
            case PubAckPacket():
                self._answered(packet.packet_id, int(packet.reason_code), is_final=True)
            case PubRecPacket():
                is_refused = int(packet.reason_code) >= REFUSED
                self._answered(packet.packet_id, int(packet.reason_code), is_final=is_refused)
                return None if is_refused else PubRelPacket(packet.packet_id).write()
            case PubCompPacket():
                self.unanswered.pop(packet.packet_id, None)
            case PubRelPacket():
                self.received.discard(packet.packet_id)
                return PubCompPacket(packet.packet_id).write()
            case SubAckPacket():
                _, wish = self._asked.pop(packet.packet_id)
                if int(packet.reason_codes[0]) >= REFUSED:
                    raise FailedCheckError("refused", f"{self.persona.name} was refused {wish}: {packet}")
                if self.wishes.get(wish.pattern) == wish:
                    self._granted.add(wish.pattern)
                self.diary.granted(wish)
            case UnsubAckPacket():
                _, pattern = self._asked.pop(packet.packet_id)
                self.unwanted.discard(pattern)
        return None

    def _answered(self, number: int, code: int, *, is_final: bool) -> None:
        one = self.unanswered.get(number)
        if one is None:
            text = f"{self.persona.name} was answered for {number}, which it had not sent"
            raise FailedCheckError("answer", text)
        if is_final:
            del self.unanswered[number]
        one.is_received = True
        if code >= REFUSED:
            one.event.is_refused = True
        elif one.event.acked_s is None:
            one.event.acked_s = self.diary.now

    def _arrived(self, packet: PublishPacket) -> bytes | None:
        topic = packet.topic
        if packet.topic_alias is not None:
            topic = (
                self._aliases.setdefault(packet.topic_alias, topic)
                if topic
                else self._aliases[packet.topic_alias]
            )
            if packet.topic:
                self._aliases[packet.topic_alias] = topic
        qos, number = int(packet.qos), packet.packet_id or 0
        said = dict(packet.user_properties)
        if qos == 2 and number in self.received:
            if not packet.duplicate:
                raise FailedCheckError(
                    "identifier",
                    f"{self.persona.name} was sent {said.get(IDENTITY)} as {number}, not released yet",
                )
            return PubRecPacket(number).write()
        if qos == 2:
            self.received.add(number)
        if conventions.SOURCE in said and self.persona.says_marks and not packet.retain:
            source, sequence = said[conventions.SOURCE], int(said[conventions.SEQUENCE])
            self.marks[source] = max(sequence, self.marks.get(source, 0))
            self.marked.add(said.get(IDENTITY, ""))
        if IDENTITY not in said:
            self.diary.arrived_of_strangers()
        elif packet.subscription_ids:
            self.diary.groups.arrived(
                GROUPS[packet.subscription_ids[0] - 1],
                said[IDENTITY],
                topic,
                qos,
                is_repeated=packet.duplicate,
                is_again=conventions.AGAIN in said,
            )
        else:
            self.diary.arrived(
                said[IDENTITY], topic, qos, is_again=packet.duplicate, is_retained=packet.retain
            )
        if qos == 0:
            return None
        return PubAckPacket(number).write() if qos == 1 else PubRecPacket(number).write()
