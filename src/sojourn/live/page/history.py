"""The last hour of some numbers: the last minutes second by second, the rest in steps.

Two queues that forget, so an hour takes the same room however much happens in it.
"""

from __future__ import annotations

from collections import deque

import msgspec

FINE = 180
"""Moments kept one by one: three minutes of them."""
STEP = 10
"""Moments that are put together for the hour."""
COARSE = 360
"""Steps kept: an hour of them."""


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """How things are at one moment, or were in a step of several: rates as means, the rest at its worst."""

    at_s: float
    published_rate: float
    delivered_rate: float
    handoff_rate: float
    queue_bytes: int
    clients: int
    p50_s: float | None
    p99_s: float | None


class History:
    """What the charts show."""

    def __init__(self) -> None:
        self._fine: deque[Moment] = deque(maxlen=FINE)
        self._coarse: deque[Moment] = deque(maxlen=COARSE)
        self._step: list[Moment] = []
        """Moments of the step that is not over yet."""

    def add(self, moment: Moment) -> None:
        """Note one moment."""
        self._fine.append(moment)
        self._step.append(moment)
        if len(self._step) >= STEP:
            self._coarse.append(together(self._step))
            self._step = []

    @property
    def last(self) -> Moment | None:
        """The last moment."""
        return self._fine[-1] if self._fine else None

    def minutes(self) -> list[Moment]:
        """The last minutes, second by second."""
        return list(self._fine)

    def hour(self) -> list[Moment]:
        """The last hour in steps, the one that is not over yet among them."""
        return [*self._coarse, *([together(self._step)] if self._step else [])]


def together(moments: list[Moment]) -> Moment:
    """Several moments as one, at the time of the last."""
    last = moments[-1]

    def mean(field: str) -> float:
        total: float = sum(getattr(one, field) for one in moments)
        return round(total / len(moments), 2)

    def worst(field: str) -> float | None:
        return max((value for one in moments if (value := getattr(one, field)) is not None), default=None)

    return Moment(
        last.at_s,
        mean("published_rate"),
        mean("delivered_rate"),
        mean("handoff_rate"),
        max(one.queue_bytes for one in moments),
        last.clients,
        worst("p50_s"),
        worst("p99_s"),
    )
