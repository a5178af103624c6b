"""What a process wants the next term of a seat to be, as far as that is for it to say.

| who | what happened | what it wants |
| --- | --- | --- |
| host | a follower is gone, or has no room | another one in its place |
| host | the broker's own process is there again, and has room | the broker at home |
| host | a follower's own broker has left the network | another one in its place |
| host | a follower sealed the term, or something was voted for and is not decided | the same again |
| follower | the host is gone, or lost something | the broker at home if it can be there, else here |
| follower | it sealed the term, and the host is well after all | the same again |
"""

from __future__ import annotations

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.choosing import next_seat
from sojourn.broker.seats.desk import Desk
from sojourn.broker.seats.messages import Seat
from sojourn.broker.seats.register import Entry


class Wishes:
    """One process's wishes for all seats."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.pending_s: dict[str, float] = {}
        """By seat: since when something was voted for and is not decided."""
        self.verified: set[str] = set()
        """Brokers of which this process surely holds all that it noted."""

    def wanted(self, name: str, entry: Entry, now: float) -> Seat | None:
        """Return what this process wants the next term of a seat to be; None if nothing."""
        seat, me, desk = entry.seat, self._desk.me, self._desk
        if me not in seat.members or entry.whole < seat.term or not self._desk.has(name):
            return None
        if seat.host == me:
            return self._wanted_by_host(name, entry, now)
        rank = 1.0 + seat.followers.index(me) / 2
        host = self._standing(seat.host, name)
        has_lost_it = host.term >= seat.term and host.whole < seat.term
        host_is_well = desk.is_up(seat.host) and not has_lost_it
        if has_lost_it or desk.is_gone(seat.host, now, rank):
            return self._with_host(seat, self._home(seat), now)
        is_pending = entry.voted is not None and now - self.pending_s.get(name, now) > desk.terms.gone_s
        if host_is_well and (is_pending or entry.sealed >= seat.term):
            return self._same(seat)
        return None

    def _wanted_by_host(self, name: str, entry: Entry, now: float) -> Seat | None:
        seat, desk = entry.seat, self._desk
        if name not in self.verified:
            return None
        wanted = self._with_host(seat, self._home(seat), now)
        if wanted is None:
            return None
        if not wanted.seats_like(seat):
            return wanted
        is_sealed = any(
            desk.is_up(one) and self._standing(one, name).sealed >= seat.term for one in seat.followers
        )
        return wanted if entry.voted is not None or is_sealed else None

    def _home(self, seat: Seat) -> str:
        """Where a broker is to be played: at home, if its own process can take it; else here."""
        desk = self._desk
        return seat.name if desk.is_up(seat.name) and desk.keeps(seat.name) else desk.me

    def _standing(self, peer: str, name: str) -> say.Standing:
        one = self._desk.peers.get(peer)  # None if a later roll has it
        return (one and one.standings.get(name)) or say.Standing(name, 0, 0, 0)

    def _with_host(self, seat: Seat, host: str, now: float) -> Seat | None:
        desk = self._desk
        stay = [one for one in desk.names if one not in desk.leaving]
        stay = [one for one in stay if desk.keeps(one)]
        there = [one for one in stay if desk.is_up(one)]
        kept = [one for one in seat.members if not desk.is_gone(one, now) and one != seat.host]
        kept = [one for one in kept if one in stay]
        if seat.host == desk.me:
            kept.append(desk.me)
        elif desk.is_up(desk.me):
            kept = [one for one in kept if one != desk.me]
            kept.insert(0, desk.me)
        return next_seat(desk.order, seat, host, desk.terms.copies, there=there, kept=kept)

    def _same(self, seat: Seat) -> Seat:
        return Seat(seat.name, seat.term + 1, seat.host, seat.followers)
