"""What a broker of a network knows of each client: its epoch, and what it owes an answer to."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from sojourn.mqtt.admission import Admission
from sojourn.mqtt.message import Message
from sojourn.mqtt.session import Session, Subscription
from sojourn.routing.effects import CancelTimer, SetTimer

SPARE_TIMERS = 1_000
"""Timers that were taken back and may stay in the heap until their time."""


class Waiting(NamedTuple):
    """A client that knocked and whose session is being looked for."""

    connection: int
    admission: Admission
    epoch: int
    previous: int | None
    marks: dict[str, int] | None
    is_clean: bool = False
    """Whether it begins anew, and is only looked for lest somebody else has a session of that name."""
    owned_s: float | None = None
    """Since when the session that it ended was its owner's; None if there was none."""


class Handoff(NamedTuple):
    """A client that moved here, for the page."""

    client: str
    origin: str
    arrived_s: float
    ready_s: float
    how: str
    complete: bool


class Roamer:
    """A client with a session here."""

    __slots__ = (
        "arrived",
        "epoch",
        "held",
        "last_epoch",
        "marks",
        "numbers",
        "outstanding",
        "previous",
        "resumes",
        "roams",
        "session",
        "since",
    )

    def __init__(self, epoch: int, previous: int | None, marks: dict[str, int] | None, since: float) -> None:
        self.epoch = epoch
        self.previous = previous
        self.marks = marks
        self.resumes = False
        """Whether its session is older than its connection."""
        self.last_epoch: int | None = None
        """Of its last connection to the broker that it comes from, None if nobody said
        (`SubscriberArrived.last_epoch`)."""
        self.roams = True
        """Whether its session outlives its connection, or did so before."""
        self.arrived = False
        """Whether the mobility core knows of this connection."""
        self.held: tuple[int, ...] = ()
        """The interests that the routing core holds for it."""
        self.numbers: dict[Subscription, int] = {}
        """By subscription: its interest, which is among those held."""
        self.outstanding: dict[str, dict[int, bool]] = {}
        """By source and sequence, in the order of these: whether the client has acknowledged it."""
        self.since = since
        self.session: Session | None = None
        """Its session, once somebody looked for it."""

    def note(self, message: Message, *, settled: bool) -> None:
        """An event was handed over; `settled` if no answer is expected."""
        waiting = self.outstanding.setdefault(message.source, {})
        is_late = bool(waiting) and message.sequence < next(reversed(waiting))
        waiting[message.sequence] = settled
        if is_late:  # what was on its way when the client left is noted before what was stored for it
            self.outstanding[message.source] = dict(sorted(waiting.items()))

    def acknowledge(self, message: Message) -> None:
        """The client has an event."""
        waiting = self.outstanding.get(message.source)
        if waiting is not None and message.sequence in waiting:
            waiting[message.sequence] = True

    def safe_with(self, taken: AbstractSet[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Return by source the last event before which all were acknowledged or are among those `taken`."""
        for source, waiting in self.outstanding.items():
            last = None
            for sequence, is_settled in waiting.items():
                if not is_settled and (source, sequence) not in taken:
                    break
                last = sequence
            if last is not None:
                yield source, last

    def consumed(self, source: str) -> int | None:
        """The last event of a source before which none is outstanding, if that is news."""
        waiting = self.outstanding.get(source)
        last = None
        while waiting:
            oldest = next(iter(waiting))
            if not waiting[oldest]:
                break
            del waiting[oldest]
            last = oldest
        if waiting is not None and not waiting:
            del self.outstanding[source]
        return last


class Timers:
    """The timers that a core has set: due one by one, or taken back."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int]] = []
        self._running: dict[int, float] = {}

    def set(self, timer: SetTimer, now: float) -> None:
        """Start a timer; one for ever never fires."""
        if math.isfinite(timer.delay_s):
            self._running[timer.token] = now + timer.delay_s
            heapq.heappush(self._heap, (now + timer.delay_s, timer.client, timer.token))
            if len(self._heap) > 2 * len(self._running) + SPARE_TIMERS:
                self._heap = [one for one in self._heap if self._running.get(one[2]) == one[0]]
                heapq.heapify(self._heap)

    def cancel(self, cancel: CancelTimer) -> None:
        """Take a timer back."""
        self._running.pop(cancel.token, None)

    def next_moment(self) -> float | None:
        """When the next one is due."""
        while self._heap and self._running.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> tuple[int, int] | None:
        """The client and token of one that is due, or None."""
        moment = self.next_moment()
        if moment is None or moment > now:
            return None
        _, client, token = heapq.heappop(self._heap)
        del self._running[token]
        return client, token


def read_marks(texts: list[str]) -> dict[str, int] | None:
    """The marks that a client states, or none if they cannot be read."""
    if not texts:
        return None
    try:
        return msgspec.json.decode(texts[0], type=dict[str, int])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
