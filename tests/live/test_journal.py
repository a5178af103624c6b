"""A broker's facts on disk: group commits, snapshots, sudden death, a full disk, and damage."""

import logging
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn.broker.records import segment_head
from sojourn.live.store.errors import JournalError
from sojourn.live.store.examining import examine, taken
from sojourn.live.store.journal import Journal
from tests.running import running

WRITER = """
import sys
from sojourn.live.store.journal import Journal

journal = Journal.open(sys.argv[1], broker="B1")
number = 0
while True:
    for _ in range(7):
        journal.append(b"%d" % number)
        number += 1
    journal.commit()
    if number % 700 == 0:
        journal.keep(b"%d" % number)
    print(number, flush=True)
"""


def opened(path: Path, *, power_safe: bool = False) -> Journal:
    """The store of one broker."""
    return Journal.open(path / "b1", broker="B1", power_safe=power_safe)


def turn(journal: Journal, *entries: bytes) -> None:
    """Commit some entries."""
    for entry in entries:
        journal.append(entry)
    journal.commit()


def everything(path: Path) -> tuple[bytes | None, list[bytes]]:
    """What a start finds."""
    journal = opened(path)
    try:
        state, entries = journal.replay()
        return state, list(entries)
    finally:
        journal.close()


@contextmanager
def small_files(most_bytes: int) -> Iterator[None]:
    """No file may grow beyond a size: a write that crosses it is cut short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("power_safe", [False, True])
def test_what_was_committed_is_replayed_in_order(tmp_path: Path, *, power_safe: bool) -> None:
    """Turns of any size come back one entry at a time; what was only appended does not."""
    journal = opened(tmp_path, power_safe=power_safe)
    turns = 600 if not power_safe else 30
    for number in range(turns):
        turn(journal, *[b"%d.%d" % (number, entry) for entry in range(number % 4)])
    count = journal.entries
    size = journal.size_bytes
    journal.append(b"never committed")
    journal.close()
    expected = [b"%d.%d" % (number, entry) for number in range(turns) for entry in range(number % 4)]
    assert everything(tmp_path) == (None, expected)
    assert count == len(expected)
    assert size == (tmp_path / "b1" / "journal.1").stat().st_size


def test_a_snapshot_takes_the_place_of_what_led_to_it(tmp_path: Path) -> None:
    """A restart reads the snapshot and what came after it, and nothing twice."""
    journal = opened(tmp_path)
    turn(journal, b"a")
    turn(journal, b"b")
    journal.keep(b"ab")
    assert journal.entries == journal.bytes == 0
    turn(journal, b"c")
    journal.close()
    present = {one.name for one in (tmp_path / "b1").iterdir()}
    assert present == {"about", "journal.3", "lock", "old-journal.1", "snapshot.3"}
    journal = opened(tmp_path)
    state, entries = journal.replay()
    assert (state, list(entries)) == (b"ab", [b"c"])
    assert journal.entries == 1
    journal.keep(b"abc")
    journal.keep(b"abc again")
    assert journal.replay()[0] == b"abc again"
    assert list(journal.replay()[1]) == []
    turn(journal, b"d")
    journal.close()
    assert everything(tmp_path) == (b"abc again", [b"d"])


def test_only_the_owner_reads_a_store(tmp_path: Path) -> None:
    """It holds what clients sent one another."""
    journal = opened(tmp_path)
    turn(journal, b"a")
    journal.keep(b"a")
    journal.reserve()
    journal.close()
    folder = tmp_path / "b1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}


def test_a_killed_process_loses_nothing_it_committed(tmp_path: Path) -> None:
    """What a process said it had committed before SIGKILL is there afterwards."""
    with running([sys.executable, "-c", WRITER, str(tmp_path / "b1")], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        said = 0
        for _ in range(350):
            said = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        said = max([said, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    state, entries = everything(tmp_path)
    assert state is not None
    first = int(state)
    found = [int(entry) for entry in entries]
    assert found == list(range(first, first + len(found)))
    assert first + len(found) >= said >= 2_450


@pytest.mark.parametrize("cut", [1, 5, 23, 24, 30])
def test_a_torn_tail_is_cut_off_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: int) -> None:
    """Of a write that was cut short nobody heard; everything before it is there."""
    journal = opened(tmp_path)
    turn(journal, b"a")
    size = journal.size_bytes
    turn(journal, b"torn" * 3)
    journal.close()
    segment = tmp_path / "b1" / "journal.1"
    segment.write_bytes(segment.read_bytes()[: size + cut])
    with caplog.at_level(logging.WARNING, "sojourn.store"):
        journal = opened(tmp_path)
    assert journal.cut_bytes == cut
    assert caplog.records[0].cut_bytes == cut  # type: ignore[attr-defined]  # given as extra
    assert segment.stat().st_size == size
    turn(journal, b"b")
    journal.close()
    assert everything(tmp_path) == (None, [b"a", b"b"])


def test_a_segment_without_its_head_is_begun_anew(tmp_path: Path) -> None:
    """The power may fail before the first byte of a file is there."""
    opened(tmp_path).close()
    (tmp_path / "b1" / "journal.1").write_bytes(segment_head(1)[:7])
    journal = opened(tmp_path)
    turn(journal, b"a")
    journal.close()
    assert everything(tmp_path) == (None, [b"a"])


def test_a_full_disk_leaves_no_half_batch_and_is_mended_by_a_snapshot(tmp_path: Path) -> None:
    """A commit that fails keeps its entries pending; once they are skipped, only a snapshot goes on."""
    journal = opened(tmp_path)
    turn(journal, b"first")
    size = journal.size_bytes
    journal.append(b"x" * 100_000)
    with small_files(size + 5_000):
        with pytest.raises(JournalError, match=r"cannot be written: File too large"):
            journal.commit()
        assert (tmp_path / "b1" / "journal.1").stat().st_size == size
        assert journal.pending == 1
        journal.skip_pending()
        journal.append(b"second")
        with pytest.raises(JournalError, match="waiting for room"):
            journal.commit()
        with pytest.raises(JournalError, match="cannot take a snapshot: File too large"):
            journal.keep(b"y" * 50_000)
        assert {one.name for one in (tmp_path / "b1").iterdir()} == {"about", "journal.1", "lock"}
    journal.keep(b"state")
    turn(journal, b"third")
    journal.close()
    assert everything(tmp_path) == (b"state", [b"third"])


def test_what_is_refused_too_tears_nothing(tmp_path: Path) -> None:
    """Who refuses what could not be committed may commit the next thing."""
    journal = opened(tmp_path)
    journal.append(b"x" * 9_000)
    with small_files(4_000), pytest.raises(JournalError):
        journal.commit()
    journal.refuse_pending()
    turn(journal, b"next")
    journal.close()
    assert everything(tmp_path) == (None, [b"next"])


def test_a_snapshot_that_was_being_taken_when_the_power_failed_does_no_harm(tmp_path: Path) -> None:
    """What it had written is passed over, and goes with the next snapshot."""
    journal = opened(tmp_path)
    turn(journal, b"a")
    journal.close()
    folder = tmp_path / "b1"
    (folder / "snapshot.2.new").write_bytes(b"half")
    (folder / "journal.2").write_bytes(segment_head(2))
    journal = opened(tmp_path)
    state, entries = journal.replay()
    assert (state, list(entries)) == (None, [b"a"])
    journal.keep(b"a")
    turn(journal, b"b")
    journal.close()
    assert everything(tmp_path) == (b"a", [b"b"])
    present = {one.name for one in folder.iterdir()}
    assert present == {"about", "journal.2", "lock", "old-journal.1", "snapshot.2"}


def test_damage_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """Every flipped byte of a journal but in its last batch, and of a snapshot; the files are left alone."""
    journal = opened(tmp_path)
    turn(journal, b"a")
    journal.keep(b"state")
    turn(journal, b"b", b"c")
    last = journal.bytes + 20
    turn(journal, b"d")
    journal.close()
    folder = tmp_path / "b1"
    (folder / "old-journal.1").unlink()
    for name, until in (("journal.2", last), ("snapshot.2", 37)):
        whole = (folder / name).read_bytes()
        for at in range(min(until, len(whole))):
            damaged = whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :]
            (folder / name).write_bytes(damaged)
            with pytest.raises(JournalError, match=rf"{name}.*sojourn store check .*sojourn store repair"):
                everything(tmp_path)
            assert (folder / name).read_bytes() == damaged
        (folder / name).write_bytes(whole)
    assert everything(tmp_path) == (b"state", [b"b", b"c", b"d"])
    (folder / "snapshot.2").unlink()
    with pytest.raises(JournalError, match=r"snapshot.2 is missing"):
        everything(tmp_path)


def test_a_store_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Of another broker, a later format, an older release, or none at all: one sentence each."""
    opened(tmp_path).close()
    with pytest.raises(JournalError, match="is that of broker 'B1' and not of 'B2'"):
        Journal.open(tmp_path / "b1", broker="B2")
    about = tmp_path / "b1" / "about"
    text = about.read_text()
    about.write_text(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(JournalError, match="has format 2, and this release reads up to 1; run that release"):
        opened(tmp_path)
    about.write_text("{")
    with pytest.raises(JournalError, match=r"about is missing or damaged; .*sojourn store repair"):
        opened(tmp_path)
    with sqlite3.connect(tmp_path / "old.db") as old:
        old.execute("CREATE TABLE journal (turn INTEGER)")
    with pytest.raises(JournalError, match="a database of an older release"):
        Journal.open(tmp_path / "old.db", broker="B1")
    (tmp_path / "file").write_bytes(b"not a store")
    with pytest.raises(JournalError, match="a store is a folder"):
        Journal.open(tmp_path / "file", broker="B1")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"")
    with pytest.raises(JournalError, match=r"holds other files, such as cat.png"):
        Journal.open(tmp_path / "photos", broker="B1")


def test_two_processes_never_share_a_store(tmp_path: Path) -> None:
    """The second one is told; when the first has gone, it may."""
    journal = opened(tmp_path)
    with pytest.raises(JournalError, match="is in use; stop the broker"):
        opened(tmp_path)
    journal.close()
    opened(tmp_path).close()


def generations(path: Path) -> Journal:
    """A store that has taken two snapshots, and gone on after each."""
    journal = opened(path)
    for number in range(1, 7):
        turn(journal, b"%d" % number)
        if number in (2, 4):
            journal.keep(b"state %d" % number)
    return journal


@pytest.mark.parametrize("damage", ["flipped", "deleted", "short", "empty"])
def test_a_bad_snapshot_costs_nothing_while_the_one_before_it_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """The broker comes back from that, says so in one sentence, and goes on; the bad one is set aside."""
    generations(tmp_path).close()
    folder = tmp_path / "b1"
    assert (folder / "old-snapshot.3").exists()
    bad = folder / "snapshot.5"
    whole = bad.read_bytes()
    damages = {"flipped": whole[:-1] + b"?", "short": whole[:-1], "empty": b""}
    bad.unlink() if damage == "deleted" else bad.write_bytes(damages[damage])
    with caplog.at_level(logging.WARNING):
        found = everything(tmp_path)
    assert found == (b"state 2", [b"3", b"4", b"5", b"6"])
    assert "nothing is lost" in caplog.text
    journal = opened(tmp_path)
    turn(journal, b"7")
    journal.keep(b"state 7")
    journal.close()
    assert everything(tmp_path) == (b"state 7", [])
    assert (folder / "damaged-snapshot.5").exists() == (damage != "deleted")


@pytest.mark.parametrize("step", range(1, 5))
def test_a_start_that_is_cut_short_while_it_falls_back_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Whatever was done before the power failed."""
    generations(tmp_path).close()
    folder = tmp_path / "b1"
    (folder / "snapshot.5").write_bytes(b"bad")
    done = 0

    def counted(name: str) -> None:
        right = getattr(Path, name)

        def call(self: Path, *arguments: object, **options: object) -> object:
            nonlocal done
            done += 1
            if done == step:
                raise OSError(5, "power")
            return right(self, *arguments, **options)

        monkeypatch.setattr(Path, name, call)

    for name in ("replace", "rename", "unlink"):
        counted(name)
    with pytest.raises((JournalError, OSError)):
        everything(tmp_path)
    monkeypatch.undo()
    assert everything(tmp_path) == (b"state 2", [b"3", b"4", b"5", b"6"])


def test_the_generation_before_makes_room_when_the_disk_is_full(tmp_path: Path) -> None:
    """It is a luxury."""
    journal = generations(tmp_path)
    journal.spend_reserve()
    journal.close()
    assert not list((tmp_path / "b1").glob("old-*"))
    assert everything(tmp_path) == (b"state 4", [b"5", b"6"])


def test_snapshots_that_were_not_finished_go_at_the_next_start(tmp_path: Path) -> None:
    """A broker that is killed again and again in the middle of one does not fill its disk with them."""
    journal = opened(tmp_path)
    turn(journal, b"fact")
    journal.close()
    unfinished = tmp_path / "b1" / "snapshot.2.4711.new"
    unfinished.write_bytes(bytes(1_000))
    assert everything(tmp_path) == (None, [b"fact"])
    assert not unfinished.exists()


def test_a_journal_that_is_gone_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The broker starts with nothing, says so, and whoever looks at its store is told the same before."""
    opened(tmp_path).close()
    (tmp_path / "b1" / "journal.1").unlink()
    folder = taken(tmp_path / "b1")
    (problem,) = examine(folder).problems
    folder.close()
    assert not problem.is_fatal
    assert "begins with nothing" in problem.what
    assert not caplog.records
    assert everything(tmp_path) == (None, [])
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "has no journal any more" in caplog.text


def test_a_folder_where_a_journal_should_be_is_said_in_a_sentence(tmp_path: Path) -> None:
    """And not as a traceback."""
    opened(tmp_path).close()
    journal = tmp_path / "b1" / "journal.1"
    journal.unlink()
    journal.mkdir()
    with pytest.raises(JournalError, match=r"journal\.1 is no regular file; move it away"):
        taken(tmp_path / "b1")
