"""What a process holds of each broker: its own store, and copies of others' beside it.

| path | what it is |
| --- | --- |
| `STORE` | the store of the broker whose home this is |
| `STORE.copies/NAME` | a copy of another broker's store, in the same format |
| `STORE.copies/NAME.incoming` | one that is not complete yet |
| `STORE.copies/NAME.before` | what a complete one takes the place of, until it has |
| `STORE.copies/NAME.damaged` | one that could not be read, until another has taken its place |
| `STORE.copies/votes` | what this process must not forget (`broker/seats/register.py`) |

A store that somebody else's copy takes the place of is never merged: it is moved aside (`NAME.found-N`), and
older ones than the last few are removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from sojourn.broker.records import (
    BATCH_HEAD_BYTES,
    SEGMENT_HEAD_BYTES,
    SNAPSHOT_HEAD_BYTES,
    SnapshotCheck,
    batch_head,
    entries_of,
    is_batch,
    segment_head,
    snapshot_checksum,
)
from sojourn.broker.seats.messages import ROLL, SeatError
from sojourn.broker.seats.register import Register
from sojourn.live.store.errors import DamagedError, JournalError
from sojourn.live.store.folder import StoreFolder, sync_folder, votes_beside, write_file
from sojourn.live.store.generations import move_aside
from sojourn.live.store.journal import Journal

ASIDE_MAX = 3
"""Stores that were moved aside and are kept."""
SAFE_BYTES = 8 << 20
"""A copy that is being made is made safe after so many bytes, again and again."""
BOOT = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger("sojourn.seats")


class Held:
    """The journal of one broker, as far as its batches can be told again."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._first = 0
        self._places: list[tuple[int, int]] = []
        """Of each batch since the snapshot: where it begins, and its checksum."""
        self._end = SEGMENT_HEAD_BYTES

    def _look(self) -> None:
        """Learn where batches are that were committed since."""
        journal = self.journal
        if journal.first != self._first:
            self._first, self._places, self._end = journal.first, [], SEGMENT_HEAD_BYTES
        while self._end < journal.end:
            data = journal.read_at(self._end, BATCH_HEAD_BYTES)
            number = self._first + len(self._places)
            head = batch_head(data) if len(data) == BATCH_HEAD_BYTES else None
            if head is None or head.number != number or self._end + head.size > journal.end:
                raise self._damaged(number)  # what it says of its length would lead anywhere
            self._places.append((self._end, head.checksum))
            self._end += head.size

    def _damaged(self, number: int) -> DamagedError:
        return DamagedError(f"batch {number} of {self.journal.path} is damaged.")

    def check(self, number: int) -> int | None:
        """Return a checksum of what is before a batch; None if that can no longer be told."""
        journal = self.journal
        if not journal.first <= number <= journal.next:
            return None
        if number > journal.first:
            try:
                self._look()
            except JournalError:
                return None
            return self._places[number - journal.first - 1][1]
        file = journal.open_snapshot()
        if file is None:
            return 0
        try:
            return snapshot_checksum(os.pread(file, SNAPSHOT_HEAD_BYTES, 0))
        finally:
            os.close(file)

    def batch(self, number: int) -> bytes:
        """Return a batch as it is in the journal, or say that it is not there as it was written."""
        self._look()
        place = number - self._first
        at = self._places[place][0]
        end = self._places[place + 1][0] if place + 1 < len(self._places) else self._end
        batch = self.journal.read_at(at, end - at)
        if not is_batch(batch, number):
            raise self._damaged(number)
        return batch


class Incoming:
    """A copy that is being made: a snapshot first, then batches."""

    def __init__(self, path: Path, name: str, first: int, size: int, *, power_safe: bool) -> None:
        shutil.rmtree(path, ignore_errors=True)
        self.path, self._name, self._first, self._left = path, name, first, size
        self._power_safe = power_safe
        self._check = SnapshotCheck(first)
        self._unsafe = 0
        self._file = -1
        self._folder: StoreFolder | None = None
        self.journal: Journal | None = None
        if size:
            self._folder = StoreFolder.taken(path, name)
            self._file = os.open(self._folder.snapshot(first), os.O_WRONLY | os.O_CREAT, 0o600)
        else:
            self._open()

    def add(self, data: bytes) -> None:
        """Write on at the snapshot, and make it safe as it grows: a large one at once takes a while."""
        self._check.add(data)
        self._unsafe += len(data)
        while data:
            data = data[os.write(self._file, data) :]
        if self._unsafe >= SAFE_BYTES:
            os.fdatasync(self._file)
            self._unsafe = 0

    @property
    def sound(self) -> int | None:
        """The number of the snapshot, if it is what was sent; its parts were looked at as they came."""
        return self._first if self._check.is_sound else None

    def took(self, size: int) -> None:
        """Count bytes of the snapshot, and begin its journal after the last."""
        self._left -= size
        if self._left <= 0 and self._folder is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1
            write_file(self._folder.segment(self._first), segment_head(self._first))
            self._folder.sync()
            self._folder.close()
            self._folder = None
            self._open()

    def _open(self) -> None:
        self.journal = Journal.open(
            self.path, broker=self._name, power_safe=self._power_safe, sound=self.sound
        )

    @property
    def next(self) -> int:
        """The batch that comes next; 0 before the snapshot is there."""
        return 0 if self.journal is None else self.journal.next

    def drop(self) -> None:
        """Give it up."""
        if self.journal is not None:
            self.journal.close()
        if self._folder is not None:
            self._folder.close()
        if self._file >= 0:
            os.close(self._file)
        shutil.rmtree(self.path, ignore_errors=True)


def strangers(
    register: Register, names: Collection[str], came: Collection[str], went: Collection[str]
) -> list[str]:
    """Return the brokers that a process remembers or its file has, and that did not join or leave since."""
    if ROLL not in register.entries:
        return sorted({*register.entries}.symmetric_difference(names))
    roll = register.roll.seat
    if not roll.term:
        return []  # nothing was decided yet
    joined = {one.name for one in roll.joined}
    only_here = {*names}.difference(roll.members, roll.left, came)
    return sorted(only_here | {*roll.members}.difference(names, joined, went))


class Folders:
    """All of these of one process; the council asks it what is held (`broker/seats/effects.Logs`)."""

    def __init__(self, name: str, store: str, *, power_safe: bool) -> None:
        self._name, self._store, self._power_safe = name, Path(store), power_safe
        self.copies = votes_beside(self._store).parent
        """The folder of all copies."""
        self._noted: bytes | None = None
        """The notes of votes as they were read or written last."""
        self.held: dict[str, Held] = {}
        self._incoming: dict[str, Incoming] = {}
        self._is_same_boot = False
        self._remembers = False
        """Whether this process had votes when it began."""
        self._lock = -1
        """Held on the folder of copies, so that of two processes only one moves anything there."""

    # The register --------------------------------------------------------------------------------------

    def read_register(
        self, names: Sequence[str], came: Collection[str] = (), went: Collection[str] = ()
    ) -> Register:
        """Return what this process has not forgotten, or that of one that knows nothing.

        Its file names brokers, and says which of them joined and who left.
        """
        self.copies.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take_lock()
        path = votes_beside(self._store)
        boot = self._boot()
        try:
            before, _, data = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return Register()
        self._remembers, self._noted = True, data
        self._is_same_boot = self._power_safe or before == boot
        register = Register.read(data)
        others = strangers(register, names, came, went)
        if others:
            self.close()
            raise SeatError(
                f"The copies in {self.copies} are of a network of other brokers: only the file has, or only "
                f"they have, {', '.join(others)}. Stop all brokers and remove these folders of all of them, "
                "and copies begin anew."
            )
        return register

    def _take_lock(self) -> None:
        lock = os.open(self.copies, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise SeatError(
                f"The copies in {self.copies} are in use: another process is {self._name} already; stop "
                "that one, or start another broker."
            ) from None
        self._lock = lock

    def save_register(self, data: bytes) -> None:
        """Make it safe."""
        path = votes_beside(self._store)
        new = path.with_name("votes.new")
        write_file(new, self._boot() + b"\n" + data)
        new.replace(path)
        self._noted = data
        sync_folder(path.parent)  # else power that fails brings back what was noted before, unnoticed

    def renew_votes(self) -> bool:
        """Write the notes of votes anew if they were taken away, folder and all; return whether they were."""
        if self._noted is None or votes_beside(self._store).exists():
            return False
        self.copies.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.path.samestat(self.copies.stat(), os.fstat(self._lock)):
            before = self._lock
            self._take_lock()
            os.close(before)
        self.save_register(self._noted)
        return True

    def _boot(self) -> bytes:
        try:
            return BOOT.read_bytes().strip()
        except OSError:  # another system
            return b""

    # What the council asks -----------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """Where the journal of a broker is."""
        return self._store if name == self._name else self.copies / name

    def open_all(self, names: list[str]) -> None:
        """Open what is there."""
        for name in names:
            self._put_back(name)
            # A process that remembers its votes had a store: one that is not there was lost, and comes back
            # from a copy.
            is_first = name == self._name and not self._remembers
            if is_first or (self.path(name) / "about").exists():
                self.open(name)

    def _put_back(self, name: str) -> None:
        """End what was under way when a copy was to take the place of what was there before."""
        path, before = self.path(name), self._before(name)
        if not path.exists() and before.exists():
            before.rename(path)
        self._remove_before(name)

    def _before(self, name: str) -> Path:
        return self.copies / f"{name}.before"

    def open(self, name: str, *, sound: int | None = None) -> None:
        """Open one journal; what is damaged counts as lost, and what cannot be opened for now is an error."""
        try:
            journal = Journal.open(self.path(name), broker=name, power_safe=self._power_safe, sound=sound)
        except DamagedError as error:
            if name == self._name:
                raise JournalError(
                    f"{error} With copies do not repair it: move the folder {self.path(name)} away and start "
                    "the broker again, and who has a copy gives everything back."
                ) from None
            _log.warning("%s It is copied anew.", error)
            self.set_aside(name)
            return
        self.held[name] = Held(journal)

    def lend(self, name: str) -> None:
        """Let a journal go."""
        held = self.held.pop(name, None)
        if held is not None:
            held.journal.close()

    def taken_away(self, played: AbstractSet[str]) -> list[str]:
        """Name the brokers whose copies are not where they were, or others are; not those played here."""
        return [name for name, held in self.held.items() if name not in played and held.journal.is_gone]

    def next(self, name: str) -> int:
        """Return the number of the batch that comes next; 0 if nothing is held of the broker."""
        held = self.held.get(name)
        return 0 if held is None else held.journal.next

    def incoming(self, name: str) -> int:
        """Return the same of the copy that was begun beside it."""
        incoming = self._incoming.get(name)
        return 0 if incoming is None else incoming.next

    def first(self, name: str) -> int:
        """Return the number of the first batch after the snapshot."""
        held = self.held.get(name)
        return 0 if held is None else held.journal.first

    def check(self, name: str, number: int) -> int | None:
        """Return a checksum of what is before a batch."""
        held = self.held.get(name)
        return None if held is None else held.check(number)

    def is_trusted(self, name: str) -> bool:
        """Return whether power was not lost since the journal was written, or does not matter."""
        return self._is_same_boot or self.next(name) <= 1

    # What the council wants ----------------------------------------------------------------------------

    def take(self, name: str, first: int, size: int) -> None:
        """Begin a copy beside the one there is."""
        self.drop(name)
        path = self.copies / f"{name}.incoming"
        self._incoming[name] = Incoming(path, name, first, size, power_safe=self._power_safe)

    def take_part(self, name: str, data: bytes) -> None:
        """Write on at its snapshot."""
        incoming = self._incoming[name]
        incoming.add(data)
        incoming.took(len(data))

    def append(self, name: str, number: int, batch: bytes) -> None:
        """Make a batch safe in the copy that was begun, or else in the one there is."""
        incoming = self._incoming.get(name)
        journal = incoming.journal if incoming is not None else self.held[name].journal
        assert journal is not None, "batches come after the snapshot"
        assert journal.next == number, "batches come in order"
        try:
            journal.commit(entries_of(batch, number))
        except JournalError:
            journal.refuse_pending()  # it comes again, once there is room
            raise

    def install(self, name: str) -> None:
        """Let the copy that was begun take the place of the one before."""
        incoming = self._incoming.pop(name)
        assert incoming.journal is not None, "it is complete"
        incoming.journal.close()
        self.lend(name)
        path, before = self.path(name), self._before(name)
        shutil.rmtree(before, ignore_errors=True)
        if path.exists():
            path.rename(before)  # whoever is killed here finds the one or the other
        incoming.path.rename(path)
        for folder in {path.parent, self.copies}:
            sync_folder(folder)  # before it is noted that this one is whole
        self._remove_before(name)
        self.open(name, sound=incoming.sound)
        if name in self.held:
            shutil.rmtree(self._aside(name), ignore_errors=True)

    def set_aside(self, name: str) -> None:
        """Hold no more what cannot be read; it may be the last, and stays on disk until another is there."""
        with contextlib.suppress(OSError):
            self.lend(name)
        path = self.path(name)
        if not path.exists():
            return
        if name == self._name:
            moved = move_aside(path)
            self._remove_older(path)
        else:
            moved = self._aside(name)
            shutil.rmtree(moved, ignore_errors=True)
            path.rename(moved)
            sync_folder(path.parent)
        _log.warning("What was held of %s was moved aside to %s", name, moved)

    def _aside(self, name: str) -> Path:
        return self.copies / f"{name}.damaged"

    def _remove_before(self, name: str) -> None:
        """Let go what a copy took the place of; of the broker whose home this is it is kept for a while."""
        path, before = self.path(name), self._before(name)
        if name == self._name and before.exists():
            moved = move_aside(path, before)
            _log.warning("The store %s was behind its copies; it was moved aside to %s", path, moved)
            self._remove_older(path)
        shutil.rmtree(before, ignore_errors=True)

    def _remove_older(self, path: Path) -> None:
        found = sorted(path.parent.glob(f"{path.name}.found-*"), key=lambda one: one.stat().st_mtime)
        for one in found[:-ASIDE_MAX]:
            shutil.rmtree(one, ignore_errors=True)

    def drop(self, name: str) -> None:
        """Give up a copy that was begun."""
        incoming = self._incoming.pop(name, None)
        if incoming is not None:
            incoming.drop()

    def close(self) -> None:
        """Let everything go."""
        for name in list(self._incoming):
            self.drop(name)
        for name in list(self.held):
            with contextlib.suppress(OSError):
                self.lend(name)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
