"""The store of a broker: what it was told, in order, so that it can be told again.

The cores are deterministic: fed the same facts at the same times they end in the same state. So the store
keeps no tables of sessions, queues or links. It keeps the facts, and now and then a snapshot of the whole
state so that a restart need not begin with the first one.

    journal = Journal.open(path, broker="B1")
    state, entries = journal.replay()        # state is the last snapshot, or None
    …
    journal.append(entry)                    # as often as facts arrive
    journal.commit()                         # once a loop turn, before anybody is told of an effect
    journal.keep(state)                      # a snapshot of everything committed so far

A store is a folder that one process uses at a time:

| file | what it holds |
| --- | --- |
| `about` | what the folder is, for which broker, and which release made it; JSON |
| `journal.N` | the batches from number N on, one a commit (`broker/records.py`) |
| `snapshot.N` | the state before batch N; none at first, when N is 1 |
| `old-journal.M`, `old-snapshot.M` | the generation before, in case the snapshot is bad (`generations.py`) |
| `lock` | held while a process uses the store |
| `reserve` | room set aside for the day the disk is full |

What is promised: a commit that returned survives the death of the process. With `power_safe` it also survives
a failure of power, for which every commit waits until the disk has it: with batches of seven small entries a
busy machine with a virtual disk made 100,000 commits a second without it and 200 with it. Snapshots are
always synced before they take the place of what led to them. Whatever was cut short (a torn tail) is cut off
at the next start; damage is never read past, and refused with the command that looks at it.

When a commit fails (a full disk above all) no half batch is left behind, the entries stay pending and
`commit` says why; the broker then refuses what it would have to promise, and tries again with a snapshot once
there is room, since facts were handled in between that the journal has not seen.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from sojourn.broker.records import (
    SEGMENT_HEAD_BYTES,
    RecordError,
    SegmentReader,
    Verdict,
    read_snapshot,
    segment_head,
    write_batch,
    write_snapshot,
)
from sojourn.errors import typed
from sojourn.live.store import generations
from sojourn.live.store.errors import DamagedError, JournalError
from sojourn.live.store.folder import FolderError, StoreFolder, write_all, write_file
from sojourn.live.store.following import Following, Mark

MAX_PENDING_BYTES = 64 << 20
"""Entries are dropped from a journal that cannot be written once they reach this; see `torn`."""
RESERVE_BYTES = 8 << 20
"""Room set aside on the disk, so that what was taken in when it filled up can still be made safe."""

_log = logging.getLogger("sojourn.store")


class Journal:
    """One broker's facts on disk."""

    def __init__(self, folder: StoreFolder, first: int, *, power_safe: bool) -> None:
        self._folder = folder
        self._path = folder.path
        self._power_safe = power_safe
        self._first = first
        """The number of the first batch of the segment, and of the snapshot before it."""
        self._file = -1
        self._size = 0
        """Bytes of the segment that are whole; beyond them nothing counts."""
        self._is_dirty = False
        """Whether bytes of a failed write may lie beyond that."""
        self._next = first
        self._snapshot_bytes = 0
        self._following: Following | None = None
        """The segment that is to follow a snapshot which is about to be adopted."""
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self.cut_bytes = 0
        """Bytes of a torn tail that were cut off when the journal was opened."""
        self.torn = False
        """Facts were handled that are not in the journal: only a snapshot mends it."""
        self.entries = 0
        """Entries committed since the last snapshot."""
        self.bytes = 0
        """Their size."""

    @classmethod
    def open(
        cls, path: str | Path, *, broker: str, power_safe: bool = False, sound: int | None = None
    ) -> Journal:
        """Open the store at a path, or begin one; it belongs to the broker of that name.

        Its snapshot is read whole, to see that it is sound, unless that of number `sound` was just written.
        """
        try:
            folder = StoreFolder.taken(Path(path), broker)
        except FolderError as error:
            raise (DamagedError if error.is_damage else JournalError)(str(error)) from None
        try:
            first = generations.sound_first(folder) if sound is None else sound
            journal = cls(folder, first, power_safe=power_safe)
            journal._begin()
            folder.clear_unfinished()
        except OSError as error:
            folder.close()
            raise JournalError(f"The store {path} cannot be opened: {error.strerror}.") from None
        except JournalError:
            folder.close()
            raise
        return journal

    def _begin(self) -> None:
        """Find the end of the segment, cut off what was torn, and be ready to write on."""
        folder = self._folder
        snapshot, segment = folder.snapshot(self._first), folder.segment(self._first)
        if snapshot.exists():
            self._snapshot_bytes = snapshot.stat().st_size
        elif self._first != 1:
            raise self._damaged(f"snapshot.{self._first} is missing")
        if not segment.exists():
            if self._first != 1 or snapshot.exists():
                raise self._damaged(f"journal.{self._first} is missing")
            if not folder.is_new:
                _log.warning(
                    "The store %s has no journal any more: its broker begins with nothing.", self._path
                )
            write_file(segment, segment_head(1))
            folder.sync()
        reader = SegmentReader(segment.read_bytes(), self._first)
        for batch in reader:
            self.entries += len(batch.entries)
        ending = reader.ending
        if ending.verdict is Verdict.CORRUPT:
            raise self._damaged(f"journal.{self._first} at byte {ending.at}: {ending.why}")
        self._file = os.open(segment, os.O_RDWR)
        self._size, self._next = ending.at, ending.next_number
        if ending.verdict is Verdict.TORN:
            self._cut(segment.stat().st_size - ending.at, ending.why)
        self.bytes = self._size - SEGMENT_HEAD_BYTES

    def _cut(self, torn_bytes: int, why: str) -> None:
        """Cut off a write that was cut short; nobody was told of it."""
        self.cut_bytes = torn_bytes
        _log.warning("store", extra={"store": str(self._path), "cut_bytes": torn_bytes, "why": why})
        os.ftruncate(self._file, self._size)
        if not self._size:  # not even the head was there
            write_all(self._file, segment_head(self._first), 0)
            self._size = SEGMENT_HEAD_BYTES
        os.fsync(self._file)

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(
            f"The store {self._path} is damaged ({what}); `sojourn store check {typed(self._path)}` looks at "
            f"it, `sojourn store repair {typed(self._path)}` gives up what is lost."
        )

    @property
    def size_bytes(self) -> int:
        """How large the store is on disk, without what is set aside."""
        return self._size + self._snapshot_bytes

    @property
    def path(self) -> Path:
        """The folder of the store."""
        return self._path

    @property
    def first(self) -> int:
        """The number of the first batch after the last snapshot."""
        return self._first

    @property
    def next(self) -> int:
        """The number of the batch that is committed next."""
        return self._next

    @property
    def end(self) -> int:
        """Bytes of the segment that are whole."""
        return self._size

    def read_at(self, at: int, size: int) -> bytes:
        """Return bytes of the segment."""
        return os.pread(self._file, size, at)

    def open_snapshot(self) -> int | None:
        """Return the last snapshot as an open file, which stays what it is; None if there is none."""
        snapshot = self._folder.snapshot(self._first)
        return os.open(snapshot, os.O_RDONLY) if snapshot.exists() else None

    @property
    def snapshot_bytes(self) -> int:
        """How large the last snapshot was; 0 if there is none."""
        return self._snapshot_bytes

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """The last snapshot, or None, and the entries committed after it, in order."""
        return self._state(), self._entries()

    def fall_back(self) -> bool:
        """Begin with the snapshot before the last one, which does not read; say whether there is one."""
        before = self._first
        try:
            number = generations.fall_back(self._folder, before)
        except OSError as error:
            raise JournalError(f"The store {self._path} cannot be written: {error.strerror}.") from None
        if number is None:
            return False
        os.close(self._file)
        self._first = self._next = number
        self.entries = 0
        self._begin()
        generations.say_fallen_back(self._path, before, number)
        return True

    def _state(self) -> bytes | None:
        snapshot = self._folder.snapshot(self._first)
        if not snapshot.exists():
            return None
        try:
            return read_snapshot(snapshot.read_bytes(), self._first)
        except RecordError as error:
            raise self._damaged(f"snapshot.{self._first}: {error}") from None
        except OSError as error:
            raise JournalError(f"The store {self._path} cannot be read: {error.strerror}.") from None

    def _entries(self) -> Iterator[bytes]:
        reader = SegmentReader(os.pread(self._file, self._size, 0), self._first)
        for batch in reader:
            yield from batch.entries
        if reader.ending.verdict is not Verdict.CLEAN:
            raise self._damaged(f"journal.{self._first} at byte {reader.ending.at}: {reader.ending.why}")

    def append(self, entry: bytes) -> None:
        """Note a fact; it is safe after the next `commit`."""
        self._pending.append(entry)
        self._pending_bytes += len(entry)

    @property
    def pending(self) -> int:
        """Entries that wait for a commit."""
        return len(self._pending)

    def commit(self, entries: Sequence[bytes] = ()) -> None:
        """Make all that was appended and these entries safe, as one batch; if that fails, keep it pending."""
        if self._pending:
            entries = [*self._pending, *entries]
        if not entries:
            return
        if self.torn:
            self._forget_pending()
            raise JournalError(f"The store {self._path} is waiting for room.")
        batch = write_batch(self._next, entries)
        try:
            self._write(batch)
        except OSError as error:
            self._pending = list(entries)
            self._pending_bytes = sum(map(len, entries))
            if self._pending_bytes > MAX_PENDING_BYTES:
                self.torn = True
                self._forget_pending()
            raise JournalError(f"The store {self._path} cannot be written: {error.strerror}.") from None
        self._next += 1
        self.entries += len(entries)
        self.bytes += len(batch)
        if self._pending:
            self._forget_pending()

    def _write(self, batch: bytes) -> None:
        """Write a batch behind the last one, or nothing at all."""
        if self._is_dirty:
            os.ftruncate(self._file, self._size)
            self._is_dirty = False
        try:
            written = os.pwrite(self._file, batch, self._size)
            if written < len(batch):
                write_all(self._file, batch[written:], self._size + written)
            if self._power_safe:
                os.fdatasync(self._file)
        except OSError:
            self._is_dirty = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
                self._is_dirty = False
            raise
        self._size += len(batch)

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
        folder, number = self._folder, self._next
        try:
            file = self._keep(number, state)
        except OSError as error:
            self._clear_leftovers()
            raise self._no_snapshot(error) from None
        if number != self._first:
            self._follow(file, number)
        self._snapshot_bytes = folder.snapshot(number).stat().st_size
        self.torn = False
        self.entries = self.bytes = 0

    def _keep(self, number: int, state: bytes) -> int:
        """Put a snapshot in its place, with an empty segment that follows it; return the segment's file.

        It counts from the moment that it is renamed; until then the old pair is whole, and stays.
        """
        folder = self._folder
        file = self._file
        if number != self._first:
            write_file(folder.segment(number), segment_head(number))
            folder.sync()
            file = os.open(folder.segment(number), os.O_RDWR)
        try:
            folder.replace(folder.snapshot(number), write_snapshot(number, state))
        except OSError:
            if file != self._file:
                os.close(file)
            raise
        return file

    def mark(self) -> Mark:
        """Note the present place, for a snapshot that is written beside what is committed meanwhile."""
        return Mark(self._next, self._size, self.entries)

    def new_snapshot(self, mark: Mark) -> Path:
        """Where such a snapshot is to be written; no other process writes there."""
        path = self._folder.snapshot(mark.number)
        return path.with_name(f"{path.name}.{os.getpid()}.new")

    def catch_up(self, mark: Mark) -> bool:
        """Copy a part of what was committed since a mark; return whether its snapshot may be adopted now."""
        try:
            following = self._following
            if following is None:
                segment = self._folder.segment(mark.number)
                path = segment.with_name(f"{segment.name}.{os.getpid()}.new")
                following = Following(path, mark, self._size, power_safe=self._power_safe)
                self._following = following
            assert following.mark == mark, "one snapshot is adopted at a time"
            return following.copy(self._file, self._size)
        except OSError as error:
            self.give_up_following()
            raise self._no_snapshot(error) from None

    def give_up_following(self) -> None:
        """Remove what was copied for a snapshot that is not adopted."""
        if self._following is not None:
            self._following.give_up()
            self._following = None

    def adopt(self, mark: Mark, new: Path) -> None:
        """Let a snapshot that was written and made safe take the place of all that it holds.

        What was committed after it was taken follows it, in a segment of its own, and most of it was copied
        before (`catch_up`). As in `keep`, the old pair is whole until the snapshot is renamed, and from then
        on the new one is.
        """
        folder, number, before = self._folder, mark.number, self._first
        assert before < number and not self.torn, "it is of this segment, and all that followed is there"  # noqa: PT018 - one condition of two halves
        if self.is_gone:  # what is there instead is not ours
            self.give_up_following()
            raise JournalError(f"The store {self._path} was taken away.")
        while not self.catch_up(mark):
            pass
        following = self._following
        assert following is not None, "it was just brought up to the end"
        try:
            following.take_place(folder)
            new.replace(folder.snapshot(number))
            folder.sync()
        except OSError as error:
            self.give_up_following()
            self._clear_leftovers()
            raise self._no_snapshot(error) from None
        self._following = None
        with contextlib.suppress(OSError):  # for whoever falls back: what the new segment has, it has not
            os.ftruncate(self._file, mark.size)
        self._follow(following.file, number, following.copied_bytes)
        self.entries -= mark.entries

    def _clear_leftovers(self) -> None:
        """Remove what a snapshot that came to nothing left, unless the store is not ours any more."""
        if not self.is_gone:
            with contextlib.suppress(OSError):  # what stays behind goes with the next snapshot
                self._folder.clear_leftovers(self._first)

    def _no_snapshot(self, error: OSError) -> JournalError:
        return JournalError(f"The store {self._path} cannot take a snapshot: {error.strerror}.")

    def _follow(self, file: int, number: int, rest_bytes: int = 0) -> None:
        """Go on in the segment that follows a new snapshot and has so many bytes; keep the old pair aside."""
        folder, before = self._folder, self._first
        os.close(self._file)
        self._file, self._first = file, number
        self._size, self._is_dirty = SEGMENT_HEAD_BYTES + rest_bytes, False
        with contextlib.suppress(OSError):  # what stays behind goes with the next snapshot
            generations.set_aside(folder, before)
            folder.clear_leftovers(number)
            folder.sync()
        self._snapshot_bytes = folder.snapshot(number).stat().st_size
        self.bytes = rest_bytes

    @property
    def is_gone(self) -> bool:
        """Whether the files were taken away or replaced, so that what is written is written to nowhere."""
        if self._file < 0:
            return False  # the store was let go
        try:
            found = self._folder.segment(self._first).stat()
        except OSError:
            return True
        return not os.path.samestat(found, os.fstat(self._file))

    def renew(self, state: bytes, broker: str) -> None:
        """Begin the store anew where it was, with a snapshot; what is found there instead is moved aside.

        What was noted and not committed is in the snapshot, as if it were one more batch: who has all before
        has not that.
        """
        number = self._next = self._next + 1
        self.give_up_following()
        try:
            moved = generations.move_aside(self._path)
            folder = StoreFolder.taken(self._path, broker)
            write_file(folder.segment(number), segment_head(number))
            folder.replace(folder.snapshot(number), write_snapshot(number, state))
            file = os.open(folder.segment(number), os.O_RDWR)
        except (OSError, FolderError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise JournalError(
                f"The store {self._path} was taken away and cannot be begun anew: {why}."
            ) from None
        _log.error(
            "The store %s was taken away while the broker ran; it was written anew, and nothing is lost.%s",
            self._path,
            "" if moved is None else f" What was there instead is {moved}.",
        )
        os.close(self._file)
        self._folder.close()
        self._folder, self._file, self._first = folder, file, number
        self._size, self._is_dirty, self.torn = SEGMENT_HEAD_BYTES, False, False
        self._snapshot_bytes = folder.snapshot(number).stat().st_size
        self.entries = self.bytes = 0
        self._forget_pending()

    def reserve(self) -> bool:
        """Set room aside for the day the disk is full; say whether there is any."""
        try:
            file = os.open(self._folder.reserve, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            try:
                os.posix_fallocate(file, 0, RESERVE_BYTES)
            finally:
                os.close(file)
        except OSError:
            self.spend_reserve()
            return False
        return True

    def spend_reserve(self) -> None:
        """Give the room that was set aside to the journal."""
        with contextlib.suppress(OSError):
            self._folder.reserve.unlink(missing_ok=True)
            generations.drop_old(self._folder)

    def close(self) -> None:
        """Let the store go; what is pending is not committed."""
        self.give_up_following()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._folder.close()

    def _forget_pending(self) -> None:
        self._pending = []
        self._pending_bytes = 0
