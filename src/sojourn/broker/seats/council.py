"""One process's part in all seats: facts and time in, effects out.

    council = Council(terms, register, logs, now)
    council.connected(peer, now); council.lost(peer, now); council.heard(peer, message, now)
    council.logged(name, now)       # the broker that this process plays has noted more
    council.tick(now)               # every `TICK_S`
    council.take_effects()          # what to do, in order, after each of these
    council.released(name)          # up to which batch what follows from a journal may leave

The protocol in short. Each seat has terms; the first is given by the configuration, each further one is
decided by a majority of all processes (`register.py`), and so is which processes these are (`rolls.py`). In a
term, the host's turns leave once every follower holds their lines (`shipping.py`, `following.py`). When a
member is gone another one attempts the next term (`attempt.py`), with somebody else in its place
(`choosing.py`); it brings new members up to date first. So all members of a decided term hold all that was
ever promised, except those whose memory was lost, and they know that. No clock matters for that; time only
decides how soon somebody is thought gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.attempt import Attempt, Phase
from sojourn.broker.seats.desk import Peer, Terms
from sojourn.broker.seats.effects import Close, Effect, Forget, Logs, Serve
from sojourn.broker.seats.messages import Seat
from sojourn.broker.seats.register import Entry, Register
from sojourn.broker.seats.voting import Voting
from sojourn.broker.seats.waiting import Electorate, electorate, why_not

TICK_S = 0.1
BEAT_S = 0.5
"""How often a process says that it is there."""
HELD_UP_S = 1.0
"""A process that was held up itself for so long thinks nobody silent because of that."""
BUSY_S = 60.0
"""How long a process may be silent that says it begins to play a broker: it reads its whole journal."""
FULL_S = 60.0
"""How long a process whose disk is full is not asked again, unless there is nobody else."""
SYNC_S = 60.0
"""How long new members may take to be brought up to date."""


class Council(Voting):
    """What one process decides and knows about seats."""

    def __init__(self, terms: Terms, register: Register, logs: Logs, now: float) -> None:
        super().__init__(terms, register, logs, now)
        self.addresses: dict[str, tuple[int, str]] = {}
        """By broker: the term in which it is somewhere else than at home, and where."""
        self._released: dict[str, int] = {}
        self._told: dict[str, say.Standing] = {}
        self._ticked_s = self._beat_s = now
        for name, entry in register.entries.items():
            if entry.whole and not self.desk.has(name):
                entry.whole = 0  # it was held, and is not there any more

    # What is asked -------------------------------------------------------------------------------------

    def seat(self, name: str) -> Seat:
        """Return the latest term of a seat, as far as known."""
        return self.register.entries[name].seat

    def take_effects(self) -> list[Effect]:
        """Return what is to be done, in order."""
        self.desk.settle()
        effects, self.desk.effects = self.desk.effects, []
        return effects

    def released(self, name: str) -> int:
        """Return the batch before which everything that follows from a broker's lines may leave."""
        return self._released.get(name, 0)

    def attempt(self, name: str) -> Attempt | None:
        """Return the attempt that this process makes at the next term of a seat."""
        return self._attempts.get(name)

    def address(self, name: str) -> str | None:
        """Return where a broker is found that is not at home; None while that is not known."""
        if name in self._own_addresses:
            return self._own_addresses[name]
        known = self.addresses.get(name)
        return known[1] if known is not None and known[0] <= self.seat(name).term else None

    def why_not(self, name: str) -> str:
        """Say in a few words what a broker that is to be played at home waits for."""
        if not self.desk.is_on_roll:
            return self.rolls.why_not_on_roll()
        if not self.register.may_vote and not self._enrolling.agree():
            return "files of others that it meets name other brokers than its own: give all the same."
        return why_not(self.desk, name)

    def ballot(self) -> Electorate:
        """Return who can vote now, and how many have to."""
        return electorate(self.desk)

    def at_risk(self, name: str) -> bool:
        """Whether a broker that this process plays waits for copies at present."""
        entry = self.register.entries[name]
        return any(not self.shipping.is_whole(name, one, entry.seat.term) for one in entry.seat.followers)

    def whole(self, name: str) -> int:
        """Return how many processes hold everything of a broker that this one plays."""
        seat = self.seat(name)
        return sum(self.shipping.is_whole(name, one, seat.term) for one in seat.followers)

    def unplayed(self) -> tuple[str, ...]:
        """Return the brokers that nobody plays, as far as this process knows.

        Their hosts are out of reach, or have lost what they held, and no other term is decided yet.
        """
        return tuple(
            name for name, entry in sorted(self.register.seats.items()) if not self._is_played(entry)
        )

    def _is_played(self, entry: Entry) -> bool:
        name, host, term = entry.seat.name, entry.seat.host, entry.seat.term
        if not term or name in self.desk.leaving or name not in self.desk.names:
            return True
        if host == self.desk.me:
            return name in self.serving
        return self.desk.is_up(host) and self.desk.may_be_whole(host, name, term)

    # What happens --------------------------------------------------------------------------------------

    def connected(self, peer: str, now: float) -> None:
        """There is a connection to a process: say who this is."""
        self.lost(peer, now)
        one = self.desk.peers.get(peer)
        if one is None:  # it may join, or has left and does not know
            one = self.desk.guests[peer] = Peer(now, 0.0)
        one.is_up, one.heard_s, one.busy_until_s, one.standings, one.files = True, now, 0.0, {}, ()
        one.votes = None
        self._greet(peer)
        if peer in self.desk.guests:
            return
        if self.desk.leaving:
            self.desk.send(peer, say.Parting(tuple(sorted(self.desk.leaving))))
        for name, address in self._own_addresses.items():
            self.desk.send(peer, say.At(name, self.seat(name).term, address))

    def lost(self, peer: str, now: float) -> None:
        """The connection to a process is gone."""
        self.desk.guests.pop(peer, None)
        one = self.desk.peers.get(peer)
        if one is None or not one.is_up:
            return
        one.is_up, one.down_s, one.standings = False, now, {}
        self.shipping.lost(peer)
        self.following.lost(peer)
        self._release_all()

    def heard(self, peer: str, message: say.Message, now: float) -> None:
        """A process said something."""
        guest = self.desk.guests.get(peer)
        if guest is not None:
            guest.heard_s = now
            if isinstance(message, say.Hello):
                guest.birth = message.birth
                self._learn_all(message.seats, now)  # it may be on a roll that is not known here yet
        one = self.desk.peers.get(peer)
        if one is None or not one.is_up:
            return
        one.heard_s = self.now = now
        self._HANDLERS[type(message)](self, peer, message, now)

    def logged(self, name: str) -> None:
        """The broker that this process plays has noted more."""
        self._release(name)

    def moved_in(self, name: str, address: str) -> None:
        """Tell where neighbours find a broker that this process plays."""
        self._own_addresses[name] = address
        self.desk.tell_all(say.At(name, self.seat(name).term, address))

    def revived(self) -> None:
        """Say that this process has read what it had to, and is silent no longer than others."""
        self.desk.tell_all(say.Busy(0.0))

    def outran(self, name: str, peer: str) -> None:
        """A process cannot be told a journal where it is, or has a far too long one: it is copied anew."""
        self.shipping.copy_anew(name, peer)
        self._look(name, self.register.entries[name], self.now)  # at once: meanwhile nothing is promised

    def cannot_play(self, name: str) -> None:
        """What is held of a broker cannot be read: somebody else has to play it, and it is copied anew.

        It is not gone on with, however far it goes: its end may be as whole as what is before it is not.
        """
        self.has_lost(name)
        self._attempts.pop(name, None)
        self.shipping.begin_anew(name)
        self.desk.do(Forget(name))

    def has_lost(self, name: str) -> None:
        """Not everything of a broker is held here any more, so it cannot be played here."""
        entry = self.register.entries[name]
        self.serving.discard(name)
        self._own_addresses.pop(name, None)
        entry.whole = 0
        self.desk.changed()

    def cannot_keep(self, now: float) -> None:
        """What others tell finds no room here: somebody else has to keep it."""
        self.now, self._full_until_s = now, now + FULL_S
        self.desk.has_room = False
        self.desk.tell_all(self._standings())

    def invite(self, joining: dict[str, tuple[str, ...]]) -> None:
        """Let these processes join when they come, by the broker whose home this is."""
        self.rolls.invited = dict(joining)

    def parted(self, names: Iterable[str]) -> None:
        """These brokers have left the network: their processes are not needed any more."""
        news = {*names}.intersection(self.desk.names) - self.desk.leaving
        if news:
            self.desk.leaving |= news
            self.desk.tell_all(say.Parting(tuple(sorted(self.desk.leaving))))

    def tick(self, now: float) -> None:
        """Look what is due."""
        was_held_up = now - self._ticked_s > HELD_UP_S
        self._ticked_s = self.now = now
        self.desk.has_room = now >= self._full_until_s
        beats = now - self._beat_s >= BEAT_S
        if beats:
            self._beat_s = now
            self._enrolling.ask_again()
        for name, peer in (*self.desk.peers.items(), *self.desk.guests.items()):
            if peer.is_up and was_held_up:
                peer.heard_s = now
            elif peer.is_up and now - max(peer.heard_s, peer.busy_until_s) > self.desk.terms.silent_s:
                heard_s = peer.heard_s
                self.desk.do(Close(name, f"nothing came from {name} for {self.desk.terms.silent_s:g} s."))
                self.lost(name, now)
                peer.down_s = heard_s
            elif peer.is_up and beats:
                self.desk.send(name, self._standings())
        self._look_at_roll(now)
        for name, entry in self.register.seats.items():
            if name in self.register.entries:  # no roll without it was decided meanwhile
                self._look(name, entry, now)
        self._tell_standings()

    def _tell_standings(self) -> None:
        news = []
        for name, entry in self.register.seats.items():
            standing = entry.standing
            if self._told.get(name) != standing:
                self._told[name] = standing
                news.append(standing)
        if news:
            self.desk.tell_all(self._standings(*news))

    def _standings(self, *news: say.Standing) -> say.Standings:
        return say.Standings(news, self.register.may_vote, self.desk.has_room)

    # Enrolling -----------------------------------------------------------------------------------------

    def _on_hello(self, peer: str, message: say.Hello, now: float) -> None:
        before = self.register.known.get(peer, 0)
        if self.register.met(peer, message.generation):
            self.desk.changed()
        files = self._learn_all(message.seats, now)
        if peer not in self.desk.peers:
            return
        self.desk.peers[peer].files = files
        self._on_standings(peer, say.Standings(message.standings, not message.enrols, message.keeps), now)
        if message.enrols:
            register = self.register
            generation = max(before, message.generation)
            surely, number = register.tells_surely, register.number
            self.desk.send(peer, say.Known(generation, surely, number, register.may_vote))

    def _on_parting(self, _peer: str, message: say.Parting, _now: float) -> None:
        self.parted(message.names)

    def _on_standings(self, peer: str, message: say.Standings, _now: float) -> None:
        self.desk.peers[peer].votes, self.desk.peers[peer].keeps = message.votes, message.keeps
        for one in message.standings:
            self.desk.peers[peer].standings[one.name] = one

    def _on_busy(self, peer: str, message: say.Busy, now: float) -> None:
        self.desk.peers[peer].busy_until_s = now + min(message.seconds, BUSY_S)

    def _on_at(self, peer: str, message: say.At, _now: float) -> None:
        known = self.addresses.get(message.name)
        entry = self.desk.entry(message.name)
        if entry is not None and (known is None or message.term >= known[0]) and peer != message.name:
            self.addresses[message.name] = message.term, message.address

    # What is due ---------------------------------------------------------------------------------------

    def _look(self, name: str, entry: Entry, now: float) -> None:
        """See to one seat."""
        if not entry.seat.term or not self.desk.is_on_roll:
            return  # nothing is known of it, or it is no business of this process
        if entry.whole and not self.desk.has(name):
            entry.whole = 0  # its journal could not be read any more
            self.desk.changed()
        if entry.voted is not None:
            self._wishes.pending_s.setdefault(name, now)
        attempt = self._attempts.get(name)
        if attempt is None and not self.register.is_sealed:
            wanted = self._wishes.wanted(name, entry, now)
            if wanted is not None and now >= self._next_try_s.get(name, 0.0):
                attempt = self._attempts[name] = Attempt(self.desk, entry.seat, wanted, now)
                if self.desk.me != entry.seat.host and entry.sealed < entry.seat.term:
                    entry.sealed = entry.seat.term
                    self.desk.changed()
        self._arrange(name, entry, attempt, now)
        if attempt is not None:
            self._go_on(name, entry, attempt, now)
        self._serve(name, entry)
        self._release(name)

    def _arrange(self, name: str, entry: Entry, attempt: Attempt | None, now: float) -> None:
        """Have the sessions that are due."""
        seat, me = entry.seat, self.desk.me
        wanted: dict[str, int] = {}
        holds = me in seat.members and entry.whole >= seat.term and self.desk.has(name)
        if holds and seat.host == me:
            wanted = dict.fromkeys(seat.followers, seat.term)
        if holds and attempt is not None and (seat.host != me or name in self._wishes.verified):
            # Also a follower that lacks something: it may have voted, and takes no lines of this term then.
            wanted |= dict.fromkeys(attempt.unready(), seat.term + 1)
        self.shipping.arrange(name, wanted, now)

    def _go_on(self, name: str, entry: Entry, attempt: Attempt, now: float) -> None:
        """Let an attempt take its next step, or give it up."""
        if attempt.is_over(now) or (attempt.phase is Phase.SYNC and now - attempt.began_s > SYNC_S):
            self._give_up(name, now)
            return
        if attempt.phase is not Phase.SYNC:
            return
        seat, me = entry.seat, self.desk.me
        wanted = self._wishes.wanted(name, entry, now)
        if wanted is None or (attempt.ballot[0] == 0 and not wanted.seats_like(attempt.wanted)):
            self._give_up(name, now)  # things have changed, and nobody has heard of it yet
            return
        leaves = seat.host == me and attempt.wanted.host != me
        for one in attempt.unready():
            term = seat.term + 1
            if not self.shipping.is_whole(name, one, term):
                return
            least = self.released(name) if seat.host == me else self.desk.logs.next(name)
            if leaves and name not in self.serving:
                least = self.desk.logs.next(name)
            if self.shipping.held(name, one, term) < least:
                return
        if leaves and name in self.serving:
            # It stops before the vote, so that who plays it next has all that it ever noted.
            self._stop(name, f"{name} goes home.")
            return
        self._counters[name] = self._counters.get(name, 0) + 1
        attempt.prepare(self._counters[name], now)
        self._conclude(name, now)

    # Playing -------------------------------------------------------------------------------------------

    def _serve(self, name: str, entry: Entry) -> None:
        """Play a broker that is this process's to play, once it surely holds all of it."""
        seat, me = entry.seat, self.desk.me
        if seat.host != me or entry.whole < seat.term:
            return
        if name not in self._wishes.verified and not self._verify(name, entry):
            return
        attempt = self._attempts.get(name)
        is_leaving = attempt is not None and attempt.wanted.host != me
        if name in self.serving or entry.voted is not None or is_leaving:
            return
        # Nothing could be promised without them; and they know whether somebody else plays it by now.
        if all(self.shipping.is_whole(name, one, seat.term) for one in seat.followers):
            self.serving.add(name)
            self.desk.tell_all(say.Busy(BUSY_S))
            self.desk.do(Serve(name, seat.term))

    def _verify(self, name: str, entry: Entry) -> bool:
        """Find out whether what is held of a broker lost nothing at its end."""
        if name in self.shipping.doubtful:
            self.shipping.doubtful.discard(name)
            entry.whole = 0
            self.desk.changed()
            return False
        unknown = [one for one in entry.seat.followers if (name, one) not in self.shipping.compared]
        # An older store may have been put in its place, so who has a copy is asked first. If that is gone,
        # what this process holds may be all there is.
        if unknown and not self.desk.logs.is_trusted(name):
            return False
        if any(self.desk.may_hold_more(one, name, entry.seat.term, self.now) for one in unknown):
            return False
        self._wishes.verified.add(name)
        return True

    def _release_all(self) -> None:
        for name in self.serving:
            self._release(name)

    def _release(self, name: str) -> None:
        """Find out how much may leave."""
        if name not in self.serving:
            return
        entry = self.register.entries[name]
        attempt = self._attempts.get(name)
        is_frozen = attempt is not None and attempt.phase is not Phase.SYNC
        if entry.seat.host != self.desk.me or entry.voted is not None or is_frozen:
            return
        held = [self.shipping.held(name, one, entry.seat.term) for one in entry.seat.followers]
        reached = min(held) if held else self.desk.logs.next(name)
        if reached > self._released.get(name, 0):
            self._released[name] = reached

    # Copies --------------------------------------------------------------------------------------------

    def _on_held(self, peer: str, message: say.Held, _now: float) -> None:
        self.shipping.on_held(peer, message)
        self._release(message.name)

    def _on_is_whole(self, peer: str, message: say.IsWhole, _now: float) -> None:
        self.shipping.on_is_whole(peer, message)
        self._release(message.name)

    def _on_whole(self, peer: str, message: say.Whole, _now: float) -> None:
        if self.following.on_whole(peer, message):
            self._wishes.verified.add(message.name)  # all of it was noted, or compared, in this life

    def _on_here(self, peer: str, message: say.Here, _now: float) -> None:
        entry = self.desk.entry(message.name)
        if entry is None:
            return
        self.shipping.on_here(peer, message, is_sure=message.name in self._wishes.verified)
        if message.name in self.shipping.doubtful:
            self._serve(message.name, entry)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, str, Any, float], None]]] = {
        say.Hello: _on_hello,
        say.Known: lambda self, peer, message, now: self._enrolling.on_known(peer, message, now),
        say.Enrol: lambda self, peer, message, now: self._enrolling.on_enrol(peer, message, now),
        say.Enrolled: lambda self, peer, message, now: self._enrolling.on_enrolled(peer, message, now),
        say.Standings: _on_standings,
        say.Busy: _on_busy,
        say.Prepare: Voting.on_prepare,
        say.Promise: Voting.on_promise,
        say.Refuse: Voting.on_refuse,
        say.Accept: Voting.on_accept,
        say.Accepted: Voting.on_accepted,
        say.Decided: Voting.on_decided,
        say.Seal: Voting.on_seal,
        say.Sealed: Voting.on_sealed,
        say.Parting: _on_parting,
        say.At: _on_at,
        say.Where: lambda self, peer, message, _: self.following.on_where(peer, message),
        say.Here: _on_here,
        say.Begin: lambda self, peer, message, _: self.following.on_begin(peer, message),
        say.Part: lambda self, peer, message, _: self.following.on_part(peer, message),
        say.Line: lambda self, peer, message, _: self.following.on_line(peer, message),
        say.Held: _on_held,
        say.Whole: _on_whole,
        say.IsWhole: _on_is_whole,
        say.Ended: lambda self, peer, message, _: self.following.on_ended(peer, message),
    }
