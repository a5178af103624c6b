"""One attempt of this process to have the next term of a seat decided.

| phase | what is waited for | what ends it |
| --- | --- | --- |
| `SYNC` | every new member holds everything that was promised | all do |
| `PREPARE` | a majority takes part in this attempt, and says what it voted for | they have |
| `ACCEPT` | a majority votes | the term is decided |

What an attempt finds that a majority may have voted for it must go on with; then the members of that are
brought up to date first. Whoever makes an attempt promises nothing in the term that it would end: a host from
`PREPARE` on, a follower from the beginning and for good.
"""

from __future__ import annotations

from enum import Enum

from sojourn.broker.seats.desk import Desk
from sojourn.broker.seats.messages import Accept, Accepted, Ballot, Prepare, Promise, Refuse, Seat, Stamp
from sojourn.broker.seats.register import consistent, voters

VOTE_S = 2.0
"""How long a vote may take before another attempt is made."""


class Phase(Enum):
    """How far an attempt has come."""

    SYNC = "sync"
    PREPARE = "prepare"
    ACCEPT = "accept"


class Attempt:
    """One attempt at one term."""

    def __init__(self, desk: Desk, base: Seat, wanted: Seat, now: float) -> None:
        self._desk = desk
        self.base, self.wanted = base, wanted
        self.phase = Phase.SYNC
        self.ballot: Ballot = (0, desk.me)
        self.began_s = now
        self._voters, self._quorum = voters(base, desk.names)
        self._promises: dict[str, Promise] = {}
        self._votes: dict[str, Accepted] = {}
        self.decided: Seat | None = None
        """What a majority has voted for."""

    def is_over(self, now: float) -> bool:
        """Whether a vote takes too long."""
        return self.phase is not Phase.SYNC and now - self.began_s > VOTE_S

    def unready(self) -> list[str]:
        """Members of what is wanted that must be brought up to date first.

        Who is a member already and says that it holds everything need not; one that is out of reach holds
        what it held.
        """
        desk, base = self._desk, self.base
        return [
            one
            for one in self.wanted.members
            if one != desk.me
            and not (one in base.members and (not desk.is_up(one) or desk.whole(one, base.name) >= base.term))
        ]

    def prepare(self, counter: int, now: float) -> None:
        """Ask all to take part."""
        self.phase, self.began_s = Phase.PREPARE, now
        self.ballot = (counter, self._desk.me)
        self._promises.clear()
        self._votes.clear()
        message = Prepare(self.base, self.ballot, self._desk.register.number)
        for voter in self._voters:
            if voter != self._desk.me:
                self._desk.send(voter, message)
        entry = self._desk.register.entries[self.base.name]
        if self._desk.me in self._voters and self._desk.register.may_vote:
            answer = entry.prepare(message, self._desk.register.stamp)
            self._desk.changed()
            if isinstance(answer, Promise):
                self.on_promise(self._desk.me, answer, now)

    def on_promise(self, voter: str, message: Promise, now: float) -> None:
        """Somebody takes part; when enough do, let them vote."""
        if self.phase is not Phase.PREPARE or message.ballot != self.ballot or voter not in self._voters:
            return
        self._promises[voter] = message
        counted = self._consistent({one: each.stamp for one, each in self._promises.items()})
        if len(counted) < self._quorum:
            return
        votes = [vote for one in counted if (vote := self._promises[one].voted) is not None]
        if votes and len(counted) - len(votes) < self._quorum:
            found = max(votes, key=lambda vote: vote[0])[1]
            if found != self.wanted:
                self.wanted, self.phase, self.began_s = found, Phase.SYNC, now
                return
        self._accept(now)

    def _consistent(self, stamps: dict[str, Stamp]) -> set[str]:
        """Return those whose answers count: of whom neither another voter nor this process knows better."""
        return consistent(stamps | {"": self._desk.register.stamp}) - {""}

    def _accept(self, now: float) -> None:
        self.phase, self.began_s = Phase.ACCEPT, now
        message = Accept(self.base, self.ballot, self.wanted, self._desk.register.number)
        for voter in self._voters:
            if voter != self._desk.me:
                self._desk.send(voter, message)
        if self._desk.me in self._voters and self._desk.register.may_vote:
            entry = self._desk.register.entries[self.base.name]
            answer = entry.accept(message, self._desk.register.stamp)
            self._desk.changed()
            if isinstance(answer, Accepted):
                self.on_accepted(self._desk.me, answer)
        else:  # it does not vote; but it knows that this may be decided, and promises nothing meanwhile
            self._desk.register.entries[self.base.name].voted = self.ballot, self.wanted
            self._desk.changed()

    def on_accepted(self, voter: str, message: Accepted) -> None:
        """Somebody has voted."""
        if self.phase is not Phase.ACCEPT or message.ballot != self.ballot or voter not in self._voters:
            return
        self._votes[voter] = message
        if len(self._consistent({one: each.stamp for one, each in self._votes.items()})) >= self._quorum:
            self.decided = self.wanted

    def on_refuse(self, message: Refuse) -> bool:
        """Somebody refuses; return whether another attempt with a larger number is due."""
        return message.ballot == self.ballot and message.promised > self.ballot
