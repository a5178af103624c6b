"""What the parts of a council share: the register, who is there, and the effects of the present call."""

from __future__ import annotations

from typing import NamedTuple

from sojourn.broker.seats.choosing import Order, first_seat
from sojourn.broker.seats.effects import Effect, Logs, Save, Send
from sojourn.broker.seats.messages import Message, Standing
from sojourn.broker.seats.register import Entry, Register


class Terms(NamedTuple):
    """What a configuration says about seats."""

    me: str
    """The name of this process, which is that of the broker whose home it is."""
    names: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    copies: int
    gone_s: float = 4.0
    """A process that was away for so long is gone: others take over what it has."""
    silent_s: float = 10.0
    """A process that said nothing for so long is away, whatever its connection seems to be."""


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

    def whole(self, name: str) -> int:
        """Up to which term it says that it holds everything that was promised."""
        return self.standings[name].whole if name in self.standings else 0


class Desk:
    """One process's papers."""

    def __init__(self, terms: Terms, register: Register, logs: Logs, now: float) -> None:
        self.terms, self.register, self.logs = terms, register, logs
        self.me = terms.me
        self.order = Order(terms.names, terms.links)
        for name in terms.names:
            if name not in register.entries:
                register.entries[name] = Entry(first_seat(self.order, name, terms.copies))
        self.peers = {name: Peer(now, 2 * terms.gone_s) for name in terms.names if name != terms.me}
        self.effects: list[Effect] = []
        self._is_dirty = True

    def entry(self, name: str) -> Entry | None:
        """Return what is known of a seat; None if there is no such broker."""
        return self.register.entries.get(name)

    def is_up(self, name: str) -> bool:
        """Whether a process can be reached now; this one can."""
        return name == self.me or (name in self.peers and self.peers[name].is_up)

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
        if peer in self.peers and self.peers[peer].is_up:
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
