"""How one roll follows another: processes join, and those leave whose brokers have left.

Who votes about seats is on the roll. The roll is a seat itself (`messages.ROLL`): the next one is decided by
a majority of this one, as terms are. What makes that safe is what happens before (`Seal`):

1. A majority of the roll *seals* it: notes that it votes about no seat under it any more, for good, and says
   what it knows and has voted for. From then on nothing can be decided under this roll.
2. If anything may have been decided that nobody of them knows, because one of them has voted, the same
   processes are made the next roll, and go on with that; the change is tried again later.
3. Else the next roll is proposed with the seats as they are known now. Whoever learns of it learns these with
   it. So all that is voted for under it begins from the same seats, and from no votes.

A process that has sealed a roll and hears of no other has the same processes made the next one, so nobody has
to come back for others to go on. One that joins votes from its first roll on: that names the memory which it
joins with, and which never voted (`birth`). One whose memory is lost is told of votes only by processes that
have not sealed their roll: so it is on the roll whose votes it was told, or waits for the next one.

| who | what is wanted |
| --- | --- |
| the process of the broker that one joins by | that one, once it can be reached |
| the first that can be reached | a roll without a process whose broker has left, once it keeps no copies |
| anybody who has sealed the roll, after a while | the same roll again, so that all go on |
"""

from __future__ import annotations

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.choosing import Order, first_seat, next_seat
from sojourn.broker.seats.desk import Desk, roll_of
from sojourn.broker.seats.messages import ROLL, Joined, Seat
from sojourn.broker.seats.register import consistent, majority

GATHER_S = 1.0
"""How long all are waited for that can be reached; then a majority is enough."""
CALL_S = 3.0
"""How long that may take before the roll is left as it is."""


class Call:
    """One attempt to have a roll sealed, in order to change it."""

    def __init__(self, wanted: Seat, now: float) -> None:
        self.wanted, self.began_s = wanted, now
        self.answers: dict[str, say.Sealed] = {}


class Rolls:
    """One process's part in who votes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.invited: dict[str, tuple[str, ...]] = {}
        """Processes that may join by this one, with the brokers that they are linked to."""
        self.call: Call | None = None
        self._sealed_s: float | None = None
        """When this process found that the roll is sealed."""

    def seal(self) -> None:
        """Vote about no seat under this roll any more."""
        register = self._desk.register
        if not register.is_sealed:
            register.roll.sealed = register.number
            self._desk.changed()

    def answer(self) -> say.Sealed:
        """What this process says who has sealed the roll."""
        register = self._desk.register
        return say.Sealed(register.number, register.ballots, register.stamp)

    def learnt(self) -> None:
        """There is another roll."""
        self.call, self._sealed_s = None, None

    # What is wanted ------------------------------------------------------------------------------------

    def change(self) -> Seat | None:
        """Return the roll that this process wants; None if it is right as it is."""
        desk, roll = self._desk, self._desk.register.roll.seat
        for name in self.invited:
            is_there = name in desk.guests and desk.guests[name].birth
            if is_there and name not in roll.members and name not in roll.left:
                return self._with(name)
        stay = [name for name in roll.members if name not in desk.leaving]
        first = next((name for name in stay if desk.is_up(name)), None)
        if first == desk.me:
            for name in roll.members:
                if name in desk.leaving and self.why_stays(name) is None:
                    return self._without(name)
        return None

    def why_stays(self, name: str) -> str | None:
        """Say why a process whose broker has left is still needed; None if it is not."""
        desk = self._desk
        if len(desk.names) - 1 <= desk.terms.copies:
            return f"copies of [mobility] is {desk.terms.copies}, and too few brokers would be left for that"
        kept = sorted(
            one.seat.name
            for one in desk.register.seats.values()
            if one.seat.name != name and name in one.seat.members
        )
        if kept:
            return f"it keeps copies of {', '.join(kept)}, which others do not have yet"
        return None

    def why_not_on_roll(self) -> str:
        """Say what a process waits for that is not on the roll."""
        desk = self._desk
        if desk.me in desk.register.roll.seat.left:
            return "it has left the network. To let it join again, give it a new name and a new store."
        return (
            f"it is to join {', '.join(desk.names)}. The process of the broker that it links to lets it in, "
            "once that has read a file that names it (`sojourn reload`) and reaches a majority of them."
        )

    def _with(self, name: str) -> Seat:
        roll = self._desk.register.roll.seat
        joined = Joined(name, self.invited[name], self._desk.guests[name].birth)
        return self._next((*roll.members, name), (*roll.joined, joined), roll.left)

    def _without(self, name: str) -> Seat:
        roll = self._desk.register.roll.seat
        names = tuple(one for one in roll.members if one != name)
        return self._next(names, roll.joined, tuple(sorted({*roll.left, name})))

    def _next(self, names: tuple[str, ...], joined: tuple[Joined, ...], left: tuple[str, ...]) -> Seat:
        """Return a roll that begins with the seats as they are known here."""
        desk = self._desk
        bare = roll_of(names, desk.register.number + 1)
        order, seats = desk.order_with(bare.members, joined), []
        for name in bare.members:
            entry = desk.entry(name)
            seats.append(self._first(order, name) if entry is None else entry.seat)
        return Seat(ROLL, bare.term, bare.host, bare.followers, joined, left, tuple(seats))

    def _first(self, order: Order, name: str) -> Seat:
        """Return the first term of one that joins: at home, with copies at those that are there."""
        desk = self._desk
        there = [one for one in order.names if one == name or desk.is_up(one)]
        seat = Seat(name, 0, name)
        stay = [one for one in there if one not in desk.leaving]
        return next_seat(order, seat, name, desk.terms.copies, there=stay, kept=()) or first_seat(
            order, name, desk.terms.copies
        )

    def same(self) -> Seat:
        """Return a roll of the same processes."""
        roll = self._desk.register.roll.seat
        return Seat(ROLL, roll.term + 1, roll.host, roll.followers, roll.joined, roll.left, roll.seats)

    # What is due ---------------------------------------------------------------------------------------

    def begin(self, wanted: Seat, now: float) -> None:
        """Have the roll sealed by all that can be reached."""
        self.call = Call(wanted, now)
        self.seal()
        self._desk.tell_all(say.Seal(self._desk.register.number))
        self.on_sealed(self._desk.me, self.answer())

    def on_sealed(self, peer: str, message: say.Sealed) -> None:
        """Somebody has sealed the roll."""
        if self.call is not None and message.roll == self._desk.register.number and peer in self._desk.names:
            self.call.answers[peer] = message

    def outcome(self, now: float) -> Seat | None:
        """Return what is to be voted for, once that is known: the change, or the same roll again."""
        call, desk = self.call, self._desk
        assert call is not None, "somebody calls"
        counted = self._counted(call)
        waits_s = now - call.began_s
        are_all = all(name in counted for name in desk.names if desk.is_up(name))
        if len(counted) < majority(len(desk.names)) or not (are_all or waits_s > GATHER_S):
            return self.same() if waits_s > CALL_S else None
        # Made anew with the seats that are known by now: those of all who answered.
        wanted = self.change()
        is_same = wanted is not None and wanted.members == call.wanted.members
        if wanted is None or not is_same or self._is_unclear(call, wanted):
            return self.same()
        return wanted

    def _counted(self, call: Call) -> set[str]:
        stamps = {one: each.stamp for one, each in call.answers.items()}
        return consistent(stamps | {"": self._desk.register.stamp}) - {""}

    def _is_unclear(self, call: Call, wanted: Seat) -> bool:
        """Whether something may have been decided about a seat that stays, and is not known here."""
        terms = {seat.name: seat.term for seat in wanted.seats}
        found = [
            *(one for answer in call.answers.values() for one in answer.ballots),
            *self._desk.register.ballots,
        ]
        return any(
            one.voted is not None and one.seat.term >= terms[one.seat.name]
            for one in found
            if one.seat.name in terms
        )

    def is_stuck(self, now: float) -> bool:
        """Whether the roll is sealed, and no other was decided for a while."""
        desk = self._desk
        if not desk.register.is_sealed:
            self._sealed_s = None
            return False
        if self._sealed_s is None:
            self._sealed_s = now
        place = desk.names.index(desk.me) / len(desk.names)
        return now - self._sealed_s > CALL_S * (1 + place)


def is_changed(before: Seat, seat: Seat) -> bool:
    """Whether somebody joined or left between two rolls, however many there were in between."""
    if not before.term:
        return False  # only a file said so
    return (before.joined, before.left, {*before.members}) != (seat.joined, seat.left, {*seat.members})
