"""Who poses as a neighbour: no broker hears of it, and without a way to know each other none starts."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from sojourn.broker.channel import Channel
from sojourn.cli.main import app
from sojourn.live.brokers.server import Server
from sojourn.live.config import BrokerConfig, Config, NetworkConfig, is_loopback, load_config
from sojourn.live.links.peers import PeerError, PeerLinks
from sojourn.live.links.proofs import Proof
from sojourn.live.links.secret import SecretError, read_secret, write_secret
from tests.live.building import ANY_PORT, a_secret, address, an_address_folder
from tests.live.test_addresses import linked
from tests.live.test_peers import until


def two_brokers(network: NetworkConfig) -> Config:
    """B1, which calls B2."""
    brokers = [BrokerConfig(name=name, listen=ANY_PORT, peers=ANY_PORT) for name in ("B1", "B2")]
    return Config(brokers=brokers, links=[("B1", "B2")], network=network)


def test_a_process_that_says_it_is_a_neighbour_is_not_believed() -> None:
    """Its hello, which was enough before, leads to nothing; and the real neighbour is not cut off."""
    config = two_brokers(an_address_folder())

    async def scenario() -> None:
        server = Server(config, "B2")
        await server.start()
        assert server.node is not None
        assert server.node.links is not None
        host, _, port = address(config, 1, "peers").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(Channel("B1", "B2", "a life").greet())
        assert await asyncio.wait_for(reader.read(), 20) == b"", "it was told nothing"
        assert server.node.links.refusals == 1
        network = server.node.network
        assert network is not None
        assert not network.links.channels["B1"].is_connected
        first = Server(config, "B1")
        await first.start()
        await linked(first)
        await linked(server)
        writer.close()
        for one in (first, server):
            await one.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_process_on_a_neighbours_port_is_not_told_anything(tmp_path: Path) -> None:
    """It is called, and cannot prove to be the neighbour: no hello and no frame reaches it."""
    heard: list[bytes] = []

    async def squat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(65_536))
        writer.write(heard[-1])  # its own words, sent back
        heard.append(await reader.read(65_536))
        writer.close()

    async def scenario() -> None:
        squatter = await asyncio.start_server(squat, "127.0.0.1", 0)
        port = squatter.sockets[0].getsockname()[1]
        network = NetworkConfig(secret=a_secret())
        config = two_brokers(network)
        second = msgspec.structs.replace(config.brokers[1], peers=f"127.0.0.1:{port}")
        config = msgspec.structs.replace(config, brokers=[config.brokers[0], second])
        server = Server(config, "B1")
        await server.start()
        await until(lambda: len(heard) >= 2)
        assert b'"protocol"' not in b"".join(heard)
        assert heard[1] == b""
        await server.stop()
        squatter.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_brokers_with_another_secret_or_network_are_no_neighbours(tmp_path: Path) -> None:
    """Both sides stay without a link."""
    assert write_secret(tmp_path / "other")
    folder = an_address_folder()
    wrong = [
        msgspec.structs.replace(folder, secret=str(tmp_path / "other")),
        msgspec.structs.replace(folder, name="another"),
    ]

    async def scenario(network: NetworkConfig) -> None:
        first, second = Server(two_brokers(network), "B1"), Server(two_brokers(folder), "B2")
        for server in (first, second):
            await server.start()
        assert first.node is not None
        assert second.node is not None
        links = first.node.links, second.node.links
        await until(lambda: any(one is not None and one.refusals > 1 for one in links))
        for server in (first, second):
            assert server.node is not None
            assert server.node.network is not None
            assert not any(one.is_connected for one in server.node.network.links.channels.values())
            await server.stop()

    for network in wrong:
        asyncio.run(asyncio.wait_for(scenario(network), 60))


def test_linked_brokers_without_a_way_to_know_each_other_do_not_start(tmp_path: Path) -> None:
    """One sentence, and the way out; the same for a secret that is missing, short or open to others."""

    async def start(network: NetworkConfig) -> None:
        await Server(two_brokers(network), "B1").start()

    path = tmp_path / "secret"
    with pytest.raises(PeerError, match=r"`sojourn secret` writes.*\[tls\]"):
        asyncio.run(start(NetworkConfig()))
    named = NetworkConfig(secret=str(path))
    with pytest.raises(SecretError, match=f"`sojourn secret {path}` writes one"):
        asyncio.run(start(named))
    path.write_text("short")
    path.chmod(0o600)
    with pytest.raises(SecretError, match="has 5 bytes"):
        asyncio.run(start(named))
    path.unlink()
    assert write_secret(path)
    path.chmod(0o640)
    with pytest.raises(SecretError, match="chmod 600"):
        asyncio.run(start(named))


def test_links_are_not_made_without_a_proof() -> None:
    """Not even by a driver that forgets it."""
    with pytest.raises(AssertionError, match="way to know them"):
        PeerLinks("B1", ("B2",), lambda _fact: None, Proof("N"), calls={})


def test_init_writes_a_secret_for_its_owner_alone(tmp_path: Path) -> None:
    """Beside the configuration, 0600, and never over one that is there."""
    runner = CliRunner()
    file = tmp_path / "building.toml"
    assert runner.invoke(app, ["init", "building", str(file)]).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "hashed passwords will stand in it"
    path = Path(load_config(file).network.secret or "")
    assert path == tmp_path / "network.secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = read_secret(path)
    assert runner.invoke(app, ["init", "line", str(tmp_path / "line.toml")]).exit_code == 0
    assert read_secret(path) == secret
    assert runner.invoke(app, ["secret", str(path)]).exit_code == 1
    assert runner.invoke(app, ["secret", str(tmp_path / "fresh")]).exit_code == 0
    assert read_secret(tmp_path / "fresh") != secret


@pytest.mark.parametrize(("host", "local"), [
    ("127.0.0.1", True), ("127.9.8.7", True), ("::1", True), ("localhost", True), ("LOCALHOST", True),
    ("127.evil.com", False), ("0.0.0.0", False), ("::", False), ("10.0.0.1", False),  # noqa: S104 - a text
    ("localhost.evil.com", False),
])  # fmt: skip
def test_only_this_machine_is_loopback(host: str, local: bool) -> None:
    """A name that begins like an address of loopback is not one."""
    assert is_loopback(host) == local
