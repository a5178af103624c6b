"""A few brokers in one hall: real cores and real channels, no sockets, and time as the test wants it."""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import mqtt5
import msgspec
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.broker.effects import Note
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.network import Network
from sojourn.broker.settings import AtOnce, MobilityConfig, RoutingConfig
from sojourn.live.config import BrokerConfig, Config
from sojourn.mqtt import conventions
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Knock

START_S = 1_700_000_000.0
ROUNDS_MAX = 10_000
HEAD_BYTES = 17
"""What stands before the body of a frame: its length, kind, number and rank."""


def line(
    count: int,
    scheme: str = "proactive",
    mode: str = "content",
    timeout_s: float = 60.0,
    *,
    covering: bool = True,
    **mobility: Any,
) -> Config:
    """Brokers in a line, B1 to B2 to B3 and so on; copies store at once, whether time passes or not."""
    mobility = {"grace_s": 0.0} | mobility
    names = [f"B{number + 1}" for number in range(count)]
    return Config(
        brokers=[BrokerConfig(name=name, listen="127.0.0.1:0") for name in names],
        links=list(itertools.pairwise(names)),
        mobility=MobilityConfig(subscribers=scheme, timeout_s=timeout_s, **mobility),  # type: ignore[arg-type]  # whatever a case names
        routing=RoutingConfig(mode=mode, covering=covering),  # type: ignore[arg-type]  # whatever a case names
    )


def frames_of(data: bytes) -> list[bytes]:
    """What a broker wrote to a neighbour, in pieces that say one thing each."""
    found = []
    while data:
        (length,) = struct.unpack_from(">I", data)
        end = HEAD_BYTES + length
        found.append(data[:end])
        data = data[end:]
    return found


class Memory:
    """A store that is a list."""

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.written: list[bytes] = []


class Desk:
    """One broker."""

    def __init__(self, hall: Hall, name: str) -> None:
        self.hall = hall
        self.name = name
        self.settings = msgspec.structs.replace(hall.config.settings(name), at_once=hall.at_once)
        self.store = Memory()
        self.visitors: dict[int, Visitor] = {}
        self.opened = self.lives = 0
        self.ahead_s = 0.0
        """By how much its clock is wrong."""
        self.broker = self.revived("life")
        self.peer_writes: dict[str, bytearray] = {}
        """What the broker wrote to each neighbour and no link has carried yet."""
        self.peer_closes: list[str] = []
        """Neighbours whose connections the broker wants to begin anew."""
        self.held: set[int] = set()
        """Clients that are not read at present."""
        self.notes: list[Note] = []
        """What a page or a trace would have been told."""
        self.carry_out()

    @property
    def core(self) -> Core:
        """The broker's sessions."""
        return self.broker.core

    @property
    def network(self) -> Network:
        """The broker's links and moving clients."""
        assert self.broker.network is not None
        return self.broker.network

    @property
    def now(self) -> float:
        """What its clock says."""
        return self.hall.now + self.ahead_s

    @property
    def due_s(self) -> float:
        """When the broker wants to hear of the time."""
        moment_s = self.broker.next_moment()
        return math.inf if moment_s is None else moment_s

    def revived(self, life: str) -> LiveBroker:
        """The broker that the store leaves."""
        rights, written = partial(self.hall.rights, self.name), list(self.store.written)
        return LiveBroker.revived(self.settings, life, self.now, self.store.state, written, rights)

    def replayed(self) -> LiveBroker:
        """The broker as it was told all facts of the store again, before it begins another life."""
        assert self.store.state is None, "all facts are there"
        broker = LiveBroker(self.settings, "life", remembers=True)
        for data in self.store.written:
            broker.replay(facts.read_entry(data))
        return broker

    def restart(self, *, forgets: int = 0) -> None:
        """Die without a word, and come back from the store, without its last lines where power failed."""
        assert 0 <= forgets <= len(self.store.written), "nobody forgets more than it knew"
        self.store.written = self.store.written[: len(self.store.written) - forgets]
        self.lives += 1
        for visitor in list(self.visitors.values()):
            visitor.is_over = True
        self.visitors.clear()
        self.peer_writes.clear()
        self.peer_closes.clear()
        self.held.clear()
        self.broker = self.revived(f"life {self.lives}")
        self.carry_out()

    def delete_store(self) -> None:
        """Lose everything that was ever written; the broker notices when it is restarted."""
        self.store = Memory()

    def keep(self) -> None:
        """Let a snapshot take the place of all facts."""
        self.store.state, self.store.written = self.broker.snapshot(), []

    def tell(self, fact: facts.Fact) -> None:
        """Tell the broker what happened, and do what it wants."""
        self.broker.handle(fact, self.now)
        self.carry_out()

    def carry_out(self) -> None:
        """Do what the broker asks for, and hand out what was written."""
        broker, now = self.broker, self.now
        while broker.knocks:
            broker.handle(self.hall.admitted(broker.knocks.pop(0)), now)
        turn = broker.turn(now)
        self.store.written += turn.entries
        for peer, data in turn.peer_writes:
            self.peer_writes.setdefault(peer, bytearray()).extend(data)
        self.peer_closes += [peer for peer, _ in turn.peer_closes]
        self.held |= {*turn.holds}
        self.held -= {*turn.releases}
        self.notes += turn.notes
        written: dict[int, bytes] = {}
        for number, piece in turn.writes:
            written[number] = written.get(number, b"") + piece
        for number in dict.fromkeys([*written, *turn.closes]):
            visitor = self.visitors.get(number)
            if visitor is not None:
                visitor.take(written.get(number, b""), is_over=number in turn.closes)
        if broker.has_work:
            self.carry_out()


def anybody(knock: Knock) -> facts.ClientAdmitted:
    """Let a client in without a look at its name."""
    return facts.ClientAdmitted(knock.number)


class Hall:
    """Brokers, the links between them, and the time."""

    def __init__(
        self,
        config: Config,
        admitted: Callable[[Knock], facts.ClientAdmitted] = anybody,
        at_once: AtOnce | None = None,
        rights: Callable[[str, Iterable[Any]], Iterable[facts.RightsChanged]] = lambda *_: (),
    ) -> None:
        self.config = config
        self.rights = rights
        """What owners may do today at a broker (`Ruling.rights`)."""
        self.at_once = at_once or AtOnce()
        self.admitted = admitted
        """What becomes of a client that knocks, at every broker."""
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
            end.peer_writes.pop(far.name, None)
            end.tell(facts.PeerConnected(far.name))
        self.cut -= {one, other}

    def unlink(self, name: str) -> None:
        """Cut a broker off."""
        self.cut.add(name)
        for one, other in self.config.links:
            if name in (one, other):
                for end, far in ((one, other), (other, one)):
                    self.by_name[end].tell(facts.PeerLost(far))
                    self.by_name[end].peer_writes.pop(far, None)

    def restart(self, name: str, *, forgets: int = 0) -> None:
        """Kill a broker and start it again; its links break and begin anew."""
        self.unlink(name)
        self.by_name[name].restart(forgets=forgets)
        self.relink()

    def relink(self) -> None:
        """Let every link begin anew that was cut."""
        for one, other in [link for link in self.config.links if self.cut & {*link}]:
            self.link(one, other)

    def carry(self, end: str, far: str) -> bool:
        """Let a link carry what waits at one end, frame by frame; say whether there was anything.

        Clients answer in between; one whose connection was closed before it could gets the event again.
        """
        data = bytes(self.by_name[end].peer_writes.pop(far, b""))
        for frame in frames_of(data):
            self.by_name[far].tell(facts.PeerSent(end, frame))
        return bool(data)

    def begin_anew(self) -> bool:
        """Connect links again that a broker wants to end after what it wrote; say whether any did."""
        closes = [(desk.name, peer) for desk in self.desks for peer in desk.peer_closes]
        for desk in self.desks:
            desk.peer_closes.clear()
        for end, far in closes:
            self.carry(end, far)
        for one, other in {(min(way), max(way)) for way in closes}:
            for end, far in ((one, other), (other, one)):
                self.by_name[end].tell(facts.PeerLost(far))
            if not self.cut & {one, other}:
                self.link(one, other)
        return bool(closes)

    def step(self, draw: random.Random) -> None:
        """Let one link carry one way."""
        self.begin_anew()
        end, far = draw.sample(draw.choice(self.config.links), 2)
        if not self.cut & {end, far}:
            self.carry(end, far)

    def settle(self) -> None:
        """Let links carry until all is said."""
        ways = [way for one, other in self.config.links for way in ((one, other), (other, one))]
        ways = [way for way in ways if not self.cut & {*way}]
        for _ in range(ROUNDS_MAX):
            carried = sum(self.carry(end, far) for end, far in ways)
            if not self.begin_anew() and not carried:
                return
        raise AssertionError("brokers do not come to an end with one another")

    def tick(self) -> None:
        """Let every broker do what is due."""
        for desk in self.desks:
            if desk.due_s <= desk.now:
                desk.tell(facts.TimePassed())

    def wait(self, seconds: float) -> None:
        """Let time pass, in steps as small as the brokers ask for."""
        until = self.now + seconds
        while self.now < until:
            moment = min(desk.due_s - desk.ahead_s for desk in self.desks)
            self.now = min(until, max(moment, self.now + 1e-3))
            self.tick()
            self.settle()

    def visit(
        self,
        broker: int,
        client_id: str,
        *,
        lasts_s: int = 0,
        got: list[bytes] | None = None,
        address: str = "here",
        **options: Any,
    ) -> Visitor:
        """Let a client connect; its session lasts so long after its connection; `got` is where events go."""
        options.setdefault("clean_start", False)
        self.now += 0.01  # connections are told apart by their dates
        visitor = Visitor(self.desks[broker], [] if got is None else got, address)
        options.setdefault("keep_alive", 0)
        visitor.send(ConnectPacket(client_id, session_expiry_interval=lasts_s, **options))
        return visitor


class Visitor:
    """One connection of a client, which answers what it is sent."""

    def __init__(self, desk: Desk, got: list[bytes], address: str = "here") -> None:
        self.desk = desk
        desk.opened += 1
        self.number = desk.opened
        self.inbox: deque[Any] = deque()
        self.got = got
        """The payloads of the events it was sent."""
        self.is_over = False
        desk.visitors[self.number] = self
        desk.tell(facts.ClientOpened(self.number, address, f"fresh-{desk.name}-{self.number}"))

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
        self.desk.tell(facts.ClientSent(self.number, packet.write()))

    def subscribe(self, topic: str, condition: str = "") -> None:
        """Ask for events; a connection that another one takes over meanwhile gets no answer."""
        self.ask(topic, condition)
        if not (self.inbox and isinstance(self.inbox[-1], mqtt5.SubAckPacket)):
            self.desk.hall.settle()  # every broker in reach confirms it first
        if self.is_over:
            return
        assert int(self.inbox.pop().reason_codes[0]) < 0x80

    def ask(self, topic: str, condition: str = "") -> None:
        """Ask for events, and do not wait for the answer."""
        properties = [(conventions.FILTER, condition)] if condition else []
        wanted = TopicFilter(topic, max_qos=QoS.AT_LEAST_ONCE)
        self.send(SubscribePacket(1, [wanted], user_properties=properties))

    def unsubscribe(self, topic: str) -> None:
        """Ask for them no longer."""
        self.send(mqtt5.UnsubscribePacket(1, [topic]))

    def publish(
        self, topic: str, payload: bytes, attributes: dict[str, Any] | None = None, *, retain: bool = False
    ) -> None:
        """Publish at QoS 1."""
        properties = [(name, str(value)) for name, value in (attributes or {}).items()]
        packet = PublishPacket(
            topic,
            payload,
            qos=QoS.AT_LEAST_ONCE,
            packet_id=1,
            retain=retain,
            user_properties=properties,
        )
        self.send(packet)

    def leave(self) -> None:
        """Say goodbye."""
        self.send(mqtt5.DisconnectPacket())
        self.lose()

    def lose(self) -> None:
        """Lose the connection."""
        if self.desk.visitors.pop(self.number, None) is not None:
            self.desk.tell(facts.ClientLost(self.number))
