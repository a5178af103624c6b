"""The store of a broker: what it was told, in order, so that it can be told again.

The cores are deterministic: fed the same facts at the same times they end in the same state. So the store
keeps no tables of sessions, queues or links. It keeps the facts, and now and then a snapshot of the whole
state so that a restart need not begin with the first one.

    journal = Journal.open(path, version)
    state, entries = journal.replay()        # state is the last snapshot, or None
    …
    journal.append(entry)                    # as often as facts arrive
    journal.commit()                         # once a loop turn, before anybody is told of an effect
    journal.keep(state)                      # a snapshot of everything committed so far

SQLite (WAL) does the writing. A commit is on disk as far as a killed process is concerned; with
`power_safe` it is also synced, so that it survives the machine. All facts of a loop turn are one row: that is
the group commit.

When a commit fails (a full disk above all) the entries stay pending and `commit` says why; the broker then
refuses what it would have to promise, and tries again with a snapshot once there is room, since facts were
handled in between that the journal has not seen.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sojourn.errors import SojournError

SCHEMA = 1
REPLAY_BATCH = 256
MAX_PENDING_BYTES = 64 << 20
"""Entries are dropped from a journal that cannot be written once they reach this; see `torn`."""
RESERVE_BYTES = 8 << 20
"""Room set aside on the disk, so that what was taken in when it filled up can still be made safe."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


class JournalError(SojournError):
    """The journal cannot be opened, read or written."""


class Journal:
    """One broker's facts on disk."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self.torn = False
        """Facts were handled that are not in the journal: only a snapshot mends it."""
        self.entries = 0
        """Entries committed since the last snapshot."""
        self.bytes = 0
        """Their size."""

    @classmethod
    def open(
        cls, path: str | Path, version: str = "x", *, broker: str = "", power_safe: bool = False
    ) -> Journal:
        """Open the journal at a path, or begin one; `version` names the release whose states it holds."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            _prepare(connection, version, str(path))
        except sqlite3.DatabaseError as error:
            raise JournalError(
                f"The store {path} cannot be opened: {error}; check that no other broker uses it."
            ) from None
        except OSError as error:
            raise JournalError(f"The folder of the store {path} cannot be made: {error.strerror}.") from None
        return cls(connection, str(path))

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """The last snapshot, or None, and the entries committed after it, in order."""
        row = self._connection.execute("SELECT last, state FROM snapshot").fetchone()
        last, state = row if row is not None else (0, None)
        return state, self._entries_after(last)

    def _entries_after(self, last: int) -> Iterator[bytes]:
        while True:
            rows = self._connection.execute(
                "SELECT turn, facts FROM journal WHERE turn > ? ORDER BY turn LIMIT ?", (last, REPLAY_BATCH)
            ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            for _, facts in rows:
                entries = _decode(facts)
                self.entries += len(entries)
                self.bytes += len(facts)
                yield from entries

    def append(self, entry: bytes) -> None:
        """Note a fact; it is safe after the next `commit`."""
        self._pending.append(entry)
        self._pending_bytes += len(entry)

    @property
    def pending(self) -> int:
        """Entries that wait for a commit."""
        return len(self._pending)

    def commit(self) -> None:
        """Make everything appended safe, as one row; if that fails, say so and keep it pending."""
        if not self._pending:
            return
        if self.torn:
            self._forget_pending()
            raise JournalError(f"The store {self._path} is waiting for room.")
        facts = _encode(self._pending)
        try:
            self._connection.execute("INSERT INTO journal (facts) VALUES (?)", (facts,))
        except sqlite3.Error as error:
            if self._pending_bytes > MAX_PENDING_BYTES:
                self.torn = True
                self._forget_pending()
            raise JournalError(f"The store {self._path} cannot be written: {error}.") from None
        self.entries += len(self._pending)
        self.bytes += len(facts)
        self._forget_pending()

    def skip_pending(self) -> None:
        """Give up what could not be committed; the caller has handled it, so only a snapshot mends this."""
        if self._pending:
            self.torn = True
            self._forget_pending()

    def refuse_pending(self) -> None:
        """Give up what could not be committed; the caller refuses it too, so nothing is torn."""
        self._forget_pending()

    def keep(self, state: bytes) -> None:
        """Replace all that was committed by a snapshot of the state that it led to."""
        try:
            self._connection.execute("BEGIN")
            self._connection.execute("DELETE FROM snapshot")
            self._connection.execute(
                "INSERT INTO snapshot (last, state) SELECT COALESCE(MAX(turn), 0), ? FROM journal", (state,)
            )
            self._connection.execute(
                "DELETE FROM journal WHERE turn < (SELECT last FROM snapshot)"
            )  # the last row stays, so that numbers go on
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise JournalError(f"The store {self._path} cannot take a snapshot: {error}.") from None
        self.torn = False
        self.entries = self.bytes = 0

    def reserve(self) -> bool:
        """Set room aside for the day the disk is full; say whether there is any."""
        path = Path(self._path + ".reserve")
        try:
            with path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        except OSError:
            path.unlink(missing_ok=True)
            return False
        return True

    def spend_reserve(self) -> None:
        """Give the room that was set aside to the journal."""
        Path(self._path + ".reserve").unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; what is pending is not committed."""
        self._connection.close()

    def _forget_pending(self) -> None:
        self._pending = []
        self._pending_bytes = 0


def _prepare(connection: sqlite3.Connection, version: str, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS about (schema INTEGER, version TEXT)")
    row = connection.execute("SELECT schema, version FROM about").fetchone()
    if row is None:
        connection.execute("INSERT INTO about VALUES (?, ?)", (SCHEMA, version))
        connection.execute(
            "CREATE TABLE journal (turn INTEGER PRIMARY KEY AUTOINCREMENT, facts BLOB NOT NULL)"
        )
        connection.execute("CREATE TABLE snapshot (last INTEGER NOT NULL, state BLOB NOT NULL)")
    connection.execute("COMMIT")
    if row is not None and row != (SCHEMA, version):
        connection.close()
        raise JournalError(
            f"The store {path} was written by release {row[1]} and this is {version}; run that release, or "
            "choose another path, where sessions begin anew."
        )
