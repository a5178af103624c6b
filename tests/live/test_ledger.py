"""Who notices a lost store, who counts it, and what of that survives a restart."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from sojourn.live.page.ledger import (
    FRESH_S,
    LOSSES_MAX,
    REFRESH_S,
    REMOVED_SETTLE_S,
    SETTLE_S,
    Known,
    Ledger,
    LedgerFile,
    Loss,
    in_words,
)

NUMBERS = {"B1": 0, "B2": 1, "B3": 2}


def rank(one: str, _lost: str) -> tuple[bool, int]:
    """B2 is beside everybody."""
    return one != "B2", NUMBERS[one]


def knowing(events: int = 30, at_s: float = 1.0) -> Ledger:
    """A ledger that knows B3 with a session."""
    ledger = Ledger(rank, 0.0)
    assert ledger.take("B3", Known("old", 1, events, at_s), at_s) is None
    return ledger


def test_another_memory_is_a_loss_of_what_was_last_told_and_noticed_once() -> None:
    """Whether a hello or a report says it first."""
    ledger = knowing()
    loss = ledger.forgot("B3", "new", 5.0)
    assert loss == Loss("B3", "new", 1, 30, 1.0, 5.0)
    assert ledger.take("B3", Known("new", 0, 0, 6.0), 6.0) is None
    assert ledger.forgot("B3", "new", 7.0) is None
    assert list(ledger.losses.values()) == [loss]


def test_a_broker_of_which_nothing_is_known_has_lost_an_unknown_number() -> None:
    """It is noticed all the same, and counted if nobody knows more."""
    ledger = Ledger(rank, 0.0)
    loss = ledger.forgot("B3", "new", 5.0)
    assert loss is not None
    assert loss.events is None
    assert ledger.due("B2", 5.0 + SETTLE_S) == [loss]


def test_figures_are_said_with_the_moment_that_they_are_of() -> None:
    """Told a while before the end, when it was stopped, and not at all."""
    killed = knowing(at_s=100.0).forgot("B3", "new", 120.0, gone_s=103.0)
    assert killed is not None
    assert in_words(killed) == (
        "B3 has lost its store, and with it what only that had: 1 session and 30 events when it last told "
        "(1970-01-01 00:01:40 UTC, 3.0 s before its link went down), some of them perhaps elsewhere too; "
        "what came after that is not counted"
    )
    ledger = knowing()
    ledger.take("B3", Known("old", 2, 1, 100.0, is_last=True), 100.0)
    stopped = ledger.forgot("B3", "new", 120.0, gone_s=100.1)
    assert stopped is not None
    assert "2 sessions and 1 event when it was stopped (1970-01-01 00:01:40 UTC)" in in_words(stopped)
    again = ledger.forgot("B3", "newer", 130.0, gone_s=129.0)
    assert again is not None
    assert in_words(again).endswith("how many sessions and events, it has not told here")


def test_a_broker_that_came_back_and_has_not_told_yet_had_no_known_number() -> None:
    """Nobody invents that it was empty; once it told, that is known."""
    ledger = knowing()
    ledger.forgot("B3", "new", 5.0)
    assert ledger.known["B3"].sessions is None
    ledger.take("B3", Known("new", 0, 0, 6.0), 6.0)
    loss = ledger.forgot("B3", "newer", 7.0)
    assert loss is not None
    assert (loss.sessions, loss.events, loss.as_of_s) == (0, 0, 6.0)


@pytest.mark.parametrize("latest", ["B1", "B2"])
def test_whoever_heard_last_counts_and_nobody_else(latest: str) -> None:
    """Others were down, or heard the last report but one."""
    ledgers = {
        name: knowing(30 if name == latest else 5, 2.0 if name == latest else 1.0) for name in ("B1", "B2")
    }
    for ledger in ledgers.values():
        ledger.forgot("B3", "new", 5.0)
    assert not any(ledger.due(name, 5.0) for name, ledger in ledgers.items()), "others may know more"
    counted: dict[str, list[int | None]] = {name: [] for name in ledgers}
    for second in range(6, 12):
        for name, ledger in ledgers.items():
            for other, its in ledgers.items():
                if other != name:
                    ledger.told(other, list(its.losses.values()), float(second))
            counted[name] += [loss.events for loss in ledger.due(name, float(second))]
    assert counted.pop(latest) == [30]
    assert [*counted.values()] == [[]]


def test_of_those_who_know_the_same_a_neighbour_counts() -> None:
    """If it is silent, and has not said that it did, another one does."""
    ledger = knowing()
    loss = ledger.forgot("B3", "new", 5.0)
    assert loss is not None
    ledger.told("B2", [loss], 6.0)
    assert ledger.due("B1", 6.0 + FRESH_S) == []
    assert ledger.due("B1", 6.1 + FRESH_S) == [loss]
    assert ledger.due("B1", 7.0 + FRESH_S) == []


def test_a_broker_that_was_removed_is_told_of_once_and_counted_by_one(tmp_path: Path) -> None:
    """What it last told is out of reach: the next start of each other one says so, and no later one."""
    file = LedgerFile(str(tmp_path / "B1"))
    file.write(knowing().written())
    left = {"B1": 0, "B2": 1}
    ledger = Ledger(rank, 100.0, file.read(left))
    (loss,) = ledger.removed
    assert (loss.broker, loss.sessions, loss.events, loss.is_removed) == ("B3", 1, 30, True)
    assert "B3" not in ledger.known
    assert ledger.due("B1", 99.0 + REMOVED_SETTLE_S) == [], "links may not stand yet"
    ledger.told("B2", [loss], 99.0 + REMOVED_SETTLE_S)
    assert ledger.due("B1", 100.0 + REMOVED_SETTLE_S) == [], "B2 knows as much and is a neighbour"
    ledger.told("B2", [replace(loss, is_counted=True)], 101.0 + REMOVED_SETTLE_S)
    assert ledger.due("B1", 200.0 + REMOVED_SETTLE_S) == []
    file.write(ledger.written())
    again = Ledger(rank, 900.0, file.read(left))
    assert again.removed == []
    assert again.due("B1", 999.0) == []
    assert [one.broker for one in again.losses.values()] == ["B3"], "metrics still count it"


def test_a_broker_that_left_in_order_is_not_told_of_as_lost(tmp_path: Path) -> None:
    """It gave its sessions away before it stopped; one that left dead, or was only removed, did not."""
    file = LedgerFile(str(tmp_path / "B1"))
    ledger = Ledger(rank, 0.0)
    ledger.take("B2", Known("m2", 0, 7, 1.0), 1.0)
    ledger.take("B3", Known("m3", 0, 2309, 1.0, is_last=True), 1.0)
    file.write(ledger.written())
    left = {"B2", "B3"}
    assert [loss.broker for loss in Ledger(rank, 9.0, file.read({"B1"}, left)).removed] == ["B2"]
    assert [loss.broker for loss in Ledger(rank, 9.0, file.read({"B1"})).removed] == ["B2", "B3"]


def test_a_removed_broker_that_comes_back_with_its_store_has_lost_nothing(tmp_path: Path) -> None:
    """And one that had neither sessions nor events when it was removed is not worth a word."""
    file = LedgerFile(str(tmp_path / "B1"))
    file.write(knowing().written())
    ledger = Ledger(rank, 100.0, file.read({"B1": 0}))
    file.write(ledger.written())
    back = Ledger(rank, 200.0, file.read(NUMBERS))
    assert back.take("B3", Known("old", 1, 30, 201.0), 201.0) is None
    back.take("B3", Known("old", 0, 0, 202.0), 202.0)
    file.write(back.written())
    assert Ledger(rank, 300.0, file.read({"B1": 0})).removed == []


def test_a_loss_is_known_after_a_restart_and_waits_for_others_again(tmp_path: Path) -> None:
    """The file is its owner's alone, and is only written when something has changed."""
    file = LedgerFile(str(tmp_path / "B1"))
    ledger = knowing()
    file.write(ledger.written())
    assert file.path is not None
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    first = file.path.stat().st_ino
    ledger.take("B3", Known("old", 1, 30, 2.0), 2.0)
    file.write(ledger.written())
    assert file.path.stat().st_ino == first
    ledger.take("B3", Known("old", 1, 30, 1.0 + REFRESH_S), 1.0 + REFRESH_S)
    file.write(ledger.written())
    assert file.path.stat().st_ino != first, "it says when that was last told"
    again = Ledger(rank, 9.0, LedgerFile(str(tmp_path / "B1")).read(NUMBERS))
    loss = again.take("B3", Known("new", 0, 0, 9.0), 9.0, gone_s=2.0 + REFRESH_S)
    assert loss == Loss("B3", "new", 1, 30, 1.0 + REFRESH_S, 9.0), "it heard that in another life"
    file.write(again.written())
    later = Ledger(rank, 50.0, file.read(NUMBERS))
    assert later.due("B1", 51.0) == []
    assert later.due("B1", 50.0 + SETTLE_S) == [loss]
    file.write(later.written())
    assert Ledger(rank, 90.0, file.read(NUMBERS)).due("B1", 99.0) == []
    assert file.read(["B1"]) is not None
    assert "B3" not in file.read(["B1"]).known  # type: ignore[union-attr]  # it is there


def test_a_file_that_cannot_be_read_or_written_costs_nothing_else(tmp_path: Path) -> None:
    """The broker knows less, and goes on."""
    file = LedgerFile(str(tmp_path / "B1"))
    (tmp_path / "B1.known").write_bytes(b"[")
    assert file.read(NUMBERS) is None
    LedgerFile(str(tmp_path / "gone" / "B1")).write(knowing().written())
    assert LedgerFile(None).read(NUMBERS) is None


def test_only_the_last_losses_are_kept() -> None:
    """A broker without a store loses its memory with every restart."""
    ledger = knowing()
    for number in range(LOSSES_MAX + 5):
        ledger.forgot("B3", f"m{number}", float(number))
    assert len(ledger.losses) == LOSSES_MAX
    assert ("B3", f"m{LOSSES_MAX + 4}") in ledger.losses


def test_the_file_may_be_written_elsewhere(tmp_path: Path) -> None:
    """Whoever must not wait for a disk hands the work on; what is written is what was known then."""
    file, parked = LedgerFile(str(tmp_path / "B1")), list[Callable[[], None]]()
    file.write(knowing().written(), parked.append)
    assert file.read(NUMBERS) is None
    file.write(knowing().written(), parked.append)
    (work,) = parked  # nothing has changed since
    work()
    found = file.read(NUMBERS)
    assert found is not None
    assert found.known.keys() == knowing().written().known.keys()
