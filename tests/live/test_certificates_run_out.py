"""A certificate holds until it runs out: neither a resumed session of TLS nor a wait makes it last longer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import mqtt5
import pytest
import uvloop
from mqtt5 import ConnAckPacket, ConnectPacket

from sojourn.broker.channel import Channel
from sojourn.live.brokers import admission
from sojourn.live.brokers.server import Server
from sojourn.live.config import Address, TlsConfig
from sojourn.live.links import tls
from sojourn.live.links.peers import PeerLinks
from sojourn.live.links.proofs import Proof
from sojourn.live.links.tls import for_callers, for_calling
from sojourn.live.listening import Listener
from tests.live.test_doors import certified, context
from tests.live.test_peers import until
from tests.live.test_security import Authority
from tests.live.test_silent_strangers import Taken

RUNS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
SOON_S, DAY_S = 60, 86_400
NOT_AUTHORIZED = 0x87


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of two brokers and of a client, by two authorities."""
    path = tmp_path_factory.mktemp("certificates")
    brokers = Authority(path)
    for name in ("B1", "B2"):
        brokers.issue(name, days=1)
    Authority(path, "clients").issue("ann", days=1)
    return path


def files(folder: Path) -> TlsConfig:
    """What brokers show one another."""
    pem, key = (f"{folder}/{{broker}}.{kind}" for kind in ("pem", "key"))
    return TlsConfig(certificate=pem, key=key, authority=str(folder / "authority.pem"))


Resumed = list[tuple[bool, bytes]]


def come_twice(port: int, shown: ssl.SSLContext, said: bytes) -> Resumed:
    """Connect, and again with the session of before; return whether it was resumed, and the first answer."""
    found, session = [], None
    for _ in range(2):
        with (
            socket.create_connection(("127.0.0.1", port), SOON_S) as plain,
            shown.wrap_socket(plain, server_hostname="localhost", session=session) as there,
        ):
            there.sendall(said)
            answer = there.recv(5)  # with TLS 1.3 tickets come with it
            found.append((bool(there.session_reused), answer[:1]))
            session = there.session
            with contextlib.suppress(ssl.SSLError):  # more may be on its way
                there.unwrap()  # a session whose connection does not end in order is not resumed
    return found


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
@pytest.mark.parametrize("run", RUNS)
def test_clients_with_certificates_resume_no_session(folder: Path, run: str, version: ssl.TLSVersion) -> None:
    """Their certificate is looked at each time they come; otherwise one that has run out would go on."""

    async def scenario() -> None:
        server = Server(certified(folder), "B1")
        await server.start()
        assert server.listening is not None
        shown = context(folder, "ann")
        shown.maximum_version = version
        port, connect = int(str(server.listening.tls).rpartition(":")[2]), ConnectPacket("phone").write()
        found = await asyncio.to_thread(come_twice, port, shown, bytes(connect))
        assert found == [(False, b"\x20"), (False, b"\x20")]
        await server.stop()

    RUNS[run](asyncio.wait_for(scenario(), SOON_S))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
@pytest.mark.parametrize("run", RUNS)
def test_neighbours_resume_no_session(folder: Path, run: str, version: ssl.TLSVersion) -> None:
    """Neither do brokers that call."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Taken, "127.0.0.1", 0, start_serving=False)
        listener = Listener(Taken, server, for_callers(files(folder), "B1"))
        shown = context(folder, "B2")
        shown.maximum_version = version
        port = server.sockets[0].getsockname()[1]
        assert await asyncio.to_thread(come_twice, port, shown, b"x") == [(False, b"t"), (False, b"t")]
        listener.close()

    RUNS[run](asyncio.wait_for(scenario(), SOON_S))


class Clock:
    """Stands for the module `time` in another one, which then goes by a clock that is ahead."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def time(self) -> float:
        """Return the seconds since 1970."""
        return time.time() + self.ahead_s


def test_a_certificate_that_runs_out_after_the_handshake_lets_nobody_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who shook hands in time and says CONNECT too late is refused."""
    clock = Clock()
    monkeypatch.setattr(admission, "time", clock, raising=False)

    async def scenario() -> list[int]:
        server = Server(certified(folder), "B1")
        await server.start()
        assert server.listening is not None
        port, codes = int(str(server.listening.tls).rpartition(":")[2]), []
        for ahead_s in (0, 2 * DAY_S):
            clock.ahead_s = 0
            reader, writer = await asyncio.open_connection("localhost", port, ssl=context(folder, "ann"))
            clock.ahead_s = ahead_s
            writer.write(ConnectPacket("phone").write())
            packet, _ = mqtt5.read(memoryview(await reader.read(1_000)))
            assert isinstance(packet, ConnAckPacket)
            codes.append(int(packet.reason_code))
            writer.close()
        await server.stop()
        return codes

    assert asyncio.run(asyncio.wait_for(scenario(), SOON_S)) == [0, NOT_AUTHORIZED]


def test_a_neighbour_whose_certificate_runs_out_before_its_hello_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing but certificates proves who is at the other end."""
    clock = Clock()
    monkeypatch.setattr(tls, "time", clock, raising=False)
    proof = Proof("the network", None, for_callers(files(folder), "B1"), for_calling(files(folder), "B1"))

    async def scenario() -> list[str]:
        told: list[str] = []
        links = PeerLinks("B1", ("B2",), lambda fact: told.append(type(fact).__name__), proof, calls={})
        address = await links.start(Address("127.0.0.1", 0))
        assert address is not None
        for ahead_s in (2 * DAY_S, 0):
            clock.ahead_s = 0
            shown = for_calling(files(folder), "B2")
            _, writer = await asyncio.open_connection(*address, ssl=shown, server_hostname="B1")
            clock.ahead_s = ahead_s
            writer.write(Channel("B2", "B1", "a life").greet())
            await until((lambda: links.refusals == 1) if ahead_s else (lambda: len(told) > 1))
            writer.close()
        assert links.refusals == 1
        await links.stop()
        return told

    told = asyncio.run(asyncio.wait_for(scenario(), SOON_S))
    assert told[:2] == ["PeerConnected", "PeerSent"]
