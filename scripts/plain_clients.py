"""Plain MQTT 5 clients for `kill_brokers.py`: they publish, subscribe and change brokers, and count.

They know nothing of Sojourn but what any client may tell: some name the broker they were at before in a user
property. A client keeps the state that MQTT asks of it (packets under way, halves of QoS 2 exchanges) as long
as brokers say that they know its session, and forgets it when one does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import mqtt5

ANSWER_S = 10.0
RETRY_S = 0.3
SESSION_S = 3_600
NO = 0x80
TOPIC = "soak"


class Place(NamedTuple):
    """A broker, as a client knows it."""

    name: str
    host: str
    port: int


class Event(NamedTuple):
    """Who published an event, and its number there."""

    publisher: str
    number: int


class Acknowledged(NamedTuple):
    """When an event was acknowledged, and by which broker."""

    at_s: float
    broker: str


class SessionLoss(NamedTuple):
    """A session that should have been there and was not; times as of `time.time`."""

    client: str
    since_s: float
    """When the client was last let in with its session, or with a new one."""
    found_s: float
    """When the client was told that its session is new."""


class Trouble(Exception):  # noqa: N818 - an everyday word for an everyday thing
    """The connection has ended, or nobody answers on it."""


class Wire:
    """A connection that speaks packets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._buffer = b""

    @classmethod
    async def open(cls, place: Place) -> Wire:
        """Connect to a broker."""
        try:
            async with asyncio.timeout(ANSWER_S):
                return cls(*await asyncio.open_connection(place.host, place.port))
        except (OSError, TimeoutError) as error:
            raise Trouble(str(error)) from None

    def send(self, packet: Any) -> None:
        """Write a packet."""
        self._writer.write(packet.write())

    async def packet(self, seconds: float = ANSWER_S) -> Any:
        """Return the next packet; TimeoutError if none comes in time."""
        async with asyncio.timeout(seconds):
            while True:
                with contextlib.suppress(IndexError):  # the codec's word for "not all of it is here yet"
                    if self._buffer:
                        packet, length = mqtt5.read(memoryview(self._buffer))
                        self._buffer = self._buffer[length:]
                        return packet
                try:
                    data = await self._reader.read(65_536)
                except OSError as error:
                    raise Trouble(str(error)) from None
                if not data:
                    raise Trouble("the broker closed the connection")
                self._buffer += data

    def close(self, *, abrupt: bool = False) -> None:
        """End the connection, with a word or without."""
        if abrupt:
            self._writer.transport.abort()
            return
        self.send(mqtt5.DisconnectPacket())
        self._writer.close()


class Client:
    """What publishers and subscribers share: a session that is resumed at one broker or another."""

    def __init__(self, name: str, places: Callable[[], list[Place]], seed: str, *, tells: bool) -> None:
        self.name = name
        self.draw = random.Random(seed)  # noqa: S311 - no secret
        self.refused: Counter[int] = Counter()
        self.losses: list[SessionLoss] = []
        """Sessions that a broker did not know although they had not expired."""
        self._since_s = 0.0
        self._places = places
        self._tells = tells
        self.here = ""
        """The broker that let it in last."""
        self._had_session = False

    def place(self, name: str | None = None) -> Place:
        """Return the broker of a name, or any."""
        places = self._places()
        return self.draw.choice([one for one in places if name in (None, one.name)] or places)

    async def connect(self, place: Place) -> tuple[Wire, bool]:
        """Connect; return the connection, and whether the session goes on."""
        wire = await Wire.open(place)
        said = [("sojourn-previous", self.here)] if self._tells and self.here else []
        wire.send(
            mqtt5.ConnectPacket(
                self.name,
                clean_start=False,
                keep_alive=30,
                session_expiry_interval=SESSION_S,
                user_properties=said,
            )
        )
        try:
            answer = await wire.packet()
        except TimeoutError:
            wire.close(abrupt=True)
            raise Trouble("no answer to CONNECT") from None
        if not isinstance(answer, mqtt5.ConnAckPacket) or int(answer.reason_code) >= NO:
            self.refused[int(getattr(answer, "reason_code", NO))] += 1
            wire.close(abrupt=True)
            raise Trouble("refused")
        if self._had_session and not answer.session_present:
            self.losses.append(SessionLoss(self.name, self._since_s, time.time()))
        self._since_s = time.time()
        self.here = place.name
        self._had_session = True
        return wire, bool(answer.session_present)


class Subscriber(Client):
    """Wants everything, and changes brokers every few seconds, with a word or without."""

    def __init__(
        self, name: str, qos: int, places: Callable[[], list[Place]], seed: str, *, tells: bool
    ) -> None:
        super().__init__(name, places, seed, tells=tells)
        self.qos = qos
        self.got: Counter[Event] = Counter()
        self.doubled: list[Event] = []
        """Events that came again and were not said to."""
        self.again = 0
        """Events that came again and were said to."""
        self.disordered: list[Event] = []
        self.moves = 0
        self.is_connected = False
        self.stays: list[tuple[float, float]] = []
        """From when to when it was connected, each time."""
        self.renewed: list[float] = []
        """When its subscription was confirmed, each time that it had to be made."""
        self.ready = asyncio.Event()
        self._last: dict[str, int] = {}
        self._half: set[int] = set()

    async def run(self, stay_s: tuple[float, float]) -> None:
        """Connect, stay, leave, and again, until cancelled."""
        while True:
            try:
                await self._visit(self.place(), self.draw.uniform(*stay_s))
                self.moves += 1
            except Trouble:
                await asyncio.sleep(RETRY_S)

    async def _visit(self, place: Place, stay_s: float) -> None:
        wire, goes_on = await self.connect(place)
        came_s = time.time()
        self.is_connected = True
        try:
            if not goes_on:
                self._half.clear()
            if not (goes_on and self.ready.is_set()):
                self.ready.clear()
                wanted = mqtt5.TopicFilter(f"{TOPIC}/#", max_qos=mqtt5.QoS(self.qos))
                wire.send(mqtt5.SubscribePacket(1, [wanted]))
            until = asyncio.get_running_loop().time() + stay_s
            while (left := until - asyncio.get_running_loop().time()) > 0 or not self.ready.is_set():
                try:
                    packet = await wire.packet(left if self.ready.is_set() else ANSWER_S)
                except TimeoutError:
                    break
                self._take(wire, packet)
        finally:
            self.is_connected = False
            self.stays.append((came_s, time.time()))
            wire.close(abrupt=self.draw.random() < 0.5)

    def _take(self, wire: Wire, packet: Any) -> None:
        if isinstance(packet, mqtt5.SubAckPacket):
            if int(packet.reason_codes[0]) < NO:
                self.renewed.append(time.time())
                self.ready.set()
        elif isinstance(packet, mqtt5.PubRelPacket):
            self._half.discard(packet.packet_id)
            wire.send(mqtt5.PubCompPacket(packet.packet_id))
        elif isinstance(packet, mqtt5.DisconnectPacket):
            raise Trouble("the broker says goodbye")
        elif isinstance(packet, mqtt5.PublishPacket):
            number = packet.packet_id
            if packet.qos == mqtt5.QoS.EXACTLY_ONCE and number is not None:
                if number not in self._half:
                    self._half.add(number)
                    self._count(packet)
                wire.send(mqtt5.PubRecPacket(number))
            else:
                self._count(packet)
                if number is not None:
                    wire.send(mqtt5.PubAckPacket(number))

    def _count(self, packet: mqtt5.PublishPacket) -> None:
        publisher, _, number = bytes(packet.payload or b"").decode().partition(" ")
        event = Event(publisher, int(number))
        self.got[event] += 1
        if self.got[event] > 1:
            if packet.duplicate:
                self.again += 1
            else:
                self.doubled.append(event)
            return
        if event.number < self._last.get(publisher, 0):
            self.disordered.append(event)
        self._last[publisher] = max(event.number, self._last.get(publisher, 0))


class Publisher(Client):
    """Publishes one event after another, each until it is acknowledged; some move now and then."""

    def __init__(
        self, name: str, qos: int, places: Callable[[], list[Place]], seed: str, *, home: str | None
    ) -> None:
        super().__init__(name, places, seed, tells=False)
        self.qos = qos
        self.home = home
        """The broker it stays at; None for one that moves."""
        self.acknowledged: dict[Event, Acknowledged] = {}
        """When and where each event was first acknowledged."""
        self.repeated: set[Event] = set()
        """Events that it had to send more than once, so that they may come twice."""
        self.denied = 0
        self.ends = False
        self._number = 0
        self._sent = False
        self._received = False

    async def run(self, pause_s: float, stay_s: tuple[float, float]) -> None:
        """Publish until told to end, and the last event is settled."""
        place = self.place(self.home)
        while not (self.ends and not self._sent):
            try:
                await self._visit(place, pause_s, self.draw.uniform(*stay_s))
                place = self.place(self.home)
            except (Trouble, TimeoutError):
                await asyncio.sleep(RETRY_S)
                place = self.place(self.home)

    async def _visit(self, place: Place, pause_s: float, stay_s: float) -> None:
        wire, goes_on = await self.connect(place)
        loop = asyncio.get_running_loop()
        until = loop.time() + stay_s
        try:
            if not goes_on:
                self._received = False
            while self.home is not None or loop.time() < until or self._sent:
                if self.ends and not self._sent:
                    return
                await self._settle(wire, goes_on=goes_on)
                await asyncio.sleep(pause_s)
        finally:
            wire.close(abrupt=self.draw.random() < 0.5)

    async def _settle(self, wire: Wire, *, goes_on: bool) -> None:
        """Send the next event, or again the one that was not settled, and wait until it is."""
        is_again = self._sent
        if not is_again:
            self._number += 1
        event = Event(self.name, self._number)
        if is_again and self._received:
            wire.send(mqtt5.PubRelPacket(1))
        else:
            if is_again:
                self.repeated.add(event)
            wire.send(
                mqtt5.PublishPacket(
                    f"{TOPIC}/{self.name}",
                    f"{self.name} {self._number}".encode(),
                    qos=mqtt5.QoS(self.qos),
                    packet_id=1,
                    duplicate=is_again and goes_on,
                )
            )
        self._sent = True
        code = await self._answer(wire)
        self._sent = self._received = False
        if code >= NO:
            self.denied += 1
        else:
            self._note_acknowledged()

    def _note_acknowledged(self) -> None:
        event = Event(self.name, self._number)
        self.acknowledged.setdefault(event, Acknowledged(time.time(), self.here))

    async def _answer(self, wire: Wire) -> int:
        while True:
            packet = await wire.packet()
            if isinstance(packet, mqtt5.PubAckPacket):
                return int(packet.reason_code)
            if isinstance(packet, mqtt5.PubRecPacket):
                if int(packet.reason_code) >= NO:
                    return int(packet.reason_code)
                self._received = True
                # The broker has it from now on, also if the rest of the exchange takes another connection.
                self._note_acknowledged()
                wire.send(mqtt5.PubRelPacket(1))
            elif isinstance(packet, mqtt5.PubCompPacket):
                return 0
            elif isinstance(packet, mqtt5.DisconnectPacket):
                raise Trouble("the broker says goodbye")
