"""What a process must not forget about seats: what it voted for, what it knows, what it holds.

For every seat it knows one decided term, and votes about the next one only. A vote is for one attempt (a
`Ballot`) and one seating; the rules are those of single-decree Paxos, term by term, with all processes as
voters:

- who promised an attempt takes part in no earlier one;
- who attempts a term asks a majority what they voted for, and goes on with the latest of it, unless a
  majority has voted for nothing;
- what a majority votes for in one attempt is decided.

**A process that lost its memory** may have voted. Memories are counted (`generation`). It asks others, so
many that one of them must know of every majority it was in (`enough_to_enrol`), to note that it has a new
memory and to tell what they know of votes; what it finds there it takes for its own. Every answer to an
attempt says which memory it comes from and which ones of others were known then, and no majority counts a
memory that another voter in it knew to be lost (`consistent`). So a vote of the old memory is either known to
the new one, or not counted. Answers of processes that do not vote themselves do not count; only when nobody
at all has ever known a process, which takes all others to tell, it has never voted, and begins.
"""

from __future__ import annotations

import msgspec

from sojourn.broker.seats.messages import (
    NO_BALLOT,
    Accept,
    Accepted,
    Ballot,
    Ballots,
    Enrolled,
    Prepare,
    Promise,
    Refuse,
    Seat,
    SeatError,
    Stamp,
    Standing,
)


class Entry(msgspec.Struct):
    """One seat."""

    seat: Seat
    """As it was decided last, as far as known."""
    promised: Ballot = NO_BALLOT
    """The latest attempt at the next term that this process takes part in."""
    voted: tuple[Ballot, Seat] | None = None
    whole: int = 0
    """Up to which term this process holds everything that was promised."""
    sealed: int = 0
    """In which term it acknowledges nothing any more."""

    @property
    def standing(self) -> Standing:
        """What others are told; who has voted about the next term acknowledges nothing in this one."""
        sealed = self.sealed if self.voted is None else self.seat.term
        return Standing(self.seat.name, self.seat.term, self.whole, sealed)

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

    def prepare(self, message: Prepare, stamp: Stamp) -> Promise | Refuse:
        """Answer somebody who attempts the next term; its base is known by now."""
        name, term = self.seat.name, self.seat.term + 1
        is_late = message.base.term < self.seat.term
        if is_late or message.ballot <= self.promised:
            return Refuse(name, message.ballot, self.promised, self.seat)
        self.promised = message.ballot
        return Promise(name, term, message.ballot, self.voted, stamp)

    def accept(self, message: Accept, stamp: Stamp) -> Accepted | Refuse:
        """Vote, unless a later attempt was promised something."""
        name, term = self.seat.name, self.seat.term + 1
        is_late = message.base.term < self.seat.term
        if is_late or message.ballot < self.promised:
            return Refuse(name, message.ballot, self.promised, self.seat)
        self.promised = message.ballot
        self.voted = message.ballot, message.seat
        return Accepted(name, term, message.ballot, stamp)


class Register(msgspec.Struct):
    """Everything that one process must not forget."""

    generation: int = 0
    """Which memory this is; 0 before it was noted by enough others."""
    known: dict[str, int] = {}
    """By process: the latest memory that it is known to have."""
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

    @property
    def stamp(self) -> Stamp:
        """What answers to attempts say."""
        return Stamp(self.generation, dict(self.known))

    def met(self, peer: str, generation: int) -> bool:
        """Note which memory another process has; return whether that is news."""
        if generation <= self.known.get(peer, 0):
            return False
        self.known[peer] = generation
        return True

    def enrolled(self, generation: int) -> Enrolled:
        """What somebody is told who has noted nothing of its votes."""
        ballots = [Ballots(one.seat, one.promised, one.voted) for one in self.entries.values()]
        return Enrolled(generation, self.may_vote, tuple(ballots))

    def adopt(self, ballots: Ballots) -> None:
        """Take what others know of votes for one's own; the seat's latest term is known by now."""
        entry = self.entries.get(ballots.seat.name)
        if entry is None or ballots.seat.term != entry.seat.term:
            return
        entry.promised = max(entry.promised, ballots.promised)
        if ballots.voted is not None and (entry.voted is None or ballots.voted[0] > entry.voted[0]):
            entry.voted = ballots.voted


def consistent(stamps: dict[str, Stamp]) -> set[str]:
    """Return the voters of whom no other knew a later memory than the one that they answered from."""
    return {
        voter
        for voter, stamp in stamps.items()
        if all(other.known.get(voter, 0) <= stamp.generation for other in stamps.values())
    }


def majority(count: int) -> int:
    """How many of so many voters decide."""
    return count // 2 + 1


def enough_to_enrol(count: int) -> int:
    """How many others of so many processes tell surely what a process may have voted for.

    Of the others that were in a majority with it, at least one is among them; and of those it once asked.
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
