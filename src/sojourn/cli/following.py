"""What commands share that follow a running system with a streaming query."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.errors import SojournError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S = 0.2


class FollowError(SojournError):
    """A run cannot be followed as asked."""


def rest(query: StreamingQuery, seconds: float, interrupted: threading.Event) -> None:
    """Wait, and learn of an interrupt or of the query's end at once."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not interrupted.wait(_LOOK_S):
        if not query.isActive:
            query.awaitTermination()  # raises what ended it
            raise FollowError("The query was stopped from elsewhere; start it again.")


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Note an interrupt instead of raising it in the middle of a word with Java; a second one is raised."""
    interrupted = threading.Event()

    def note(_signal: int, _frame: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def first_line(error: Exception) -> str:
    """What a query failed of, as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (
        f"The query failed ({lines[0][:200] if lines else type(error).__name__}); mend its files and repeat."
    )
