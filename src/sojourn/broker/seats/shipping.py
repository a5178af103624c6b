"""The host's side of copies: how far each follower holds the journal, and what may be promised because of it.

A *session* tells one process the lines of one journal in one term. It begins with a question (`Where`), goes
on from where the other's copy ends if that is a beginning of this journal, or else with a snapshot (`Begin`),
and ends with the term at the latest. When the other holds all that this process held when the session began,
it is told so (`Whole`) and notes it: from then on it may take over. What it acknowledges counts from then on.

A session of the term after the decided one is that of a process which is to become a member.
"""

from __future__ import annotations

from sojourn.broker.seats.desk import Desk
from sojourn.broker.seats.effects import Ship, Unship
from sojourn.broker.seats.messages import Ended, Held, Here, IsWhole, Where, Whole

ASK_AGAIN_S = 0.5


class Session:
    """Lines for one process."""

    def __init__(self, term: int, number: int) -> None:
        self.term, self.number = term, number
        self.asked_s = float("-inf")
        self.is_shipping = False
        self.mark = 0
        """What the other must hold to be whole."""
        self.held = 0
        self.was_told = False
        self.is_whole = False


class Shipping:
    """All sessions of one process."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.sessions: dict[tuple[str, str], Session] = {}
        """By broker and process."""
        self.doubtful: set[str] = set()
        """Brokers of which a follower holds more than this process does."""
        self._numbers = 0
        self._anew: set[tuple[str, str]] = set()
        """By broker and process: whose copy is to begin with a snapshot, however far it goes."""
        self.compared: set[tuple[str, str]] = set()
        """By broker and process: whose copy was compared with what this process holds."""

    def arrange(self, name: str, wanted: dict[str, int], now: float) -> None:
        """Have these sessions for a broker, by process with the term of each, and no others."""
        for key in [key for key in self.sessions if key[0] == name]:
            if wanted.get(key[1]) != self.sessions[key].term:
                self.end(*key)
        for peer, term in wanted.items():
            if not self._desk.is_up(peer):
                continue
            session = self.sessions.get((name, peer))
            if session is None:
                self._numbers += 1
                session = self.sessions[name, peer] = Session(term, self._numbers)
            if not session.is_shipping and now - session.asked_s >= ASK_AGAIN_S:
                session.asked_s = now
                self._desk.send(peer, Where(name, term, session.number))

    def end(self, name: str, peer: str) -> None:
        """End a session."""
        session = self.sessions.pop((name, peer))
        if session.is_shipping:
            self._desk.do(Unship(name, peer))
        self._desk.send(peer, Ended(name, session.number))

    def begin_anew(self, name: str) -> None:
        """End all sessions of a broker: in another term others may have told more of its journal, or less."""
        for key in [key for key in self.sessions if key[0] == name]:
            self.end(*key)

    def copy_anew(self, name: str, peer: str) -> None:
        """Begin again with a process, and with a snapshot, wherever its copy ends."""
        if (name, peer) in self.sessions:
            self.end(name, peer)
            self._anew.add((name, peer))

    def lost(self, peer: str) -> None:
        """A process is away."""
        for key in [key for key in self.sessions if key[1] == peer]:
            self.end(*key)
        self.compared = {key for key in self.compared if key[1] != peer}

    def is_whole(self, name: str, peer: str, term: int) -> bool:
        """Whether a process holds everything, as a session of this term found."""
        session = self.sessions.get((name, peer))
        return session is not None and session.term == term and session.is_whole

    def held(self, name: str, peer: str, term: int) -> int:
        """Up to which batch a process holds a journal; 0 if it is not whole."""
        session = self.sessions.get((name, peer))
        if session is None or session.term != term or not session.is_whole:
            return 0
        return session.held

    def on_here(self, peer: str, message: Here, *, is_sure: bool) -> None:
        """A process says how far its copy goes.

        Whoever is not sure that it holds all that it noted tells nothing to somebody who may hold more.
        """
        name, logs = message.name, self._desk.logs
        session = self.sessions.get((name, peer))
        if session is None or session.number != message.session or session.is_shipping:
            return
        own = logs.next(name)
        is_beginning = 0 < message.next <= own and logs.check(name, message.next) == message.check
        differs = message.next > logs.first(name) and not is_beginning and not logs.is_trusted(name)
        has_more = message.next > own or differs
        entry = self._desk.entry(name)
        decided = session.term if entry is None else min(session.term, entry.seat.term)
        if has_more and not is_sure and self._desk.may_be_whole(peer, name, decided):
            if self._desk.whole(peer, name) >= session.term:
                self.doubtful.add(name)
            self.end(name, peer)  # it is asked again, once it has said how it stands
            return
        self.compared.add((name, peer))
        if (name, peer) in self._anew:
            self._anew.discard((name, peer))
            is_beginning = False
        session.is_shipping, session.mark = True, own
        session.held = message.next if is_beginning else 0
        self._desk.do(Ship(name, peer, session.number, message.next if is_beginning else 0))
        self._tell_whole(name, peer, session)

    def on_held(self, peer: str, message: Held) -> None:
        """A process holds more."""
        session = self.sessions.get((message.name, peer))
        if session is not None and session.number == message.session and session.is_shipping:
            session.held = max(session.held, message.next)
            self._tell_whole(message.name, peer, session)

    def _tell_whole(self, name: str, peer: str, session: Session) -> None:
        if not session.was_told and session.held >= session.mark:
            session.was_told = True
            self._desk.send(peer, Whole(name, session.number, session.mark))

    def on_is_whole(self, peer: str, message: IsWhole) -> None:
        """A process has noted that it holds everything."""
        session = self.sessions.get((message.name, peer))
        if session is not None and session.number == message.session and session.was_told:
            session.is_whole = True
