"""The audit log: what a broker refused, to whom and why, one JSON object a line.

    log = AuditLog(folder, "B1")
    log.note(now, {"what": "connect", "why": "not_authorized", "client": "phone", …})

The file is for its owner alone. A flood of refusals does not fill the disk: at most `LINES_S_MAX` are written
in a second, the next line says how many were left out, and a file that is full is kept once, as `.1`. JSON
escapes what clients call themselves, so that nobody forges a line.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from sojourn.live.seldom import Seldom

LINES_S_MAX = 50
FILE_BYTES_MAX = 10 << 20
TEXT_MAX = 256
"""Characters of anything that a client said."""

_seldom = Seldom(logging.getLogger("sojourn.audit"))


class AuditLog:
    """The refusals of one broker."""

    def __init__(self, folder: str | Path, broker: str) -> None:
        self.path = Path(folder) / f"{broker}.jsonl"
        self._second = 0
        self._written = 0
        self._left_out = 0

    def note(self, now: float, what: Mapping[str, str]) -> None:
        """Write one refusal, unless there are too many."""
        if int(now) != self._second:
            self._second, self._written = int(now), 0
        if self._written >= LINES_S_MAX:
            self._left_out += 1
            return
        self._written += 1
        line: dict[str, object] = {"at": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")}
        line |= {name: text[:TEXT_MAX] for name, text in what.items()}
        if self._left_out:
            line["left_out_before"] = self._left_out
            self._left_out = 0
        try:
            self._write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            _seldom.warning("audit", "The audit log %s cannot be written: %s", self.path, error)

    def _write(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size + len(line) > FILE_BYTES_MAX:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                os.close(file)
                file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, line)
        finally:
            os.close(file)
