"""What the parts of a council share: the register, who is there, and the effects of the present call."""

from __future__ import annotations

from typing import NamedTuple

from sojourn.broker.seats.choosing import Order, first_seat
from sojourn.broker.seats.effects import Effect, Logs, Save, Send
from sojourn.broker.seats.messages import ROLL, Joined, Message, Seat, Standing
from sojourn.broker.seats.register import Entry, Register


class Terms(NamedTuple):
    """What a configuration says about seats."""

    me: str
    """The name of this process, which is that of the broker whose home it is."""
    names: tuple[str, ...]
    """Of all brokers, as the configuration has them: the first roll, if none was decided yet."""
    links: tuple[tuple[str, str], ...]
    copies: int
    gone_s: float = 4.0
    """A process that was away for so long is gone: others take over what it has."""
    silent_s: float = 10.0
    """A process that said nothing for so long is away, whatever its connection seems to be."""
    birth: str = ""
    """A word that was never used before: what the memory of this process is called, if it begins now."""


class Peer:
    """Another process, as this one sees it."""

    def __init__(self, now: float, grace_s: float) -> None:
        self.is_up = False
        """Whether there is a connection, and it has said hello."""
        self.heard_s = now
        self.busy_until_s = 0.0
        """Until when it may be silent, as it said."""
        self.down_s = now + grace_s
        """Since when it is away; one that was never there is given time to start."""
        self.standings: dict[str, Standing] = {}
        self.votes: bool | None = None
        """Whether it remembers its votes; None before it has said so on this connection."""
        self.keeps = True
        """Whether it has room for copies, as it says."""
        self.birth = ""
        self.files: tuple[str, ...] = ()
        """Which brokers its configuration names, if it goes by that alone."""

    def whole(self, name: str) -> int:
        """Up to which term it says that it holds everything that was promised."""
        return self.standings[name].whole if name in self.standings else 0


class Desk:
    """One process's papers."""

    def __init__(self, terms: Terms, register: Register, logs: Logs, now: float) -> None:
        self.terms, self.register, self.logs = terms, register, logs
        self.me = terms.me
        self.leaving: set[str] = set()
        """Brokers that have left the network, as far as known: their processes are to keep no copies."""
        self.guests: dict[str, Peer] = {}
        """Processes that can be reached and are not on the roll: they may join."""
        register.birth = register.birth or terms.birth
        if register.may_vote and ROLL not in register.entries:  # it voted before there were rolls
            register.entries[ROLL] = Entry(roll_of(terms.names, 1))
        elif ROLL not in register.entries or not register.number:
            register.entries = {ROLL: Entry(roll_of(terms.names, 0))}  # as its file has it today
        self.peers: dict[str, Peer] = {}
        self.order = Order((), ())
        self.regroup(now)
        if not register.number:
            for name in terms.names:
                if name not in register.entries:
                    register.entries[name] = Entry(first_seat(self.order, name, terms.copies))
        self.has_room = True
        """Whether this process has room for what others tell it."""
        self.effects: list[Effect] = []
        self._is_dirty = True

    @property
    def names(self) -> tuple[str, ...]:
        """All processes on the roll."""
        return self.register.names

    @property
    def is_on_roll(self) -> bool:
        """Whether this process is one of them."""
        return self.me in self.names

    def regroup(self, now: float) -> None:
        """Go by the roll: who votes, who is near to whom, and which seats there are."""
        roll, entries = self.register.roll.seat, self.register.entries
        for name in roll.members if roll.term else ():
            if name not in entries:
                entries[name] = Entry(Seat(name, 0, name))  # nothing is known of it yet
        for name in [*entries]:
            if name not in (*roll.members, ROLL, self.me):
                del entries[name]
        grace_s = 2 * self.terms.gone_s
        known = self.peers | self.guests
        self.peers = {name: known.get(name) or Peer(now, grace_s) for name in roll.members if name != self.me}
        self.guests = {name: one for name, one in known.items() if name not in self.peers and one.is_up}
        self.leaving.intersection_update(roll.members)
        self.order = self.order_with(roll.members, roll.joined)

    def order_with(self, names: tuple[str, ...], joined: tuple[Joined, ...]) -> Order:
        """Return who is near to whom among these."""
        links = {*self.terms.links}.union((row.name, one) for row in joined for one in row.links)
        return Order(names, [link for link in sorted(links) if {*link} <= {*names}])

    def entry(self, name: str) -> Entry | None:
        """Return what is known of a seat; None if there is no such broker."""
        return self.register.entries.get(name)

    def is_up(self, name: str) -> bool:
        """Whether a process can be reached now; this one can."""
        return name == self.me or (name in self.peers and self.peers[name].is_up)

    def keeps(self, name: str) -> bool:
        """Whether a process has room for copies, as far as it says."""
        return name == self.me or (name in self.peers and self.peers[name].keeps)

    def is_gone(self, name: str, now: float, patience: float = 1.0) -> bool:
        """Whether a process is away for so long that others take over from it."""
        if self.is_up(name):
            return False
        peer = self.peers.get(name)
        return peer is None or now - peer.down_s >= patience * self.terms.gone_s

    def whole(self, process: str, name: str) -> int:
        """Up to which term a process holds everything of a seat, as far as it says so."""
        if process == self.me:
            return self.register.entries[name].whole
        return self.peers[process].whole(name) if self.is_up(process) else 0

    def may_be_whole(self, peer: str, name: str, term: int) -> bool:
        """Whether a process holds everything of a seat in a term, or has not said yet how it stands there."""
        standing = self.peers[peer].standings.get(name)
        return standing is None or standing.term < term or standing.whole >= term

    def may_hold_more(self, peer: str, name: str, term: int, now: float) -> bool:
        """Whether a process is to be waited for that may know more of a seat than this one does."""
        if not self.is_up(peer):
            return not self.is_gone(peer, now)
        return self.may_be_whole(peer, name, term)

    def has(self, name: str) -> bool:
        """Whether this process holds anything of a broker."""
        return self.logs.next(name) > 0

    def changed(self) -> None:
        """Have the register made safe before anybody is told anything."""
        self._is_dirty = True

    def do(self, effect: Effect) -> None:
        """Have something done, after what was noted is safe."""
        self.settle()
        self.effects.append(effect)

    def send(self, peer: str, message: Message) -> None:
        """Tell a process something, if it is there."""
        one = self.peers.get(peer) or self.guests.get(peer)
        if one is not None and one.is_up:
            self.do(Send(peer, message))

    def tell_all(self, message: Message) -> None:
        """Tell all that are there."""
        for peer in self.peers:
            self.send(peer, message)

    def settle(self) -> None:
        """Note what has changed."""
        if self._is_dirty:
            self._is_dirty = False
            self.effects.append(Save(self.register.written()))


def roll_of(names: tuple[str, ...], number: int) -> Seat:
    """Return a roll of these processes alone."""
    first, *others = sorted(names)
    return Seat(ROLL, number, first, tuple(others))
