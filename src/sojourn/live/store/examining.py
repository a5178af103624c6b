"""A store that no broker is using: what is in it, what is wrong with it, and what of it can be saved.

`examine` reads everything and changes nothing. `repair` first keeps a copy of the whole folder, then gives up
what cannot be trusted: the journal from its first bad batch on, or a bad snapshot where the journal holds
everything from the first batch, or from the snapshot before it (`generations.py`). Whatever came after a bad
batch is not replayed, whole or not: the broker it would lead to never was.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from sojourn.broker import facts
from sojourn.broker.records import (
    LATER,
    Batch,
    RecordError,
    SegmentReader,
    Verdict,
    batches_after,
    read_snapshot,
)
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import read_document, rows_of
from sojourn.broker.state_kinds import StateError
from sojourn.live.store import generations
from sojourn.live.store.errors import JournalError
from sojourn.live.store.folder import FolderError, StoreFolder

COPIES_MAX = 1_000


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a store."""

    file: str
    at_byte: int = 0
    what: str
    is_fatal: bool = True
    """Whether a broker refuses the store because of it."""
    is_foreign: bool = False
    """Whether it is whole, and only this release does not know it."""


class Examination(msgspec.Struct, kw_only=True):
    """What was found in a store."""

    path: str
    broker: str = ""
    release: str = ""
    """The release that made it."""
    first_batch: int = 1
    begins_with: int = 1
    """The batch that the next start begins with: an earlier one if the last snapshot is bad."""
    snapshot_bytes: int = 0
    sessions: int = 0
    subscriptions: int = 0
    events: int = 0
    """Distinct events in the snapshot: waiting for clients, stored for those who are away, or retained."""
    journal_bytes: int = 0
    batches: int = 0
    entries: int = 0
    whole_bytes: int = 0
    """How much of the journal is whole."""
    lost_batches: int = 0
    """Batches that are whole but lie behind a bad one."""
    lost_entries: int = 0
    is_from_the_start: bool = False
    """Whether the journal tells of the broker's whole life, so that it needs no snapshot."""
    falls_back: bool = False
    """Whether the last snapshot is bad and the one before it is there, so that nothing is lost."""
    leftovers: list[str] = []
    """Files of a snapshot that was being taken; they do no harm."""
    problems: list[Problem] = []

    @property
    def is_usable(self) -> bool:
        """Whether a broker takes the store as it is."""
        return not any(problem.is_fatal for problem in self.problems)


class Repair(msgspec.Struct, kw_only=True):
    """What was done to a store."""

    path: str
    copy: str | None = None
    """Where the store is as it was; None if there was nothing to do."""
    done: list[str] = []
    given_up_entries: int = 0
    """Entries that were whole and are given up; those in a bad batch cannot be counted."""
    given_up_bytes: int = 0


def taken(path: Path) -> StoreFolder:
    """Take a store's folder to look at it, or say why that is no store."""
    if not path.exists():
        raise JournalError(f"There is no store {path}; name the folder that a broker's `store` names.")
    if not path.is_dir():
        raise JournalError(_about_file(path))
    if not any(one.name.startswith(("about", "journal.", "snapshot.")) for one in path.iterdir()):
        raise JournalError(f"The folder {path} holds no store; name the one that a broker's `store` names.")
    try:
        return StoreFolder.locked(path)
    except FolderError as error:
        raise JournalError(str(error)) from None
    except OSError as error:
        raise JournalError(f"The store {path} cannot be opened: {error.strerror}.") from None


def _about_file(path: Path) -> str:
    try:
        StoreFolder.taken(path, "")
    except FolderError as error:
        return str(error)
    raise AssertionError("a file is no store")


def examine(folder: StoreFolder) -> Examination:
    """Read all of a store, and say what is in it and what is wrong."""
    first = folder.first()
    found = Examination(path=str(folder.path), first_batch=first, begins_with=first)
    try:
        about = folder.check(None)
        found.broker, found.release = about.broker, about.release
    except FolderError as error:
        found.problems.append(Problem(file="about", what=str(error)))
    found.leftovers = [one.name for one in folder.leftovers(first)]
    try:
        _examine_segment(folder, found)
        _examine_snapshot(folder, found)
    except OSError as error:
        raise JournalError(
            f"The store {folder.path} cannot be read: {error.strerror} ({error.filename})."
        ) from None
    return found


def _examine_snapshot(folder: StoreFolder, found: Examination) -> None:
    path = folder.snapshot(found.first_batch)
    if not path.exists():
        if not found.is_from_the_start and (found.first_batch != 1 or found.entries):
            where = "batch 1" if found.first_batch != 1 else "the start of its broker"
            what = f"the snapshot is missing, and the journal does not begin with {where}"
            _note_bad_snapshot(folder, found, what)
        return
    try:
        _count_state(path, found)
    except (RecordError, StateError, LookupError, TypeError, ValueError) as error:
        _note_bad_snapshot(folder, found, f"{error}".removesuffix("."))


def _count_state(path: Path, found: Examination) -> None:
    """Count what a snapshot holds, the one that the next start begins with."""
    data = path.read_bytes()
    found.snapshot_bytes = len(data)
    snapshot = Snapshot.read(read_snapshot(data, found.begins_with))
    rows = [name for name, _ in rows_of(read_document(snapshot.state))]
    found.sessions, found.subscriptions = rows.count("session"), rows.count("subscription")
    found.events = rows.count("message")
    found.broker = found.broker or snapshot.settings.name


def _note_bad_snapshot(folder: StoreFolder, found: Examination, what: str) -> None:
    """Note that a snapshot is bad, which is nothing to a broker that has the one before it."""
    older = None if LATER in what else generations.before(folder, found.first_batch)
    if older is not None:
        what = f"{what}; the next start comes back from the snapshot before it, batch {older.number}"
        found.falls_back = True
        _count_older(older, found)
    name = folder.snapshot(found.first_batch).name
    found.problems.append(Problem(file=name, what=what, is_fatal=not found.falls_back))


def _count_older(older: generations.Generation, found: Examination) -> None:
    """Count what the next start begins with: the snapshot before the last one, and both journals."""
    found.begins_with = older.number
    found.snapshot_bytes = 0
    if older.snapshot is not None:
        try:
            _count_state(older.snapshot, found)
        except (RecordError, StateError, LookupError, TypeError, ValueError) as error:
            found.problems.append(Problem(file=older.snapshot.name, what=f"{error}".removesuffix(".")))
    data = older.journal.read_bytes()
    found.journal_bytes += len(data)
    for batch in SegmentReader(data, older.number):
        found.batches += 1
        found.entries += len(batch.entries)


def _examine_segment(folder: StoreFolder, found: Examination) -> None:
    path = folder.segment(found.first_batch)
    if not path.exists():
        is_all = found.first_batch == 1 and not folder.snapshot(1).exists()
        what = "the journal is missing" + (": a broker begins with nothing" if is_all else "")
        found.problems.append(Problem(file=path.name, what=what, is_fatal=not is_all))
        return
    data = path.read_bytes()
    found.journal_bytes = len(data)
    reader = SegmentReader(data, found.first_batch)
    for batch in reader:
        found.batches += 1
        found.entries += len(batch.entries)
        _examine_entries(batch, path.name, found)
    ending = reader.ending
    found.whole_bytes = ending.at
    if ending.verdict is Verdict.CLEAN:
        return
    is_corrupt = ending.verdict is Verdict.CORRUPT
    what = ending.why if is_corrupt else f"{ending.why}: a write that was cut short, which the start cuts off"
    found.problems.append(Problem(file=path.name, at_byte=ending.at, what=what, is_fatal=is_corrupt))
    for batch in batches_after(data, ending.at) if is_corrupt else ():
        found.lost_batches += 1
        found.lost_entries += len(batch.entries)


def _examine_entries(batch: Batch, name: str, found: Examination) -> None:
    """Read the lines of a batch; once one was not read, those after it mean nothing to this release."""
    if any(problem.is_foreign for problem in found.problems):
        return
    for place, data in enumerate(batch.entries, 1):
        try:
            fact = facts.read_entry(data).fact
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            what = f"entry {place} of batch {batch.number} is none that this release knows ({error})"
            found.problems.append(Problem(file=name, what=what, is_foreign=True))
            return
        if isinstance(fact, facts.Started):
            found.broker = found.broker or fact.settings.name
            found.is_from_the_start |= batch.number == place == 1


def repair(folder: StoreFolder, broker: str | None = None) -> Repair:
    """Make a store usable again; `broker` names whose it is where nothing else does."""
    found = examine(folder)
    done = Repair(path=found.path)
    if not found.problems:
        return done
    _refuse_later_formats(found)
    owner = broker or found.broker
    wrong = {problem.file.partition(".")[0] for problem in found.problems}
    if "snapshot" in wrong and not (found.is_from_the_start or found.falls_back):
        raise JournalError(
            f"The store {found.path} cannot be repaired: its snapshot is damaged or missing, and the journal "
            "does not begin with the start of its broker; restore it from a backup, or choose another path."
        )
    if "about" in wrong and not owner:
        raise JournalError(
            f"The store {found.path} does not say whose it is; name the broker with --broker NAME."
        )
    done.copy = str(_copy(folder.path))
    if "about" in wrong:
        folder.make(owner)
        done.done.append(f"wrote the file about anew, for broker {owner!r}")
    if found.falls_back:
        number = generations.fall_back(folder, found.first_batch)
        done.done.append(f"went back to the snapshot before, batch {number}; the journal holds what followed")
        return _with_journal_cut(folder, done, broker)
    if "snapshot" in wrong:
        folder.snapshot(1).unlink(missing_ok=True)
        done.done.append("dropped the snapshot; the journal holds everything from the first batch on")
    if "journal" in wrong:
        _cut(folder, found, done)
    folder.sync()
    return done


def _with_journal_cut(folder: StoreFolder, done: Repair, broker: str | None) -> Repair:
    """Repair what else is wrong with a store that begins with another snapshot now."""
    found = examine(folder)
    if any(problem.is_fatal for problem in found.problems):
        rest = repair(folder, broker)
        done.done += rest.done
        done.given_up_entries, done.given_up_bytes = rest.given_up_entries, rest.given_up_bytes
    return done


def _refuse_later_formats(found: Examination) -> None:
    """What a later release wrote is not damaged: nothing of it is given up."""
    for problem in found.problems:
        if problem.is_foreign or LATER in problem.what:
            raise JournalError(
                f"The store {found.path} was written by a later release ({problem.file}: "
                f"{problem.what.removesuffix('.')}); run that one."
            )


def _copy(path: Path) -> Path:
    for number in range(1, COPIES_MAX):
        copy = path.with_name(f"{path.name}.broken-{number}")
        if not copy.exists():
            try:
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns("lock", "reserve"))
                copy.chmod(0o700)
            except (OSError, shutil.Error) as error:
                shutil.rmtree(copy, ignore_errors=True)
                raise JournalError(f"The store {path} cannot be copied to {copy}: {error}.") from None
            return copy
    raise JournalError(f"There are {COPIES_MAX - 1} broken copies of {path} already; move some away.")


def _cut(folder: StoreFolder, found: Examination, done: Repair) -> None:
    """Give up the journal from its first bad batch on."""
    path = folder.segment(found.first_batch)
    whole = path.read_bytes()[: found.whole_bytes] if path.exists() else b""
    folder.replace(path, whole)  # one of no bytes is given a head by the next start
    done.given_up_entries, done.given_up_bytes = found.lost_entries, found.journal_bytes - len(whole)
    done.done.append(
        f"cut {path.name} after batch {found.first_batch + found.batches - 1}, at byte {len(whole)}"
        if found.batches
        else f"emptied {path.name}"
    )


def counts(found: Examination) -> dict[str, Any]:
    """Return an examination as plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain | {"usable": found.is_usable}
