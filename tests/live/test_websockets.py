"""MQTT over WebSockets: section 6 of the standard, RFC 6455, pages that may not, readers that stall."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import mqtt5
import msgspec
import pytest
from mqtt5 import ConnectPacket, PublishPacket, QoS

from sojourn.live.brokers.doors import doors_of
from sojourn.live.brokers.server import Server
from sojourn.live.brokers.websocket import FRAME_BYTES, Gate
from sojourn.live.client.client import Client
from sojourn.live.config import Address, Config, ConfigError, read_config, single_broker
from sojourn.mqtt.limits import Limits
from tests.live.raw_client import PATIENCE_S, Raw
from tests.live.test_security import Authority
from tests.live.web_client import (
    ACCEPTED,
    BINARY,
    CLOSE,
    CONTINUED,
    PING,
    PONG,
    TEXT,
    Web,
    frame,
    port_in,
    web_broker,
)
from tests.mqtt import old_words as old

WELCOME = bytes((0x20, 2, 0, 0))


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """The ports of a broker for TCP and for WebSockets."""
    with web_broker(tmp_path_factory.mktemp("web")) as (broker, said):
        yield broker.port, port_in(said.ws)


def welcomed(web: Web, client_id: str = "c") -> None:
    """Connect as a client of 3.1.1, whose answers are short."""
    web.send(old.connect(client_id))
    assert web.bytes(4) == WELCOME


def test_the_handshake_names_the_subprotocol(ports: tuple[int, int]) -> None:
    """MQTT-6.0.0-4, and the key's answer is that of the standard."""
    with Web(ports[1]) as web:
        assert web.status == 101
        assert web.headers["sec-websocket-protocol"] == "mqtt"
        assert web.headers["sec-websocket-accept"] == ACCEPTED.lower()
        welcomed(web)


def test_frames_cut_packets_anywhere(ports: tuple[int, int]) -> None:
    """MQTT-6.0.0-2: a byte a frame, several packets in one, one message in many frames, a ping between."""
    with Web(ports[1]) as web, Raw(ports[0]) as reader:
        reader.connect("reader")
        reader.subscribe("cut/#")
        for byte in old.connect("cutter"):
            web.send(bytes((byte,)))
        assert web.bytes(4) == WELCOME
        web.send(old.publish("cut/1", b"one") + old.publish("cut/2", b"two") + old.PINGREQ)
        assert web.bytes(2) == b"\xd0\x00"
        whole = old.publish("cut/3", b"three", 1, number=7)
        web.send(whole[:5], last=False)
        web.send(b"are you there?", PING)
        web.send(b"", CONTINUED, last=False)
        web.send(whole[5:], CONTINUED)
        assert web.receive() == (PONG, b"are you there?")
        assert web.bytes(4) == old.answer(old.PUBACK, 7)
        assert [reader.message().payload for _ in range(3)] == [b"one", b"two", b"three"]


def test_a_frame_of_a_megabyte_goes_in_and_out(ports: tuple[int, int]) -> None:
    """What is passed on as it comes, and written in frames that fit small clients."""
    payload = bytes(range(256)) * 4_096
    with Web(ports[1]) as web:
        welcomed(web, "large")
        web.send(old.subscribe(("large", 0)))
        assert web.bytes(5) == b"\x90\x03\x00\x01\x00"
        web.send(old.publish("large", payload))
        got, sizes = b"", []
        while len(got) < len(payload):
            came = web.receive()
            assert came is not None
            assert came[0] == BINARY
            sizes.append(len(came[1]))
            got += came[1]
        assert got == old.publish("large", payload)
        assert max(sizes) == FRAME_BYTES


def test_a_client_that_closes_is_answered_and_gone(ports: tuple[int, int]) -> None:
    """Its close frame comes back; without a DISCONNECT of MQTT its will is published, with one it is not."""
    will = ("web/gone", b"gone", 0, False)
    with Raw(ports[0]) as watcher:
        watcher.connect("watcher")
        watcher.subscribe("web/gone")
        for last in (old.LEAVE, b""):
            with Web(ports[1]) as web:
                web.send(old.connect("closer", will=will))
                assert web.bytes(4) == WELCOME
                ended = frame(last) + frame(b"\x03\xe8", CLOSE) if last else frame(b"\x03\xe8", CLOSE)
                web.socket.sendall(ended)
                came = web.receive()
                assert came is not None
                assert came[0] == CLOSE
                assert came[1][:2] == b"\x03\xe8"
                assert web.receive() is None
        assert watcher.message().payload == b"gone"
        watcher.expect_nothing()


def test_the_broker_says_why_and_closes_both(ports: tuple[int, int]) -> None:
    """A DISCONNECT in a binary frame, then a close frame, then the end; a client can read all of it."""
    with Web(ports[1]) as web:
        web.send(ConnectPacket("wrong").write())
        came = web.receive()
        assert came is not None
        packet, _ = mqtt5.read(memoryview(came[1]))
        assert isinstance(packet, mqtt5.ConnAckPacket)
        web.send(PublishPacket("a", b"", qos=QoS.AT_MOST_ONCE, topic_alias=1_000).write())
        came = web.receive()
        assert came is not None
        packet, _ = mqtt5.read(memoryview(came[1]))
        assert isinstance(packet, mqtt5.DisconnectPacket)
        assert int(packet.reason_code) == 0x94
        assert web.receive() == (CLOSE, b"\x03\xe8")
        assert web.receive() is None


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (frame(b"text", TEXT), 1003),  # MQTT-6.0.0-1
        (b"\x82\x03abc", 1002),  # not masked
        (frame(b"x", CONTINUED), 1002),
        (frame(b"x", 5), 1002),
        (b"\xc2" + frame(b"x")[1:], 1002),  # a reserved bit
        (frame(b"x" * 126, PING), 1002),
    ],
)
def test_what_breaks_the_protocol_is_told_and_closed(ports: tuple[int, int], wrong: bytes, code: int) -> None:
    """By a close frame with the code of what is wrong."""
    with Web(ports[1]) as web:
        welcomed(web)
        web.socket.sendall(wrong)
        came = web.receive()
        assert came is not None
        assert came[0] == CLOSE
        assert int.from_bytes(came[1][:2], "big") == code
        assert web.receive() is None


def test_no_socket_without_the_subprotocol(ports: tuple[int, int]) -> None:
    """MQTT-6.0.0-3; the answer says what to do."""
    for headers in ("", "Sec-WebSocket-Protocol: chat\r\n"):
        with Web(ports[1], headers) as web:
            assert web.status == 400
            assert b"subprotocol mqtt" in web.rest()
    with Web(ports[1], "Sec-WebSocket-Protocol: chat, mqtt\r\n") as web:
        assert web.status == 101


@pytest.mark.parametrize(
    "request_text",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"\x10\x0f\x00\x04MQTT\x04\x02\x00<\x00\x03abc" + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    ],
    ids=["no upgrade", "POST", "plain MQTT", "no text", "endless headers"],
)
def test_what_is_no_websocket_is_refused(ports: tuple[int, int], request_text: bytes) -> None:
    """With a status of HTTP where there is one to be had, and an end."""
    with socket.create_connection(("127.0.0.1", ports[1]), PATIENCE_S) as plain:
        plain.sendall(request_text)
        answer = b""
        try:
            while data := plain.recv(65_536):
                answer += data
        except ConnectionResetError:
            pass
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


def test_who_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    """Neither in the handshake nor after it."""
    with web_broker(tmp_path, limits="connect_timeout_s = 1") as (_, said):
        with socket.create_connection(("127.0.0.1", port_in(said.ws)), PATIENCE_S) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n")
            assert plain.recv(100) == b""
        with Web(port_in(said.ws)) as web:
            assert web.receive() == (CLOSE, b"\x03\xe8")


def test_a_packet_that_is_too_large_is_refused_before_it_came(tmp_path: Path) -> None:
    """The session core's limit holds, although the frame that would hold the packet is not whole."""
    with web_broker(tmp_path, limits="packet_bytes_max = 10000") as (_, said), Web(port_in(said.ws)) as web:
        web.send(ConnectPacket("large").write())
        assert web.receive() is not None
        web.socket.sendall(frame(PublishPacket("t", bytes(20_000), qos=QoS.AT_MOST_ONCE).write())[:1_000])
        came = web.receive()
        assert came is not None
        packet, _ = mqtt5.read(memoryview(came[1]))
        assert isinstance(packet, mqtt5.DisconnectPacket)
        assert int(packet.reason_code) == 0x95


# Origins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origins", "on_loopback", "host", "origin", "is_admitted"),
    [
        (None, True, "127.0.0.1:7883", None, True),
        (None, True, "127.0.0.1:7883", "http://localhost:8080", True),
        (None, True, "[::1]:7883", "http://127.0.0.1", True),
        (None, True, "127.0.0.1:7883", "https://example.org", False),
        (None, True, "evil.example:7883", "http://evil.example", False),  # a name made to point here
        (None, True, "127.0.0.1:7883", "null", False),
        (None, True, "127.0.0.1:7883", "http://[broken", False),
        (None, False, "broker.example:443", "https://broker.example", True),
        (None, False, "broker.example:443", "https://BROKER.example:8443", True),
        (None, False, "broker.example:443", "https://other.example", False),
        (["https://app.example"], False, "broker.example", "https://app.example", True),
        (["https://App.example/"], False, "broker.example", "https://app.example", True),
        (["https://app.example"], False, "broker.example", "https://broker.example", False),
        (["https://app.example"], False, "broker.example", "http://app.example", False),
        (["*"], False, "broker.example", "https://anywhere.example", True),
        ([], False, "broker.example", "https://broker.example", False),
        ([], False, "broker.example", None, True),
    ],
)
def test_which_pages_may_connect(
    origins: list[str] | None, on_loopback: bool, host: str, origin: str | None, is_admitted: bool
) -> None:
    """By default those of the broker's own host; programs that are no browsers say nothing and may."""
    refusal = Gate(origins, on_loopback=on_loopback).refusal(host, origin, ["mqtt"])
    assert (refusal is None) == is_admitted
    assert refusal is None or refusal.status == 403


def test_a_page_that_may_not_is_told_so(tmp_path: Path, ports: tuple[int, int]) -> None:
    """By default and by configuration; the sentence names the setting."""
    headers = "Sec-WebSocket-Protocol: mqtt\r\nOrigin: {}\r\n"
    with Web(ports[1], headers.format("https://evil.example")) as web:
        assert web.status == 403
        assert b"`origins` in [security]" in web.rest()
    with Web(ports[1], headers.format("http://127.0.0.1:8080")) as web:
        assert web.status == 101
    with web_broker(tmp_path, security='origins = ["https://app.example"]') as (_, said):
        with Web(port_in(said.ws), headers.format("https://app.example")) as web:
            assert web.status == 101
        with Web(port_in(said.ws), headers.format("http://127.0.0.1:8080")) as web:
            assert web.status == 403


# Configuration -----------------------------------------------------------------------------------------


def test_websockets_over_tls(tmp_path: Path) -> None:
    """`listen_wss` uses the certificate of [tls], and needs one."""
    authority = Authority(tmp_path)
    authority.issue("B1")
    tls = (
        f'[tls]\ncertificate = "{tmp_path}/{{broker}}.pem"\nkey = "{tmp_path}/{{broker}}.key"\npeers = false'
    )
    with web_broker(tmp_path, tls=tls) as (_, said):
        context = ssl.create_default_context(cafile=str(authority.path))
        with Web(port_in(said.wss), tls=context) as web:
            assert web.status == 101
            welcomed(web)
    with pytest.raises(ConfigError, match="listen_wss of B1 needs"):
        read_config('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:1"\nlisten_wss = "127.0.0.1:2"\n')


@pytest.mark.parametrize("key", ["listen_tls", "listen_ws", "listen_wss"])
def test_nobody_is_anonymous_where_others_can_come_in(key: str) -> None:
    """A way in that is not on loopback asks everybody for a name, whatever the others do."""
    config = single_broker(Address("127.0.0.1", 0))
    assert config.brokers[0].is_on_loopback
    (broker,) = config.brokers
    open_to_all = msgspec.structs.replace(broker, **{key: "0.0.0.0:0"})
    assert not open_to_all.is_on_loopback
    doors = doors_of(msgspec.structs.replace(config, brokers=[open_to_all]), broker.name)
    assert not doors[key].anonymous
    assert all(door.anonymous for other, door in doors.items() if other != key)


# Readers that stall ------------------------------------------------------------------------------------


def stalling() -> Config:
    """One broker with small limits and WebSockets."""
    limits = Limits(output_bytes_max=50_000, queue_bytes_max=100_000, queue_messages_max=100)
    config = single_broker(Address("127.0.0.1", 0), limits)
    (broker,) = config.brokers
    return msgspec.structs.replace(config, brokers=[msgspec.structs.replace(broker, listen_ws="127.0.0.1:0")])


def test_a_reader_that_stalls_is_not_written_to_without_end() -> None:
    """As by TCP: what waits for it has a limit, others are served, and it hears on when it reads again."""

    async def scenario() -> None:
        server = Server(stalling(), "B1")
        address = await server.start()
        assert server.node is not None
        assert server.listening is not None
        web = await asyncio.to_thread(Web, port_in(server.listening.ws))
        web.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        await asyncio.to_thread(welcomed, web, "staller")
        web.send(old.subscribe(("flood", 0)))
        assert await asyncio.to_thread(web.bytes, 5) == b"\x90\x03\x00\x01\x00"
        async with Client(f"mqtt://{address}") as source, Client(f"mqtt://{address}") as other:
            await other.subscribe(topic="flood")
            heard = aiter(other)
            for number in range(1_000):
                await source.publish("flood", b"%04d" % number + bytes(20_000), qos=1)
                assert (await anext(heard)).payload[:4] == b"%04d" % number
            (staller,) = [
                one
                for number, one in server.node.connections.items()
                if (session := server.node.core.state.connections[number].session) is not None
                and session.client_id == "staller"
            ]
            assert staller._transport is not None
            assert staller._transport.get_write_buffer_size() < 200_000
            assert server.node.core.state.counters.dropped["queue full"] > 0
            packet = len(old.publish("flood", bytes(20_004)))
            first = await asyncio.to_thread(web.bytes, packet)
            found = old.read(first)
            assert found is not None
            assert found[0].payload[:4] == b"0000"
            web.socket.close()
        await server.stop()

    asyncio.run(scenario())
