"""How far a query has read: offsets as Spark keeps them in its checkpoint. Pure: no client, no clock.

An offset is a plain dict:

- `count`: rows so far;
- `kept`: those of them that brokers keep until they are acknowledged, which are all but events of QoS 0;
- `marks`: by source, the sequence of the last event that was read. A source's events come in order, so two
  offsets tell for each event whether it lies between them, also after a restart, when the brokers send
  everything again that was not acknowledged and the sources may be interleaved otherwise.

Sequences are dates in microseconds. A source that has been silent for an hour is forgotten when there are
many: what it sent was acknowledged long ago, and comes no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

Offset = dict[str, Any]

SOURCES_KEPT = 1_000
SOURCES_MAX = 10_000
"""Sources that are remembered even if all of them spoke within the hour; what a client remembers, too."""
SILENT_US = 3_600 * 1_000_000


class Numbered(Protocol):
    """What an event is known by here."""

    @property
    def source(self) -> str:
        """Its source, or nothing where no broker numbered it."""

    @property
    def sequence(self) -> int:
        """Its number there."""

    @property
    def qos(self) -> int:
        """At which quality of service it came: 0 is kept by nobody."""


def initial() -> Offset:
    """The offset of a query that begins."""
    return {"count": 0, "kept": 0, "marks": {}}


def kept(offset: Offset) -> int:
    """How many rows brokers kept; checkpoints of earlier versions did not tell, and counted all."""
    return int(offset["kept"] if "kept" in offset else offset["count"])


def advanced(start: Offset, events: Iterable[Numbered]) -> Offset:
    """The offset after some more events."""
    count, stored = start["count"], kept(start)
    marks: dict[str, int] = dict(start["marks"])
    for event in events:
        count += 1
        stored += bool(event.qos)
        if event.source:
            marks.pop(event.source, None)  # so that the last to speak stands last
            marks[event.source] = event.sequence
    _forget_silent(marks)
    return {"count": count, "kept": stored, "marks": marks}


def _forget_silent(marks: dict[str, int]) -> None:
    if len(marks) <= SOURCES_KEPT:
        return
    lately = max(marks.values()) - SILENT_US
    for source in list(marks):
        if len(marks) <= SOURCES_KEPT or (marks[source] > lately and len(marks) <= SOURCES_MAX):
            return
        del marks[source]


class Between:
    """Picks the events of a batch that was planned before, out of what the brokers send again."""

    def __init__(self, start: Offset, end: Offset) -> None:
        self._start, self._end = start["marks"], end["marks"]
        self.wanted = kept(end) - kept(start)
        """Events that are to come; those of QoS 0 nobody can send again."""
        self.found = 0

    def takes(self, event: Numbered) -> bool:
        """Whether an event belongs to the batch; it is counted if so."""
        if self.complete:
            return False
        if event.source:
            after = self._start.get(event.source, -1)
            if not after < event.sequence <= self._end.get(event.source, -1):
                return False
        self.found += 1
        return True

    @property
    def complete(self) -> bool:
        """Whether all have come."""
        return self.found >= self.wanted
