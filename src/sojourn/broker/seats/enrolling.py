"""How a process that does not remember its votes begins to vote; `register.py` says why that is safe.

It asks all others which memory of it they know (`Known` answers a hello). When enough answered it begins the
next memory, has that noted (`Enrol`), and takes what they know of votes for its own (`Enrolled`).
"""

from __future__ import annotations

from collections.abc import Callable

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.desk import Desk
from sojourn.broker.seats.messages import Seat
from sojourn.broker.seats.register import enough_to_enrol


class Enrolling:
    """One process that begins to vote, and answers others that do."""

    def __init__(self, desk: Desk, learn: Callable[[Seat, float], None]) -> None:
        self._desk, self._learn = desk, learn
        self._asked: dict[str, say.Known] = {}
        self._answers: dict[str, say.Enrolled] = {}
        self._is_enrolling = self._is_new = False
        """Whether others were told of a new memory, and whether there was never one before."""

    def on_known(self, peer: str, message: say.Known, _now: float) -> None:
        """Somebody says which memory of this process it knew; when enough have, begin another."""
        if self._desk.register.may_vote:
            return
        if self._is_enrolling:
            self._desk.send(peer, say.Enrol(self._desk.register.generation))
            return
        self._asked[peer] = message
        surely = [one for one in self._asked.values() if one.is_enrolled]
        latest = max([self._desk.register.generation, *(one.generation for one in self._asked.values())])
        is_everybody = len(self._asked) == len(self._desk.peers)
        # Nobody knows of a memory before this one, and this one has not voted: it was begun, and not more.
        self._is_new = is_everybody and latest == self._desk.register.generation <= 1
        if len(surely) >= enough_to_enrol(len(self._desk.terms.names)) or self._is_new:
            self._is_enrolling = True
            self._desk.register.generation = latest + 1
            self._desk.changed()
            self._desk.tell_all(say.Enrol(self._desk.register.generation))

    def on_enrol(self, peer: str, message: say.Enrol, _now: float) -> None:
        """Somebody begins a new memory: note that before it is told anything."""
        if self._desk.register.met(peer, message.generation):
            self._desk.changed()
        self._desk.send(peer, self._desk.register.enrolled(message.generation))

    def on_enrolled(self, peer: str, message: say.Enrolled, now: float) -> None:
        """Somebody has noted this memory, and tells what it knows of votes; with enough of that, vote."""
        register = self._desk.register
        if register.may_vote or message.generation != register.generation:
            return
        self._answers[peer] = message
        surely = [one for one in self._answers.values() if one.is_enrolled or self._is_new]
        if len(surely) < enough_to_enrol(len(self._desk.terms.names)):
            return
        for answer in surely:
            for ballots in answer.ballots:
                self._learn(ballots.seat, now)
        for answer in surely:
            for ballots in answer.ballots:
                register.adopt(ballots)
        own = register.entries[self._desk.me]
        if self._is_new and own.seat.term == 1:
            own.whole = 1  # whatever its store holds was promised without copies
        register.may_vote = True
        self._desk.changed()
