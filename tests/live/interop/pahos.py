"""A paho client with what it was told, and a network of two brokers for it."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from sojourn.live.brokers.server import Server
from sojourn.live.config import Config, GuestConfig
from sojourn.mqtt.limits import Limits
from tests.live.building import ANY_PORT, building
from tests.live.test_roaming import started, stop
from tests.live.test_security import Authority, encrypted
from tests.live.web_client import port_in

PATIENCE_S = 30.0
OLD, NEW = MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5
WAYS = list(itertools.product((OLD, NEW), ("tcp", "websockets")))
names = itertools.count(1)


class Place(NamedTuple):
    """Where a broker's clients connect."""

    tcp: int
    ws: int
    tls: int


class Network:
    """Two linked brokers in a thread of their own."""

    def __init__(self, folder: Path, guests: GuestConfig | None = None) -> None:
        self.authority = Authority(folder)
        for name in ("B1", "B2"):
            self.authority.issue(name)
        config = _two(encrypted(building(), folder))
        security = msgspec.structs.replace(config.security, guests=guests)
        self._config = msgspec.structs.replace(config, security=security)
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
            client_id=client_id or f"interop-{next(names)}",
            protocol=version,
            transport=way,  # type: ignore[arg-type]  # a plain text
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
            more = {"clean_start": clean, "properties": properties_of(PacketTypes.CONNECT, **said)}
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
                properties=properties_of(PacketTypes.SUBSCRIBE, **said),
            )
        else:
            self.client.subscribe(pattern, qos)
        return self.granted.get(timeout=PATIENCE_S)

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 1, *, retain: bool = False, **said: Any
    ) -> None:
        """Publish, and wait until that is done."""
        more = {"properties": properties_of(PacketTypes.PUBLISH, **said)} if said else {}
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


def properties_of(kind: int, **said: Any) -> Properties:
    """The properties of a packet."""
    properties = Properties(kind)  # type: ignore[no-untyped-call]  # paho types it not
    for name, value in said.items():
        setattr(properties, name, value)
    return properties
