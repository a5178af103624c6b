"""A connection by TLS counts from when it is accepted; a handshake that fails is a sentence and a count."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from mqtt5 import ConnectPacket

from sojourn.live.addresses import address_of
from sojourn.live.brokers import connection, entrance
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.client.link import ClientError
from sojourn.live.config import read_config
from sojourn.live.listening import FAILED, TOO_LONG
from tests.live.test_doors import TLS, context
from tests.live.test_security import Authority

RUNS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
Scenario = Callable[[Server, Node, dict[str, int]], Awaitable[None]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a broker and of clients, one of which has run out and one is of a foreign authority."""
    path = tmp_path_factory.mktemp("certificates")
    Authority(path).issue("B1")
    clients = Authority(path, "clients")
    clients.issue("ann")
    clients.issue("late", days=-1)
    Authority(path, "strangers").issue("mallory")
    return path


Complaints = list[dict[str, Any]]


def play(folder: Path, run: str, scenario: Scenario, keys: str = "", limits: str = "") -> Complaints:
    """Have something happen at a broker with several addresses; return what its loop complained about."""
    doors = "".join(f'{door} = "127.0.0.1:0"\n' for door in ("listen_tls", "listen_wss"))
    config = read_config(TLS.format(folder=folder) + doors + keys + f"[limits]\n{limits}")
    complaints: Complaints = []

    async def whole() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        server = Server(config, "B1")
        await server.start()
        assert server.node is not None
        said = server.listening
        assert said is not None
        addresses = {"listen": said.clients, "listen_tls": said.tls, "listen_wss": said.wss}
        ports = {door: int(str(place).rpartition(":")[2]) for door, place in addresses.items()}
        await scenario(server, server.node, ports)
        await server.stop()

    RUNS[run](asyncio.wait_for(whole(), 120))
    return complaints


async def until(what: Callable[[], bool]) -> None:
    """Wait for something."""
    async with asyncio.timeout(60):
        while not what():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether a connection was closed without a word."""
    try:
        return await asyncio.wait_for(reader.read(1), 60) == b""
    except ConnectionError:
        return True


async def answer_to_connect(port: int) -> int:
    """The reason code of the answer to a CONNECT by TCP."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(bytes(ConnectPacket("plain").write()))
    answer = await asyncio.wait_for(reader.readexactly(4), 60)
    writer.close()
    return answer[3]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("door", ["listen_tls", "listen_wss"])
def test_unfinished_handshakes_count_for_their_address(folder: Path, run: str, door: str) -> None:
    """At all doors; one too many is closed at once and counted. When they are gone there is room again."""

    async def scenario(_server: Server, node: Node, ports: dict[str, int]) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", ports[door]) for _ in range(3)]
        await until(lambda: node.handshakes == 3)
        reader, writer = await asyncio.open_connection("127.0.0.1", ports[door])
        assert await is_closed(reader)
        writer.close()
        assert node.closed_at_once == {"quota_exceeded": 1}
        assert await answer_to_connect(ports["listen"]) == 0x97
        for _, one in silent:
            one.close()
        await until(lambda: not node.handshakes)
        kind = "mqtts" if door == "listen_tls" else "wss"
        clients = [Client(f"{kind}://localhost:{ports[door]}", tls=context(folder)) for _ in range(3)]
        for client in clients:
            await client.connect()
        assert (len(node.connections), node.handshakes) == (3, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", ports[door])
        assert await is_closed(reader)
        writer.close()
        for client in clients:
            await client.close()
        await until(lambda: not node.connections)
        assert node.closed_at_once == {"quota_exceeded": 2}

    assert not play(folder, run, scenario, limits="connections_address_max = 3\nconnect_timeout_s = 600\n")


def test_addresses_of_one_host_count_together_at_all_doors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections, handshakes and passwords that wait; whoever comes from another prefix has its own."""
    came: list[str] = []

    def address_of(_peername: object) -> str:
        came.append(f"2001:db8::{len(came) + 1:x}" if len(came) < 4 else "2001:db8:0:1::1")
        return came[-1]

    monkeypatch.setattr(connection, "address_of", address_of)
    monkeypatch.setattr(entrance, "address_of", address_of)

    async def scenario(_server: Server, node: Node, ports: dict[str, int]) -> None:
        silent = []
        for count, door in enumerate(("listen_tls", "listen_wss", "listen"), 1):
            silent.append(await asyncio.open_connection("127.0.0.1", ports[door]))
            await until(lambda count=count: len(came) == count)  # type: ignore[misc]  # bound at once
        assert await answer_to_connect(ports["listen"]) == 0x97
        assert await answer_to_connect(ports["listen"]) != 0x97, "that one comes from elsewhere"
        assert {*node._parties.values()} <= {"2001:db8::/64", "2001:db8:0:1::/64"}
        for _, one in silent:
            one.close()
        await until(lambda: not node.handshakes and not node.connections)
        assert all(not one.connections for one in node._addresses._known.values())

    assert not play(
        folder, "asyncio", scenario, limits="connections_address_max = 3\nconnect_timeout_s = 600\n"
    )


def test_an_address_that_holds_on_a_link_says_which_link() -> None:
    """Sockets say it apart from the address."""
    name = socket.if_indextoname(1)
    assert address_of(("fe80::1", 7, 0, 1)) == f"fe80::1%{name}"
    assert address_of(("fe80::1", 7, 0, 999_999)) == "fe80::1%999999"
    assert address_of(("2001:db8::1", 7, 0, 0)) == "2001:db8::1"
    assert address_of(("192.0.2.1", 7)) == "192.0.2.1"
    assert address_of("") == ""


@pytest.mark.parametrize("run", RUNS)
def test_unfinished_handshakes_count_among_all(folder: Path, run: str) -> None:
    """As connections do for which there are no files left."""

    async def scenario(_server: Server, node: Node, ports: dict[str, int]) -> None:
        node.files_room = 2
        silent = [
            await asyncio.open_connection("127.0.0.1", ports[door]) for door in ("listen_tls", "listen_wss")
        ]
        await until(lambda: node.handshakes == 2)
        assert node.is_out_of_files
        for door, port in ports.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await is_closed(reader), door
            writer.close()
        assert node.closed_at_once == {"no file left for a connection": 3}
        for _, one in silent:
            one.close()

    assert not play(folder, run, scenario)


@pytest.mark.parametrize("run", RUNS)
def test_a_handshake_that_takes_too_long_is_ended_and_counted(folder: Path, run: str) -> None:
    """Nobody keeps a place by saying nothing."""

    async def scenario(server: Server, node: Node, ports: dict[str, int]) -> None:
        server.tls_doors["listen_tls"].handshake_s = 0.05
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["listen_tls"])
        assert await is_closed(reader)
        writer.close()
        await until(lambda: not node.handshakes)
        assert node.closed_at_once == {TOO_LONG: 1}

    assert not play(folder, run, scenario)


@pytest.mark.parametrize("run", RUNS)
def test_certificates_that_are_not_accepted_are_one_sentence_each_and_counted(
    folder: Path, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One that has run out, one of another authority, none at all, and what is no TLS: no traceback."""
    caplog.set_level(logging.INFO, logger="sojourn")

    async def scenario(_server: Server, node: Node, ports: dict[str, int]) -> None:
        there = f"mqtts://localhost:{ports['listen_tls']}"
        said = ("certificate has expired", "unable to get local issuer", "did not return a certificate")
        for number, (name, why) in enumerate(zip(("late", "mallory", None), said, strict=True), 1):
            with pytest.raises((ssl.SSLError, OSError, ClientError)):
                await Client(there, tls=context(folder, name)).connect()
            await until(lambda number=number: node.closed_at_once == {FAILED: number})  # type: ignore[misc]  # mypy infers no default of a lambda
            assert why in caplog.records[-1].getMessage()
        _, writer = await asyncio.open_connection("127.0.0.1", ports["listen_tls"])
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: node.closed_at_once == {FAILED: 4})
        writer.close()
        async with Client(there, tls=context(folder, "ann")):
            assert (len(node.connections), node.handshakes) == (1, 0)

    assert not play(folder, run, scenario, keys='certificates = "required"\n')
    warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(warnings) == 4
    for one in warnings:
        assert one.exc_info is None
        assert "B1 refused a client at 127.0.0.1: " in one.getMessage()
        assert "\n" not in one.getMessage()


@pytest.mark.parametrize("run", RUNS)
def test_what_comes_with_the_end_of_a_handshake_is_read(folder: Path, run: str) -> None:
    """A client may say CONNECT in the same breath."""

    async def scenario(_server: Server, _node: Node, ports: dict[str, int]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", ports["listen_tls"])
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context(folder).wrap_bio(incoming, outgoing, server_hostname="localhost")
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await asyncio.wait_for(reader.read(65_536), 60))
        tls.write(bytes(ConnectPacket("quick").write()))
        writer.write(outgoing.read())
        answer = b""
        while not answer:
            incoming.write(await asyncio.wait_for(reader.read(65_536), 60))
            try:
                answer = tls.read(65_536)
            except ssl.SSLWantReadError:
                continue
        assert answer[0] == 0x20, "a CONNACK"
        writer.close()

    assert not play(folder, run, scenario)
