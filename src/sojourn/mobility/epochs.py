"""Epochs: the order of a client's connections to different brokers, whose clocks differ.

An epoch is a date in milliseconds, or a little more: a broker's clock never shows less than what it has seen
of others, so one that is behind catches up with the first message it gets (a hybrid logical clock). Of two
connections the one that began when its broker knew of the other is the later one, whatever the dates say. Two
brokers that know nothing of one another may choose the same epoch; then the broker's number decides.

The clock is plain state, to be stored with the broker's other state; without it a broker starts from its
date.
"""

from __future__ import annotations

EPOCHS_A_SECOND = 1_000
"""A connection is dated in milliseconds: finer dates would leave versions no room in 64 bits."""
AHEAD_MAX_S = 366 * 86_400.0
"""A message cannot push a clock further than that beyond its own date. Who is told an epoch beyond that keeps
its own time, and its clients still overtake: a single epoch may be asked to be later than another."""
EPOCH_END = 1 << 43
"""All epochs are below: with the versions of subscriptions (`holdings.py`) they fit into 63 bits."""


class EpochClock:
    """What one broker dates connections with."""

    __slots__ = ("_brokers", "_number", "last")

    def __init__(self, number: int = 0, brokers: int = 1) -> None:
        """Make the clock of one broker among so many: no two of them ever give the same epoch."""
        self._number, self._brokers = number, brokers
        self.last = 0
        """The latest epoch that was given or believed."""

    def grow(self, brokers: int) -> None:
        """Be one among so many from now on."""
        self._brokers = brokers

    def next(self, now: float, after: int = 0) -> int:
        """Return an epoch that is later than all given or believed before, and than `after`."""
        epoch = self._own(max(int(now * EPOCHS_A_SECOND), self.last + 1))
        self.last = epoch
        if after < epoch:
            return epoch
        later = self._own(after + 1)
        self.witness(later, now)
        return later if later < EPOCH_END else self._own(EPOCH_END - self._brokers)

    def _own(self, epoch: int) -> int:
        """Return the first epoch from this one on that is for this broker to give."""
        return epoch + (self._number - epoch) % self._brokers

    def witness(self, epoch: int, now: float) -> None:
        """Somebody used an epoch: later ones are given from now on, unless it is absurdly far ahead."""
        if self.last < epoch <= (now + AHEAD_MAX_S) * EPOCHS_A_SECOND:
            self.last = epoch
