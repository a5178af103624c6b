"""Most brokers of a network lose their disks, one after the other: nothing is lost once all are there."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from sojourn.broker.seats.messages import ROLL
from sojourn.live.brokers.server import Server
from sojourn.live.config import Config
from sojourn.live.page.risks import Kept, votes_at_risk
from tests.live.building import ANY_PORT
from tests.live.copied_network import (
    EVENTS,
    PATIENCE_S,
    begun,
    copied,
    end,
    is_well,
    kill,
    leave_events,
    read_events,
    until,
)
from tests.live.test_page_copies import _board, _sum_of


def _with_page(config: Config) -> Config:
    return replace(config, brokers=[*config.brokers[:2], replace(config.brokers[2], page=ANY_PORT)])


def _plays_all(server: Server) -> bool:
    """Whether one process has a whole copy of every broker, or plays it."""
    assert server.chamber is not None
    register = server.chamber.council.register
    return all(
        server.name in entry.seat.members
        and entry.whole >= entry.seat.term
        and "B1" not in entry.seat.members
        for name, entry in register.entries.items()
        if name != ROLL
    )


def test_two_of_three_disks_are_lost_one_after_the_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first is still away when the second goes: the third has all, and gives it back to both."""
    config = _with_page(copied(tmp_path, brokers=3))

    async def scenario() -> list[object]:
        servers = await begun(config)
        last = servers[2]
        assert _sum_of(last, "sojourn_copies_voters") == 3
        assert _board(last)["votes_at_risk"] == ""
        await leave_events(config, at=0, source=1)
        kill(servers[0], wipes=True)
        await until(lambda: _plays_all(last))
        await until(lambda: "just enough" in _board(last)["votes_at_risk"])
        assert _sum_of(last, "sojourn_copies_voters") == _sum_of(last, "sojourn_copies_voters_needed") == 2
        kill(servers[1], wipes=True)
        await until(lambda: "nothing is decided" in _board(last)["votes_at_risk"])
        servers[:2] = [Server(config, name) for name in ("B1", "B2")]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(server.start() for server in servers[:2]))
        await until(lambda: all(map(is_well, servers)))
        found = await read_events(config, at=0)
        await end(servers)
        return found

    with caplog.at_level(logging.WARNING, "sojourn.seats"):
        assert asyncio.run(scenario()) == [*range(EVENTS), "last"]
    assert "all are there, so what B3 remembers holds" in caplog.text


def test_words_say_when_not_one_more_may_go() -> None:
    """Nothing while one may go or nobody is missing; else how many are here, and who is not."""
    assert votes_at_risk(None) == ""
    assert votes_at_risk(Kept("B1", ["B2"], 1, 1, 0, ["B1", "B2"], [], 2)) == ""
    assert votes_at_risk(Kept("B1", ["B2"], 1, 1, 0, ["B1", "B2", "B3", "B4"], ["B5"], 3)) == ""
    enough = votes_at_risk(Kept("B1", ["B2"], 1, 1, 0, ["B1", "B2"], ["B3"], 2))
    assert "2 of 3" in enough
    assert "if one more goes" in enough
    few = votes_at_risk(Kept("B1", ["B2"], 1, 1, 0, ["B1"], ["B2", "B3"], 2))
    assert "nothing is decided before B2, B3 are back" in few
