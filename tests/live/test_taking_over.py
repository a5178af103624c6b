"""A broker is gone: clients are served from its copies, and when it comes back it learns what happened."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from sojourn.broker.seats.register import Register
from sojourn.live.client.client import Client
from sojourn.live.config import Config
from sojourn.live.seats.folders import Folders
from sojourn.live.store.journal import Journal
from tests.live.building import url
from tests.live.copied_network import (
    EVENTS,
    PATIENCE_S,
    begun,
    come_back,
    copied,
    end,
    kill,
    leave_events,
    read_events,
    until,
)


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


async def read_what_is_new(config: Config, at: int) -> tuple[bool, object]:
    """Whether the client of the session is known where it comes next, and what it is given there next."""
    async with asyncio.timeout(PATIENCE_S):
        async with Client(url(config, at), client_id="reader", session_expiry_s=600) as reader:
            was_known = reader.resumed
            async with Client(url(config, 0), client_id="afterwards") as publisher:
                await publisher.publish("news/c", {"n": "new"})
            return was_known, (await reader.next(timeout_s=PATIENCE_S)).attributes["n"]


def test_a_client_that_comes_elsewhere_at_once_is_served_as_soon_as_the_copy_is(tmp_path: Path) -> None:
    """It names nothing, and nobody has noticed yet that its broker is gone: it waits, and loses nothing."""
    config = copied(tmp_path)

    async def scenario() -> list[object]:
        servers = await begun(config)
        await leave_events(config, at=1, source=3)
        kill(servers[1], wipes=True)
        found = await read_events(config, 3)
        await end([server for server in servers if server.name != "B2"])
        return found

    assert asyncio.run(scenario()) == [*range(EVENTS), "last"]


def test_a_broker_that_comes_back_with_its_old_store_forgets_it(tmp_path: Path) -> None:
    """Others have given away since what it remembers: it learns so, and nothing comes twice."""
    config = copied(tmp_path)

    async def scenario() -> tuple[list[object], tuple[bool, object]]:
        servers = await begun(config)
        await leave_events(config, at=1, source=3)
        kill(servers[1], wipes=False)
        chambers = [server.chamber for server in servers if server.chamber is not None]
        await until(lambda: any("B2" in chamber.guests for chamber in chambers))
        found = await read_events(config, 3)
        await come_back(servers, 1)
        after = await read_what_is_new(config, 1)
        await end(servers)
        return found, after

    found, after = asyncio.run(scenario())
    assert found == [*range(EVENTS), "last"]
    assert after == (True, "new")


def test_a_broker_that_is_taken_over_while_it_runs_promises_nothing_more(tmp_path: Path) -> None:
    """It sees no other process: what is published there waits, and comes once when it is back."""
    config = copied(tmp_path)

    async def scenario() -> tuple[list[object], bool, str, tuple[bool, object]]:
        servers = await begun(config)
        await leave_events(config, at=1, source=3)
        node, chamber = servers[1].node, servers[1].chamber
        assert node is not None
        assert chamber is not None
        ended = asyncio.Event()
        node.on_failure = ended.set
        async with Client(url(config, 1), client_id="source", patience_s=PATIENCE_S) as publisher:
            await publisher.publish("other", {"n": 0})
            seats = chamber.mesh._listener._servers[0].sockets[0].getsockname()  # type: ignore[union-attr]  # it is there
            chamber.mesh.abort()
            waiting = asyncio.create_task(publisher.publish("news/c", {"n": "late"}))
            others = [one.chamber for one in servers if one.chamber is not None]
            await until(lambda: any("B2" in other.guests for other in others))
            found = await read_events(config, 3)
            was_early = waiting.done()
            await chamber.mesh.start(chamber._wanted, f"{seats[0]}:{seats[1]}")
            async with asyncio.timeout(PATIENCE_S):
                await ended.wait()
            why = str(node.failure)
            kill(servers[1], wipes=False)
            await come_back(servers, 1)
            async with asyncio.timeout(PATIENCE_S):
                await waiting
            async with Client(url(config, 1), client_id="reader", session_expiry_s=600) as reader:
                late = (await reader.next(timeout_s=PATIENCE_S)).attributes["n"]
        assert late == "late"
        after = await read_what_is_new(config, 1)
        await end(servers)
        return found, was_early, why, after

    found, was_early, why, after = asyncio.run(scenario())
    assert found == [*range(EVENTS), "last"]
    assert not was_early
    assert "plays B2 in term" in why
    assert "comes back as one that keeps a copy" in why
    assert after == (True, "new")
    assert (tmp_path / "B2.found-1").is_dir(), "what nobody else had noted is kept aside"


def test_a_store_that_is_lost_alone_comes_back_from_its_copy(tmp_path: Path) -> None:
    """Its process remembers that it had one: it neither begins with nothing nor has that copied."""
    config = copied(tmp_path)

    async def scenario() -> list[object]:
        servers = await begun(config)
        await leave_events(config, at=1, source=3)
        kill(servers[1], wipes=False)
        shutil.rmtree(tmp_path / "B2")
        await come_back(servers, 1)
        found = await read_events(config, 1)
        await end(servers)
        return found

    assert asyncio.run(scenario()) == [*range(EVENTS), "last"]


@pytest.mark.parametrize("name", ["B1", "B2"])
def test_who_is_killed_while_a_copy_takes_the_place_of_another_has_one_of_them(
    tmp_path: Path, name: str
) -> None:
    """The one before, if the new one was not there yet; its own store is kept aside if it was."""
    folders = Folders("B1", str(tmp_path / "B1"), power_safe=False)
    folders.read_register(["B1", "B2"])
    folders.save_register(Register().written())
    path = folders.path(name)
    Journal.open(path, broker=name).close()
    before = tmp_path / "B1.copies" / f"{name}.before"
    path.rename(before)
    folders.open_all(["B1", "B2"])
    assert name in folders.held
    folders.close()
    shutil.copytree(path, before)
    folders.open_all(["B1", "B2"])
    assert name in folders.held
    assert not before.exists()
    assert (tmp_path / "B1.found-1").exists() == (name == "B1")
    folders.close()
