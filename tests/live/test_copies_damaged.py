"""Copies that cannot be read: nobody relies on them, and they stay on disk until they are made anew."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest

from sojourn.broker.records import BATCH_HEAD_BYTES
from sojourn.broker.seats.messages import SeatError
from sojourn.live.seats.folders import Folders, Held
from sojourn.live.store.errors import JournalError
from sojourn.live.store.folder import StoreFolder
from sojourn.live.store.journal import Journal
from tests.live.copied_network import (
    EVENTS,
    begun,
    come_back,
    copied,
    end,
    is_well,
    kill,
    leave_events,
    read_events,
    until,
)


def _damage(journal: Journal, where: str) -> None:
    """Overwrite something in the middle of a journal, while its process runs."""
    held = Held(journal)
    held._look()
    at = held._places[len(held._places) // 2][0]
    file = os.open(journal.path / f"journal.{journal.first}", os.O_WRONLY)
    if where == "length":
        os.pwrite(file, b"\x7f" * 4, at + 4)
    else:
        os.pwrite(file, b"\xff" * 30, at + BATCH_HEAD_BYTES)
    os.close(file)


@pytest.mark.parametrize("where", ["entries", "length"])
def test_a_copy_that_is_damaged_is_made_anew_from_its_broker(
    tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is found when somebody is to play its broker, and counts for nothing from then on."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> list[object]:
        servers = await begun(config)
        await leave_events(config, at=0, source=2)
        assert servers[0].chamber is not None
        (name,) = servers[0].chamber.council.seat("B1").followers
        place = [server.name for server in servers].index(name)
        keeps = servers[place].chamber
        assert keeps is not None
        aside = tmp_path / f"{name}.copies" / "B1.damaged"
        _damage(keeps.folders.held["B1"].journal, where)
        kill(servers[0], wipes=False)
        await until(aside.exists)
        await until(lambda: keeps.council.register.entries["B1"].whole == 0)
        assert not keeps.folders.next("B1")
        await come_back(servers, 0)
        await until(lambda: not aside.exists())
        kill(servers[0], wipes=True)
        await come_back(servers, 0)
        found = await read_events(config, 0)
        await end(servers)
        return found

    with caplog.at_level(logging.WARNING):
        found = asyncio.run(scenario())
    assert found == [*range(EVENTS), "last"]
    assert not [one for one in caplog.records if "mistake of the broker" in one.getMessage()]


@pytest.mark.parametrize("what", ["copy", "all"])
def test_copies_that_are_taken_away_from_a_running_process_are_made_anew(tmp_path: Path, what: str) -> None:
    """And so are its notes of votes: until then what it holds does not count as whole."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> list[object]:
        servers = await begun(config)
        await leave_events(config, at=0, source=2)
        assert servers[0].chamber is not None
        (name,) = servers[0].chamber.council.seat("B1").followers
        folder = tmp_path / f"{name}.copies"
        shutil.rmtree(folder / "B1" if what == "copy" else folder)
        await until((folder / "B1" / "about").exists)
        await until(lambda: all(map(is_well, servers)))
        assert (folder / "votes").exists()
        kill(servers[0], wipes=True)
        await come_back(servers, 0)
        found = await read_events(config, 0)
        await end(servers)
        return found

    assert asyncio.run(scenario()) == [*range(EVENTS), "last"]


def test_only_one_process_keeps_copies_in_a_folder_that_was_made_anew(tmp_path: Path) -> None:
    """The lock was on the folder that is gone."""
    one, other = (Folders("B2", str(tmp_path / "B2"), power_safe=False) for _ in range(2))
    one.read_register(["B1", "B2"])
    assert not one.renew_votes(), "there were none"
    one.save_register(b"{}")
    assert not one.renew_votes()
    shutil.rmtree(one.copies)
    assert one.renew_votes()
    with pytest.raises(SeatError, match="another process is B2 already"):
        other.read_register(["B1", "B2"])
    one.close()
    other.read_register([])
    other.close()


@pytest.mark.parametrize("where", ["entries", "length"])
def test_what_is_damaged_is_not_told(tmp_path: Path, where: str) -> None:
    """Whoever reads a batch is told that it is not what was written, wherever it is damaged."""
    journal = Journal.open(tmp_path / "B1", broker="B1")
    for number in range(9):
        journal.commit([b"%d" % number * 50])
    _damage(journal, where)
    held = Held(journal)
    assert held.journal.next == 10
    assert (held.check(10) is None) == (where == "length")
    with pytest.raises(JournalError, match=r"batch 5 of .* is damaged"):
        list(map(held.batch, range(1, 10)))
    journal.close()


def test_a_damaged_store_is_to_be_moved_away_where_there_are_copies(tmp_path: Path) -> None:
    """Repairing would give up what a copy still has."""
    journal = Journal.open(tmp_path / "B1", broker="B1")
    for number in range(9):
        journal.commit([b"%d" % number * 50])
    _damage(journal, "entries")
    journal.close()
    with pytest.raises(JournalError, match="do not repair it: move the folder"):
        Folders("B1", str(tmp_path / "B1"), power_safe=False).open_all(["B1"])


def test_a_second_process_of_one_broker_touches_nothing(tmp_path: Path) -> None:
    """Started twice by mistake, it must not take copies in use for damaged ones."""
    one, other = (Folders("B2", str(tmp_path / "B2"), power_safe=False) for _ in range(2))
    one.read_register(["B1", "B2"])
    Journal.open(one.path("B1"), broker="B1").close()
    one.open_all(["B1", "B2"])
    with pytest.raises(SeatError, match="another process is B2 already; stop that one"):
        other.read_register(["B1", "B2"])
    assert (tmp_path / "B2.copies" / "B1" / "about").exists()
    one.close()
    other.read_register(["B1", "B2"])
    other.open_all(["B1", "B2"])
    assert {*other.held} == {"B1", "B2"}
    other.close()


def test_a_copy_that_cannot_be_opened_for_now_is_not_moved_away(tmp_path: Path) -> None:
    """Somebody looks at it: nothing is wrong with what it holds."""
    folders = Folders("B2", str(tmp_path / "B2"), power_safe=False)
    folders.read_register(["B1", "B2"])
    path = folders.path("B1")
    Journal.open(path, broker="B1").close()
    looker = StoreFolder.locked(path)
    with pytest.raises(JournalError, match="is in use"):
        folders.open_all(["B1"])
    assert path.exists()
    assert not (tmp_path / "B2.copies" / "B1.damaged").exists()
    looker.close()
    folders.open_all(["B1"])
    assert "B1" in folders.held
    folders.close()


def test_a_copy_that_does_not_say_what_it_is_is_made_anew(tmp_path: Path) -> None:
    """That is damage, as much as in the middle of its journal."""
    folders = Folders("B2", str(tmp_path / "B2"), power_safe=False)
    folders.read_register(["B1", "B2"])
    Journal.open(folders.path("B1"), broker="B1").close()
    (folders.path("B1") / "about").write_text("?")
    folders.open_all(["B1"])
    assert "B1" not in folders.held
    assert (tmp_path / "B2.copies" / "B1.damaged").exists()
    folders.close()
