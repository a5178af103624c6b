"""The segment that is to follow a snapshot, copied in parts while the broker goes on.

Whoever publishes large events while a snapshot is written puts hundreds of megabytes behind it. They follow
the snapshot in a segment of its own, so they are copied, and all others would wait while that is done at
once. So a part is copied at a time, as turns go on, and of what was committed since the last part twice as
much: the copy gains on the journal, however fast that grows.

Until its end the copy is a file that no start looks at, and that the next one removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import NamedTuple

from sojourn.broker.records import SEGMENT_HEAD_BYTES, segment_head
from sojourn.live.store.folder import StoreFolder, write_all, write_file

PART_BYTES = 1 << 20
"""So much is copied at a time; of what was committed since the last time twice as much, if that is more."""
PIECE_BYTES = 256 << 10
"""How much of a part is in memory at once."""


class Mark(NamedTuple):
    """A place in the journal: a snapshot that was taken there holds all that was committed before."""

    number: int
    """Of the batch that comes next."""
    size: int
    """Bytes of the segment before it."""
    entries: int
    """Entries committed between the last snapshot and it."""


class Following:
    """A copy of what a segment has behind a mark."""

    def __init__(self, path: Path, mark: Mark, end: int, *, power_safe: bool) -> None:
        """Begin a copy as a file of its own; the segment has so many bytes by now."""
        self.mark = mark
        self._path, self._power_safe = path, power_safe
        self._at = mark.size
        """How far the segment is copied."""
        self._end = end
        """Bytes that it had when the last part was copied."""
        try:
            write_file(path, segment_head(mark.number))
            self.file = os.open(path, os.O_RDWR)
        except OSError:
            self._clear()
            raise

    @property
    def copied_bytes(self) -> int:
        """How much was copied."""
        return self._at - self.mark.size

    def copy(self, segment: int, end: int) -> bool:
        """Copy a part of a segment that has so many bytes by now; return whether that was all."""
        until = min(end, self._at + max(PART_BYTES, 2 * (end - self._end)))
        self._end = end
        while self._at < until:
            piece = os.pread(segment, min(PIECE_BYTES, until - self._at), self._at)
            if not piece:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            write_all(self.file, piece, SEGMENT_HEAD_BYTES + self.copied_bytes)
            self._at += len(piece)
        if self._power_safe:
            os.fdatasync(self.file)
        return self._at == end

    def take_place(self, folder: StoreFolder) -> None:
        """Let the copy, which is whole, be the segment that it is to be once the snapshot is in its place."""
        self._path.replace(folder.segment(self.mark.number))
        folder.sync()

    def give_up(self) -> None:
        """Leave nothing behind."""
        os.close(self.file)
        self._clear()

    def _clear(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
