"""Our client by every way in: TCP, TLS and WebSockets; what it believes, and what it says where it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sojourn import Client, ClientError, SojournError, UnreachableError
from sojourn.cli.pub import pub
from sojourn.live.brokers.server import Server
from sojourn.live.client.link import Address
from sojourn.live.client.trust import trusting
from sojourn.live.config import read_config
from tests.live.test_security import Authority

LONG_S = 60
Files = dict[str, Any]
EVERY_WAY = """
[tls]
certificate = "{folder}/{{broker}}.pem"
key = "{folder}/{{broker}}.key"
client_authority = "{folder}/clients.pem"
peers = false
[[brokers]]
name = "B1"
listen = "127.0.0.1:0"
listen_tls = "127.0.0.1:0"
listen_ws = "127.0.0.1:0"
listen_wss = "127.0.0.1:0"
certificates = "{certificates}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a broker and of a client, by two authorities, and a file that is none."""
    path = tmp_path_factory.mktemp("certificates")
    Authority(path).issue("B1")
    Authority(path, "clients").issue("ann")
    (path / "letter.pem").write_text("Dear broker,\n")
    return path


def beside_a_broker(
    folder: Path, scenario: Callable[[dict[str, str]], Awaitable[None]], certificates: str = "ignored"
) -> None:
    """Run a broker with every way in, and something that is told the address of each."""

    async def run() -> None:
        server = Server(read_config(EVERY_WAY.format(folder=folder, certificates=certificates)), "B1")
        await server.start()
        found = server.listening
        assert found is not None
        ways = {"mqtt": found.clients, "mqtts": found.tls, "ws": found.ws, "wss": found.wss}
        try:
            await scenario(
                {
                    scheme: f"{scheme}://localhost:{str(place).rpartition(':')[2]}"
                    for scheme, place in ways.items()
                }
            )
        finally:
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 2 * LONG_S))


def test_a_client_moves_through_every_door(folder: Path) -> None:
    """One session by TCP, TLS and WebSockets in turn; a large event is in order with the small ones."""
    large = bytes(range(256)) * 1_000

    async def scenario(urls: dict[str, str]) -> None:
        context = trusting(folder / "authority.pem")
        async with Client(urls["ws"], tls=context) as car, Client(urls["wss"], tls=context) as camera:
            await car.subscribe(topic="road")
            for way in ("mqtts", "wss", "mqtt", "ws"):
                await camera.publish("road", way.encode())
                await camera.publish("road", large, qos=2)
                await car.move_to(urls[way])
                assert (await car.next(LONG_S)).payload == way.encode()
                assert (await car.next(LONG_S)).payload == large
            assert [line.url for line in car.connections][1:] == [
                urls[way] for way in ("mqtts", "wss", "mqtt", "ws")
            ]

    beside_a_broker(folder, scenario)


def test_a_lost_websocket_is_made_again(folder: Path) -> None:
    """What is published meanwhile comes on the next one."""

    async def scenario(urls: dict[str, str]) -> None:
        async with Client(urls["ws"]) as reader, Client(urls["mqtt"]) as writer:
            await reader.subscribe(topic="t")
            reader.vanish()
            await writer.publish("t", b"meanwhile")
            await reader.connect()
            assert (await reader.next(LONG_S)).payload == b"meanwhile"
            assert [line.ended for line in reader.connections] == ["vanished", ""]

    beside_a_broker(folder, scenario)


def test_what_is_no_websocket_is_told_in_one_sentence(folder: Path) -> None:
    """A port of MQTT, a server of HTTP that refuses, one that answers with a page, and one that hangs up."""
    answers = {
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 12\r\n\r\nNot for you.": r"HTTP 403: Not for you\.",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\n<html>": "HTTP 404: Not Found",
        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n": "HTTP 503: Service Unavailable",
        b"SSH-2.0-something\r\n\r\n": "knows no WebSockets",
        b"": "closed the connection",
    }

    async def scenario(urls: dict[str, str]) -> None:
        with pytest.raises(UnreachableError, match="opens no WebSocket for MQTT"):
            await Client(urls["mqtt"].replace("mqtt://", "ws://")).connect()
        for answer, sentence in answers.items():

            async def say(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                writer.close()

            server = await asyncio.start_server(partial(say, answer), "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(UnreachableError, match=sentence):
                await Client(f"ws://127.0.0.1:{port}/mqtt").connect()
            server.close()

    beside_a_broker(folder, scenario)


def test_the_wrong_door_is_told_with_what_is_likely(folder: Path) -> None:
    """TLS where there is none, none where there is TLS, and both with WebSockets or without."""
    context = trusting(folder / "authority.pem")
    cases = (
        ("mqtts", "mqtt", "does not answer in TLS, so that is likely a port without it: use mqtt:// there"),
        ("wss", "ws", "does not answer in TLS, so that is likely a port without it: use ws:// there"),
        ("mqtt", "mqtts", r"without an answer; is that a port for TLS \(mqtts://\)"),
        ("mqtt", "ws", r"without an answer; is that a port for TLS .* for WebSockets \(ws://\)"),
        ("ws", "wss", r"opens no WebSocket .*; is that a port for TLS \(wss://\)"),
        ("mqtts", "wss", r"without an answer; is that a port for WebSockets \(wss://\)"),
    )

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    async def scenario(urls: dict[str, str]) -> None:
        for scheme, door, sentence in cases:
            url = urls[door].replace(f"{door}://", f"{scheme}://")
            with pytest.raises(ClientError, match=sentence):
                await Client(url, tls=context).connect()
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        with pytest.raises(UnreachableError, match="closed the connection while TLS was begun; is that"):
            await Client(f"mqtts://127.0.0.1:{server.sockets[0].getsockname()[1]}").connect()
        server.close()
        with pytest.raises(SojournError, match=r"or the port that has TLS\.$"):
            await asyncio.to_thread(pub, urls["mqtt"].replace("mqtt://", "mqtts://"), "t", "")

    beside_a_broker(folder, scenario)


@pytest.mark.parametrize(
    ("url", "address", "text"),
    [
        ("host", Address("host", 1883), "mqtt://host:1883"),
        ("mqtts://host", Address("host", 8883, "mqtts"), "mqtts://host:8883"),
        ("ws://host:83/mqtt", Address("host", 83, "ws", "/mqtt"), "ws://host:83/mqtt"),
        ("wss://host", Address("host", 443, "wss"), "wss://host:443"),
        ("mqtt://[::1]:7", Address("::1", 7), "mqtt://[::1]:7"),
    ],
)
def test_addresses_are_read_and_written(url: str, address: Address, text: str) -> None:
    """Each scheme has its port; what is written can be read again."""
    assert Address.parse(url) == address
    assert str(address) == text
    assert Address.parse(text) == address


@pytest.mark.parametrize("url", ["http://x", "mqtt://host:port", "mqtt://", "mqtt://ann:secret@host"])
def test_a_wrong_address_is_refused_without_telling_a_password(url: str) -> None:
    """In a sentence that says how to write it."""
    with pytest.raises(ClientError, match=r"broker's address|has a user name in it") as refused:
        Address.parse(url)
    assert "secret" not in str(refused.value)


def test_who_is_sent_on_goes_on_as_it_came() -> None:
    """A broker that names another one without a scheme does not mean that TLS or WebSockets are over."""
    came = Address.parse("wss://one:83/mqtt")
    assert str(Address.parse("two:84", came)) == "wss://two:84/mqtt"
    assert str(Address.parse("mqtt://two:85", came)) == "mqtt://two:85"


def test_the_command_line_believes_and_shows_what_it_is_told(folder: Path) -> None:
    """`pub` with --ca-file, and with a certificate where the broker asks for one."""

    async def scenario(urls: dict[str, str]) -> None:
        async with Client(urls["mqtt"]) as reader:
            await reader.subscribe(topic="t")
            for scheme in ("wss", "mqtts"):
                publish = partial(pub, urls[scheme], "t", scheme, ca_file=folder / "authority.pem")
                await asyncio.to_thread(publish, certificate=folder / "ann.pem", key=folder / "ann.key")
                assert (await reader.next(LONG_S)).payload == scheme.encode()
        with pytest.raises(SojournError, match=r"certificate required|closed the connection"):
            await asyncio.to_thread(publish)

    beside_a_broker(folder, scenario, certificates="required")


def test_certificates_that_will_not_do_are_told_with_the_way_out(folder: Path) -> None:
    """An unknown authority, another name, files that are not there or are none, TLS where there is none."""
    ann: Files = {"certificate": folder / "ann.pem"}

    async def scenario(urls: dict[str, str]) -> None:
        there = urls["mqtts"]
        known: Files = {"ca_file": folder / "authority.pem"}
        cases: tuple[tuple[str, Files, str], ...] = (
            (there, {}, "--ca-file names the file of the authority"),
            (there.replace("localhost", "127.0.0.1"), known, "use a name that it has"),
            (there, {"ca_file": folder / "none.pem"}, "none.pem is not there"),
            (there, {"ca_file": folder / "letter.pem"}, "letter.pem holds no certificate of an authority"),
            (
                there,
                ann,
                r"ann.pem is no certificate with its key .*; if its key .*, name that as key \(--key\)",
            ),
            (
                there,
                {**ann, "key": folder / "letter.pem"},
                r"are no certificate with its key in PEM \([^;]*\)\.$",
            ),
            (there, {"key": folder / "ann.key"}, "without the certificate"),
            (urls["mqtt"], known, "is not encrypted; certificates are for mqtts:// and wss://"),
        )
        for url, files, sentence in cases:
            with pytest.raises(SojournError, match=sentence):
                await asyncio.to_thread(pub, url, "t", "", **files)

    beside_a_broker(folder, scenario)


def test_who_shows_a_certificate_that_is_not_accepted_is_told_of_that(folder: Path) -> None:
    """Such as a broker's own, of another authority; who shows none hears the same, for it may be either."""
    strange: Files = {"certificate": folder / "B1.pem", "key": folder / "B1.key"}

    async def scenario(urls: dict[str, str]) -> None:
        for files in (strange, {}):
            publish = partial(pub, urls["mqtts"], "t", "", ca_file=folder / "authority.pem", **files)
            with pytest.raises(SojournError, match="none was shown, or one that is not accepted"):
                await asyncio.to_thread(publish)

    beside_a_broker(folder, scenario, certificates="required")
