"""A configuration that is read anew holds for brokers that a process plays for others, or will play."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import QoS, Will
from msgspec.structs import replace

from sojourn.live.brokers import operating
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.server import ListenError, Server
from sojourn.live.client.client import Client
from sojourn.live.config import Config, UserConfig
from sojourn.live.seats import revivals
from tests.live.building import url
from tests.live.copied_network import PATIENCE_S, begun, come_back, copied, end, is_well, kill, until
from tests.live.raw_client import Raw

WORD = "secret"
PASSWORD = hash_password(WORD)
EVENTS = 5


def user(name: str, *topics: str) -> UserConfig:
    """Somebody who may publish and subscribe to these alone."""
    return UserConfig(name=name, password=PASSWORD, publish=list(topics), subscribe=list(topics))


async def reload(servers: list[Server], config: Config) -> list[str]:
    """Let brokers read a configuration anew, one after the other; return what they say."""
    for server in servers:
        server.reread = lambda: config
    return [await server.reload() for server in servers]


def guest(servers: list[Server], name: str) -> Node | None:
    """A broker as another process plays it."""
    played = [one.chamber.guests[name] for one in servers if one.chamber and name in one.chamber.guests]
    return played[0].node if played else None


async def played(servers: list[Server], name: str) -> Node:
    """The same, once one does."""
    await until(lambda: guest(servers, name))
    node = guest(servers, name)
    assert node is not None
    return node


def leave_will(config: Config, at: int) -> None:
    """Let ann be away from a broker, with a subscription, and a will that is due much later."""
    client = Raw(int(url(config, at).rpartition(":")[2]))
    will = Will("closed/will", payload=b"gone", qos=QoS.AT_LEAST_ONCE, will_delay_interval=3_000)
    client.connect(
        "phone", username="ann", password=b"secret", will=will, session_expiry_interval=3_000, keep_alive=0
    )
    assert client.subscribe("closed/#") == [2]
    client.drop()


def test_what_a_reload_granted_survives_the_broker(tmp_path: Path) -> None:
    """A user has more rights and another is new: what both were promised is there after a take-over."""
    first = replace(copied(tmp_path), users=[user("ann", "old/#")])
    config = replace(first, users=[user("ann", "old/#", "news/#"), user("ben", "news/#")])

    def client(name: str, at: int) -> Client:
        return Client(url(config, at), client_id=name, username=name, password=WORD, session_expiry_s=600)

    async def scenario() -> dict[str, list[object]]:
        servers = await begun(first)
        await reload(servers, config)
        for name in ("ann", "ben"):
            async with client(name, 1) as reader:
                await reader.subscribe(topic="news/#")
        async with Client(url(config, 3), client_id="source") as publisher:
            for number in range(EVENTS):
                await publisher.publish("news/a", {"n": number})
        kill(servers[1], wipes=True)
        sessions = (await played(servers, "B2")).core.state.sessions
        assert all(sessions[name].subscriptions for name in ("ann", "ben")), "they may read the news"
        found: dict[str, list[object]] = {}
        for name in ("ann", "ben"):
            async with asyncio.timeout(PATIENCE_S), client(name, 3) as reader:
                found[name] = [
                    (await reader.next(timeout_s=PATIENCE_S)).attributes["n"] for _ in range(EVENTS)
                ]
        await end([server for server in servers if server.name != "B2"])
        return found

    assert asyncio.run(scenario()) == {"ann": [*range(EVENTS)], "ben": [*range(EVENTS)]}


@pytest.mark.parametrize("is_revived", [True, False], ids=["played", "being revived"])
def test_what_a_reload_takes_away_is_taken_from_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_revived: bool
) -> None:
    """A will and a subscription that are forbidden now are gone, though no process of their broker runs."""
    first = replace(copied(tmp_path), users=[user("ann", "open/#", "closed/#")])
    config = replace(first, users=[user("ann", "open/#")])
    revive = revivals.in_slices

    async def scenario() -> tuple[Node, list[str]]:
        begins, goes_on = asyncio.Event(), asyncio.Event()

        async def slowly(work: Generator[None, None, Any]) -> Any:
            found = await revive(work)
            begins.set()
            await goes_on.wait()
            return found

        servers = await begun(first)
        await asyncio.to_thread(leave_will, config, 1)
        if not is_revived:
            monkeypatch.setattr(revivals, "in_slices", slowly)
        kill(servers[1], wipes=True)
        others = [server for server in servers if server.name != "B2"]
        if is_revived:
            node = await played(others, "B2")
            assert node.core.state.sessions["phone"].will is not None
            store = node.place.store
            said = await reload(others, config)
            assert node.place.store == store, "it is where the copy is"
        else:
            async with asyncio.timeout(PATIENCE_S):
                await begins.wait()
            said = await reload(others, config)
            goes_on.set()
            node = await played(others, "B2")
        session = node.core.state.sessions["phone"]
        assert session.will is None
        assert not session.subscriptions
        await come_back(servers, 1)
        await end(servers)
        return node, said

    node, said = asyncio.run(scenario())
    assert node.config.users == config.users
    assert sum("it holds for B2 too" in one for one in said) == is_revived


def test_a_broker_that_waits_for_others_begins_with_what_was_read_anew(tmp_path: Path) -> None:
    """Nobody is served before a majority has met, and that may take longer than a configuration holds."""
    first = replace(copied(tmp_path, brokers=3), users=[user("ann", "old/#")])
    config = replace(first, users=[user("ann", "news/#")])

    async def scenario() -> list[list[UserConfig]]:
        servers = [Server(first, broker.name) for broker in first.brokers]
        with pytest.raises(ListenError, match="only just starting"):
            await reload(servers[:1], config)
        waiting = asyncio.create_task(servers[0].start())
        await until(lambda: servers[0].chamber)
        await reload(servers[:1], config)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(waiting, *(server.start() for server in servers[1:]))
        await until(lambda: all(map(is_well, servers)))
        users = [server.node.config.users for server in servers if server.node is not None]
        await end(servers)
        return users

    assert asyncio.run(scenario()) == [config.users, first.users, first.users]


def test_kicks_and_bans_pass_brokers_that_others_play(tmp_path: Path) -> None:
    """They are told on to brokers behind these, and a ban is known to these too."""
    config = copied(tmp_path)

    async def scenario() -> None:
        servers = await begun(config)
        kill(servers[1], wipes=True)
        node = await played(servers, "B2")
        first, last = servers[0].node, servers[3].node
        assert first is not None
        assert last is not None
        assert first.network is not None
        links = first.network.links
        await until(lambda: not links.out_of_reach())
        client = Raw(int(url(config, 0).rpartition(":")[2]))
        await asyncio.to_thread(client.connect, "phone", keep_alive=0)
        assert first.connections
        operating.order(last, "kick", {"scope": "client", "whom": "phone"})
        await until(lambda: not first.connections)
        operating.order(last, "ban", {"scope": "user", "whom": "ann"})
        await until(lambda: all(any(one.banned for one in each.core.state.bans) for each in (first, node)))
        client.drop()
        await end([server for server in servers if server.name != "B2"])

    asyncio.run(scenario())
