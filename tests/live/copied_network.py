"""Brokers in a line in one process that keep copies of one another, and lose their disks."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

from sojourn.broker.settings import MobilityConfig
from sojourn.errors import SojournError
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import BrokerConfig, Config
from tests.live.building import ANY_PORT, an_address_folder, url

PATIENCE_S = 120.0
EVENTS = 20


def copied(folder: Path, brokers: int = 4, gone_s: float = 1.5) -> Config:
    """Brokers in a line, each with a copy at one other."""
    names = [f"B{number + 1}" for number in range(brokers)]
    return Config(
        brokers=[
            BrokerConfig(name=name, listen=ANY_PORT, peers=ANY_PORT, seats=ANY_PORT, store=str(folder / name))
            for name in names
        ],
        links=list(itertools.pairwise(names)),
        network=an_address_folder(),
        mobility=MobilityConfig(copies=1, gone_s=gone_s),
    )


async def until(holds: Callable[[], object]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - brokers tell nobody here
            await asyncio.sleep(0.02)


async def begun(config: Config) -> list[Server]:
    """All brokers at work, linked, each with a whole copy elsewhere."""
    servers = [Server(config, broker.name) for broker in config.brokers]
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(server.start() for server in servers))
    await until(lambda: all(map(is_well, servers)))
    return servers


def is_well(server: Server) -> bool:
    """Whether a broker is at home, linked, and its copies are whole."""
    node, chamber = server.node, server.chamber
    if node is None or node.network is None or chamber is None:
        return False
    is_linked = all(channel.open for channel in node.network.links.channels.values())
    is_home = chamber.council.seat(server.name).host == server.name
    return is_linked and is_home and not chamber.council.at_risk(server.name)


def kill(server: Server, *, wipes: bool) -> None:
    """End a broker without a word; with its disk, if that is wanted."""
    assert server.node is not None
    assert server.chamber is not None
    server.node.on_failure = lambda: None
    for listener in server._listeners:
        listener.close()
    assert server.observer is not None
    server.observer._timer.cancel()  # type: ignore[union-attr]  # it was started
    server.node.abandon(SojournError("It is killed, and says nothing."))
    server.chamber.stop()
    if wipes:
        store = Path(server.node.config.broker(server.name).store or "")
        for path in store.parent.glob(f"{store.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


async def come_back(servers: list[Server], number: int) -> None:
    """Start a broker again, with whatever is left."""
    config = servers[number].config
    servers[number] = Server(config, config.brokers[number].name)
    async with asyncio.timeout(PATIENCE_S):
        await servers[number].start()
    await until(lambda: all(map(is_well, servers)))


async def leave_events(config: Config, at: int, source: int) -> None:
    """Let a session wait at one broker, with events that were published and acknowledged at another."""
    reader = Client(url(config, at), client_id="reader", session_expiry_s=600)
    await reader.connect()
    await reader.subscribe(topic="news/#")
    await reader.close()
    async with Client(url(config, source), client_id="source") as publisher:
        for number in range(EVENTS):
            await publisher.publish("news/a", {"n": number}, retain=number == EVENTS - 1)


async def read_events(config: Config, at: int) -> list[object]:
    """What the session's client finds where it comes next."""
    async with asyncio.timeout(PATIENCE_S):
        async with Client(url(config, at), client_id="reader", session_expiry_s=600) as reader:
            found = [(await reader.next(timeout_s=PATIENCE_S)).attributes["n"] for _ in range(EVENTS)]
            async with Client(url(config, at), client_id="after") as publisher:
                await publisher.publish("news/b", {"n": "last"})
            found.append((await reader.next(timeout_s=PATIENCE_S)).attributes["n"])
            return found


async def end(servers: list[Server]) -> None:
    """Stop them all."""
    await asyncio.gather(*(server.stop() for server in servers))
