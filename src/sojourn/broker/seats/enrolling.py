"""How a process that does not remember its votes begins to vote; `register.py` says why that is safe.

It asks all others which memory of it they know (`Known` answers a hello). When enough answered it begins the
next memory, has that noted (`Enrol`), and takes what they know of votes for its own (`Enrolled`). Enough are
so many who remember theirs (`enough_to_enrol`); or all others, if any of them does.

Those who have sealed the roll count only if all others tell: else nobody could be told by the last one that
remembers, nor the roll be changed without those. All of them know of the new memory then, so none counts what
the old one answered; and who is told by one that has sealed the roll has sealed it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.desk import Desk, roll_of
from sojourn.broker.seats.effects import Noticed
from sojourn.broker.seats.messages import Seat
from sojourn.broker.seats.register import enough_to_enrol


class Enrolling:
    """One process that begins to vote, and answers others that do."""

    def __init__(self, desk: Desk, learn: Callable[[Seat, float], None], greet: Callable[[], None]) -> None:
        self._desk, self._learn, self._greet = desk, learn, greet
        self._asked: dict[str, say.Known] = {}
        self._answers: dict[str, say.Enrolled] = {}
        self._is_enrolling = self._is_new = False
        """Whether others were told of a new memory, and whether there was never one before."""
        self._round = 0
        """How often they were asked since."""

    def begin_anew(self) -> None:
        """Ask again: there is another roll, and what was answered under an earlier one counts no more."""
        self._asked.clear()
        self._answers.clear()
        self._is_enrolling = self._is_new = False

    def on_known(self, peer: str, message: say.Known, _now: float) -> None:
        """Somebody says which memory of this process it knew; when enough have, begin another."""
        register = self._desk.register
        if register.may_vote or message.roll != register.number or not self._desk.is_on_roll:
            return
        if self._is_enrolling:
            self.ask_again()
            return
        self._asked[peer] = message
        surely = [one for one in self._asked.values() if one.is_enrolled]
        latest = max([register.generation, *(one.generation for one in self._asked.values())])
        # Nobody knows of a memory before this one, and this one has not voted: it was begun, and not more.
        is_unknown = latest == register.generation <= 1
        is_everybody = self._is_everybody(self._asked) and self.agree()
        self._is_new = is_everybody and is_unknown
        is_enough = self._is_enough(len(surely)) and not is_unknown
        remember = [one for one in self._asked.values() if one.remembers or one.is_enrolled]
        if is_enough or (remember and is_everybody) or self._is_new:
            self._is_enrolling = True
            if latest > register.generation or not latest:
                register.generation = latest + 1
                self._desk.changed()
            self.ask_again()

    def ask_again(self) -> None:
        """Ask all others anew, as long as too few have answered."""
        if self._is_enrolling and not self._desk.register.may_vote:
            self._round += 1
            self._desk.tell_all(say.Enrol(self._desk.register.generation, self._round))

    def agree(self) -> bool:
        """Whether the files of all who never voted name the same brokers, where no roll was decided yet."""
        desk = self._desk
        return desk.register.number > 0 or all(one.files in ((), desk.names) for one in desk.peers.values())

    def on_enrol(self, peer: str, message: say.Enrol, _now: float) -> None:
        """Somebody begins a new memory: note that before it is told anything."""
        if self._desk.register.met(peer, message.generation):
            self._desk.changed()
        peers = self._desk.peers.items()
        forgetful = tuple(name for name, one in peers if one.is_up and one.votes is False)
        self._desk.send(peer, self._desk.register.enrolled(message.generation, message.round, forgetful))

    def on_enrolled(self, peer: str, message: say.Enrolled, now: float) -> None:
        """Somebody has noted this memory, and tells what it knows of votes; with enough of that, vote."""
        register = self._desk.register
        if register.may_vote or message.generation != register.generation or not self._is_enrolling:
            return
        if message.roll != register.number:
            return
        self._answers[peer] = message
        surely = [one for one in self._answers.values() if one.is_enrolled or self._is_new]
        if not self._is_enough(len(surely)):
            if not self._is_all_there_is():
                return
            surely = [one for one in self._answers.values() if _remembers(one)]
            if not self._is_enough(len(surely)):
                self._say_who_remembers()
            if not all(one.is_enrolled for one in surely):
                register.roll.sealed = register.number
        self._take(surely, now)
        own = register.entries[self._desk.me]
        if self._is_new and own.seat.term == 1:
            own.whole = 1  # whatever its store holds was promised without copies
        if not register.number:
            register.roll.seat = roll_of(self._desk.names, 1)
        register.may_vote = True
        self._desk.changed()
        self._greet()

    def _take(self, answers: list[say.Enrolled], now: float) -> None:
        """Take what others know for one's own: of terms, of memories, and of votes."""
        register = self._desk.register
        for answer in answers:
            for ballots in answer.ballots:
                self._learn(ballots.seat, now)
        for answer in answers:
            for one, generation in answer.known.items():
                if one != self._desk.me:
                    register.met(one, generation)
            for ballots in answer.ballots:
                register.adopt(ballots)

    def _is_enough(self, count: int) -> bool:
        return count >= enough_to_enrol(len(self._desk.names))

    def _is_everybody(self, answers: Collection[str]) -> bool:
        return len(answers) == len(self._desk.peers) and all(map(self._desk.is_up, self._desk.peers))

    def _is_all_there_is(self) -> bool:
        """Whether all have answered the last question, and those who remember have nothing more to learn.

        So it is if they are connected with all who do not: nothing from before that loss is still to come.
        """
        answers = {name: one for name, one in self._answers.items() if one.round == self._round}
        remember = [one for one in answers.values() if _remembers(one)]
        forgot = {name for name, one in answers.items() if not _remembers(one)}
        return (
            self._is_everybody(answers)
            and bool(remember)
            and all(forgot <= set(one.forgetful) for one in remember)
        )

    def _say_who_remembers(self) -> None:
        """Say that too many lost their disks for the usual way, and what is gone if copies were not whole."""
        who = [name for name, answer in sorted(self._answers.items()) if _remembers(answer)]
        others = sorted(set(self._desk.names) - set(who))
        self._desk.do(
            Noticed(
                f"{', '.join(others)} do not remember what was voted about copies; all are there, so what "
                f"{', '.join(who)} remembers holds. What was at none of the processes that remember is gone."
            )
        )


def _remembers(answer: say.Enrolled) -> bool:
    return answer.is_enrolled or answer.remembers
