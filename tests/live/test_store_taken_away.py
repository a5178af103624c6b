"""A store that is deleted, moved or replaced under a running broker is written anew."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from mqtt5 import ConnectPacket, SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.store import keeper
from sojourn.live.store.journal import Journal
from sojourn.live.store.keeper import PRESENCE_S, Keeper, NoRoomError

SETTINGS = Config(brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")]).settings("B1")


class Running:
    """A broker with a store in a folder, and clients that come."""

    def __init__(self, path: Path) -> None:
        self.now = 1_000.0
        self.keeper, self.broker = Keeper.open(str(path), SETTINGS, "life", self.now)
        self.commit()
        self.clients = 0

    def commit(self) -> None:
        """End a turn."""
        self.keeper.commit(self.broker, self.broker.turn(self.now).entries)

    def welcome(self, name: str) -> None:
        """Let a client in whose session lasts, and that subscribes."""
        self.clients += 1
        number = self.clients
        self.broker.handle(facts.ClientOpened(number, "here", "fresh"), self.now)
        connect = ConnectPacket(name, clean_start=True, keep_alive=0, session_expiry_interval=600)
        self.broker.handle(facts.ClientSent(number, connect.write()), self.now)
        self.broker.knocks.clear()
        self.broker.handle(facts.ClientAdmitted(number), self.now)
        wanted = SubscribePacket(1, [TopicFilter("news")])
        self.broker.handle(facts.ClientSent(number, wanted.write()), self.now)
        self.commit()


def sessions(broker: LiveBroker) -> set[str]:
    """Who has a session."""
    return {*broker.core.state.sessions}


def _deleted(path: Path) -> None:
    shutil.rmtree(path)


def _moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def _replaced(path: Path) -> None:
    _moved(path)
    Journal.open(path, broker="B1").close()


def _without_journal(path: Path) -> None:
    (path / "journal.1").unlink()


@pytest.mark.parametrize("harm", [_deleted, _moved, _replaced, _without_journal])
def test_a_store_that_is_taken_away_is_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None]
) -> None:
    """With all that came before and after; what is found in its place is moved aside."""
    path = tmp_path / "b1"
    running = Running(path)
    running.welcome("before")
    harm(path)
    running.now += PRESENCE_S
    with caplog.at_level(logging.ERROR):
        running.welcome("when it is noticed")
    assert "was taken away while the broker ran" in caplog.text
    running.welcome("after")
    # It dies without a word.
    running.keeper.journal.close()
    _, back = Keeper.open(str(path), SETTINGS, "life 2", running.now)
    assert sessions(back) == {"before", "when it is noticed", "after"}


def test_it_is_noticed_though_nothing_happens(tmp_path: Path) -> None:
    """Whoever looks for room looks for the store too; the next turn writes it anew, whatever it brings."""
    path = tmp_path / "b1"
    running = Running(path)
    running.welcome("before")
    shutil.rmtree(path)
    assert running.keeper.look_for_room(running.now + PRESENCE_S) is None
    was_gone = running.keeper.is_gone
    running.keeper.commit(running.broker, [])
    assert (was_gone, running.keeper.is_gone) == (True, False)
    running.keeper.journal.close()
    _, back = Keeper.open(str(path), SETTINGS, "life 2", running.now)
    assert sessions(back) == {"before"}


def test_a_broker_that_cannot_write_it_anew_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could make nothing safe any more, and says why."""
    path = tmp_path / "b1"
    running = Running(path)
    shutil.rmtree(path)
    running.now += PRESENCE_S

    def refuse(*_: object, **__: object) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(NoRoomError, match=r"cannot be begun anew: .*Permission denied.* The broker ends\."):
        running.welcome("nobody")
    monkeypatch.undo()


def test_an_orderly_end_writes_it_anew_too(tmp_path: Path) -> None:
    """Though it had not been noticed yet."""
    path = tmp_path / "b1"
    running = Running(path)
    running.welcome("before")
    shutil.rmtree(path)
    running.keeper.close(running.broker)
    _, back = Keeper.open(str(path), SETTINGS, "life 2", running.now)
    assert sessions(back) == {"before"}


def test_a_long_journal_gives_way_to_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start is fast; it is not done all the time, and not where the state is large beside it."""
    monkeypatch.setattr(keeper, "EARLY_ENTRIES", 10)
    monkeypatch.setattr(keeper, "ASIDE_LOOK_S", 0.0)
    running = Running(tmp_path / "b1")
    journal = running.keeper.journal
    lengths = []
    for number in range(30):
        running.now += 1.0
        running.welcome(f"guest {number}")
        until = time.monotonic() + 60.0
        while running.keeper.next_look_s is not None:  # a child writes it
            assert time.monotonic() < until, "the snapshot is never written"
            time.sleep(0.005)
            running.keeper.look_for_room(running.now)
        lengths.append(journal.entries)
    assert max(lengths[5:]) > 60, "not all the time"
    shrunk = sum(later < earlier for earlier, later in pairwise(lengths))
    assert shrunk == 1
    monkeypatch.setattr(keeper, "EARLY_S", 0.0)
    monkeypatch.setattr(keeper, "EARLY_SHARE", 1_000_000)
    before = journal.entries
    running.welcome("one more")
    assert journal.entries > before, "the snapshot is large beside what there is"
