"""The custody log of a device: notes of its core, in a file that grows, and is written anew now and then.

    notebook = Notebook.open(folder)
    node = Node(notebook.number, timing, notebook.read())
    notebook.write([note, …])          # before anything is done that follows from them

A line is its length, a checksum and the note. A line that was cut short by a death is cut off; damage
elsewhere is refused. When the file is much longer than what it leads to, it is replaced by that, whole or not
at all. What `write` returned from survives the death of the process, and with `power_safe` the loss of power.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from sojourn.adhoc.election.codec import CodecError, decode_note, encode_note
from sojourn.adhoc.election.messages import Note
from sojourn.errors import SojournError

HEAD = struct.Struct(">II")
NOTE_BYTES_MAX = 64 << 20
SPARE_BYTES = 4 << 20
"""So much longer than needed a log may be."""


class NotebookError(SojournError):
    """A device's folder cannot be used."""


class Notebook:
    """One device's folder."""

    def __init__(self, folder: Path, lock: IO[str], *, power_safe: bool) -> None:
        self._path = folder / "custody.log"
        self._lock = lock
        self._power_safe = power_safe
        self.number = _number(folder / "number")
        """Drawn when the folder was made: what others know the device by."""
        self._fresh_bytes = 0
        """Of the log when it was last written anew."""
        self._file: IO[bytes] | None = None

    @classmethod
    def open(cls, folder: Path, *, power_safe: bool = False) -> Notebook:
        """Take a folder for this process, or make it."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = (folder / "lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotebookError(f"Another process is the device of {folder}; give another folder.") from None
        except OSError as error:
            raise NotebookError(f"The folder {folder} cannot be used: {error.strerror}.") from None
        return cls(folder, lock, power_safe=power_safe)

    def read(self) -> list[Note]:
        """All notes so far, and be ready to write on."""
        data = self._path.read_bytes() if self._path.exists() else b""
        notes, at = [], 0
        while at + HEAD.size <= len(data):
            size, checksum = HEAD.unpack_from(data, at)
            body = data[at + HEAD.size : at + HEAD.size + size]
            is_last = at + HEAD.size + size >= len(data)
            if len(body) < size or zlib.crc32(body) != checksum:
                if is_last or size > NOTE_BYTES_MAX:
                    break
                raise self._damaged(at)
            try:
                notes.append(decode_note(body))
            except CodecError:
                raise self._damaged(at) from None
            at += HEAD.size + size
        self._file = self._path.open("ab")
        self._file.truncate(at)
        self._fresh_bytes = at
        return notes

    def write(self, notes: Iterable[Note]) -> None:
        """Make notes safe."""
        assert self._file is not None
        try:
            self._file.write(b"".join(_line(note) for note in notes))
            self._file.flush()
            if self._power_safe:
                os.fdatasync(self._file.fileno())
        except OSError as error:
            raise NotebookError(
                f"{self._path} cannot be written ({error.strerror}); make room and start the device again."
            ) from None

    @property
    def is_long(self) -> bool:
        """Whether it is worth while to write it anew."""
        return self._file is not None and self._file.tell() > 2 * self._fresh_bytes + SPARE_BYTES

    def replace(self, notes: Iterable[Note]) -> None:
        """Keep only these, which say as much as all before."""
        assert self._file is not None
        beside = self._path.with_suffix(".new")
        with beside.open("wb") as file:
            for note in notes:
                file.write(_line(note))
            file.flush()
            os.fsync(file.fileno())
            self._fresh_bytes = file.tell()
        beside.replace(self._path)
        self._file.close()
        self._file = self._path.open("ab")

    def close(self) -> None:
        """Let the folder go."""
        if self._file is not None:
            self._file.close()
        self._lock.close()

    def _damaged(self, at: int) -> NotebookError:
        return NotebookError(
            f"{self._path} is damaged at byte {at}; put back a copy of it, or give another folder and lose "
            "what this device alone has."
        )


def _line(note: Note) -> bytes:
    body = encode_note(note)
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        number = secrets.randbits(48)
        beside = path.with_suffix(".new")
        beside.write_text(f"{number}\n")
        beside.replace(path)
        return number
    except ValueError:
        raise NotebookError(f"{path} holds no number; it was drawn when the folder was made.") from None
