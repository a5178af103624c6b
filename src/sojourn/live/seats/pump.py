"""Sends journals to processes that keep copies: a snapshot if need be, then batches as they come.

Everything is read from the files that the store has written already, so nothing waits in memory but what the
connection has not sent yet.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import Callable

from sojourn.broker.records import SNAPSHOT_HEAD_BYTES, snapshot_checksum
from sojourn.broker.seats.messages import PART_BYTES, Begin, Line, Part, write_message
from sojourn.live.seats.folders import Folders
from sojourn.live.seats.mesh import Mesh, SeatConnection
from sojourn.live.store.errors import JournalError

BACKLOG_BYTES = 4 << 20
"""While so much waits to be sent to a process, it is told no more."""
AGAIN_S = 0.005
COMPACT_BYTES = 1 << 20
"""A copy is made anew from a snapshot when that takes the place of so many bytes that were told, and of more
than it has itself: else who revives a broker from the copy reads what the broker need not read any more."""


class _Course:
    """What one process is told of one journal."""

    def __init__(self, session: int, number: int) -> None:
        self.session, self.number = session, number
        self.file = -1
        """The snapshot, while it is being sent."""
        self.at = self.size = 0
        self.checksum = self.found = 0
        """Of the state in it: what its head says, and that of what was sent so far."""
        self.sent = 0
        """Bytes of batches that were sent since the last snapshot."""

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


class Pump:
    """All that one process sends of journals."""

    def __init__(
        self,
        mesh: Mesh,
        folders: Folders,
        loop: asyncio.AbstractEventLoop,
        outran: Callable[[str, str], None],
        unreadable: Callable[[str, str], None],
    ) -> None:
        self._mesh, self._folders, self._loop = mesh, folders, loop
        self._outran, self._unreadable = outran, unreadable
        self._courses: dict[tuple[str, str], _Course] = {}
        self._later: set[tuple[str, str]] = set()
        self.lines = self.snapshots = 0
        """How much was sent."""

    def begin(self, name: str, peer: str, session: int, number: int) -> None:
        """Tell a process a journal from a batch on; with 0, its snapshot first."""
        self.end(name, peer)
        course = self._courses[name, peer] = _Course(session, number)
        if not number:
            journal = self._folders.held[name].journal
            file = journal.open_snapshot()
            size = 0 if file is None else os.fstat(file).st_size
            course.number = journal.first
            course.file, course.size = -1 if file is None else file, size
            self._mesh.write(peer, write_message(Begin(name, session, journal.first, size)))
            self.snapshots += 1
        self._go_on(name, peer)

    def end(self, name: str, peer: str) -> None:
        """Tell it no more."""
        course = self._courses.pop((name, peer), None)
        if course is not None:
            course.close()

    def more(self, name: str) -> None:
        """There is more to tell of a journal."""
        for key in [key for key in self._courses if key[0] == name]:
            if key not in self._later:
                self._go_on(*key)

    def _go_on(self, name: str, peer: str) -> None:
        self._later.discard((name, peer))
        course, connection = self._courses.get((name, peer)), self._mesh.connections.get(peer)
        held = self._folders.held.get(name)
        if course is None or held is None or not isinstance(connection, SeatConnection):
            return
        while True:
            if connection.backlog > BACKLOG_BYTES:
                self._later.add((name, peer))
                self._loop.call_later(AGAIN_S, self._go_on, name, peer)
                return
            if course.file >= 0:
                if not self._send_part(name, peer, course):
                    self._unreadable(name, f"the snapshot in {held.journal.path} is damaged.")
                    return
                continue
            if course.number < held.journal.first:
                self._outran(name, peer)
                return
            if course.number >= held.journal.next:
                break
            try:
                batch = held.batch(course.number)
            except JournalError as error:
                self._unreadable(name, str(error))
                return
            self._mesh.write(peer, write_message(Line(name, course.session, course.number, batch)))
            course.number += 1
            course.sent += len(batch)
            self.lines += 1
        spared = course.sent - held.journal.bytes
        if spared > max(COMPACT_BYTES, held.journal.snapshot_bytes):
            course.sent = 0
            self._outran(name, peer)

    def _send_part(self, name: str, peer: str, course: _Course) -> bool:
        """Send more of a snapshot; all but its end, and say so, if it is not what was written once."""
        data = os.pread(course.file, PART_BYTES, course.at)
        if not course.at:
            course.checksum = snapshot_checksum(data) if len(data) >= SNAPSHOT_HEAD_BYTES else -1
            course.found = zlib.crc32(data[SNAPSHOT_HEAD_BYTES:])
        else:
            course.found = zlib.crc32(data, course.found)
        course.at += len(data)
        is_last = course.at >= course.size
        if is_last and course.found != course.checksum:
            return False
        if is_last:
            course.close()
        self._mesh.write(peer, write_message(Part(name, course.session, data)))
        return True
