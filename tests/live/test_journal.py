"""A broker's facts on disk: group commits, snapshots, sudden death and a full disk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.live.store.journal import Journal, JournalError

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
    print(number, flush=True)
"""


def test_what_was_committed_is_replayed_in_order(tmp_path: Path) -> None:
    """Turns of any size come back one entry at a time; what was only appended does not."""
    journal = Journal.open(tmp_path / "b1", broker="B1")
    for turn in range(600):
        for entry in range(turn % 4):
            journal.append(b"%d.%d" % (turn, entry))
        journal.commit()
    journal.append(b"never committed")
    journal.close()
    state, entries = Journal.open(tmp_path / "b1", broker="B1").replay()
    assert state is None
    assert list(entries) == [b"%d.%d" % (turn, entry) for turn in range(600) for entry in range(turn % 4)]


def test_a_snapshot_takes_the_place_of_what_led_to_it(tmp_path: Path) -> None:
    """A restart reads the snapshot and what came after it, and nothing twice."""
    journal = Journal.open(tmp_path / "b1", broker="B1")
    for entry in (b"a", b"b"):
        journal.append(entry)
        journal.commit()
    journal.keep(b"ab")
    assert journal.entries == 0
    journal.append(b"c")
    journal.commit()
    journal.close()
    journal = Journal.open(tmp_path / "b1", broker="B1")
    state, entries = journal.replay()
    assert (state, list(entries)) == (b"ab", [b"c"])
    journal.keep(b"abc")
    journal.keep(b"abc")
    assert journal.replay()[0] == b"abc"
    assert list(journal.replay()[1]) == []


def test_a_killed_process_loses_nothing_it_committed(tmp_path: Path) -> None:
    """What a process said it had committed before SIGKILL is there afterwards."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "b1")], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        said = 0
        for _ in range(300):
            said = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        said = max([said, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    _, entries = Journal.open(tmp_path / "b1", broker="B1").replay()
    found = [int(entry) for entry in entries]
    assert found == list(range(len(found)))
    assert len(found) >= said >= 2_100


def test_a_full_disk_is_reported_and_mended_by_a_snapshot(tmp_path: Path) -> None:
    """A commit that fails keeps its entries pending; once they are skipped, only a snapshot goes on."""
    journal = Journal.open(tmp_path / "b1", broker="B1")
    journal.append(b"first")
    journal.commit()
    (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    journal.append(b"x" * 100_000)
    with pytest.raises(JournalError, match=r"cannot be written: database or disk is full"):
        journal.commit()
    assert journal.pending == 1
    journal.skip_pending()
    journal.append(b"second")
    with pytest.raises(JournalError, match="waiting for room"):
        journal.commit()
    journal._connection.execute("PRAGMA max_page_count = 1000000")
    journal.keep(b"state")
    journal.append(b"third")
    journal.commit()
    state, entries = journal.replay()
    assert (state, list(entries)) == (b"state", [b"third"])


def test_a_store_of_another_release_or_no_store_at_all_is_refused(tmp_path: Path) -> None:
    """One sentence each, and the file is left alone."""
    Journal.open(tmp_path / "b1", broker="B1").close()
    with pytest.raises(JournalError, match="written by release 1 and this is 2"):
        Journal.open(tmp_path / "b1", "2")
    (tmp_path / "b2.db").write_bytes(b"not a database" * 100)
    with pytest.raises(JournalError, match="cannot be opened: file is not a database"):
        Journal.open(tmp_path / "b2.db", "1")
    journal = Journal.open(tmp_path / "b1", broker="B1")
    journal.append(b"x")
    journal.commit()
    with pytest.raises(JournalError, match="no other broker uses it"):
        Journal.open(tmp_path / "b1", broker="B1")
