"""Rows of a live trace are written by a thread, so that the broker's loop never waits for the disk.

    scribe = Scribe(place, lambda: SegmentWriter(…), on_trouble)
    scribe.add("drops", …)
    scribe.seal(now_s)          # hands over what was added so far
    scribe.close(now_s)         # the last rows; the future is done when they are written

The loop collects rows, and hands them over in batches; the thread has the writer for itself and takes batches
in their order, so that segments, their notes and the sign of life follow one another as the loop said.

Rules: `BATCHES_MAX` batches are on their way at most. While there are so many, rows stay here and go with the
next batch; of a table that has `rows_max` of them here they are let go, and the batch says so, for the writer
to note the time as a gap. A writer that cannot write keeps its rows for the next batch (`trace/segments.py`).
What went wrong is told on the loop (`on_trouble`), at the next call that comes after it. The end of the
process waits for the thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.errors import SojournError
from sojourn.trace.rows import TABLES

if TYPE_CHECKING:
    from sojourn.trace import SegmentWriter

ROWS_MAX = 50_000
"""Of each table: that wait here, and that a batch has at most."""
BATCHES_MAX = 2

Trouble = Callable[[BaseException], None]
_Rows = dict[str, list[tuple[Any, ...]]]


_last_by_place: dict[str, Future[Any]] = {}
"""What each place of this process has to do last: who writes there next waits for it."""


class BehindError(SojournError):
    """Rows were let go."""


class Scribe:
    """Collects what one writer is to write, and has a thread write it."""

    def __init__(self, place: str, opened: Callable[[], SegmentWriter], on_trouble: Trouble) -> None:
        """Have the writer of a place opened in the thread: `open` or `opened` comes next."""
        self._place, self._on_trouble = place, on_trouble
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="trace")
        self._rows: _Rows = {}
        self._lacks_rows = False
        self._under_way: deque[Future[None]] = deque()
        self._closing: Future[None] | None = None
        self._opening = self._pool.submit(_after, _last_by_place.get(place), opened)
        _last_by_place[place] = self._opening

    def add(self, table: str, *values: object) -> None:
        """Add a row, of which the last values may have defaults."""
        if self._closing is not None:
            return
        row = TABLES[table].row(*values)
        rows = self._rows.setdefault(table, [])
        if len(rows) >= ROWS_MAX and not self._hand_over(None):
            rows.clear()
            self._lacks_rows = True
            self._on_trouble(BehindError("the disk takes rows more slowly than they come"))
        self._rows.setdefault(table, []).append(row)

    def seal(self, now_s: float) -> None:
        """Have all that was added so far made readable, with the word that nothing before now is missing.

        If the thread is behind, that is said of a later moment.
        """
        self._hand_over(now_s)

    def open(self) -> None:
        """Wait until the writer is open, or say why it cannot be opened."""
        self._opening.result()

    async def opened(self) -> None:
        """Do the same while others go on."""
        await asyncio.wrap_future(self._opening)

    def settled(self) -> None:
        """Wait until all that was handed over is written, or cannot be."""
        wait([_last_by_place[self._place]])
        self._look()

    def close(self, now_s: float, last: Iterable[tuple[str, tuple[object, ...]]] = ()) -> None:
        """Have the last rows written, and the word that nothing is missing; later ones are nobody's."""
        if self._closing is None:
            for table, values in last:
                self._rows.setdefault(table, []).append(TABLES[table].row(*values))
            self._closing = self._submit(now_s, is_last=True)
            self._pool.shutdown(wait=False)

    async def closed(self) -> None:
        """Let others go on until the last rows are written, or cannot be."""
        if self._closing is not None:
            with suppress(Exception):  # it is told below
                await asyncio.wrap_future(self._closing)
            self._look()

    def _hand_over(self, now_s: float | None) -> bool:
        self._look()
        if self._closing is not None or len(self._under_way) >= BATCHES_MAX:
            return False
        self._submit(now_s)
        return True

    def _submit(self, now_s: float | None, *, is_last: bool = False) -> Future[None]:
        rows, lacks_rows, self._rows, self._lacks_rows = self._rows, self._lacks_rows, {}, False
        batch = self._pool.submit(_write, self._opening, rows, now_s, lacks_rows=lacks_rows, is_last=is_last)
        self._under_way.append(batch)
        _last_by_place[self._place] = batch
        return batch

    def _look(self) -> None:
        """Tell what went wrong with batches that are done."""
        while self._under_way and self._under_way[0].done():
            error = self._under_way.popleft().exception()
            if error is not None:
                self._on_trouble(error)


def _after(before: Future[Any] | None, opened: Callable[[], SegmentWriter]) -> SegmentWriter:
    if before is not None:
        wait([before])
    return opened()


def _write(
    opening: Future[SegmentWriter], rows: _Rows, now_s: float | None, *, lacks_rows: bool, is_last: bool
) -> None:
    """Write a batch, in the thread; also where its first rows cannot be written, others may."""
    writer = opening.result()  # done: it was first
    try:
        writer.take(rows, lacks_rows=lacks_rows)
    finally:
        if is_last:
            writer.close(now_s)
        elif now_s is not None:
            writer.seal(now_s)
