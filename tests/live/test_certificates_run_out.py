"""A certificate holds until it runs out: neither a resumed session of TLS nor a wait makes it last longer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from mqtt5 import ConnectPacket

from sojourn.live.brokers.server import Server
from sojourn.live.config import TlsConfig
from sojourn.live.links.tls import for_callers
from sojourn.live.listening import Listener
from tests.live.test_doors import certified, context
from tests.live.test_security import Authority
from tests.live.test_silent_strangers import Taken

RUNS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
SOON_S = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of two brokers and of a client, by two authorities."""
    path = tmp_path_factory.mktemp("certificates")
    brokers = Authority(path)
    for name in ("B1", "B2"):
        brokers.issue(name)
    Authority(path, "clients").issue("ann")
    return path


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
    pem, key = (f"{folder}/{{broker}}.{kind}" for kind in ("pem", "key"))
    files = TlsConfig(certificate=pem, key=key, authority=str(folder / "authority.pem"))

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Taken, "127.0.0.1", 0, start_serving=False)
        listener = Listener(Taken, server, for_callers(files, "B1"))
        shown = context(folder, "B2")
        shown.maximum_version = version
        port = server.sockets[0].getsockname()[1]
        assert await asyncio.to_thread(come_twice, port, shown, b"x") == [(False, b"t"), (False, b"t")]
        listener.close()

    RUNS[run](asyncio.wait_for(scenario(), SOON_S))
