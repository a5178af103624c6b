"""The snapshot before the last one, with the journal that leads from it to the last, in case that is bad.

| file | what it holds |
| --- | --- |
| `old-journal.M` | the batches from number M up to the last snapshot |
| `old-snapshot.M` | the state before batch M; none if M is 1, the beginning |
| `damaged-snapshot.N` | a snapshot that did not read, set aside for whoever wants to look at it |

Batches are numbered without gaps, so the old journal and the present one together are one journal that
follows the old snapshot (`fall_back`). Room is given back when the disk is full (`drop_old`).
"""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path
from typing import NamedTuple

from sojourn.broker.records import (
    LATER,
    SEGMENT_HEAD_BYTES,
    RecordError,
    SegmentReader,
    Verdict,
    read_snapshot,
)
from sojourn.live.store.folder import FolderError, StoreFolder

COPIES_MAX = 1_000

_log = logging.getLogger("sojourn.store")

_OLD = re.compile(r"old-(journal|snapshot)\.([1-9][0-9]*)\Z")


def _old(folder: StoreFolder, kind: str, number: int) -> Path:
    return folder.path / f"old-{kind}.{number}"


def _numbers(folder: StoreFolder) -> list[int]:
    """The numbers of the journals that were set aside, ascending."""
    found = (_OLD.match(one.name) for one in folder.path.iterdir())
    return sorted(int(one[2]) for one in found if one is not None and one[1] == "journal")


def set_aside(folder: StoreFolder, number: int) -> None:
    """Keep a snapshot and its journal, whose place the next ones have just taken, instead of older ones."""
    drop_old(folder)
    folder.segment(number).rename(_old(folder, "journal", number))
    with contextlib.suppress(FileNotFoundError):  # there is none before the first batch
        folder.snapshot(number).rename(_old(folder, "snapshot", number))


def drop_old(folder: StoreFolder) -> None:
    """Remove what was set aside."""
    for one in list(folder.path.iterdir()):
        if _OLD.match(one.name):
            one.unlink(missing_ok=True)


class Generation(NamedTuple):
    """A snapshot that was set aside, and the journal that leads from it to the last one."""

    number: int
    """Of the journal's first batch."""
    snapshot: Path | None
    """None if the journal begins with the first batch of all."""
    journal: Path


def before(folder: StoreFolder, first: int) -> Generation | None:
    """The generation that a store whose last snapshot is bad begins with next; None if none is whole."""
    number = whole_before(folder, first)
    if number is None or not folder.segment(first).exists():
        return None
    snapshot = _old(folder, "snapshot", number)
    return Generation(number, snapshot if snapshot.exists() else None, _old(folder, "journal", number))


def whole_before(folder: StoreFolder, first: int) -> int | None:
    """The number of the generation that leads to batch `first` without a gap; None if there is no such."""
    for number in reversed(_numbers(folder)):
        snapshot = _old(folder, "snapshot", number)
        try:
            if snapshot.exists():
                read_snapshot(snapshot.read_bytes(), number)
            elif number != 1:
                continue
            reader = SegmentReader(_old(folder, "journal", number).read_bytes(), number)
        except (OSError, RecordError):
            continue
        for _ in reader:
            pass
        if reader.ending.verdict is Verdict.CLEAN and reader.ending.next_number == first:
            return number
    return None


def fall_back(folder: StoreFolder, first: int) -> int | None:
    """Make a store whose last snapshot is bad one that begins a generation earlier; return its number.

    Until the bad snapshot is renamed nothing has changed for a start that comes in between.
    """
    older = before(folder, first)
    if older is None:
        return None
    number, segment = older.number, folder.segment(first)
    batches = segment.read_bytes()[SEGMENT_HEAD_BYTES:]
    folder.replace(folder.segment(number), older.journal.read_bytes() + batches)
    if older.snapshot is not None:
        folder.replace(folder.snapshot(number), older.snapshot.read_bytes())
    with contextlib.suppress(FileNotFoundError):  # it was deleted
        folder.snapshot(first).rename(folder.path / f"damaged-snapshot.{first}")
    folder.sync()
    segment.unlink()
    drop_old(folder)
    return number


def sound_first(folder: StoreFolder) -> int:
    """The number of the last snapshot that is whole, or else of what there is."""
    first = folder.first()
    snapshot = folder.snapshot(first)
    try:
        if snapshot.exists():
            read_snapshot(snapshot.read_bytes(), first)
            return first
        if first == 1:
            return first
    except RecordError as error:
        if LATER in str(error):  # it is whole, and only this release does not know it
            return first
    number = fall_back(folder, first)
    if number is None:
        return first
    say_fallen_back(folder.path, first, number)
    return number


def say_fallen_back(path: Path, first: int, number: int) -> None:
    """Say that a store comes back from the snapshot before the one that is damaged."""
    _log.warning(
        "The snapshot.%d of the store %s is damaged: the broker comes back from the one before it, batch %d, "
        "and the journal; nothing is lost.",
        first,
        path,
        number,
    )


def move_aside(path: Path, folder: Path | None = None) -> Path | None:
    """Move a folder away that stands where a store belongs, or another one; return where it is now."""
    folder = folder or path
    if not folder.exists():
        return None
    for number in range(1, COPIES_MAX):
        aside = path.with_name(f"{path.name}.found-{number}")
        if not aside.exists():
            folder.rename(aside)
            return aside
    raise FolderError(f"there are {COPIES_MAX - 1} folders {path.name}.found-… already")
