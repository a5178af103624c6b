"""A snapshot is written beside a broker that goes on, and nothing is lost whenever either of them ends."""

from __future__ import annotations

import contextlib
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
from sojourn.live.store import following, generations, keeper
from sojourn.live.store.aside import Aside
from sojourn.live.store.errors import JournalError
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
from sojourn.live.store.errors import JournalError

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


def _break_off(monkeypatch: pytest.MonkeyPatch, left: list[int], failure: BaseException) -> None:
    """Let what changes files fail after so many times: once, or from then on where the power fails."""

    def counted(where: object, name: str) -> None:
        real = getattr(where, name)

        def call(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] == -1 or (left[0] < 0 and isinstance(failure, _PowerFailure)):
                raise failure
            return real(*arguments, **options)

        monkeypatch.setattr(where, name, call)

    for name in ("pwrite", "fsync", "fdatasync", "ftruncate"):
        counted(os, name)
    for name in ("replace", "rename"):
        counted(Path, name)
    for name in ("sync", "clear_leftovers"):
        counted(StoreFolder, name)
    counted(generations, "set_aside")


MOMENTS = 40
"""More than there are at which a snapshot that is adopted in parts can be broken off."""


def _adopt_in_parts(
    path: Path, monkeypatch: pytest.MonkeyPatch, left: list[int], failure: BaseException
) -> tuple[Journal, list[bytes]]:
    """Adopt a snapshot while more is committed; return what was, the last of which may have failed."""
    monkeypatch.setattr(following, "PART_BYTES", 100)
    monkeypatch.setattr(following, "PIECE_BYTES", 60)
    journal = Journal.open(path, broker="B1", power_safe=True)
    journal.commit([b"0"])
    journal.keep(b"state 0")
    journal.commit([b"1"])
    mark = journal.mark()
    new = journal.new_snapshot(mark)
    write_file(new, write_snapshot(mark.number, b"state 01"))
    safe = [b"1", b"2" * 300]
    journal.commit(safe[1:])
    _break_off(monkeypatch, left, failure)
    with contextlib.suppress(JournalError, _PowerFailure):
        while not journal.catch_up(mark):
            safe.append(b"%d" % (len(safe) + 1))
            before, is_power = left[0], isinstance(failure, _PowerFailure)
            if not is_power:
                left[0] = MOMENTS  # what a commit that fails leads to is said elsewhere
            journal.commit(safe[-1:])
            if not is_power:
                left[0] = before
        journal.adopt(mark, new)
    monkeypatch.undo()
    return journal, safe


@pytest.mark.parametrize("when", range(MOMENTS))
def test_a_process_that_ends_while_it_adopts_a_snapshot_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """Whether the old pair counts or the new one: both lead to the same, and a start removes the rest."""
    left = [when]
    _, safe = _adopt_in_parts(tmp_path / "b1", monkeypatch, left, _PowerFailure())
    assert left[0] < 0 or when > MOMENTS // 2, "there are fewer moments than that"
    assert left[0] >= 0 or when < MOMENTS - 1, "every moment is tried"
    # The dead process's lock is this one's: let the copy be what a new process finds.
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (tmp_path / "b1").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert _found(copy) in [
        (state, known[first:])
        for state, first in ((b"state 0", 0), (b"state 01", 1))
        for known in ((safe, safe[:-1]) if left[0] < 0 else (safe,))
    ]
    assert not list(copy.glob("*.new"))


@pytest.mark.parametrize("when", range(MOMENTS))
def test_a_snapshot_that_cannot_be_adopted_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    """Whatever fails: what was committed is there, nothing is left of the copy, and the next one succeeds."""
    failure = OSError(errno.ENOSPC, "no room")
    journal, safe = _adopt_in_parts(tmp_path / "b1", monkeypatch, [when], failure)
    journal.commit([b"later"])
    mark = journal.mark()
    for left in (tmp_path / "b1").glob("snapshot.*.new"):
        left.unlink()  # by whoever wrote it
    assert not list((tmp_path / "b1").glob("*.new"))
    new = journal.new_snapshot(mark)
    write_file(new, write_snapshot(mark.number, b"next"))
    journal.commit([b"last"])
    journal.adopt(mark, new)
    journal.close()
    assert _found(tmp_path / "b1") == (b"next", [b"last"])
    next((tmp_path / "b1").glob("snapshot.*")).write_bytes(b"bad")
    assert _found(tmp_path / "b1") in (
        (b"state 0", [*safe, b"later", b"last"]),
        (b"state 01", [*safe[1:], b"later", b"last"]),
    )


def _written_aside(path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A broker whose child has just written a snapshot, and ended."""
    monkeypatch.setattr(keeper, "EARLY_ENTRIES", 10)
    running = Running(path)
    while running.keeper._aside is None:
        running.welcome(f"guest {running.clients}")
    child, until = running.keeper._aside[1]._child, time.monotonic() + PATIENCE_S
    assert child is not None
    while not has_ended(child):
        assert time.monotonic() < until, "the child does not end"
        time.sleep(0.01)
    return running


def test_what_came_meanwhile_is_copied_a_part_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn copies more than a part, or twice what it brings; it ends though every turn brings more."""
    running = _written_aside(tmp_path / "b1", monkeypatch)
    journal = running.keeper.journal
    large = [bytes([number]) * (1 << 20) for number in range(12)]
    for entry in large:
        journal.commit([entry])
    read: list[int] = []
    pread = os.pread

    def counted(file: int, size: int, at: int) -> bytes:
        read.append(size)
        return pread(file, size, at)

    monkeypatch.setattr(os, "pread", counted)
    running.now += keeper.ASIDE_LOOK_S
    first, turns = journal.first, 0
    while journal.first == first:
        read.clear()
        large.append(bytes([turns]) * (700 << 10))
        running.broker.handle(facts.TimePassed(), running.now)
        running.keeper.commit(running.broker, large[-1:])
        turns += 1
        assert sum(read) <= 2 * (len(large[-1]) + 100)
        assert max(read, default=0) <= following.PIECE_BYTES, "no more than a piece is in memory"
        assert turns < 100, "it does not end"
    assert turns > 10
    assert list(journal.replay()[1])[-len(large) :] == large
    journal.close()


def test_it_goes_on_though_nothing_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks for room copies the rest, in parts too."""
    running = _written_aside(tmp_path / "b1", monkeypatch)
    journal = running.keeper.journal
    journal.commit([bytes(3 * following.PART_BYTES)])
    first, looks = journal.first, 0
    while journal.first == first:
        assert running.keeper.next_look_s is not None
        running.now = max(running.now, running.keeper.next_look_s)
        running.keeper.look_for_room(running.now)
        looks += 1
    assert looks == 4
    assert running.keeper.next_look_s is None
    journal.close()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_store_that_is_taken_away_while_it_is_copied_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_replaced: bool
) -> None:
    """Nothing of the copy gets into what is found there instead, noticed or not."""
    running = _written_aside(tmp_path / "b1", monkeypatch)
    running.keeper.journal.commit([bytes(2 * following.PART_BYTES)])
    running.now += keeper.ASIDE_LOOK_S
    running.welcome("while it is copied")
    assert running.keeper._is_written
    (tmp_path / "b1").rename(tmp_path / "elsewhere")
    if is_replaced:
        Journal.open(tmp_path / "b1", broker="B1").close()
    while running.keeper._aside is not None:
        running.welcome(f"guest {running.clients}")
    if is_replaced:
        assert {one.name for one in (tmp_path / "b1").iterdir()} == {"about", "journal.1", "lock"}
    running.now += keeper.PRESENCE_S
    running.welcome("last")
    running.keeper.journal.close()
    _, back = Keeper.open(str(tmp_path / "b1"), SETTINGS, "life 2", running.now)
    assert {"guest 0", "while it is copied", "last"} <= sessions(back)


def test_a_copy_that_fills_the_disk_goes_before_anybody_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was for is tried again later."""
    running = _written_aside(tmp_path / "b1", monkeypatch)
    running.keeper.journal.commit([bytes(2 * following.PART_BYTES)])
    running.now += keeper.ASIDE_LOOK_S
    running.welcome("while it is copied")
    assert running.keeper._is_written
    pwrite = os.pwrite

    def full(file: int, data: bytes, at: int) -> int:
        if list((tmp_path / "b1").glob("*.new")):
            raise OSError(errno.ENOSPC, "no room")
        return pwrite(file, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    entries = running.broker.turn(running.now).entries or [b"an entry"]
    assert running.keeper.commit(running.broker, entries) is None
    assert running.keeper.look_again_s is None
    assert running.keeper.journal.pending == 0
    assert not list((tmp_path / "b1").glob("*.new"))
    running.keeper.journal.close()


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
