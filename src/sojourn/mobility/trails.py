"""What a broker keeps about a client whose session it looks for, or was asked for (`finding.py`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sojourn.mobility.finding_messages import Ending, Found

Pair = tuple[int, int]
"""A connection of a client: its epoch and its broker."""


class Heir(NamedTuple):
    """Who is owed an answer when the debts of a client are settled."""

    pair: Pair
    knows: bool = False
    """Whether it was told that this may take long."""


class Debt(NamedTuple):
    """A question that was not answered."""

    epoch: int
    asked_s: float


class Search:
    """A client that waits for its session."""

    __slots__ = (
        "asked",
        "confronted",
        "deadline_s",
        "epoch",
        "named",
        "overtakes",
        "rumours",
        "silent",
        "ticket",
    )

    def __init__(self, epoch: int) -> None:
        self.ticket = self.epoch = epoch
        self.named: int | None = None
        """The one broker that was asked; None if all were."""
        self.silent: set[int] = set()
        """Brokers that have not answered under this epoch."""
        self.asked: set[int] = set()
        """Those of them that a question of this epoch is on its way to."""
        self.rumours: dict[int, int] = {}
        """Later connections that other brokers told of: the epoch by broker."""
        self.confronted: set[int] = set()
        """Brokers that were asked again because of a rumour."""
        self.overtakes = 0
        self.deadline_s = 0.0

    def leave_out(self, left: Collection[int]) -> None:
        """Wait for no broker that has left."""
        for brokers in (self.silent, self.asked, self.confronted):
            brokers.difference_update(left)
        for broker in left:
            self.rumours.pop(broker, None)
        if self.named in left:
            self.deadline_s = 0.0  # all others are asked next


class Trail:
    """What is remembered of a client."""

    __slots__ = ("anew", "claimed", "debts", "excuses", "given_up", "latest", "settled", "touched_s")

    def __init__(self) -> None:
        self.latest: Pair = (0, 0)
        """The latest connection that was heard of: what comes late goes there."""
        self.settled = 0
        """The epoch of the last connection here that had a session; none is taken for it any more."""
        self.claimed = 0
        """The epoch under which every other session was last told to end; earlier answers are out of date."""
        self.anew = 0
        """The epoch of the last connection here that asked for a new session: any other has ended."""
        self.given_up = 0
        """The epoch of the last one here that was given a new session unasked: any other was given up."""
        self.debts: dict[int, Debt] = {}
        """By broker: the last question that it has not answered. It may answer with the session."""
        self.excuses: dict[int, frozenset[int]] = {}
        """By such a broker: those which it waits for itself."""
        self.touched_s = 0.0

    def learn(self, pair: Pair) -> None:
        """The client connected there."""
        self.latest = max(self.latest, pair)

    def leave_out(self, left: Collection[int], here: int) -> None:
        """Expect nothing of brokers that have left; what comes late for one of them stays here."""
        for broker in left:
            self.debts.pop(broker, None)
            self.excuses.pop(broker, None)
        for broker, waits_for in list(self.excuses.items()):
            self.excuses[broker] = waits_for.difference(left)
        if self.latest[1] in left:
            self.latest = (self.latest[0], here)

    def settle(self, epoch: int) -> None:
        """There is a session here."""
        self.settled = max(self.settled, epoch)
        self.debts.clear()
        self.excuses.clear()

    def ending(self, epoch: int) -> Ending:
        """How a session ended that comes as the answer to a question of that epoch, too late."""
        following = [one for one in (self.anew, self.given_up) if one >= epoch]
        if not following:
            return Ending.REPEATED
        return Ending.WANTED if min(following) == self.anew else Ending.GIVEN_UP

    def ask(self, broker: int, epoch: int, now: float) -> None:
        """A question goes to a broker; what it said before no longer counts."""
        self.debts[broker] = Debt(epoch, now)
        self.excuses.pop(broker, None)

    def take_answer(self, message: Found) -> None:
        """A broker has nothing, or waits for others itself; an answer to an earlier question says little."""
        debt = self.debts.get(message.sender)
        if debt is None or debt.epoch > message.epoch:
            return
        if message.waits_for:
            self.excuses[message.sender] = frozenset(message.waits_for)
        else:
            self.repaid(message.sender)

    def repaid(self, broker: int) -> None:
        """Nothing is to come from a broker any more."""
        self.debts.pop(broker, None)
        self.excuses.pop(broker, None)

    def missing(self, silent: set[int], number: int) -> frozenset[int]:
        """The brokers that hide behind those that are silent towards the broker with this number."""
        missing: set[int] = set()
        for broker in silent:
            missing |= (self.excuses.get(broker, frozenset()) - {number}) or {broker}
        return frozenset(missing)
