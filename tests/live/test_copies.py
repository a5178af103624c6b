"""Copies at other processes: a broker is lost with its disk, and what was acknowledged is there."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn.broker.effects import Turn
from sojourn.broker.settings import MobilityConfig
from sojourn.errors import SojournError
from sojourn.live.brokers import outbox as waiting_turns
from sojourn.live.brokers.outbox import Outbox
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import BrokerConfig, Config, ConfigError, read_config
from sojourn.live.seats import pump, revivals
from sojourn.live.store import keeper
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


def test_a_broker_that_comes_back_without_its_disk_has_lost_nothing(tmp_path: Path) -> None:
    """Its session, the events that waited and the retained one are given back to it by who had a copy."""
    config = copied(tmp_path)

    async def scenario() -> list[object]:
        servers = await begun(config)
        await leave_events(config, at=1, source=3)
        kill(servers[1], wipes=True)
        await come_back(servers, 1)
        found = await read_events(config, 1)
        await end(servers)
        return found

    assert asyncio.run(scenario()) == [*range(EVENTS), "last"]


def test_the_clients_of_a_broker_that_is_gone_are_served_by_any_other(tmp_path: Path) -> None:
    """Another process plays it as a guest: its session is handed over, and it is at home again later."""
    config = copied(tmp_path)

    async def scenario() -> tuple[list[object], int]:
        servers = await begun(config)
        await leave_events(config, at=1, source=3)
        kill(servers[1], wipes=True)
        chambers = [server.chamber for server in servers if server.chamber is not None]
        await until(lambda: any("B2" in chamber.guests for chamber in chambers))
        found = await read_events(config, 3)
        await come_back(servers, 1)
        takeovers = sum(chamber.takeovers for chamber in chambers)
        await end(servers)
        return found, takeovers

    found, takeovers = asyncio.run(scenario())
    assert found == [*range(EVENTS), "last"]
    assert takeovers >= 1


def test_nothing_is_acknowledged_before_the_copies_have_it(tmp_path: Path) -> None:
    """A publisher's acknowledgement waits while the only follower is away, and comes once another has all."""
    config = copied(tmp_path, gone_s=3.0)

    async def scenario() -> tuple[bool, bool]:
        servers = await begun(config)
        assert servers[0].chamber is not None
        council = servers[0].chamber.council
        (follower,) = council.seat("B1").followers
        async with Client(url(config, 0), client_id="source") as publisher:
            await publisher.publish("news/a", {"n": 1})
            number = [broker.name for broker in config.brokers].index(follower)
            kill(servers[number], wipes=False)
            waiting = asyncio.create_task(publisher.publish("news/a", {"n": 2}))
            await asyncio.sleep(0.5)
            was_early = waiting.done()
            async with asyncio.timeout(PATIENCE_S):
                await waiting
            is_replaced = follower not in council.seat("B1").followers
        await end([one for place, one in enumerate(servers) if place != number])
        return was_early, is_replaced

    was_early, is_replaced = asyncio.run(scenario())
    assert not was_early
    assert is_replaced


def test_who_does_not_prove_its_name_neither_follows_nor_hosts(tmp_path: Path) -> None:
    """A process without the secret is shut out at `seats`, and the council never hears of it."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> tuple[bytes, int]:
        servers = await begun(config)
        chamber = servers[0].chamber
        assert chamber is not None
        assert chamber.mesh._listener is not None
        address = chamber.mesh._listener._servers[0].sockets[0].getsockname()
        seats = dict(chamber.council.register.known)
        reader, writer = await asyncio.open_connection(*address[:2])
        writer.write(b"\0\0\0\x10I am B2, believe me")
        async with asyncio.timeout(PATIENCE_S):
            said = await reader.read()
        writer.close()
        assert chamber.council.register.known == seats
        refusals = chamber.mesh.refusals
        await end(servers)
        return said, refusals

    said, refusals = asyncio.run(scenario())
    assert said == b""
    assert refusals == 1


class Wire:
    """A connection that notes whether it is read from."""

    def __init__(self) -> None:
        self.is_read = True

    def hold(self) -> None:
        """Read no further."""
        self.is_read = False

    pause = hold

    def release(self) -> None:
        """Read again."""
        self.is_read = True

    resume = release


def test_nobody_is_read_from_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns leave in order once their lines are held; over the limit clients and neighbours wait."""
    monkeypatch.setattr(waiting_turns, "TURNS_MAX", 4)
    left: list[int] = []
    client, old, new = Wire(), Wire(), Wire()
    copying = SimpleNamespace(logged=lambda: None, held=0)
    copying.released = lambda: copying.held
    journal = SimpleNamespace(next=0)
    links = SimpleNamespace(connections={"B2": old})
    node: Any = SimpleNamespace(
        keeper=SimpleNamespace(journal=journal),
        links=links,
        connections={1: client},
        place=SimpleNamespace(name="B1"),
        carry_out=lambda turn: left.append(len(turn.peer_writes)),
    )
    box = Outbox(node, copying)
    for _ in range(6):
        journal.next += 1
        box.put(Turn(peer_writes=[("B2", b"frame")]))
    assert (left, box.turns, client.is_read, old.is_read) == ([], 6, False, False)
    links.connections["B2"] = new  # what was written for the old connection is not for this one
    copying.held = 5
    box.leave()
    assert left == [0] * 5
    assert (box.turns, box.fills, client.is_read) == (1, 1, True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("copies = 1", "every broker has a store"),
        ("copies = 3", "from 0 to 1"),
        ("gone_s = 0.1", "at least 1 seconds"),
    ],
)
def test_a_configuration_that_cannot_keep_copies_is_refused(text: str, why: str) -> None:
    """One sentence says what is missing."""
    brokers = "".join(f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\n' for name in ("B1", "B2"))
    with pytest.raises(ConfigError, match=why):
        read_config(f"[mobility]\n{text}\n{brokers}")


def test_others_have_their_turn_while_a_broker_is_revived(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every line, if lines take that long; and nothing goes on that is no longer wanted."""
    monkeypatch.setattr(revivals, "SLICE_S", 0.0)
    stops, is_closed = 0, False

    def work() -> Generator[None, None, str]:
        nonlocal stops, is_closed
        try:
            for _ in range(20):
                stops += 1
                yield
        finally:
            is_closed = True
        return "all"

    async def scenario() -> tuple[str, list[int]]:
        seen: list[int] = []
        done = asyncio.create_task(revivals.in_slices(work()))
        while not done.done():
            await asyncio.sleep(0)
            seen.append(stops)
        cancelled = asyncio.create_task(revivals.in_slices(work()))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        return done.result(), seen

    result, seen = asyncio.run(scenario())
    assert result == "all"
    assert len(set(seen)) >= 19
    assert is_closed
    assert stops < 40


def test_copies_begin_anew_with_a_snapshot_when_they_have_grown_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So whoever revives a broker reads no more than the broker itself would."""
    monkeypatch.setattr(keeper, "COPIED_ENTRIES", 20)
    monkeypatch.setattr(keeper, "COPIED_S", 0.0)
    monkeypatch.setattr(pump, "COMPACT_BYTES", 100)
    config = copied(tmp_path)

    async def scenario() -> None:
        servers = await begun(config)
        chamber = servers[0].chamber
        assert chamber is not None
        (follower,) = chamber.council.seat("B1").followers
        keeps = next(server.chamber for server in servers if server.name == follower)
        assert keeps is not None
        async with Client(url(config, 0), client_id="source") as publisher:
            async with asyncio.timeout(PATIENCE_S):
                while keeps.folders.first("B1") == 1:
                    await publisher.publish("news/a", {"text": "x" * 200})
                await publisher.publish("news/a", {"text": "acknowledged after it"})
        await end(servers)

    asyncio.run(scenario())
