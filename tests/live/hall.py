"""A few brokers in one hall: real cores and real channels, no sockets, and time as the test wants it."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import mqtt5
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker.network import Network
from sojourn.broker.settings import MobilityConfig, RoutingConfig
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.store.recording import FRAME, LINK, LOST, OPENED, OVERFLOWED, RECEIVED, TICK, Recording
from sojourn.mqtt import conventions
from sojourn.mqtt.connection import State
from sojourn.mqtt.core import Core
from sojourn.mqtt.handshake import Admission

START_S = 1_700_000_000.0


def line(
    count: int, scheme: str = "proactive", mode: str = "content", timeout_s: float = 60.0, **mobility: Any
) -> Config:
    """Brokers in a line, B1 to B2 to B3 and so on."""
    names = [f"B{number + 1}" for number in range(count)]
    return Config(
        brokers=[BrokerConfig(name=name, listen="127.0.0.1:0") for name in names],
        links=list(itertools.pairwise(names)),
        mobility=MobilityConfig(subscribers=scheme, timeout_s=timeout_s, **mobility),  # type: ignore[arg-type]
        routing=RoutingConfig(mode=mode),  # type: ignore[arg-type]
    )


class Memory:
    """A journal that is a list."""

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.written: list[bytes] = []

    def append(self, entry: bytes) -> None:
        """Note a fact."""
        self.written.append(entry)

    def keep(self, state: bytes) -> None:
        """Let a snapshot take the place of all facts."""
        self.state, self.written = state, []

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """The last snapshot, and all facts since."""
        return self.state, iter(self.written)


class Desk:
    """One broker."""

    def __init__(self, hall: Hall, name: str) -> None:
        self.hall = hall
        self.name = name
        self.core, self.network = _fresh(hall.config, name)
        self.core.kept = []
        self.journal = Memory()
        self.recording = Recording(self.journal)  # type: ignore[arg-type]  # a list will do
        self.visitors: dict[int, Visitor] = {}
        self.opened = self.lives = 0

    def replayed(self) -> tuple[Core, Network]:
        """Another broker that was told the same facts."""
        core, network, _ = self.recording.revive(*_fresh(self.hall.config, self.name))
        assert network is not None
        return core, network

    def restart(self) -> None:
        """Die without a word, and come back from the journal."""
        self.lives += 1
        for visitor in list(self.visitors.values()):
            visitor.is_over = True
        self.visitors.clear()
        self.core, self.network = self.replayed()
        self.network.restarted(f"life {self.lives}", self.hall.now)
        self.core.effects.touched.clear()
        self.core.take_kept()
        self.recording.keep(self.core, self.network)

    def received(self, number: int, data: bytes) -> None:
        """Bytes of a client came."""
        self._read(number, data)
        self.carry_out()

    def frame(self, peer: str, data: bytes) -> None:
        """Bytes of a neighbour came."""
        for position, body in self.network.channels[peer].arrived(data):
            if self.network.frame_arrived(peer, position, body, self.hall.now):
                self.recording.note(FRAME, self.hall.now, peer, position.number, body)
            self.carry_out()

    def linked(self, peer: str, *, up: bool) -> None:
        """A link is there, or gone."""
        self.network.linked(peer, self.hall.now, up=up)
        self.recording.note(LINK, self.hall.now, peer, up)
        self.carry_out()

    def tick(self) -> None:
        """Time passed."""
        silent = self.core.time_passed(self.hall.now)
        self.network.time_passed(self.hall.now)
        self.recording.note(TICK, self.hall.now, silent)
        self.carry_out()

    def next_moment(self) -> float:
        """When something may be due."""
        moments = (self.core.next_moment(), self.network.next_moment())
        return min((moment for moment in moments if moment is not None), default=float("inf"))

    def carry_out(self) -> None:
        """Do what the core asks for, and hand out what was written."""
        now, effects = self.hall.now, self.core.effects
        self.network.report(now)
        while effects.knocks or effects.unread or effects.overflowing:
            if effects.knocks:
                number = effects.knocks.pop(0).number
                self.recording.admitted(number, Admission(), now)
                self.network.admit(number, Admission(), now)
            elif effects.unread:
                self._read(effects.unread.pop(0), b"")
            else:
                number, _ = effects.overflowing.popitem()
                self.core.overflowed(number, now)
                self.recording.note(OVERFLOWED, now, number)
            self.network.report(now)
        touched = effects.touched
        for connection in touched[:]:
            data = b"".join(connection.output)
            connection.output.clear()
            visitor = self.visitors.get(connection.number)
            if visitor is not None:
                visitor.take(data, is_over=connection.state is State.CLOSED)
        touched.clear()

    def _read(self, number: int, data: bytes) -> None:
        self.core.received(number, data, self.hall.now)
        self.network.report(self.hall.now)
        kept = self.core.take_kept(self.network.stored_unsure)
        self.network.stored_unsure = []
        if kept:
            self.recording.note(RECEIVED, self.hall.now, number, kept)


class Hall:
    """Brokers, the links between them, and the time."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.now = START_S
        self.desks = [Desk(self, broker.name) for broker in config.brokers]
        self.by_name = {desk.name: desk for desk in self.desks}
        self.cut: set[str] = set()
        """Brokers whose links are down."""
        for one, other in config.links:
            self.link(one, other)
        self.settle()

    def link(self, one: str, other: str) -> None:
        """Let a link begin."""
        ends = self.by_name[one], self.by_name[other]
        for end, far in (ends, ends[::-1]):
            end.network.channels[far.name].opened()
        for end, far in (ends, ends[::-1]):
            far.frame(end.name, end.network.channels[far.name].greet())
            far.linked(end.name, up=True)
        self.cut -= {one, other}

    def unlink(self, name: str) -> None:
        """Cut a broker off."""
        self.cut.add(name)
        for one, other in self.config.links:
            if name in (one, other):
                for end, far in ((one, other), (other, one)):
                    self.by_name[end].network.channels[far].closed()
                    self.by_name[end].linked(far, up=False)

    def restart(self, name: str) -> None:
        """Kill a broker and start it again; its links break and begin anew."""
        self.unlink(name)
        self.by_name[name].restart()
        self.relink()

    def relink(self) -> None:
        """Let every link begin anew that was cut."""
        for one, other in [link for link in self.config.links if self.cut & {*link}]:
            self.link(one, other)

    def carry(self, end: str, far: str) -> bool:
        """Let a link carry what waits at one end; say whether there was anything."""
        data = self.by_name[end].network.channels[far].outgoing()
        if data:
            self.by_name[far].frame(end, data)
        return bool(data)

    def step(self, draw: random.Random) -> None:
        """Let one link carry one way."""
        end, far = draw.sample(draw.choice(self.config.links), 2)
        if not self.cut & {end, far}:
            self.carry(end, far)

    def settle(self) -> None:
        """Let links carry until all is said."""
        ways = [way for one, other in self.config.links for way in ((one, other), (other, one))]
        ways = [way for way in ways if not self.cut & {*way}]
        while sum(self.carry(end, far) for end, far in ways):
            pass

    def tick(self) -> None:
        """Let every broker do what is due."""
        for desk in self.desks:
            if desk.next_moment() <= self.now:
                desk.tick()

    def wait(self, seconds: float) -> None:
        """Let time pass, in steps as small as the brokers ask for."""
        until = self.now + seconds
        while self.now < until:
            moment = min(desk.next_moment() for desk in self.desks)
            self.now = min(until, max(moment, self.now + 1e-3))
            self.tick()
            self.settle()

    def visit(
        self, broker: int, client_id: str, *, lasts_s: int = 0, got: list[bytes] | None = None, **options: Any
    ) -> Visitor:
        """Let a client connect; its session lasts so long after its connection; `got` is where events go."""
        options.setdefault("clean_start", False)
        self.now += 0.01  # connections are told apart by their dates
        visitor = Visitor(self.desks[broker], [] if got is None else got)
        visitor.send(ConnectPacket(client_id, session_expiry_interval=lasts_s, keep_alive=0, **options))
        return visitor


class Visitor:
    """One connection of a client, which answers what it is sent."""

    def __init__(self, desk: Desk, got: list[bytes]) -> None:
        self.desk = desk
        desk.opened += 1
        self.number = desk.opened
        self.inbox: deque[Any] = deque()
        self.got = got
        """The payloads of the events it was sent."""
        self.is_over = False
        desk.visitors[self.number] = self
        now = desk.hall.now
        desk.core.opened(self.number, "here", f"fresh-{desk.name}-{self.number}", now)
        desk.recording.note(OPENED, now, self.number, "here", f"fresh-{desk.name}-{self.number}")
        desk.carry_out()

    def take(self, data: bytes, *, is_over: bool) -> None:
        """Read what the broker wrote, and answer events."""
        self.is_over = is_over
        answers = []
        while data:
            packet, length = mqtt5.read(memoryview(data))
            data = data[length:]
            if isinstance(packet, PublishPacket):
                self.got.append(bytes(packet.payload))
                if packet.packet_id:
                    answers.append(mqtt5.PubAckPacket(packet.packet_id))
            else:
                self.inbox.append(packet)
        if is_over:
            self.lose()
            return
        for answer in answers:
            self.send(answer)

    def send(self, packet: Any) -> None:
        """Send a packet."""
        self.desk.received(self.number, packet.write())

    def subscribe(self, topic: str, condition: str = "") -> None:
        """Ask for events."""
        properties = [(conventions.FILTER, condition)] if condition else []
        wanted = TopicFilter(topic, max_qos=QoS.AT_LEAST_ONCE)
        self.send(SubscribePacket(1, [wanted], user_properties=properties))
        assert int(self.inbox.pop().reason_codes[0]) < 0x80

    def unsubscribe(self, topic: str) -> None:
        """Ask for them no longer."""
        self.send(mqtt5.UnsubscribePacket(1, [topic]))

    def publish(self, topic: str, payload: bytes, attributes: dict[str, Any] | None = None) -> None:
        """Publish at QoS 1."""
        properties = [(name, str(value)) for name, value in (attributes or {}).items()]
        self.send(
            PublishPacket(topic, payload, qos=QoS.AT_LEAST_ONCE, packet_id=1, user_properties=properties)
        )

    def leave(self) -> None:
        """Say goodbye."""
        self.send(mqtt5.DisconnectPacket())
        self.lose()

    def lose(self) -> None:
        """Lose the connection."""
        if self.desk.visitors.pop(self.number, None) is not None:
            now = self.desk.hall.now
            self.desk.core.lost(self.number, now)
            self.desk.recording.note(LOST, now, self.number)
            self.desk.carry_out()


def _fresh(config: Config, name: str) -> tuple[Core, Network]:
    core = Core(name, config.limits, shared_subscriptions=False)
    return core, Network(config.settings(name), core, "life")
