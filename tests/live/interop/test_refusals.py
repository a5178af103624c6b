"""What a broker refuses, and that the client reads why: too much at once, and topics that it may not use."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from typing import Any

import mqtt5
import pytest
from mqtt5 import ConnectPacket, DisconnectPacket, PublishPacket, QoS
from paho.mqtt.enums import MQTTProtocolVersion

from sojourn.live.config import GuestConfig
from tests.live.interop.pahos import NEW, PATIENCE_S, WAYS, Network, Paho, names
from tests.live.raw_client import Raw
from tests.live.web_client import BINARY, Web


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
            web.send(ConnectPacket(f"flood-{next(names)}").write())
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
        plain.sendall(ConnectPacket(f"flood-{next(names)}").write() + flood(count))
        stream = b""
        while data := plain.recv(65_536):
            stream += data
    assert last_reason(stream) == 0x93


def test_a_client_that_resets_harms_nobody(network: Network) -> None:
    """It goes without reading; the broker serves the next one."""
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", network.place(0).tcp), PATIENCE_S) as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            plain.sendall(ConnectPacket(f"flood-{next(names)}").write() + flood(1_000))
    with Raw(network.place(0).tcp) as client:
        assert int(client.connect("after the floods").reason_code) == 0


def test_paho_reads_why_it_is_gone_after_too_much_at_once(network: Network) -> None:
    """It sends more than the broker allows before it reads an answer, and is told 0x93."""
    client = Paho(NEW, "tcp")
    client.client.max_inflight_messages_set(0)
    client.connect(network.place(0))
    client.client.loop_stop()  # so that it reads nothing, and releases nothing
    for _ in range(21):
        client.client.publish("interop/flood", bytes(100), 2)
    client.client.loop_start()
    assert client.ended.get(timeout=PATIENCE_S).value == 0x93
    client.leave()


# Permissions -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Two brokers whose guests may use some topics."""
    some = GuestConfig(publish=["open/#"], subscribe=["open/#"])
    running = Network(tmp_path_factory.mktemp("guarded"), some)
    yield running
    running.stop()


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_a_topic_filter_that_is_not_permitted_is_refused(
    guarded: Network, version: MQTTProtocolVersion, way: str
) -> None:
    """The client stays connected, gets what it may have, and nothing else, also from the other broker."""
    client, source = Paho(version, way), Paho(NEW, "tcp")
    client.connect(guarded.place(0))
    source.connect(guarded.place(1))
    refused = 0x87 if version == NEW else 0x80
    for pattern in ("secret/#", "#", "+/a", "$share/group/secret/a"):
        assert client.subscribe(pattern, 1) == [refused], pattern
    topic = f"open/{next(names)}"
    assert client.subscribe(topic, 1) == [1]
    client.heard_nothing_but(topic, source)
    for one in (client, source):
        one.leave()
