"""`sojourn check replay`: what live brokers recorded leads to the same state when it is told again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.hall import Hall, line
from typer.testing import CliRunner

from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import Settings
from sojourn.cli.check import app
from sojourn.cli.check_replay import ReplayError
from sojourn.live.store.journal import Journal


def _live(hall: Hall, turn: int) -> None:
    """Let clients come, subscribe, publish and go."""
    reader = hall.visit(turn % 2, "reader", lasts_s=500)
    hall.settle()
    reader.subscribe(f"news/{turn}", "n > 1")
    writer = hall.visit(1, "writer", lasts_s=500)
    hall.settle()
    reader.lose()
    hall.now += 0.1
    for number in range(5):
        writer.publish(f"news/{turn}", b"%d" % number, {"n": number})
        hall.settle()
    writer.publish("kept", b"kept", retain=True)
    writer.leave()
    hall.settle()


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """The stores of two brokers that took a snapshot in the middle of their lives."""
    hall = Hall(line(2))
    journals = [Journal.open(tmp_path / desk.name, broker=desk.name) for desk in hall.desks]
    for turn in range(3):
        _live(hall, turn)
        for desk, journal in zip(hall.desks, journals, strict=True):
            for place in range(0, len(desk.store.written), 4):
                journal.commit(desk.store.written[place : place + 4])
            desk.store.written = []
            if turn < 2:
                journal.keep(desk.broker.snapshot())
    for journal in journals:
        journal.close()
    return tmp_path


def test_whole_stores_lead_to_the_same_state_and_live_on(stores: Path) -> None:
    """All of it is said."""
    told = CliRunner().invoke(app, ["replay", str(stores)])
    assert told.exit_code == 0, told.output
    for name in ("B1", "B2"):
        assert f"{name}: a snapshot of" in told.output
        assert "facts before the snapshot lead to the same state" in told.output
        assert f"{name}: 1 sessions; no fact was refused, and all rules hold" in told.output
    assert "All 2 brokers live on: every link is up." in told.output


def test_one_store_of_several_is_not_let_live_on(stores: Path) -> None:
    """And it is said which are missing."""
    told = CliRunner().invoke(app, ["replay", str(stores / "B1")])
    assert told.exit_code == 0, told.output
    assert "B2 missing" in told.output


def test_a_broker_that_comes_to_something_else_is_found(
    stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told again is compared with what was kept."""
    right = LiveBroker.replay

    def wrong(self: LiveBroker, told: object) -> None:
        right(self, told)  # type: ignore[arg-type]  # as the method it stands for
        for session in self.core.state.sessions.values():
            session.expiry += 1

    monkeypatch.setattr(LiveBroker, "replay", wrong)
    told = CliRunner().invoke(app, ["replay", str(stores)])
    assert told.exit_code == 1
    assert "replay and snapshot differ in" in told.output


def test_a_damaged_store_gets_one_sentence_and_the_way_out(stores: Path) -> None:
    """And nothing is changed."""
    segment = max((stores / "B1").glob("journal.*"))
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(data)
    told = CliRunner().invoke(app, ["replay", str(stores)])
    assert isinstance(told.exception, ReplayError)
    assert "sojourn store repair" in str(told.exception)
    assert segment.read_bytes() == data


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    """With the name of the folder."""
    told = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert told.exception is not None
    assert str(tmp_path) in str(told.exception)


def test_links_that_close_a_loop_are_in_no_use(tmp_path: Path) -> None:
    """Brokers talk along a tree of their links, also when they live on."""
    names = ("B1", "B2", "B3")
    links = (("B1", "B2"), ("B2", "B3"), ("B3", "B1"))
    for name in names:
        broker = LiveBroker.revived(Settings(name=name, brokers=names, links=links), "life", 0.0, None, [])
        journal = Journal.open(tmp_path / name, broker=name)
        journal.commit(broker.turn(0.0).entries)
        journal.keep(broker.snapshot())
        journal.close()
    told = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "All 3 brokers live on: every link is up." in told.output
