"""One step of a script, and what there is that steps happen to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

TOPICS = tuple(f"t/{number}" for number in range(5))
VALUES = 10
LOSES_ALL = "loses all"
"""In the detail of a loss of power: nothing is left of what was not synced."""


class Place(NamedTuple):
    """What there is that faults happen to."""

    brokers: int
    links: tuple[tuple[int, int], ...]
    clients: int


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens at a time to a client, a broker or a link (`who`)."""

    time_s: float
    what: str
    who: int
    where: int = -1
    """The broker that a client goes to."""
    seconds: float = 0.0
    """How long it lasts, or how long it takes to be noticed."""
    detail: tuple[Any, ...] = ()

    def __str__(self) -> str:
        place = f" -> {self.where}" if self.where >= 0 else ""
        lasts = f" {self.seconds:.3f} s" if self.seconds else ""
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.time_s:8.3f}  {self.what} {self.who}{place}{lasts}{detail}"
