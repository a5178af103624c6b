"""What people try first with a new broker, by paho: MQTT 3.1.1 and 5, over TCP and over WebSockets.

The behaviours are those that interoperability suites for MQTT look at; the tests are our own. One broker of a
network of two publishes, at the other one the client under test sits, unless a behaviour is of one broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mqtt5
import msgspec
import paho.mqtt.client as paho
import pytest
from mqtt5 import ConnectPacket, DisconnectPacket, PublishPacket, QoS
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from sojourn.live.brokers.server import Server
from sojourn.live.config import Config
from sojourn.mqtt.limits import Limits
from tests.live.building import ANY_PORT, building
from tests.live.raw_client import Raw
from tests.live.test_roaming import started, stop
from tests.live.test_security import Authority, encrypted
from tests.live.web_client import BINARY, Web, port_in

PATIENCE_S = 30.0
OLD, NEW = MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5
WAYS = list(itertools.product((OLD, NEW), ("tcp", "websockets")))
_names = itertools.count(1)


class Place(NamedTuple):
    """Where a broker's clients connect."""

    tcp: int
    ws: int
    tls: int


class Network:
    """Two linked brokers in a thread of their own."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        for name in ("B1", "B2"):
            self.authority.issue(name)
        self._config = _two(encrypted(building(), folder))
        self._loop = asyncio.new_event_loop()
        self._servers: list[Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._servers = asyncio.run_coroutine_threadsafe(started(self._config), self._loop).result(PATIENCE_S)

    def place(self, number: int) -> Place:
        """Where the clients of a broker connect."""
        said = self._servers[number].listening
        assert said is not None
        return Place(port_in(said.clients), port_in(said.ws), port_in(said.tls))

    def stop(self) -> None:
        """End."""
        asyncio.run_coroutine_threadsafe(stop(self._servers), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _two(config: Config) -> Config:
    brokers = [msgspec.structs.replace(one, listen_ws=ANY_PORT) for one in config.brokers[:2]]
    limits = Limits(receive_max=20, keep_alive_max_s=30, topic_alias_max=10)
    return msgspec.structs.replace(config, brokers=brokers, links=[("B1", "B2")], limits=limits)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Two brokers."""
    running = Network(tmp_path_factory.mktemp("interop"))
    yield running
    running.stop()


class Paho:
    """A paho client with its network thread and what it was told."""

    def __init__(self, version: MQTTProtocolVersion, way: str, client_id: str = "") -> None:
        self.is_new = version == NEW
        self.got: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.connected: queue.Queue[tuple[Any, Any, Any]] = queue.Queue()
        self.granted: queue.Queue[list[int]] = queue.Queue()
        self.ended: queue.Queue[Any] = queue.Queue()
        options: dict[str, Any] = {} if self.is_new else {"clean_session": True}
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id or f"interop-{next(_names)}",
            protocol=version,
            transport=way,  # type: ignore[arg-type]
            **options,
        )
        self.way = way
        self.client.on_message = lambda _c, _d, message: self.got.put(message)
        self.client.on_connect = lambda _c, _d, flags, code, more: self.connected.put((flags, code, more))
        self.client.on_disconnect = lambda _c, _d, _f, code, _p: self.ended.put(code)
        self.client.on_subscribe = lambda _c, _d, _m, codes, _p: self.granted.put(
            [one.value for one in codes]
        )

    def keep(self) -> None:
        """Ask for a session that outlives the connection; before `connect`."""
        self.client._clean_session = False

    def connect(self, place: Place, *, clean: bool = True, keep_alive: int = 60, **said: Any) -> Any:
        """Connect; return the flags, the code and the properties."""
        more: dict[str, Any] = {}
        if self.is_new:
            more = {"clean_start": clean, "properties": _properties(PacketTypes.CONNECT, **said)}
        elif not clean:
            self.keep()
        port = place.tcp if self.way == "tcp" else place.ws
        self.client.connect("127.0.0.1", port, keep_alive, **more)
        self.client.loop_start()
        return self.connected.get(timeout=PATIENCE_S)

    def subscribe(self, pattern: str, qos: int = 2, identifier: int = 0, **options: Any) -> list[int]:
        """Subscribe; return the codes."""
        if self.is_new:
            said = {"SubscriptionIdentifier": identifier} if identifier else {}
            self.client.subscribe(
                pattern,
                options=SubscribeOptions(qos, **options),
                properties=_properties(PacketTypes.SUBSCRIBE, **said),
            )
        else:
            self.client.subscribe(pattern, qos)
        return self.granted.get(timeout=PATIENCE_S)

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 1, *, retain: bool = False, **said: Any
    ) -> None:
        """Publish, and wait until that is done."""
        more = {"properties": _properties(PacketTypes.PUBLISH, **said)} if said else {}
        sent = self.client.publish(topic, payload, qos, retain, **more)
        sent.wait_for_publish(PATIENCE_S)
        assert sent.is_published()

    def take(self, count: int = 1) -> list[tuple[str, bytes, int]]:
        """The topics, payloads and QoS of so many messages."""
        found = [self.got.get(timeout=PATIENCE_S) for _ in range(count)]
        return [(one.topic, bytes(one.payload), one.qos) for one in found]

    def heard_nothing_but(self, topic: str, publisher: Paho) -> None:
        """Nothing came before what is published now."""
        publisher.publish(topic, b"the end", 1)
        assert self.take() == [(topic, b"the end", 1)]

    def leave(self) -> None:
        """Disconnect normally."""
        self.client.disconnect()
        self.client.loop_stop()

    def vanish(self) -> None:
        """Lose the connection without a word."""
        self.client.loop_stop()
        found = self.client.socket()
        assert found is not None
        found.close()


def _properties(kind: int, **said: Any) -> Properties:
    properties = Properties(kind)  # type: ignore[no-untyped-call]  # paho types it not
    for name, value in said.items():
        setattr(properties, name, value)
    return properties


@pytest.fixture
def source(network: Network) -> Iterator[Paho]:
    """A client of MQTT 5 at the other broker, by TCP."""
    client = Paho(NEW, "tcp")
    client.connect(network.place(1))
    yield client
    client.leave()


@pytest.fixture(params=WAYS, ids=[f"{version.name}-{way}" for version, way in WAYS])
def client(request: pytest.FixtureRequest, network: Network) -> Iterator[Paho]:
    """A client under test, connected."""
    made = Paho(*request.param)
    made.connect(network.place(0))
    yield made
    made.leave()


@pytest.fixture
def topic() -> str:
    """A topic of this test alone."""
    return f"interop/{next(_names)}"


# Both versions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_of_every_quality_cross_the_network(
    client: Paho, source: Paho, topic: str, qos: int
) -> None:
    """Both ways; the quality is the lower of what is published and what is asked for."""
    assert client.subscribe(f"{topic}/down/#", qos) == [qos]
    assert source.subscribe(f"{topic}/up/#", 2) == [2]
    for published in range(3):
        source.publish(f"{topic}/down/{published}", b"%d" % published, published)
        client.publish(f"{topic}/up/{published}", b"%d" % published, published)
    assert client.take(3) == [(f"{topic}/down/{n}", b"%d" % n, min(n, qos)) for n in range(3)]
    assert source.take(3) == [(f"{topic}/up/{n}", b"%d" % n, n) for n in range(3)]


def test_overlapping_subscriptions_bring_a_message_once_at_the_highest_quality(
    client: Paho, source: Paho, topic: str
) -> None:
    """3.3.4 of MQTT 5, 3.3.5 of 3.1.1: one copy for all of them is allowed, and what we send."""
    client.subscribe(f"{topic}/#", 0)
    client.subscribe(f"{topic}/+", 2)
    client.subscribe(f"{topic}/a", 1)
    source.publish(f"{topic}/a", b"x", 2)
    assert client.take() == [(f"{topic}/a", b"x", 2)]
    client.heard_nothing_but(f"{topic}/a", source)


def test_wildcards_and_topics_with_a_dollar(client: Paho, source: Paho, topic: str) -> None:
    """+ stands for an empty level too, # for its parent, and neither for a first level with a dollar."""
    client.subscribe(f"{topic}/+/c", 0)
    client.subscribe(f"{topic}/p/#", 0)
    for ending in ("a/c", "/c", "c", "a/b/c", "p", "p/q/r"):
        source.publish(f"{topic}/{ending}", b"", 1)
    assert [name for name, _, _ in client.take(4)] == [
        f"{topic}/{ending}" for ending in ("a/c", "/c", "p", "p/q/r")
    ]


def test_retained_messages(client: Paho, source: Paho, topic: str) -> None:
    """They greet whoever subscribes, with the flag; an empty one ends them."""
    for ending, qos in (("a", 0), ("b", 1), ("c", 2)):
        source.publish(f"{topic}/{ending}", b"kept", qos, retain=True)
    client.subscribe(f"{topic}/+")
    found = [client.got.get(timeout=PATIENCE_S) for _ in range(3)]
    assert {(one.topic[-1], one.qos) for one in found} == {("a", 0), ("b", 1), ("c", 2)}
    assert all(one.retain for one in found)
    for ending in ("a", "b", "c"):
        source.publish(f"{topic}/{ending}", b"", 1, retain=True)
    assert [payload for _, payload, _ in client.take(3)] == [b"", b"", b""]
    client.client.unsubscribe(f"{topic}/+")
    assert client.subscribe(f"{topic}/#") == [2]
    client.heard_nothing_but(f"{topic}/a", source)


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_messages_wait_for_a_session_that_is_kept(
    network: Network, source: Paho, topic: str, version: MQTTProtocolVersion, way: str
) -> None:
    """Also when the client comes back at another broker, and by another way and in the other version."""
    name = f"keeper-{next(_names)}"
    others = [(version, way), *(one for one in WAYS if one != (version, way))]
    for turn, (one, by) in enumerate(others):
        client = Paho(one, by, name)
        flags, _, _ = client.connect(network.place(turn % 2), clean=False, SessionExpiryInterval=600)
        assert bool(flags.session_present) == (turn > 0)
        if turn:
            assert client.take(2) == [(topic, b"%d" % turn, 1), (topic, b"%d" % turn, 2)]
        else:
            client.subscribe(topic, 2)
        client.leave()
        for qos in (1, 2):  # whether one of QoS 0 waits too is the brokers' choice
            source.publish(topic, b"%d" % (turn + 1), qos)
    client = Paho(version, way, name)
    flags, _, _ = client.connect(network.place(0), clean=True)
    assert not flags.session_present
    client.leave()


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_a_lost_client_leaves_its_will(
    network: Network, source: Paho, topic: str, version: MQTTProtocolVersion, way: str
) -> None:
    """And one that disconnects does not."""
    source.subscribe(topic)
    polite, lost = Paho(version, way), Paho(version, way)
    for one in (polite, lost):
        one.client.will_set(topic, b"gone", 1)
        one.connect(network.place(0))
    polite.leave()
    lost.vanish()
    assert source.take() == [(topic, b"gone", 1)]
    source.heard_nothing_but(topic, source)


# MQTT 5 alone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["tcp", "websockets"])
class TestMqtt5:
    """What only MQTT 5 has."""

    def test_the_broker_names_a_client_and_shortens_its_keep_alive(self, network: Network, way: str) -> None:
        """Assigned client identifier and server keep alive; both are told."""
        client = Paho(NEW, way)
        client.client._client_id = b""
        _, code, said = client.connect(network.place(0), keep_alive=500)
        assert code == 0
        assert said.AssignedClientIdentifier
        assert said.ServerKeepAlive == 30
        assert said.ReceiveMaximum == 20
        assert said.TopicAliasMaximum == 10
        client.leave()

    def test_a_will_waits_for_its_delay_and_is_cancelled_by_a_return(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """A client that is back in time takes it back; one that is not has it published."""
        source.subscribe(topic)
        name = f"delayed-{next(_names)}"
        for payload, is_back in ((b"first", True), (b"second", False)):
            client = Paho(NEW, way, name)
            will = _properties(PacketTypes.WILLMESSAGE, WillDelayInterval=600 if is_back else 1)
            client.client.will_set(topic, payload, 1, properties=will)
            client.connect(network.place(0), clean=False, SessionExpiryInterval=600)
            client.vanish()
        assert source.take() == [(topic, b"second", 1)]
        source.heard_nothing_but(topic, source)

    def test_topic_aliases_both_ways(self, network: Network, source: Paho, topic: str, way: str) -> None:
        """The broker follows a client's, and uses its own where the client allows it."""
        client = Paho(NEW, way)
        client.connect(network.place(0), TopicAliasMaximum=5)
        client.subscribe(f"{topic}/#", 1)
        client.publish(f"{topic}/a", b"1", 1, TopicAlias=3)
        client.publish("", b"2", 1, TopicAlias=3)
        source.publish(f"{topic}/b", b"3", 1)
        source.publish(f"{topic}/b", b"4", 1)
        found = [client.got.get(timeout=PATIENCE_S) for _ in range(4)]
        # paho shows an alias as the topic's absence: the second of each pair came without one.
        assert sorted(bytes(one.payload) for one in found) == [b"1", b"2", b"3", b"4"]
        assert {getattr(one.properties, "TopicAlias", 0) for one in found} == {1, 2}
        client.leave()

    def test_retain_handling_and_retain_as_published(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """0 greets every time, 1 only a new subscription, 2 never; the flag is kept where asked for."""
        source.publish(topic, b"kept", 1, retain=True)
        client = Paho(NEW, way)
        client.connect(network.place(0))
        for handling, is_greeted in ((2, False), (1, False), (0, True), (0, True)):
            client.subscribe(topic, 1, retainHandling=handling, retainAsPublished=True)
            if is_greeted:
                assert client.take() == [(topic, b"kept", 1)]
        source.publish(topic, b"live", 1, retain=True)
        live = client.got.get(timeout=PATIENCE_S)
        assert (bytes(live.payload), live.retain) == (b"live", True)
        client.leave()

    def test_subscription_identifiers_and_user_properties(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """All identifiers that fit are told; properties arrive as they were sent."""
        client = Paho(NEW, way)
        client.connect(network.place(0))
        client.subscribe(f"{topic}/#", 1, identifier=7)
        client.subscribe(f"{topic}/a", 1, identifier=9)
        pairs = [("a", "1"), ("a", "2"), ("b", "3")]
        source.publish(f"{topic}/a", b"x", 1, UserProperty=pairs, ContentType="text", ResponseTopic="r")
        told: Any = client.got.get(timeout=PATIENCE_S).properties
        assert set(told.SubscriptionIdentifier) == {7, 9}
        assert told.UserProperty == pairs
        assert (told.ContentType, told.ResponseTopic) == ("text", "r")
        client.leave()

    def test_the_window_of_a_client_is_respected(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """No more messages come than the client said it takes before it has answered."""
        client = Paho(NEW, way)
        client.client.manual_ack_set(on=True)
        client.connect(network.place(0), ReceiveMaximum=2)
        client.subscribe(topic, 1)
        for number in range(5):
            source.publish(topic, b"%d" % number, 1)
        got: list[bytes] = []
        while len(got) < 5:
            message = client.got.get(timeout=PATIENCE_S)
            got.append(bytes(message.payload))
            assert client.got.qsize() <= 1
            client.client.ack(message.mid, message.qos)
        assert got == [b"%d" % number for number in range(5)]
        client.leave()


# Too many at once ------------------------------------------------------------------------------------------


def flood(count: int) -> bytes:
    """So many messages of QoS 2, none of which is released."""
    return b"".join(
        PublishPacket("interop/flood", bytes(100), qos=QoS.EXACTLY_ONCE, packet_id=number).write()
        for number in range(1, count + 1)
    )


def last_reason(stream: bytes) -> int:
    """The code of the DISCONNECT at the end of some packets."""
    packet: Any = None
    while stream:
        packet, length = mqtt5.read(memoryview(stream))
        stream = stream[length:]
    assert isinstance(packet, DisconnectPacket), packet
    return int(packet.reason_code)


@pytest.mark.parametrize("count", [21, 5_000])
@pytest.mark.parametrize("way", ["tcp", "tls", "websockets"])
def test_a_client_that_overruns_the_receive_maximum_reads_why_it_is_gone(
    network: Network, way: str, count: int
) -> None:
    """0x93 arrives, although the client had sent much more that nobody read any more."""
    place = network.place(0)
    if way == "websockets":
        with Web(place.ws) as web:
            web.send(ConnectPacket(f"flood-{next(_names)}").write())
            assert web.receive() is not None
            web.send(flood(count))
            stream = b""
            while (came := web.receive()) is not None and came[0] == BINARY:
                stream += came[1]
        assert last_reason(stream) == 0x93
        return
    plain = socket.create_connection(("127.0.0.1", place.tls if way == "tls" else place.tcp), PATIENCE_S)
    if way == "tls":
        context = ssl.create_default_context(cafile=str(network.authority.path))
        plain = context.wrap_socket(plain, server_hostname="localhost")
    with plain:
        plain.sendall(ConnectPacket(f"flood-{next(_names)}").write() + flood(count))
        stream = b""
        while data := plain.recv(65_536):
            stream += data
    assert last_reason(stream) == 0x93


def test_a_client_that_resets_harms_nobody(network: Network) -> None:
    """It goes without reading; the broker serves the next one."""
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", network.place(0).tcp), PATIENCE_S) as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            plain.sendall(ConnectPacket(f"flood-{next(_names)}").write() + flood(1_000))
    with Raw(network.place(0).tcp) as client:
        assert int(client.connect("after the floods").reason_code) == 0


# Shared subscriptions --------------------------------------------------------------------------------------


def _numbers(members: Sequence[Paho], count: int) -> list[int]:
    """What so many messages say that come to any of some members."""
    found: list[int] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until_s:
        for member in members:
            with contextlib.suppress(queue.Empty):
                found.append(int(member.got.get(timeout=0.05).payload))
    return found


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_a_network_says_that_it_has_shared_subscriptions(
    network: Network, version: MQTTProtocolVersion, way: str, topic: str
) -> None:
    """Before anybody asks, where there are words for that; what is no group is refused."""
    client = Paho(version, way)
    _, _, said = client.connect(network.place(0))
    if version == NEW:
        assert getattr(said, "SharedSubscriptionAvailable", 1) == 1
    assert client.subscribe(f"$share/group/{topic}", 1) == [1]
    assert client.subscribe("$share/group", 1) == [0x8F if version == NEW else 0x80]
    client.leave()


def test_members_at_two_brokers_share_what_comes(network: Network, topic: str) -> None:
    """Each event reaches one of them, in both versions; also when one has left."""
    members = [Paho(version, "tcp") for version in (OLD, NEW, OLD, NEW)]
    for number, member in enumerate(members):
        member.connect(network.place(number // 2))
        assert member.subscribe(f"$share/group/{topic}/#", 1) == [1]
    source = Paho(NEW, "tcp")
    source.connect(network.place(1))
    for number in range(40):
        source.publish(f"{topic}/{number % 3}", b"%d" % number, 1)
    assert sorted(_numbers(members, 40)) == list(range(40))
    members[1].leave()
    members[2].leave()
    for number in range(10):
        source.publish(topic + "/x", b"%d" % number, 1)
    left = (members[0], members[3])
    assert sorted(_numbers(left, 10)) == list(range(10))
    for one in (*left, source):
        one.leave()


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_member_moves_to_another_broker_with_what_waits_for_it(
    network: Network, version: MQTTProtocolVersion, topic: str
) -> None:
    """Of what was published while it was away nothing is lost and nothing comes to both."""
    lasts = {"SessionExpiryInterval": 300} if version == NEW else {}
    name = f"roams-{next(_names)}"
    roams = Paho(version, "tcp", name)
    roams.connect(network.place(0), clean=False, **lasts)
    assert roams.subscribe(f"$share/group/{topic}", 1) == [1]
    roams.leave()
    source = Paho(NEW, "tcp")
    source.connect(network.place(0))
    for number in range(10):  # for it alone, since nobody else is a member
        source.publish(topic, b"%d" % number, 1)
    stays = Paho(NEW, "tcp")
    stays.connect(network.place(0))
    assert stays.subscribe(f"$share/group/{topic}", 1) == [1]
    again = Paho(version, "tcp", name)
    flags, _, _ = again.connect(network.place(1), clean=False, **lasts)
    assert flags.session_present
    assert [int(payload) for _, payload, _ in again.take(10)] == list(range(10))
    for number in range(10, 30):
        source.publish(topic, b"%d" % number, 1)
    assert sorted(_numbers((again, stays), 20)) == list(range(10, 30))
    for one in (again, stays, source):
        one.leave()


def test_members_of_both_versions_share_what_comes_at_one_broker(port: int, topic: str) -> None:
    """Each event reaches one of them, also when one has left."""
    place = Place(port, 0, 0)
    members = [Paho(version, "tcp") for version in (OLD, NEW, OLD)]
    for member in members:
        member.connect(place)
        assert member.subscribe(f"$share/group/{topic}/#", 1) == [1]
    source = Paho(NEW, "tcp")
    source.connect(place)
    for number in range(30):
        source.publish(f"{topic}/{number % 3}", b"%d" % number, 1)
    got = [one.take(10) for one in members]
    assert sorted(int(payload) for each in got for _, payload, _ in each) == list(range(30))
    assert all(member.got.empty() for member in members)
    members[0].leave()
    for number in range(10):
        source.publish(topic + "/x", b"%d" % number, 1)
    assert sorted(int(payload) for member in members[1:] for _, payload, _ in member.take(5)) == list(
        range(10)
    )
    for one in (*members[1:], source):
        one.leave()
