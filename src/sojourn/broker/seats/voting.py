"""What one process votes for and lets others vote for, about seats and about who votes; what follows from it.

`council.py` is the rest of its part in seats: what is due, and what is told of copies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.attempt import Attempt, Phase
from sojourn.broker.seats.desk import Desk, Terms
from sojourn.broker.seats.effects import Logs, Regrouped, Seated, Stop
from sojourn.broker.seats.enrolling import Enrolling
from sojourn.broker.seats.following import Following
from sojourn.broker.seats.messages import ROLL, Seat
from sojourn.broker.seats.register import Entry, Register
from sojourn.broker.seats.rolls import Rolls, is_changed
from sojourn.broker.seats.shipping import Shipping
from sojourn.broker.seats.wishes import Wishes

RETRY_S = 0.5
"""After how long another attempt is made; longer for those who are named later."""
AGAIN_S = 1.0
"""After how long it is tried again to change a roll."""


class Voting(ABC):
    """One process among those that vote."""

    def __init__(self, terms: Terms, register: Register, logs: Logs, now: float) -> None:
        self.desk, self.register = Desk(terms, register, logs, now), register
        self.shipping, self.following = Shipping(self.desk), Following(self.desk)
        self.serving = self.following.serving
        self.now = now
        self._full_until_s = 0.0
        """Until when others are told that there is no room for their copies."""
        self._own_addresses: dict[str, str] = {}
        self._attempts: dict[str, Attempt] = {}
        self._next_try_s: dict[str, float] = {}
        self._tries: dict[str, int] = {}
        self._counters: dict[str, int] = {}
        """By seat: the largest number of an attempt that was heard of."""
        self._wishes = Wishes(self.desk)
        self._enrolling = Enrolling(self.desk, self._learn, self._greet_all)
        self.rolls = Rolls(self.desk)

    @abstractmethod
    def _look(self, name: str, entry: Entry, now: float) -> None:
        """See to one seat."""

    @abstractmethod
    def _release(self, name: str) -> None:
        """Find out how much may leave."""

    def _greet(self, peer: str) -> None:
        entries = self.register.seats.values()
        hello = say.Hello(
            self.register.generation,
            not self.register.may_vote,
            (self.register.roll.seat, *(entry.seat for entry in entries)),
            tuple(entry.standing for entry in entries),
            self.desk.has_room,
            self.register.birth,
        )
        self.desk.send(peer, hello)

    def _greet_all(self) -> None:
        """Say again who this is: others may know another roll, or another memory of this process."""
        for peer in (*self.desk.peers, *self.desk.guests):
            self._greet(peer)

    # Votes ---------------------------------------------------------------------------------------------

    def _learn(self, seat: Seat, now: float) -> None:
        """A term was decided."""
        if seat.name == ROLL:
            self._learn_roll(seat, now)
            return
        entry = self.desk.entry(seat.name)
        if entry is None or not entry.learn(seat, self.desk.me):
            return
        self.desk.changed()
        self._seated(seat, now)

    def _seated(self, seat: Seat, now: float) -> None:
        """Do what follows from a term that was noted."""
        name, me, entry = seat.name, self.desk.me, self.register.entries[seat.name]
        self._attempts.pop(name, None)
        self.shipping.begin_anew(name)
        self._wishes.pending_s.pop(name, None)
        self._tries.pop(name, None)
        self._next_try_s[name] = now
        if seat.host != me:
            self._stop(name, f"{seat.host} plays {name} in term {seat.term}.")
        self.desk.do(Seated(seat))
        if seat.host == me:
            # Before any line of it: whoever acknowledges one knows the term, and does not forget it.
            self.desk.tell_all(say.Decided(seat))
        self._look(name, entry, now)

    def _learn_all(self, seats: tuple[Seat, ...], now: float) -> tuple[str, ...]:
        """Learn what somebody says was decided; return whom its file names, if it goes by that alone."""
        if seats and seats[0].name == ROLL and not seats[0].term:
            return seats[0].members  # and nothing was decided, as far as it knows
        for seat in seats:
            self._learn(seat, now)
        return ()

    def _learn_roll(self, seat: Seat, now: float) -> None:
        """A roll was decided; all seats begin with those that it tells of."""
        register, desk = self.register, self.desk
        before = register.roll.seat
        if seat.term <= before.term:
            return
        if not before.term:  # this process went by its file alone, and has no part in anything yet
            register.entries = {ROLL: register.roll, desk.me: Entry(Seat(desk.me, 0, desk.me))}
        register.roll.learn(seat, desk.me)
        went = [one for one in before.members if one not in (*seat.members, desk.me) and desk.is_up(one)]
        gone = [name for name in register.seats if name not in seat.members]
        desk.regroup(now)
        news = []
        for one in seat.seats:
            entry = desk.entry(one.name)
            if entry is not None and entry.learn(one, desk.me):
                news.append(one)
        if is_changed(before, seat):
            # A majority had voted for nothing, and was to vote no more: whatever somebody else voted for is
            # void, and it may name a process that has left, which nobody could bring up to date.
            register.forget_votes()
        for joined in seat.joined:
            if joined.name != desk.me:
                register.met(joined.name, 1)
            elif joined.birth == register.birth and not register.generation and desk.is_on_roll:
                # It is this memory that joined: it has never voted, and whatever it brings along is all.
                register.generation, register.may_vote = 1, True
                register.entries[desk.me].whole = 1
        desk.changed()  # from here on there are effects, and all of it is noted before them
        self._attempts.clear()
        self.rolls.learnt()
        self._enrolling.begin_anew()
        # Something was unclear: it is decided first.
        self._next_try_s[ROLL] = now + (AGAIN_S if seat.members == before.members else 0.0)
        for peer in went:
            self.shipping.lost(peer)
            self.following.lost(peer)
        desk.do(Regrouped(seat))
        for name in gone:
            self.shipping.begin_anew(name)
            self.following.end(name)
            self._stop(name, f"{name} has left the network.")
        for one in news:
            self._seated(one, now)
        self._greet_all()

    def _stop(self, name: str, why: str) -> None:
        self._own_addresses.pop(name, None)
        if name in self.serving:
            self.serving.discard(name)
            self.desk.do(Stop(name, why))

    def on_prepare(self, peer: str, message: say.Prepare, now: float) -> None:
        """Somebody attempts the next term of a seat, or the next roll."""
        self._vote(peer, message, now)

    def on_accept(self, peer: str, message: say.Accept, now: float) -> None:
        """Somebody lets all vote."""
        self._vote(peer, message, now)

    def _vote(self, peer: str, message: say.Prepare | say.Accept, now: float) -> None:
        name = message.base.name
        entry = self.desk.entry(name)
        if entry is None or not self.register.may_vote:
            return
        self._learn(message.base, now)
        is_of_roll = name == ROLL
        if not self.desk.is_on_roll or (
            not is_of_roll and (self.register.is_sealed or message.roll != self.register.number)
        ):
            return
        entry = self.register.entries[name]
        self._counters[name] = max(self._counters.get(name, 0), message.ballot[0])
        stamp = self.register.stamp
        answer: say.Promise | say.Accepted | say.Refuse
        if isinstance(message, say.Prepare):
            answer = entry.prepare(message, stamp)
        else:
            answer = entry.accept(message, stamp)
            if is_of_roll:
                self._seal()
        self.desk.changed()
        self.desk.send(peer, answer)
        if isinstance(answer, say.Accepted):
            self._release(name)

    def on_promise(self, peer: str, message: say.Promise, now: float) -> None:
        """Somebody takes part in an attempt of this process."""
        attempt = self._attempts.get(message.name)
        if attempt is not None and message.term == attempt.wanted.term:
            attempt.on_promise(peer, message, now)
            self._conclude(message.name, now)

    def on_accepted(self, peer: str, message: say.Accepted, now: float) -> None:
        """Somebody has voted for what this process attempts."""
        attempt = self._attempts.get(message.name)
        if attempt is not None and message.term == attempt.wanted.term:
            attempt.on_accepted(peer, message)
            self._conclude(message.name, now)

    def _conclude(self, name: str, now: float) -> None:
        attempt = self._attempts.get(name)
        if attempt is not None and attempt.decided is not None:
            seat = attempt.decided
            self._learn(seat, now)
            if name == ROLL or seat.host != self.desk.me:
                self.desk.tell_all(say.Decided(seat))

    def on_refuse(self, _peer: str, message: say.Refuse, now: float) -> None:
        """Somebody does not take part."""
        self._counters[message.name] = max(self._counters.get(message.name, 0), message.promised[0])
        self._learn(message.seat, now)
        attempt = self._attempts.get(message.name)
        if attempt is not None and attempt.on_refuse(message):
            self._give_up(message.name, now)

    def on_decided(self, _peer: str, message: say.Decided, now: float) -> None:
        """A majority has voted."""
        self._learn(message.seat, now)

    # The roll ------------------------------------------------------------------------------------------

    def _seal(self) -> None:
        """Vote about no seat under this roll any more, nor have anybody vote."""
        self.rolls.seal()
        for name in [name for name in self._attempts if name != ROLL]:
            del self._attempts[name]

    def on_seal(self, peer: str, message: say.Seal, _now: float) -> None:
        """Somebody wants the roll to be changed."""
        register = self.register
        if register.may_vote and self.desk.is_on_roll and message.roll == register.number:
            self._seal()
            self.desk.send(peer, self.rolls.answer())

    def on_sealed(self, peer: str, message: say.Sealed, now: float) -> None:
        """Somebody has sealed the roll."""
        if message.roll == self.register.number:
            for one in message.ballots:
                self._learn(one.seat, now)
            self.rolls.on_sealed(peer, message)

    def _look_at_roll(self, now: float) -> None:
        """See to who votes."""
        rolls, attempt = self.rolls, self._attempts.get(ROLL)
        if not self.register.may_vote or not self.desk.is_on_roll:
            return
        wanted: Seat | None = None
        if attempt is not None:
            if attempt.is_over(now):
                self._give_up(ROLL, now)
            elif attempt.phase is Phase.SYNC:  # it found what somebody voted for, and goes on with that
                self._vote_on_roll(attempt, now)
            return
        if now < self._next_try_s.get(ROLL, 0.0):
            return
        if rolls.call is not None:
            wanted = rolls.outcome(now)
        elif rolls.is_stuck(now):
            wanted = rolls.same()
        elif not self.register.is_sealed and not self._attempts:
            change = rolls.change()
            if change is not None:
                self._seal()
                rolls.begin(change, now)
                wanted = rolls.outcome(now)
        if wanted is not None:
            rolls.call = None
            attempt = self._attempts[ROLL] = Attempt(self.desk, self.register.roll.seat, wanted, now)
            self._vote_on_roll(attempt, now)

    def _vote_on_roll(self, attempt: Attempt, now: float) -> None:
        self._counters[ROLL] = self._counters.get(ROLL, 0) + 1
        attempt.prepare(self._counters[ROLL], now)
        self._conclude(ROLL, now)

    def _give_up(self, name: str, now: float) -> None:
        """Try again later: those who are named later wait longer."""
        self._attempts.pop(name, None)
        tries = self._tries[name] = min(self._tries.get(name, 0) + 1, 6)
        names = self.desk.names
        place = names.index(self.desk.me) if self.desk.is_on_roll else len(names)
        self._next_try_s[name] = now + RETRY_S * (1 + place / len(names)) * (1 + tries / 2)
