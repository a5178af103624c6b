"""What a process must not forget about seats: what it voted for, what it knows, what it holds.

For every seat it knows one decided term, and votes about the next one only. A vote is for one attempt (a
`Ballot`) and one seating; the rules are those of single-decree Paxos, term by term, with all processes as
voters:

- who promised an attempt takes part in no earlier one;
- who attempts a term asks a majority what they voted for, and goes on with the latest of it, unless a
  majority has voted for nothing;
- what a majority votes for in one attempt is decided.

**A process that lost its memory** may have voted. It has no vote in any term that it may have voted in: it
asks so many others what the latest of these is that one of them must know (`enough_to_enrol`), and abstains
up to the term after that. Nobody attempts a term before the one before it is decided, so there are no others.
A process that nobody has ever known has not voted, and abstains from nothing.
"""

from __future__ import annotations

import msgspec

from sojourn.broker.seats.messages import (
    NO_BALLOT,
    Accept,
    Accepted,
    Ballot,
    Enrolled,
    Prepare,
    Promise,
    Refuse,
    Seat,
    SeatError,
    Standing,
)


class Known(msgspec.Struct):
    """What is known of another process's memory."""

    identity: str
    is_reborn: bool = False
    """Whether it ever had another one."""


class Entry(msgspec.Struct):
    """One seat."""

    seat: Seat
    """As it was decided last, as far as known."""
    promised: Ballot = NO_BALLOT
    """The latest attempt at the next term that this process takes part in."""
    voted: tuple[Ballot, Seat] | None = None
    abstains_to: int = 0
    whole: int = 0
    """Up to which term this process holds everything that was promised."""
    sealed: int = 0
    """In which term it acknowledges nothing any more."""

    @property
    def reached(self) -> int:
        """The last term that anybody may have voted for."""
        return self.seat.term + (self.promised != NO_BALLOT or self.voted is not None)

    @property
    def standing(self) -> Standing:
        """What others are told."""
        return Standing(self.seat.name, self.seat.term, self.whole, self.sealed, self.abstains_to)

    def learn(self, seat: Seat, me: str) -> bool:
        """Take in a decided term; return whether it is news."""
        before = self.seat
        if seat.term <= before.term:
            return False
        # Who held everything in the term before, and is needed again, still does: what was promised between
        # was promised with its consent. With a term left out nobody knows.
        goes_on = seat.term == before.term + 1 and me in before.members and self.whole >= before.term
        self.seat, self.promised, self.voted = seat, NO_BALLOT, None
        if goes_on and me in seat.members:
            self.whole = max(self.whole, seat.term)
        return True

    def prepare(self, message: Prepare) -> Promise | Refuse:
        """Answer somebody who attempts the next term; its base is known by now."""
        name, term = self.seat.name, self.seat.term + 1
        is_late = message.base.term < self.seat.term
        if is_late or term <= self.abstains_to or message.ballot <= self.promised:
            return Refuse(name, message.ballot, self.promised, self.seat)
        self.promised = message.ballot
        return Promise(name, term, message.ballot, self.voted)

    def accept(self, message: Accept) -> Accepted | Refuse:
        """Vote, unless a later attempt was promised something."""
        name, term = self.seat.name, self.seat.term + 1
        is_late = message.base.term < self.seat.term
        if is_late or term <= self.abstains_to or message.ballot < self.promised:
            return Refuse(name, message.ballot, self.promised, self.seat)
        self.promised = message.ballot
        self.voted = message.ballot, message.seat
        return Accepted(name, term, message.ballot)


class Register(msgspec.Struct):
    """Everything that one process must not forget."""

    identity: str
    known: dict[str, Known] = {}
    may_vote: bool = False
    entries: dict[str, Entry] = {}

    def written(self) -> bytes:
        """Return it as bytes."""
        return msgspec.json.encode(self)

    @classmethod
    def read(cls, data: bytes) -> Register:
        """Return what bytes hold, or refuse them."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SeatError(f"What this process has voted for cannot be read: {error}.") from None

    def met(self, peer: str, identity: str) -> bool:
        """Note what another process's memory is called; return whether that is news."""
        known = self.known.get(peer)
        if known is not None and known.identity == identity:
            return False
        self.known[peer] = Known(identity, known is not None)
        return True

    def enrolled(self, peer: str) -> Enrolled:
        """What somebody is told who lost its memory, or never had one."""
        return Enrolled(
            self.known[peer].is_reborn,
            {name: entry.reached for name, entry in self.entries.items()},
            tuple(entry.voted for entry in self.entries.values() if entry.voted is not None),
        )

    def enrol(self, answers: list[Enrolled], *, abstains: bool) -> None:
        """Begin to vote, with what enough others say."""
        self.may_vote = True
        if not abstains or not any(answer.is_reborn for answer in answers):
            return
        for name, entry in self.entries.items():
            reached = max([entry.reached, *(answer.reached.get(name, 0) for answer in answers)])
            entry.abstains_to = reached + 1
            for answer in answers:
                for ballot, seat in answer.accepted:
                    is_next = seat.name == name and seat.term == entry.seat.term + 1
                    if is_next and (entry.voted is None or ballot > entry.voted[0]):
                        # Not a vote, for it abstains: it knows that this may be decided.
                        entry.voted = ballot, seat


def majority(count: int) -> int:
    """How many of so many voters decide."""
    return count // 2 + 1


def enough_to_enrol(count: int) -> int:
    """How many others of so many processes tell surely what a process may have voted for.

    Of the others that were in a majority with it, at least one is among them.
    """
    return count - majority(count) + 1


def voters(base: Seat, names: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """Return who decides about the term after this one, and how many of them.

    With two processes a majority is both, and nothing could be decided about one that is gone. There only the
    follower decides: the host can promise nothing without it.
    """
    if len(names) == 2:
        return base.followers, 1
    return names, majority(len(names))
