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

**If too many lost theirs** for that, all others have to answer, one question after the last of them lost it:
each that remembers says that it is connected with all who do not, so none of these speaks from before. Of a
majority that voted, one remembers, and has told them all; or all of it forgot, and the term is known only if
it was learnt, and then told as well. A term that nobody remembers may be decided otherwise, and that does not
matter: a follower notes a term before it acknowledges a line of it, so whatever was promised in it was
promised by members that all lost their disks, and that is more than copies make up for.

**Who votes** is decided in the same way: the roll is a seat of its own (`messages.ROLL`), whose members are
the voters about the next one. `rolls.py` says how one follows another. The roll that a configuration gives
counts for nothing (0) until all have met; a process without its memory goes by what others tell it.
"""

from __future__ import annotations

import msgspec

from sojourn.broker.seats.messages import (
    NO_BALLOT,
    ROLL,
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
        goes_on = seat.term == before.term + 1 and me in before.members and self.whole >= before.term > 0
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
    birth: str = ""
    """In a word that no other memory has: when this one began."""
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
    def roll(self) -> Entry:
        """Who votes, and what was voted about that."""
        return self.entries[ROLL]

    @property
    def names(self) -> tuple[str, ...]:
        """The processes on the roll."""
        return self.roll.seat.members

    @property
    def number(self) -> int:
        """The number of the roll; 0 as long as only a configuration says so."""
        return self.roll.seat.term

    @property
    def is_sealed(self) -> bool:
        """Whether this process votes about no seat until the next roll is decided."""
        return self.number > 0 and (self.roll.sealed >= self.number or self.roll.voted is not None)

    @property
    def tells_surely(self) -> bool:
        """Whether this process remembers all its votes, and goes on voting under its roll."""
        return self.may_vote and not self.is_sealed

    @property
    def seats(self) -> dict[str, Entry]:
        """The brokers' seats."""
        return {name: entry for name, entry in self.entries.items() if name != ROLL}

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

    def enrolled(self, generation: int, asked: int = 0, forgetful: tuple[str, ...] = ()) -> Enrolled:
        """What somebody is told who has noted nothing of its votes."""
        return Enrolled(
            generation,
            self.tells_surely,
            self.ballots,
            asked,
            forgetful,
            self.number,
            dict(self.known),
            self.may_vote,
        )

    @property
    def ballots(self) -> tuple[Ballots, ...]:
        """What this process knows of seats, and of votes about them."""
        return tuple(Ballots(one.seat, one.promised, one.voted) for one in self.entries.values())

    def forget_votes(self) -> None:
        """Begin anew with the next term of every seat: nothing that was voted for can have been decided."""
        for entry in self.seats.values():
            entry.promised, entry.voted = NO_BALLOT, None

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
    """Return who decides about the term after this one, and how many of them; about a roll, its members.

    With two processes a majority is both, and nothing could be decided about one that is gone. There only the
    follower decides: the host can promise nothing without it.
    """
    if base.name == ROLL:
        return base.members, majority(len(base.members))
    if len(names) == 2:
        return base.followers, 1
    return names, majority(len(names))
