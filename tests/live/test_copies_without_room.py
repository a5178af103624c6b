"""A broker comes back without its store, and its disk has no room for what it is given back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sojourn.broker.seats import council
from sojourn.live.brokers.server import Server
from sojourn.live.seats.folders import Folders
from sojourn.live.store.errors import JournalError
from tests.live.copied_network import (
    EVENTS,
    begun,
    copied,
    end,
    is_well,
    kill,
    leave_events,
    read_events,
    until,
)


def test_who_has_the_copy_plays_it_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is back before it is taken for gone; clients are served elsewhere, and later at home again."""
    config = copied(tmp_path, brokers=3, gone_s=20.0)
    monkeypatch.setattr(council, "FULL_S", 5.0)
    right = Folders.append
    full = True

    def append(folders: Folders, name: str, number: int, batch: bytes) -> None:
        if full and name == "B1" and folders.path("B1") == tmp_path / "B1":
            raise JournalError("The store cannot be written: No space left on device.")
        right(folders, name, number, batch)

    def plays(server: Server) -> bool:
        return server.chamber is not None and "B1" in server.chamber.council.serving

    async def scenario() -> tuple[list[object], str]:
        nonlocal full
        servers = await begun(config)
        await leave_events(config, at=0, source=1)
        kill(servers[0], wipes=True)
        monkeypatch.setattr(Folders, "append", append)
        servers[0] = Server(config, "B1")
        starts = asyncio.create_task(servers[0].start())
        await until(lambda: any(map(plays, servers[1:])))
        found = await read_events(config, at=1)
        assert servers[0].chamber is not None
        said = servers[0].chamber.council.why_not("B1")
        full = False
        await starts
        await until(lambda: all(map(is_well, servers)))
        await end(servers)
        return found, said

    found, said = asyncio.run(scenario())
    assert found == [*range(EVENTS), "last"]
    assert "plays it" in said
