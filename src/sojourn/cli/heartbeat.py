"""How far a long command is, in lines, for whoever reads it in a file or through a pipe.

On a terminal commands draw bars. Elsewhere a bar is noise and silence looks like a program that hangs, so a
stage that has lasted two seconds is told, and from then on every ten seconds how far it is; after ten minutes
once a minute. A thread sees to that, whatever the command itself is waiting for.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

SOON_S = 2.0
"""A stage that is over sooner is not worth a line."""
EVERY_S, LATER_EVERY_S = 10.0, 60.0
LONG_S = 600.0
"""From when on lines come less often."""


class Beats:
    """Which line is due when; it knows no clock."""

    def __init__(self, now_s: float) -> None:
        self._began_s = self._stage_s = self._said_s = now_s
        self._stage = self._detail = ""
        self.due_s = math.inf
        """When the next line is due."""

    def tell(self, stage: str, detail: str, now_s: float) -> None:
        """Take in what is being done, and how far it is."""
        self._detail = detail
        if stage != self._stage:
            self._stage, self._stage_s = stage, now_s
            # Where one short stage follows another something is said all the same.
            self.due_s = min(now_s + SOON_S, max(now_s, self._said_s + self._pause_s(now_s)))

    def line(self, now_s: float) -> str | None:
        """The line that is due, if one is."""
        if now_s < self.due_s:
            return None
        self._said_s = now_s
        self.due_s = now_s + self._pause_s(now_s)
        what = f"{self._stage}: {self._detail}" if self._detail else self._stage
        return f"{what} ({now_s - self._stage_s:.0f} s)"

    def _pause_s(self, now_s: float) -> float:
        return EVERY_S if now_s - self._began_s < LONG_S else LATER_EVERY_S


class Heartbeat:
    """Says lines on a console while the `with` block of `heartbeat` runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._beats = Beats(time.monotonic())
        self._changed = threading.Condition()
        self._over = False
        self._thread: threading.Thread | None = None

    def tell(self, stage: str, detail: str = "") -> None:
        """Say what is being done now, and how far it is; call it as often as you like."""
        with self._changed:
            before = self._beats.due_s
            self._beats.tell(stage, detail, time.monotonic())
            if self._beats.due_s != before:
                self._changed.notify()

    def start(self) -> None:
        """Begin; on a terminal nothing is ever said."""
        if not self._console.is_terminal:
            self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Say nothing more."""
        with self._changed:
            self._over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
        with self._changed:
            while not self._over:
                now_s = time.monotonic()
                line = self._beats.line(now_s)
                if line is not None:
                    self._console.print(line, markup=False, highlight=False, soft_wrap=True)
                wait_s = self._beats.due_s - now_s
                self._changed.wait(None if math.isinf(wait_s) else max(0.0, wait_s))


@contextmanager
def heartbeat(console: Console, stage: str = "") -> Iterator[Heartbeat]:
    """Say lines while the block runs, if nobody looks at a terminal."""
    beat = Heartbeat(console)
    if stage:
        beat.tell(stage)
    beat.start()
    try:
        yield beat
    finally:
        beat.stop()


@contextmanager
def working(console: Console, stage: str) -> Iterator[Callable[[str], None]]:
    """Show a stage of unknown length while the block runs; what it yields is told how far that is.

    A terminal gets a line that moves, a file or a pipe a line from time to time.
    """
    if console.is_terminal:
        with console.status(stage) as status:
            yield lambda detail: status.update(f"{stage}: {detail}")
        return
    with heartbeat(console, stage) as beat:
        yield lambda detail: beat.tell(stage, detail)
