"""The folder of a store: which files there are, whose it is, and that one process uses it at a time.

What the files hold is `journal.py`'s business. Everything is readable by its owner only: a store holds what
clients sent one another.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from sojourn import __version__
from sojourn.broker.records import LATER
from sojourn.errors import SojournError, typed
from sojourn.live.narrowing import narrow_folder

FORMAT_NAME = "sojourn-store"
FORMAT_VERSION = 1
"""Grows when another release could not read the folder."""
SQLITE_MAGIC = b"SQLite format 3\0"
"""What the stores of releases before folders began with."""

CHUNK_BYTES = 4 << 20
"""How much of a file is written between two looks whether it is still wanted."""

_SET_ASIDE = ("old-journal.", "old-snapshot.", "damaged-snapshot.")
"""How files begin that no start reads (`generations.py`)."""
_NUMBERED = re.compile(r"(journal|snapshot)\.([1-9][0-9]*)\Z")


class FolderError(SojournError):
    """A folder is no store, or not this broker's, or in use."""

    is_damage = False
    """Whether nothing helps but another copy, or a repair."""


class DamagedFolderError(FolderError):
    """A folder was a store, and does not say so any more."""

    is_damage = True


def votes_beside(store: Path) -> Path:
    """Where a process that keeps copies notes what it voted for, in the folder that holds the copies."""
    return store.with_name(f"{store.name}.copies") / "votes"


def refuse_left_votes(broker: str, store: str | None) -> None:
    """Refuse to play a broker without copies that another process may be playing from one."""
    votes = None if store is None else votes_beside(Path(store))
    if votes is not None and votes.exists():
        raise FolderError(
            f"{broker} has kept copies ({votes.parent}), so that another process may be playing it now: "
            "start it with the copies that it had, or stop all brokers, move these folders of all of them "
            "away, and start all without copies."
        )


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of itself."""

    format: str
    version: int
    broker: str
    release: str = ""
    """The release that made it."""


class StoreFolder:
    """One store's folder, locked."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock
        self.is_new = False
        """Whether nothing was there when it was taken."""

    @classmethod
    def taken(cls, path: Path, broker: str) -> StoreFolder:
        """Take the store of a broker, or make one in a folder that is empty or not there."""
        _refuse_other_files(path)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            is_new = not any(_NUMBERED.match(one.name) or one.name == "about" for one in path.iterdir())
            strangers = [one.name for one in path.iterdir() if not _is_ours(one.name)]
            if is_new and strangers:
                raise FolderError(
                    f"The folder {path} holds other files, such as {min(strangers)}; give the store a folder "
                    "of its own."
                )
            folder = cls.locked(path)
            narrow_folder(path)
            folder.is_new = is_new
            if is_new:
                folder.make(broker)
        except OSError as error:
            raise FolderError(f"The store {path} cannot be opened: {error.strerror}.") from None
        try:
            folder.check(broker)
        except FolderError:
            folder.close()
            raise
        return folder

    @classmethod
    def locked(cls, path: Path) -> StoreFolder:
        """Take a folder for this process alone, whatever is in it."""
        refuse_no_files(path)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise FolderError(
                f"The store {path} is in use; stop the broker that uses it, or choose another path."
            ) from None
        return cls(path, lock)

    def close(self) -> None:
        """Let the folder go."""
        os.close(self._lock)

    # What it is ----------------------------------------------------------------------------------------

    def make(self, broker: str) -> None:
        """Begin a store in an empty folder."""
        self.path.chmod(0o700)
        about = About(format=FORMAT_NAME, version=FORMAT_VERSION, broker=broker, release=__version__)
        text = msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n"
        self.replace(self.path / "about", text)

    def about(self) -> About:
        """Return what the store says of itself."""
        refuse_no_files(self.path)
        try:
            return msgspec.json.decode((self.path / "about").read_bytes(), type=About)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            raise DamagedFolderError(
                f"The store {self.path} does not say what it is: its file about is missing or damaged; "
                f"`sojourn store check {typed(self.path)}` looks at the rest, "
                f"`sojourn store repair {typed(self.path)}` writes it anew."
            ) from None

    def check(self, broker: str | None) -> About:
        """Return what the store says of itself, or refuse one that this broker cannot use."""
        about, path = self.about(), self.path
        if about.format != FORMAT_NAME:
            raise FolderError(f"The folder {path} holds {about.format!r} and no store; choose another path.")
        if about.version > FORMAT_VERSION:
            raise FolderError(
                f"The store {path} of release {about.release} has format {about.version}, {LATER} "
                f"{FORMAT_VERSION}; run that release (`sojourn store check {typed(path)}` says more)."
            )
        if broker is not None and about.broker != broker:
            raise FolderError(
                f"The store {path} is that of broker {about.broker!r} and not of {broker!r}; give each its "
                f"own (`sojourn store check {typed(path)}` says what is in it)."
            )
        return about

    # Its files -----------------------------------------------------------------------------------------

    @property
    def reserve(self) -> Path:
        """The room set aside."""
        return self.path / "reserve"

    def segment(self, number: int) -> Path:
        """The segment that begins with a batch."""
        return self.path / f"journal.{number}"

    def snapshot(self, number: int) -> Path:
        """The snapshot of the state before a batch."""
        return self.path / f"snapshot.{number}"

    def numbers(self, kind: str) -> list[int]:
        """The numbers of all segments, or of all snapshots, ascending."""
        found = (_NUMBERED.match(one.name) for one in self.path.iterdir())
        return sorted(int(one[2]) for one in found if one is not None and one[1] == kind)

    def first(self) -> int:
        """The number of the pair that counts: that of the last snapshot, or 1 before there is any."""
        snapshots, segments = self.numbers("snapshot"), self.numbers("journal")
        return snapshots[-1] if snapshots else segments[0] if segments else 1

    def leftovers(self, first: int) -> list[Path]:
        """Files that a snapshot which was being taken, or had just been taken, left behind."""
        return [
            one
            for one in sorted(self.path.iterdir())
            if one.name.endswith(".new")
            or ((found := _NUMBERED.match(one.name)) is not None and int(found[2]) != first)
        ]

    def clear_unfinished(self) -> None:
        """Remove snapshots that an earlier life did not finish; this one has the store to itself."""
        for one in self.path.glob("*.new"):
            with contextlib.suppress(OSError):
                one.unlink(missing_ok=True)

    def clear_leftovers(self, first: int) -> None:
        """Remove them; snapshots before the segments that follow them, or a start would miss those."""
        for one in reversed(self.leftovers(first)):
            one.unlink(missing_ok=True)

    def replace(self, path: Path, data: bytes) -> None:
        """Put a file in its place: all of it, safe from a failure of power, or none."""
        new = path.with_name(path.name + ".new")
        try:
            write_file(new, data)
            new.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
            raise
        self.sync()

    def sync(self) -> None:
        """Make safe which files there are."""
        sync_folder(self.path)


def sync_folder(path: Path) -> None:
    """Make safe which files a folder has, and under which names."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_file(path: Path, data: bytes, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Write a new file and make it safe; give up with an `OSError` when it is of no use any more."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for at in range(0, len(data), CHUNK_BYTES):
            if not goes_on():
                raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
            write_all(file, data[at : at + CHUNK_BYTES], at)
        os.fsync(file)
    finally:
        os.close(file)


def write_all(file: int, data: bytes, at: int) -> None:
    """Write bytes at a place, however many calls that takes; one, as a rule."""
    written = os.pwrite(file, data, at)
    while written < len(data):
        written += os.pwrite(file, memoryview(data)[written:], at + written)


def _is_ours(name: str) -> bool:
    return name in ("about", "lock", "reserve") or name.endswith(".new") or name.startswith(_SET_ASIDE)


def refuse_no_files(path: Path) -> None:
    """Refuse a store with a pipe, a device or the like in it: whoever opened that might wait for ever."""
    for one in sorted(path.iterdir()) if path.is_dir() else ():
        if (_is_ours(one.name) or _NUMBERED.match(one.name)) and not one.is_file():
            raise FolderError(f"In the store {path}, {one.name} is no regular file; move it away.")


def _refuse_other_files(path: Path) -> None:
    """Refuse a path where there is a file."""
    if not path.exists() or path.is_dir():
        return
    if not path.is_file():
        raise FolderError(f"The store {path} is neither a folder nor a file; choose another path.")
    try:
        with path.open("rb") as file:
            is_old = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError as error:
        raise FolderError(f"The store {path} cannot be opened: {error.strerror}.") from None
    if is_old:
        raise FolderError(
            f"The store {path} is a database of an older release, which neither this one nor `sojourn store "
            f"repair {path}` can read; move it away or choose another path, where sessions begin anew."
        )
    raise FolderError(f"The store {path} is a file; a store is a folder, so choose another path.")
