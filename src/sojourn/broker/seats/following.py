"""The followers' side of copies: whose lines are taken, and what is acknowledged.

Lines are taken from the host of the decided term, and from a member of it that wants this process to become
one. A follower that has sealed the term, because it thinks the host gone, or that voted about the next term,
takes no more lines of this one: nothing is promised without it until the next term is decided. Nor does one
that lost its memory, before others have told it what it may have voted for.
"""

from __future__ import annotations

from sojourn.broker.seats.desk import Desk
from sojourn.broker.seats.effects import Append, Close, Drop, Install, Take, TakePart
from sojourn.broker.seats.messages import Begin, Ended, Held, Here, IsWhole, Line, Part, Where, Whole


class Source:
    """Who tells this process the lines of a journal."""

    def __init__(self, peer: str, term: int, session: int) -> None:
        self.peer, self.term, self.session = peer, term, session
        self.is_anew = False
        """Whether a copy is made beside the one there was."""
        self.first = self.left = 0
        """Of that copy: its first batch, and the bytes of its snapshot that are still to come."""


class Following:
    """All copies that this process keeps."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.serving: set[str] = set()
        """Brokers that this process plays: nobody tells it their lines."""
        self.sources: dict[str, Source] = {}

    def lost(self, peer: str) -> None:
        """A process is away: what it had begun to tell is of no use."""
        for name in [name for name, source in self.sources.items() if source.peer == peer]:
            self._forget(name)

    def end(self, name: str) -> None:
        """Keep no copy of a broker any more."""
        self._forget(name)

    def _forget(self, name: str) -> None:
        source = self.sources.pop(name, None)
        if source is not None and source.is_anew:
            self._desk.do(Drop(name))

    def _may_tell(self, peer: str, name: str, term: int) -> bool:
        entry, me = self._desk.entry(name), self._desk.me
        if entry is None or name in self.serving or not self._desk.register.may_vote:
            return False
        seat = entry.seat
        if term == seat.term:
            is_open = entry.sealed < term and entry.voted is None
            return peer == seat.host and me in seat.followers and is_open
        is_new = me not in seat.members or entry.whole < seat.term
        return term == seat.term + 1 and peer in seat.members and is_new

    def on_where(self, peer: str, message: Where) -> None:
        """Somebody begins to tell a journal."""
        name, logs = message.name, self._desk.logs
        if not self._may_tell(peer, name, message.term):
            return
        before = self.sources.get(name)
        if before is not None and before.peer != peer and self._may_tell(before.peer, name, before.term):
            return  # of two who want to tell the same, the first one does, until it ends
        self._forget(name)
        self.sources[name] = Source(peer, message.term, message.session)
        own = logs.next(name)
        check = logs.check(name, own) if own else None
        if check is None:
            own = 0
        self._desk.send(peer, Here(name, message.session, own, check or 0))

    def on_ended(self, peer: str, message: Ended) -> None:
        """Somebody tells no more."""
        source = self.sources.get(message.name)
        if source is not None and (source.peer, source.session) == (peer, message.session):
            self._forget(message.name)

    def _source(self, peer: str, name: str, session: int) -> Source | None:
        source = self.sources.get(name)
        if source is None or (source.peer, source.session) != (peer, session):
            return None
        return source if self._may_tell(peer, name, source.term) else None

    def on_begin(self, peer: str, message: Begin) -> None:
        """All of it comes anew."""
        source = self._source(peer, message.name, message.session)
        if source is not None:
            if source.is_anew:
                self._desk.do(Drop(message.name))
            source.is_anew = True
            source.first, source.left = message.first, message.size
            self._desk.do(Take(message.name, message.first, message.size))
            self._tell_snapshot(peer, message.name, source)

    def _tell_snapshot(self, peer: str, name: str, source: Source) -> None:
        if not source.left:
            self._desk.send(peer, Held(name, source.session, source.first))

    def on_part(self, peer: str, message: Part) -> None:
        """A piece of its snapshot."""
        source = self._source(peer, message.name, message.session)
        if source is not None and source.is_anew and source.left:
            source.left = max(0, source.left - len(message.data))
            self._desk.do(TakePart(message.name, message.data))
            self._tell_snapshot(peer, message.name, source)

    def on_line(self, peer: str, message: Line) -> None:
        """The next batch: it is acknowledged once it is safe."""
        name = message.name
        source = self._source(peer, name, message.session)
        if source is None:
            return
        expected = self._next(name, source)
        if message.number > expected:
            self._desk.do(Close(peer, f"{peer} left out a line of {name}."))
            return
        if message.number == expected:
            self._desk.do(Append(name, message.number, message.batch))
        self._desk.send(peer, Held(name, message.session, message.number + 1))

    def _next(self, name: str, source: Source) -> int:
        logs = self._desk.logs
        return logs.incoming(name) if source.is_anew else logs.next(name)

    def on_whole(self, peer: str, message: Whole) -> bool:
        """The copy is complete: note that before anybody relies on it; return whether it is."""
        name = message.name
        source = self._source(peer, name, message.session)
        entry = self._desk.entry(name)
        if source is None or entry is None or self._next(name, source) < message.next:
            return False
        if source.is_anew:
            source.is_anew = False
            self._desk.do(Install(name))
        if entry.whole < source.term:
            entry.whole = source.term
            self._desk.changed()
        self._desk.send(peer, IsWhole(name, message.session))
        return True
