"""Ports that nobody chose: brokers say which they have, neighbours look, and come back finds the same."""

from __future__ import annotations

import asyncio
import logging
import socket
import stat
from pathlib import Path

import pytest

from sojourn.live.addresses import AddressBook, FolderBook, Listening, MemoryBook, bind, true_address
from sojourn.live.brokers.server import ListenError, Server, reference_for
from sojourn.live.config import (
    Address,
    BrokerConfig,
    Config,
    ConfigError,
    NetworkConfig,
    load_config,
    read_config,
)
from tests.live.building import ANY_PORT, a_secret

LOOPBACK = Address("127.0.0.1", 0)


def two() -> Config:
    """B1 and B2, linked, on any ports; neither knows a folder."""
    brokers = [BrokerConfig(name=name, listen=ANY_PORT, peers=ANY_PORT) for name in ("B1", "B2")]
    return Config(brokers=brokers, links=[("B1", "B2")], network=NetworkConfig(secret=a_secret()))


async def linked(server: Server, *, up: bool = True) -> None:
    """Wait until a broker's link is up, or down."""
    assert server.node is not None
    assert server.node.network is not None
    channels = server.node.network.links.channels
    async with asyncio.timeout(20):
        while all(channel.open for channel in channels.values()) != up:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_brokers_find_each_other_whatever_ports_they_got(kind: str, tmp_path: Path) -> None:
    """Also one that comes back on other ports, because somebody took those it had."""
    book: AddressBook = FolderBook(tmp_path) if kind == "folder" else MemoryBook()

    async def scenario() -> None:
        one, other = Server(two(), "B1", book), Server(two(), "B2", book)
        await one.start()
        before = await other.start()
        await linked(one)
        await other.stop()
        again = Server(two(), "B2", book)
        assert await again.start() == before, "clients remember where it was"
        await linked(one)
        await again.stop()
        await linked(one, up=False)
        said = book.find("B2")
        assert said is not None
        assert said.peers is not None
        ports = [int(text.rpartition(":")[2]) for text in (said.clients, said.peers)]
        takers = [socket.create_server(("127.0.0.1", port)) for port in ports]
        elsewhere = Server(two(), "B2", book)
        assert (await elsewhere.start()).port not in ports
        await linked(one)
        assert reference_for(two(), "B1", book) == elsewhere.listening.clients  # type: ignore[union-attr]  # it is there
        for taker in takers:
            taker.close()
        await elsewhere.stop()
        await one.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_an_address_file_is_whole_and_its_owner_s(tmp_path: Path) -> None:
    """It has mode 0600, replaces the one before, and leaves nothing else in the folder."""
    book = FolderBook(tmp_path / "deep" / "folder")
    for port in (1, 2):
        book.write(Listening(broker="B1", pid=7, clients=f"127.0.0.1:{port}"))
    assert stat.S_IMODE(book.path("B1").stat().st_mode) == 0o600
    assert [path.name for path in book.folder.iterdir()] == ["B1.address.json"]
    assert book.find("B1") == Listening(broker="B1", pid=7, clients="127.0.0.1:2")
    assert book.find("B2") is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"broker": "B2", "pid": 1, "clients": "x"}', "\x00" * 9_000, '{"broker": 5}'],
)
def test_garbage_is_ignored_with_one_line(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is no address file counts as none, and is mentioned once and not at every look."""
    book = FolderBook(tmp_path / str(len(text)))
    book.folder.mkdir()
    name = f"garbage-{len(text)}"
    book.path(name).write_text(text)
    with caplog.at_level(logging.WARNING):
        assert [book.find(name) for _ in range(5)] == [None] * 5
    assert len(caplog.records) == 1


def test_only_ports_are_believed() -> None:
    """A file that points to another host, to no port or to nonsense is not followed."""
    assert true_address(LOOPBACK, "127.0.0.1:77", "B1") == Address("127.0.0.1", 77)
    for text in ("10.0.0.1:77", "127.0.0.1:0", "nonsense", "127.0.0.1:99999999", ""):
        assert true_address(LOOPBACK, text, "B1") is None
    assert true_address(Address("127.0.0.1", 5), "10.0.0.1:77", "B1") == Address("127.0.0.1", 5)


def test_a_port_that_was_chosen_is_not_exchanged() -> None:
    """A configured port that is in use is an error in one sentence, whatever the address file says."""

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            config = Config(brokers=[BrokerConfig(name="B1", listen=f"127.0.0.1:{port}")])
            with pytest.raises(
                ListenError, match=r"another process has that port; stop it or choose another\.$"
            ):
                await Server(config, "B1").start()

        async def create(host: str, port: int) -> asyncio.Server:
            return await asyncio.start_server(lambda *_: None, host, port)

        server, found = await bind(LOOPBACK, "nonsense", create)
        assert found.port
        server.close()

    asyncio.run(scenario())


def test_paths_begin_at_the_file_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores, traces, certificates, keys and address files are found wherever the command is run."""
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "one.toml").write_text(
        '[trace]\nfolder = "trace"\n[security.jwt]\nkey = "jwt.key"\n'
        '[tls]\ncertificate = "c/{broker}.pem"\nkey = "/k.pem"\nauthority = "a.pem"\n'
        '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "stores/B1"\n'
    )
    monkeypatch.chdir(tmp_path)
    config = load_config(Path("etc/one.toml"))
    assert config.brokers[0].store == str(folder / "stores/B1")
    assert config.trace is not None
    assert config.trace.folder == str(folder / "trace")
    assert config.tls is not None
    assert (config.tls.certificate, config.tls.key) == (str(folder / "c/{broker}.pem"), "/k.pem")
    assert config.tls.authority == str(folder / "a.pem")
    assert config.security.jwt is not None
    assert config.security.jwt.key == str(folder / "jwt.key")
    assert config.network.addresses == str(folder / "addresses")
    (folder / "one.toml").write_text('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:1883"\n')
    assert load_config(Path("etc/one.toml")).network.addresses is None, (
        "where ports are known there is no need"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [("../B1", "of files"), ("a/b", "of files"), (".hidden", "of files"), ("a\\nb", "cannot be printed")],
)
def test_a_broker_s_name_names_files(name: str, why: str) -> None:
    """So it cannot lead out of a folder, nor break a line of a log."""
    with pytest.raises(ConfigError, match=why):
        read_config(f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:1"\n')
