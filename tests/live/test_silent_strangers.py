"""Strangers who come by TLS to where neighbours are listened for, and say nothing, use up no files."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from sojourn.live import listening
from sojourn.live.listening import HANDSHAKES_MAX, Listener
from tests.live.test_doors import context
from tests.live.test_security import Authority

RUNS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
MORE = 20
SOON_S = 60.0
TAKEN = b"taken"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a broker and of its neighbour."""
    path = tmp_path_factory.mktemp("certificates")
    Authority(path).issue("B1")
    return path


def shown(folder: Path) -> ssl.SSLContext:
    """What the broker shows."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(folder / "B1.pem", folder / "B1.key")
    return found


class Taken(asyncio.Protocol):
    """A connection that was taken."""

    def connection_made(self, transport: Any) -> None:
        """Say so."""
        transport.write(TAKEN)


@pytest.mark.parametrize("run", RUNS)
def test_who_has_taken_longest_makes_room(folder: Path, run: str) -> None:
    """No more are there than may be, and somebody who shakes hands is taken all the time."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Taken, "127.0.0.1", 0, start_serving=False)
        listener = Listener(Taken, server, shown(folder))
        port = server.sockets[0].getsockname()[1]
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(HANDSHAKES_MAX + MORE)]
        for reader, _ in silent[:MORE]:
            assert await asyncio.wait_for(reader.read(), SOON_S) == b""
        assert not any(reader.at_eof() for reader, _ in silent[MORE + 1 :])
        await listener.renew(shown(folder))
        reader, known = await asyncio.open_connection("localhost", port, ssl=context(folder))
        assert await asyncio.wait_for(reader.readexactly(len(TAKEN)), SOON_S) == TAKEN
        reader, _ = silent[MORE]
        assert await asyncio.wait_for(reader.read(), SOON_S) == b"", "it made room for that one"
        for _, writer in [*silent, (None, known)]:
            writer.close()
        listener.close()

    RUNS[run](scenario())


@pytest.mark.parametrize("run", RUNS)
def test_a_handshake_that_does_not_come_to_its_end_is_over_soon(
    folder: Path, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given seconds, not a minute."""
    monkeypatch.setattr(listening, "HANDSHAKE_S", 0.05)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Taken, "127.0.0.1", 0, start_serving=False)
        listener = Listener(Taken, server, shown(folder))
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await asyncio.wait_for(reader.read(), SOON_S) == b""
        writer.close()
        listener.close()

    RUNS[run](scenario())
