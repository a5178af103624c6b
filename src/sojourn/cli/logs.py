"""How a broker's log looks: lines for a person, or one JSON object a line for a machine.

Both say the same: when, how grave, who, what, and the fields that the broker gave with it (`extra`). A record
is one line whatever clients call themselves: what is not printable is escaped, so that nobody forges lines.
Tracebacks have a limit: one of a recursion that went too deep has thousands of lines that say the same.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import TypeAlias

_GIVEN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest are fields of its own."""


ExceptionInfo: TypeAlias = (
    "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]"
)
"""What `sys.exc_info` gives."""

TRACE_FIRST, TRACE_LAST = 10, 40
"""Lines of a traceback that are written: its beginning and its end."""
TRACE_LINE_MAX = 300
"""Characters of each of them."""


class LogFormat(StrEnum):
    """The formats of a log."""

    TEXT = "text"
    JSON = "json"


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What was given with a record."""
    return {name: value for name, value in vars(record).items() if name not in _GIVEN}


class BoundedTraces(logging.Formatter):
    """Writes tracebacks up to a length."""

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - the base class's name
        """Write the beginning and the end of a traceback."""
        lines = super().formatException(ei).splitlines()
        left_out = len(lines) - TRACE_FIRST - TRACE_LAST
        if left_out > 0:
            lines[TRACE_FIRST:-TRACE_LAST] = [f"  … {left_out} lines are left out …"]
        return "\n".join(
            line if len(line) <= TRACE_LINE_MAX else f"{line[:TRACE_LINE_MAX]}…" for line in lines
        )


class JsonLines(BoundedTraces):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(BoundedTraces):
    """A line for a person, with the fields behind."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - the base class's name
        """Write a traceback so that no line of it looks like a record: what it quotes may be a client's."""
        lines = super().formatException(ei).splitlines()
        return "\n".join(f"  | {one_line(line)}" for line in lines)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """Write a record's line; a traceback comes behind it."""
        fields = "".join(f" {name}={value}" for name, value in fields_of(record).items())
        return one_line(super().formatMessage(record) + fields)


def one_line(text: str) -> str:
    """Return a text with everything escaped that is no printable character."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def set_up_logs(wanted: LogFormat, *, verbose: bool) -> None:
    """Log to standard error: for a person only what is amiss, for a machine what happens too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if wanted is LogFormat.JSON else TextLines())
    level = logging.INFO if wanted is LogFormat.JSON else logging.WARNING
    logging.basicConfig(level=logging.DEBUG if verbose else level, handlers=[handler])
