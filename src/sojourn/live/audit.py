"""The audit log: what a broker refused, to whom and why, one JSON object a line.

    log = AuditLog(folder, "B1")
    log.note(now, {"what": "connect", "why": "not_authorized", "client": "phone", …})

The file is for its owner alone. A flood of refusals neither fills the disk nor hides those of others: at most
`LINES_S_MAX` are written in a second, and `ADDRESS_LINES_S_MAX` of one address. The next line says how many
were left out (`left_out_before`), and of which address most of them were; a file that is full is kept once,
as `.1`. The next line says too how many could not be written (`lost_before`), as on a full disk. JSON
escapes what clients call themselves, so that nobody forges a line.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from sojourn.live.narrowing import narrow_file
from sojourn.live.seldom import Seldom
from sojourn.mqtt.parties import party_of

LINES_S_MAX = 50
ADDRESS_LINES_S_MAX = 10
FILE_BYTES_MAX = 10 << 20
LEFT_OUT_MAX = 1_000
"""Addresses whose lines that were left out are told apart."""
TEXT_MAX = 256
"""Characters of anything that a client said, as they are written: JSON writes some as twelve."""

_seldom = Seldom(logging.getLogger("sojourn.audit"))


class AuditLog:
    """The refusals of one broker."""

    def __init__(self, folder: str | Path, broker: str) -> None:
        self.path = Path(folder) / f"{broker}.jsonl"
        self.lost = 0
        """Lines that could not be written, in all."""
        self._second = 0
        self._written: Counter[str] = Counter()
        """In this second, by address."""
        self._left_out: Counter[str] = Counter()
        """Lines that were too many, by address: the next line tells of them."""
        self._lost_before = 0
        """The same of those that could not be written."""

    def trouble(self) -> str | None:
        """Return why nothing can be written, as far as that shows before there is anything to write."""
        try:
            os.close(self._open())
        except OSError as error:
            return f"the audit log {self.path} cannot be written: {error.strerror or error}"
        return None

    def note(self, now: float, what: Mapping[str, str]) -> None:
        """Write one refusal, unless there are too many."""
        address = _party(what)
        if int(now) != self._second:
            self._second = int(now)
            self._written.clear()
        if self._written[address] >= ADDRESS_LINES_S_MAX or self._written.total() >= LINES_S_MAX:
            if address in self._left_out or len(self._left_out) < LEFT_OUT_MAX:
                self._left_out[address] += 1
            else:
                self._left_out[""] += 1
            return
        self._written[address] += 1
        line: dict[str, object] = {"at": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")}
        line |= {name: _cut(text) for name, text in what.items()}
        if self._left_out:
            ((most, _),) = self._left_out.most_common(1)
            line |= {"left_out_before": self._left_out.total(), "left_out_most_of": most}
        if self._lost_before:
            line["lost_before"] = self._lost_before
        try:
            self._write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            self.lost += 1
            self._lost_before += 1
            _seldom.warning("audit", "The audit log %s cannot be written: %s", self.path, error)
        else:
            self._left_out.clear()
            self._lost_before = 0

    def _open(self) -> int:
        """Open the file, which nobody else reads, whoever made it."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            narrow_file(file)
        except OSError:
            os.close(file)
            raise
        return file

    def _write(self, line: bytes) -> None:
        file = self._open()
        try:
            size = os.fstat(file).st_size
            if size + len(line) > FILE_BYTES_MAX:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                os.close(file)
                file, size = self._open(), 0
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line  # a process that was killed left a piece of one
            written = os.write(file, line)
            if written < len(line):
                os.ftruncate(file, size)  # no piece of a line is left for the next one to be glued to
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)


def _party(what: Mapping[str, str]) -> str:
    """Whose line it is, by what the address counts as; what a neighbour's port says has words before it."""
    address = what.get("address") or what.get("peer", "").rpartition(" ")[2]
    return party_of(address.partition(":")[0] if address.count(":") == 1 else address)


def _cut(text: str) -> str:
    """Return as much of a text as has room in a line."""
    text = text[:TEXT_MAX]
    while len(json.dumps(text)) > TEXT_MAX + len('""'):
        text = text[: len(text) * 3 // 4]
    return text
