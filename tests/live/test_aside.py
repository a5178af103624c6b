"""A snapshot is written beside a broker that goes on, and nothing is lost whenever either of them ends."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mqtt5 import ConnectPacket

from sojourn.broker import facts
from sojourn.broker.records import write_snapshot
from sojourn.live.store import generations, keeper
from sojourn.live.store.aside import Aside
from sojourn.live.store.folder import StoreFolder, write_file
from sojourn.live.store.journal import Journal
from sojourn.live.store.keeper import Keeper
from tests.live.test_store_taken_away import SETTINGS, Running, sessions

PATIENCE_S = 60.0


def outcome(aside: Aside) -> str:
    """What a child says when it is done."""
    until = time.monotonic() + PATIENCE_S
    while (why := aside.outcome()) is None:
        assert time.monotonic() < until, "the child does not end"
        time.sleep(0.01)
    return why


def test_a_child_writes_what_there_was_when_it_began(tmp_path: Path) -> None:
    """What changes meanwhile is not in it."""
    state = [b"before"]
    aside = Aside(tmp_path / "file.new", lambda: state[0])
    state[0] = b"after"
    assert outcome(aside) == ""
    assert (tmp_path / "file.new").read_bytes() == b"before"


ORPHAN = """
import os, sys, time
from pathlib import Path
from sojourn.live.store.aside import Aside

broker, folder = os.getpid(), Path(sys.argv[1])

def make():
    (folder / "child").write_text(str(os.getpid()))
    while os.getppid() == broker:
        time.sleep(0.01)
    return bytes(1_000)

Aside(folder / "file.new", make)
while not (folder / "child").exists():
    time.sleep(0.01)
os._exit(0)
"""


def has_ended(process: int) -> bool:
    """Whether a process is over, also where nobody asks how it ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def test_a_child_ends_soon_after_its_broker(tmp_path: Path) -> None:
    """Otherwise it went on to fill a disk that a broker which is killed again and again has no room on."""
    subprocess.run([sys.executable, "-c", ORPHAN, str(tmp_path)], check=True, timeout=PATIENCE_S)
    child, until = int((tmp_path / "child").read_text()), time.monotonic() + PATIENCE_S
    while not has_ended(child):
        assert time.monotonic() < until, "the child does not end"
        time.sleep(0.01)
    assert (tmp_path / "file.new").read_bytes() == b""


def test_a_child_holds_none_of_its_parents_files(tmp_path: Path) -> None:
    """Otherwise connections that a broker closes would stay open, and its address taken."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    go = tmp_path / "go"

    def make() -> bytes:
        while not go.exists():
            time.sleep(0.01)
        return b""

    aside = Aside(tmp_path / "file.new", make)
    os.close(writer)
    until = time.monotonic() + PATIENCE_S
    try:
        while True:
            try:
                assert os.read(reader, 1) == b"", "nobody writes to it any more"
                break
            except BlockingIOError:
                assert time.monotonic() < until, "the child still holds it"
                time.sleep(0.01)
        assert aside.outcome() is None, "it was still at it"
    finally:
        go.touch()
        os.close(reader)
    assert outcome(aside) == ""


def test_a_child_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """A full disk by its name; anything else is a failure."""

    def full() -> bytes:
        raise OSError(errno.ENOSPC, "no room")

    def wrong() -> bytes:
        raise ValueError

    def lasting() -> bytes:
        time.sleep(600)
        return b""

    assert outcome(Aside(tmp_path / "file.new", full)) == os.strerror(errno.ENOSPC)
    assert outcome(Aside(tmp_path / "file.new", wrong)) == "the process that wrote it failed"
    aside = Aside(tmp_path / "file.new", lasting)
    aside.give_up()
    assert "given up" in outcome(aside)
    assert not list(tmp_path.glob("*.new"))


def _journal(path: Path) -> tuple[Journal, Callable[[], None]]:
    """A journal with a snapshot, two batches, a snapshot written aside, one more batch; and its adoption."""
    journal = Journal.open(path, broker="B1")
    journal.commit([b"0"])
    journal.keep(b"state 0")
    journal.commit([b"1", b"2"])
    mark = journal.mark()
    write_file(journal.new_snapshot(mark), write_snapshot(mark.number, b"state 012"))
    journal.commit([b"3"])
    return journal, lambda: journal.adopt(mark, journal.new_snapshot(mark))


def _found(path: Path) -> tuple[bytes | None, list[bytes]]:
    journal = Journal.open(path, broker="B1")
    try:
        state, entries = journal.replay()
        return state, list(entries)
    finally:
        journal.close()


def test_what_was_committed_meanwhile_follows_the_snapshot(tmp_path: Path) -> None:
    """And so does what comes later; the generation before is whole in case that the snapshot is bad."""
    journal, adopt = _journal(tmp_path / "b1")
    assert journal.entries == 3
    adopt()
    assert journal.entries == 1
    journal.commit([b"4"])
    journal.close()
    assert _found(tmp_path / "b1") == (b"state 012", [b"3", b"4"])
    assert not list((tmp_path / "b1").glob("*.new"))
    next((tmp_path / "b1").glob("snapshot.*")).write_bytes(b"bad")
    assert _found(tmp_path / "b1") == (b"state 0", [b"1", b"2", b"3", b"4"])


class _PowerFailure(BaseException):
    """Nothing happens after it."""


@pytest.mark.parametrize("when", range(8))
def test_a_process_that_ends_while_it_adopts_a_snapshot_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """Whether the old pair counts or the new one: both lead to the same."""
    _, adopt = _journal(tmp_path / "b1")
    left = [when]

    def counted(where: object, name: str) -> None:
        real = getattr(where, name)

        def call(*arguments: object, **options: object) -> object:
            if not left[0]:
                raise _PowerFailure
            left[0] -= 1
            return real(*arguments, **options)

        monkeypatch.setattr(where, name, call)

    counted(StoreFolder, "sync")
    counted(Path, "replace")
    counted(Path, "rename")
    counted(os, "ftruncate")
    counted(generations, "set_aside")
    counted(StoreFolder, "clear_leftovers")
    with pytest.raises(_PowerFailure):
        adopt()
    monkeypatch.undo()
    # The dead process's lock is this one's: let the copy be what a new process finds.
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (tmp_path / "b1").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert _found(copy) in ((b"state 0", [b"1", b"2", b"3"]), (b"state 012", [b"3"]))


def test_a_broker_goes_on_while_its_snapshot_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes meanwhile is in the journal that follows it."""
    monkeypatch.setattr(keeper, "EARLY_ENTRIES", 10)
    monkeypatch.setattr(keeper, "ASIDE_LOOK_S", 0.0)
    running = Running(tmp_path / "b1")
    guests = 0
    while running.keeper.next_look_s is None:
        running.welcome(f"guest {guests}")
        guests += 1
    running.welcome("meanwhile")
    assert outcome_of(running) > 0
    running.keeper.journal.close()  # killed: no last snapshot
    _, back = Keeper.open(str(tmp_path / "b1"), SETTINGS, "life 2", running.now)
    assert sessions(back) == {f"guest {number}" for number in range(guests)} | {"meanwhile"}


def outcome_of(running: Running) -> int:
    """Wait for a snapshot that is being written; how large it is."""
    until = time.monotonic() + PATIENCE_S
    while running.keeper.next_look_s is not None:
        assert time.monotonic() < until, "the snapshot is never written"
        time.sleep(0.01)
        running.keeper.look_for_room(running.now)
    return running.keeper.journal.snapshot_bytes


def test_a_store_is_closed_while_a_snapshot_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was begun is given up, and the last one written."""
    monkeypatch.setattr(keeper, "EARLY_ENTRIES", 1)
    running = Running(tmp_path / "b1")
    running.welcome("guest")
    assert running.keeper.next_look_s is not None
    running.keeper.close(running.broker)
    assert not list((tmp_path / "b1").glob("*.new"))
    _, back = Keeper.open(str(tmp_path / "b1"), SETTINGS, "life 2", running.now)
    assert sessions(back) == {"guest"}


def test_a_snapshot_waits_until_nobody_waits_to_be_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who knocks is in no snapshot: it is taken in the turn after, and is whole."""
    monkeypatch.setattr(keeper, "EARLY_ENTRIES", 10_000)
    running = Running(tmp_path / "b1")
    running.welcome("guest")
    monkeypatch.setattr(keeper, "EARLY_ENTRIES", 1)
    monkeypatch.setattr(keeper, "ASIDE_LOOK_S", 0.0)
    broker = running.broker
    broker.handle(facts.ClientOpened(77, "here", "fresh"), running.now)
    broker.handle(facts.ClientSent(77, ConnectPacket("late").write()), running.now)
    assert broker.knocks
    running.keeper.commit(broker, broker.turn(running.now).entries)
    assert running.keeper.next_look_s is None
    broker.handle(facts.ClientAdmitted(broker.knocks.pop(0).number), running.now)
    running.keeper.commit(broker, broker.turn(running.now).entries)
    assert outcome_of(running) > 0
