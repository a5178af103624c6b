"""Errors that nobody expected, in whatever the loop called: they are counted, and told of seldom.

    mishaps = Mishaps()
    loop.set_exception_handler(mishaps.heard)

Such an error is a mistake of ours. The connection that it happened on is closed and the broker goes on, so
what leads to it can be done again: of one kind, by its class and the place that raised it, there is a single
traceback in `seldom.QUIET_S`. How long that may be, whoever writes the log decides (`cli/logs.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path
from typing import Any

from sojourn.live.seldom import Seldom

LINES_MAX = 5
"""Tracebacks of all kinds together in `seldom.QUIET_S`."""
TEXT_MAX = 200
"""Characters of what an error says; it may quote a client."""


class Mishaps:
    """The unexpected errors of one process."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """By class of error: how many there were."""
        self._seldom = Seldom(logging.getLogger("sojourn.mishaps"), lines_max=LINES_MAX)

    def heard(self, _loop: asyncio.AbstractEventLoop | None, context: dict[str, Any]) -> None:
        """Take what a loop says of an error that nobody caught (`loop.set_exception_handler`)."""
        what = str(context.get("message") or "Unhandled error in the loop.")[:TEXT_MAX]
        error = context.get("exception")
        if not isinstance(error, BaseException):
            self.counts["none"] += 1
            self._seldom.error(what, "%s", what)
            return
        kind = type(error).__name__
        self.counts[kind] += 1
        text = "An unexpected error, which is a mistake of the broker's: %s %s: %s"
        self._seldom.error((kind, _place(error)), text, what, kind, str(error)[:TEXT_MAX], error=error)


def _place(error: BaseException) -> str:
    """Where an error was raised."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
