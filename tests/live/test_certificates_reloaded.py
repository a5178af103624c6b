"""Certificates that a changed configuration names, asks for no more, or cannot use."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import mqtt5
import pytest
from cryptography.hazmat.primitives import serialization
from mqtt5 import ConnAckPacket, ConnectPacket

from sojourn.errors import SojournError
from sojourn.live.brokers import certificate_watch
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Config, read_config
from sojourn.live.page.metrics import BrokerMetrics
from tests.live.copied_network import until
from tests.live.test_certificates_run_out import DAY_S, Clock
from tests.live.test_doors import TLS, a_user, context
from tests.live.test_security import SECRET, Authority

NOT_AUTHORIZED = 0x87
DOOR = 'listen_tls = "127.0.0.1:0"\n'
USERS = a_user("ann") + a_user("fred", password=f'"{hash_password(SECRET)}"')
AUTHORITY = 'client_authority = "{folder}/clients.pem"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a broker and of a client, by two authorities."""
    path = tmp_path_factory.mktemp("certificates")
    Authority(path).issue("B1")
    Authority(path, "clients").issue("ann")
    return path


def said(folder: Path, keys: str, *, trusts: bool = True) -> Config:
    """A broker whose table has these keys, and who knows whose certificates prove names or not."""
    return read_config((TLS if trusts else TLS.replace(AUTHORITY, "")).format(folder=folder) + keys)


Scenario = Callable[[Server, int, Callable[[Config], Awaitable[str]]], Awaitable[None]]


def play(config: Config, scenario: Scenario) -> None:
    """Have something happen at a broker, at its address with TLS, which can read something else."""

    async def whole() -> None:
        server = Server(config, "B1")
        await server.start()
        assert server.listening is not None

        async def reload(new: Config) -> str:
            server.reread = lambda: new
            return await server.reload()

        place = server.listening.tls
        await scenario(server, 0 if place is None else int(place.rpartition(":")[2]), reload)
        await server.stop()

    asyncio.run(asyncio.wait_for(whole(), 60))


async def code(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """How a CONNECT is answered."""
    writer.write(ConnectPacket("phone", clean_start=True).write())
    packet, _ = mqtt5.read(memoryview(await reader.read(1_000)))
    assert isinstance(packet, ConnAckPacket)
    writer.close()
    return int(packet.reason_code)


def test_certificates_can_be_asked_for_no_more(folder: Path) -> None:
    """With their authority and a user at once: who came by them is gone, and others need none."""
    asks = said(folder, DOOR + 'certificates = "optional"\n' + USERS)
    asks_not = said(folder, DOOR + a_user("eve", password=f'"{hash_password(SECRET)}"'), trusts=False)

    async def scenario(server: Server, port: int, reload: Callable[[Config], Awaitable[str]]) -> None:
        there, node = f"mqtts://localhost:{port}", server.node
        assert node is not None
        ann = Client(there, client_id="ann", tls=context(folder, "ann"))
        fred = Client(there, client_id="fred", tls=context(folder), username="fred", password=SECRET)
        for client in (ann, fred):
            await client.connect()
        assert await reload(asks_not) == ("B1 has read its configuration anew; 2 clients were sent away")
        await until(lambda: not node.connections)
        async with Client(there, tls=context(folder), username="eve", password=SECRET):
            pass
        for client in (ann, fred):
            await client.close()

    play(asks, scenario)


def test_who_has_none_goes_where_certificates_are_required_now(folder: Path) -> None:
    """Also who has shaken hands and not said yet who it is."""
    keys = DOOR + "anonymous_tls = true\n"

    async def scenario(server: Server, port: int, reload: Callable[[Config], Awaitable[str]]) -> None:
        node = server.node
        assert node is not None
        shown = context(folder)
        here, waiting = [await asyncio.open_connection("localhost", port, ssl=shown) for _ in range(2)]
        here[1].write(ConnectPacket("here").write())
        await here[0].read(1_000)
        await until(lambda: len(node.guests) == 2)
        assert "; 1 clients were sent away" in await reload(
            said(folder, keys + 'certificates = "required"\n')
        )
        assert await code(*waiting) == NOT_AUTHORIZED
        here[1].close()
        shown = context(folder, "ann")
        assert await code(*await asyncio.open_connection("localhost", port, ssl=shown)) == 0

    play(said(folder, keys), scenario)


def test_what_waits_of_brokers_is_named(folder: Path) -> None:
    """Key by key: the address for TLS is closed at a restart, and asks for certificates until then."""
    asks = said(folder, DOOR + 'certificates = "required"\n')

    async def scenario(_server: Server, port: int, reload: Callable[[Config], Awaitable[str]]) -> None:
        assert (
            "; listen_tls of brokers, certificates of brokers changed too and need a restart"
            in await reload(said(folder, ""))
        )
        with pytest.raises(SojournError, match="leave the client_authority there until"):
            await reload(said(folder, "", trusts=False))
        shown = context(folder, "ann")
        assert await code(*await asyncio.open_connection("localhost", port, ssl=shown)) == 0

    play(asks, scenario)


def encrypt(key: Path) -> None:
    """Let a key ask for a password."""
    found = serialization.load_pem_private_key(key.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"1234")
    private = serialization.PrivateFormat.PKCS8
    key.write_bytes(found.private_bytes(serialization.Encoding.PEM, private, encryption))


def test_a_key_that_asks_for_a_password_is_refused(tmp_path: Path) -> None:
    """Nobody is asked for it; the key of before stays in force."""
    Authority(tmp_path).issue("B1")
    Authority(tmp_path, "clients")
    config = said(tmp_path, DOOR)

    async def scenario(_server: Server, port: int, reload: Callable[[Config], Awaitable[str]]) -> None:
        encrypt(tmp_path / "B1.key")
        with pytest.raises(SojournError, match=r"B1.key of \[tls\] is encrypted, and nobody is there"):
            await reload(config)
        shown = context(tmp_path)
        assert await code(*await asyncio.open_connection("localhost", port, ssl=shown)) == 0

    play(config, scenario)


UNFIT = {
    "has run out": ("B1", "B1", -1, r"B1.pem of \[tls\] ran out on 20\d\d-.* UTC, and nobody accepts it"),
    "is of another broker": ("B2", "B2", 1, r"is of B2, and neighbours know B1 by one that has its name"),
    "is found under another name": (
        "B1",
        "B2",
        1,
        "is of B1, and neighbours know B1 by one that has its name",
    ),
}


@pytest.mark.parametrize("which", UNFIT)
@pytest.mark.parametrize("tls", ["listen_tls", "peers"])
def test_a_certificate_that_nobody_would_accept_is_refused(tmp_path: Path, which: str, tls: str) -> None:
    """At a start and at a reload, which leaves the old one in force; clients go by other names as well."""
    common, alternative, days, why = UNFIT[which]
    authority = Authority(tmp_path)
    authority.issue("B1")
    Authority(tmp_path, "clients")
    if tls == "peers":
        key = f'authority = "{tmp_path}/authority.pem"\ncertificate'
        text = TLS.format(folder=tmp_path).replace("certificate", key, 1) + DOOR
        other = '[[brokers]]\nname = "B2"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:1"\n'
        config = read_config('links = [["B1", "B2"]]\n' + text + other)
    else:
        config = said(tmp_path, DOOR)
    is_refused = tls == "peers" or which == "has run out"

    async def scenario(_server: Server, port: int, reload: Callable[[Config], Awaitable[str]]) -> None:
        authority.issue(common, days=days, names=[alternative, "localhost"], file="B1")
        if not is_refused:
            await reload(config)
            return
        with pytest.raises(SojournError, match=why) as refused:
            await reload(config)
        assert "\n" not in str(refused.value)
        shown = context(tmp_path)
        assert await code(*await asyncio.open_connection("localhost", port, ssl=shown)) == 0

    play(config, scenario)
    if is_refused:
        with pytest.raises(SojournError, match=why):
            play(config, scenario)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of certificates."""
    said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    return [text for text in said if "The certificate" in text]


def seconds_left(server: Server) -> list[float]:
    """What the metric says."""
    assert server.observer is not None
    lines = BrokerMetrics(server.observer).text().decode().splitlines()
    return [float(one.split()[1]) for one in lines if one.startswith("sojourn_certificate_seconds_left ")]


def test_how_long_a_certificate_holds_is_told_and_said_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a metric always, and in the log when it is less than two weeks: at a start, a reload, and daily."""
    clock = Clock()
    monkeypatch.setattr(certificate_watch, "time", clock)
    authority = Authority(tmp_path)
    authority.issue("B1", days=13)
    Authority(tmp_path, "clients")
    config = said(tmp_path, DOOR)

    async def scenario(server: Server, _port: int, reload: Callable[[Config], Awaitable[str]]) -> None:
        (left_s,) = seconds_left(server)
        assert 12.9 * DAY_S < left_s <= 13 * DAY_S
        (line,) = warnings_in(caplog)
        assert re.search(r"B1.pem of B1 runs out in 1[23].\d days: put a fresh one there", line)
        authority.issue("B1", days=15)
        await reload(config)
        (left_s,) = seconds_left(server)
        assert 14.9 * DAY_S < left_s <= 15 * DAY_S
        assert len(warnings_in(caplog)) == 1
        for ahead_s, why in ((2 * DAY_S, "runs out in 1[23]"), (15 * DAY_S, "has run out, and nobody")):
            clock.ahead_s = ahead_s
            server.certificate.look()  # as it does every day
            assert re.search(why, warnings_in(caplog)[-1])
        (left_s,) = seconds_left(server)
        assert left_s <= 0

    play(config, scenario)
    play(read_config('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'), without_certificate)


async def without_certificate(
    server: Server, _port: int, _reload: Callable[[Config], Awaitable[str]]
) -> None:
    """Nothing is told of what is not there."""
    assert not seconds_left(server)
