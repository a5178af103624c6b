"""A small world for `Finder`: brokers with clocks that differ, links that stall and repeat, restless clients.

Messages between two brokers keep their order. A link that is cut keeps what was sent and delivers it when it
is whole again. A broker crashes with its memory, as after a restart from its journal, or without. The world
knows which sessions exist, and checks with each step that none is lost or replaced that should not be.
"""

from __future__ import annotations

import pickle
import random
from collections import deque
from dataclasses import dataclass, field

from sojourn.mobility.finding import Finder, Result
from sojourn.mobility.finding_messages import EVERYBODY, Find, Found

MESSAGES_MAX = 20_000
"""More than brokers ever have to say to one another after a while of trouble."""
PATIENCE_S, NAMED_PATIENCE_S, GIVE_UP_S = 5.0, 1.0, 100.0


@dataclass
class Held:
    """A session at a broker."""

    epoch: int
    state: bytes
    connection: int | None


@dataclass
class Broker:
    """A driver of a finder."""

    finder: Finder
    skew_s: float
    held: dict[int, Held] = field(default_factory=dict)
    waiting: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    """By client: the epoch and number of a connection that waits, and since when."""
    reborn_epoch: int = 0
    """Epochs up to this are of a life that was forgotten."""


class World:
    """Brokers and the links between them; `draw` decides what happens next."""

    def __init__(
        self, draw: random.Random, brokers: int, *, skew_s: float = 0.0, quick_eyes: float = 0.7
    ) -> None:
        self.draw = draw
        self.now = 1_700_000_000.0
        self.quick_eyes = quick_eyes
        """How likely a cut is noticed at once."""
        self.brokers = [
            Broker(self._finder(n, brokers), draw.uniform(-skew_s, skew_s)) for n in range(brokers)
        ]
        self.wires: dict[tuple[int, int], deque[Find | Found]] = {
            (one, other): deque() for one in range(brokers) for other in range(brokers) if one != other
        }
        self.delivered: dict[tuple[int, int], deque[Find | Found]] = {
            wire: deque(maxlen=20) for wire in self.wires
        }
        self.cut: dict[frozenset[int], float] = {}
        self.connections: dict[int, str] = {}
        """What became of each connection: waiting, in, superseded, unreachable, lost."""
        self.sessions = 0
        self.lawless: set[bytes] = set()
        """Sessions that may be lost: they were with a forgetful broker, repeated, given up or cleared."""
        self.cleared: dict[int, tuple[int, int]] = {}
        """By client: the latest clean start, which ends whatever an earlier connection begins."""
        self.given_up: set[int] = set()
        """Clients that began anew while their session was out of reach."""

    @staticmethod
    def _finder(number: int, brokers: int) -> Finder:
        return Finder(
            number, brokers, patience_s=PATIENCE_S, named_patience_s=NAMED_PATIENCE_S, give_up_s=GIVE_UP_S
        )

    def local_s(self, number: int) -> float:
        """What a broker's clock shows."""
        return self.now + self.brokers[number].skew_s

    def sessions_of(self, client: int) -> set[bytes]:
        """All sessions of a client, wherever they are."""
        held = {broker.held[client].state for broker in self.brokers if client in broker.held}
        sent = {
            message.state
            for wire in self.wires.values()
            for message in wire
            if isinstance(message, Found) and message.client == client and message.state is not None
        }
        return held | sent

    def holders(self, client: int) -> list[int]:
        """The brokers that have a session of a client."""
        return [number for number, broker in enumerate(self.brokers) if client in broker.held]

    def _new_state(self) -> bytes:
        self.sessions += 1
        return b"session %d" % self.sessions

    def new_session(self, epoch: int) -> Held:
        """A session whose client is away."""
        return Held(epoch, self._new_state(), None)

    # Clients -------------------------------------------------------------------------------------------

    def connect(
        self, number: int, client: int, previous: int | None = None, *, is_clean: bool = False
    ) -> int:
        """Let a client connect; return the number of its connection."""
        broker, now = self.brokers[number], self.local_s(number)
        connection = len(self.connections)
        self.connections[connection] = "waiting"
        held = broker.held.get(client)
        epoch = broker.finder.next_epoch(client, now, held.epoch if held else 0)
        if is_clean:
            self.lawless |= self.sessions_of(client)
            self._end(number, client)
            broker.held[client] = Held(epoch, self._new_state(), connection)
            self.lawless.add(broker.held[client].state)  # in another part of the network the old one may live
            self.connections[connection] = "in"
            self._forget_waiting(broker, client)
            self.cleared[client] = max((epoch, number), self.cleared.get(client, (0, 0)))
            broker.finder.claim(client, epoch, now)
        elif held is not None:
            self._lose(held.connection)
            held.epoch, held.connection = epoch, connection
            self.connections[connection] = "in"
        else:
            self._forget_waiting(broker, client, supersedes=False)
            broker.finder.seek(client, epoch, previous, now)
            broker.waiting[client] = (epoch, connection, now)
        self.carry_out(number)
        return connection

    def _forget_waiting(self, broker: Broker, client: int, *, supersedes: bool = True) -> None:
        if client in broker.waiting and supersedes:
            self.connections[broker.waiting.pop(client)[1]] = "superseded"
        elif client in broker.waiting:
            self.connections[broker.waiting[client][1]] = "superseded"

    def _lose(self, connection: int | None) -> None:
        if connection is not None:
            self.connections[connection] = "lost"

    def _end(self, number: int, client: int) -> None:
        held = self.brokers[number].held.pop(client, None)
        if held is not None:
            self._lose(held.connection)

    def disconnect(self, number: int, client: int) -> None:
        """Let a client lose its connection."""
        held = self.brokers[number].held.get(client)
        if held is not None:
            self._lose(held.connection)
            held.connection = None

    def expire(self, number: int, client: int) -> None:
        """Let a session end, as its client wished."""
        held = self.brokers[number].held.get(client)
        if held is not None:
            self.lawless.add(held.state)
            self._end(number, client)

    # Brokers -------------------------------------------------------------------------------------------

    def carry_out(self, number: int) -> None:
        """Do what a finder says."""
        broker = self.brokers[number]
        finder = broker.finder
        for give in finder.gives:
            held = broker.held.pop(give.client)
            assert held.epoch < give.epoch, "sessions go along growing epochs only"
            self._lose(held.connection)
            finder.give(give.client, give.epoch, give.to, held.state)
        finder.gives.clear()
        for message in finder.sends:
            state = message.state if isinstance(message, Found) else None
            if state is not None and message.epoch <= self.brokers[message.destination].reborn_epoch:
                self.lawless.add(state)
            others = [other for other in range(len(self.brokers)) if other != number]
            for to in others if message.destination == EVERYBODY else [message.destination]:
                self.wires[number, to].append(message)
        finder.sends.clear()
        for result in finder.results:
            self._follow(number, result)
        finder.results.clear()

    def _follow(self, number: int, result: Result) -> None:
        broker, client = self.brokers[number], result.client
        waiting = broker.waiting.get(client)
        held = broker.held.get(client)
        if waiting is None or waiting[0] != result.asked:
            if result.state is not None and held is not None:
                assert result.state in self.lawless, "a session came to a broker that has one"
            elif result.state is not None:
                broker.held[client] = Held(result.epoch, result.state, None)
            elif result.superseded and not result.asked and held is not None:
                assert held.state in self.lawless, "a session ended that is the only one"
                self._end(number, client)
            elif not result.superseded and not result.unreachable and held is None:
                self._begin(number, result, None)  # the connection was lost while it waited
            return
        epoch, connection, since_s = broker.waiting.pop(client)
        assert result.epoch >= epoch
        assert self.local_s(number) - since_s <= PATIENCE_S + NAMED_PATIENCE_S + 0.1, "it waited for too long"
        if result.superseded:
            self.connections[connection] = "superseded"
        elif result.unreachable:
            self.connections[connection] = "unreachable"
        elif result.state is not None:
            self.connections[connection] = "in"
            broker.held[client] = Held(result.epoch, result.state, connection)
        else:
            self.connections[connection] = "in"
            self._begin(number, result, connection)

    def _begin(self, number: int, result: Result, connection: int | None) -> None:
        """Begin a new session, if that is allowed."""
        finder = self.brokers[number].finder
        for other in result.given_up:
            assert self.local_s(number) - finder.out_of_reach[other] >= GIVE_UP_S
        others = self.sessions_of(result.client)
        if result.given_up:
            self.given_up.add(result.client)
            self.lawless |= others
        assert others <= self.lawless, "a session is replaced by an empty one"
        if connection is not None:
            held = Held(result.epoch, self._new_state(), connection)
            self.brokers[number].held[result.client] = held
            is_late = (result.epoch, number) < self.cleared.get(result.client, (0, 0))
            if result.given_up or is_late or others:  # one of several, or it may become so
                self.lawless.add(held.state)

    def deliver(self, wire: tuple[int, int]) -> None:
        """Deliver the next message of a wire."""
        message = self.wires[wire].popleft()
        self.delivered[wire].append(message)
        number = wire[1]
        broker, now = self.brokers[number], self.local_s(number)
        if isinstance(message, Find):
            held = broker.held.get(message.client)
            epoch = held.epoch if held else None
            broker.finder.asked(message, epoch, now, present=bool(held and held.connection is not None))
        else:
            held = broker.held.get(message.client)
            epoch = held.epoch if held else None
            is_present = bool(held and held.connection is not None)
            broker.finder.answered(message, epoch, now, present=is_present)
            self._check_kept(broker, message)
        self.carry_out(number)

    def _check_kept(self, broker: Broker, message: Found) -> None:
        """A session that came is taken, passed on, or may be dropped."""
        if message.state is None or message.state in self.lawless:
            return
        found = [result.state for result in broker.finder.results]
        sent = [one.state for one in broker.finder.sends if isinstance(one, Found)]
        assert message.state in found + sent, "a session was dropped"

    def ready(self) -> list[tuple[int, int]]:
        """The wires that have something to deliver, and can."""
        return [wire for wire, queue in self.wires.items() if queue and frozenset(wire) not in self.cut]

    def tick(self) -> None:
        """Let every broker look at its clock."""
        for number, broker in enumerate(self.brokers):
            broker.finder.time_passed(self.local_s(number))
            self.carry_out(number)

    def wait(self, seconds: float) -> None:
        """Let time pass, in steps as small as the brokers ask for."""
        until_s = self.now + seconds
        while self.now < until_s:
            moments = [
                moment - broker.skew_s
                for broker in self.brokers
                if (moment := broker.finder.next_moment()) is not None
            ]
            self.now = min([until_s, *(max(moment, self.now) + 1e-3 for moment in moments)])
            self.tick()

    # Faults --------------------------------------------------------------------------------------------

    def notice(self) -> None:
        """Let every broker know who is out of its reach."""
        for number, broker in enumerate(self.brokers):
            broker.finder.out_of_reach = {
                other: since_s + broker.skew_s
                for pair, since_s in self.cut.items()
                if number in pair
                for other in pair - {number}
            }
            broker.finder.time_passed(self.local_s(number))
            self.carry_out(number)

    def stall(self) -> None:
        """Cut a broker off, or two from one another."""
        count = len(self.brokers)
        if self.draw.random() < 0.5:
            lone = self.draw.randrange(count)
            pairs = [frozenset((lone, other)) for other in range(count) if other != lone]
        else:
            pairs = [frozenset(self.draw.sample(range(count), 2))]
        for pair in pairs:
            self.cut.setdefault(pair, self.now)
        if self.draw.random() < self.quick_eyes:
            self.notice()

    def mend(self, share: float) -> None:
        """Let a share of all cuts be whole again."""
        for pair in list(self.cut):
            if self.draw.random() < share:
                del self.cut[pair]
        if self.draw.random() < self.quick_eyes:
            self.notice()

    def crash(self, number: int, *, forgets: bool) -> None:
        """Let a broker die and come back."""
        broker = self.brokers[number]
        for held in broker.held.values():
            self._lose(held.connection)
            held.connection = None
        for _, connection, _ in broker.waiting.values():
            self._lose(connection)
        broker.waiting.clear()
        if not forgets:
            broker.finder = pickle.loads(pickle.dumps(broker.finder))
            return
        for wire, queue in self.wires.items():
            if number in wire:
                states = {one.state for one in queue if isinstance(one, Found) and one.state is not None}
                self.lawless |= states
            if number == wire[0]:  # some of what it sent is with brokers on the way
                keep = self.draw.randint(0, len(queue))
                self.wires[wire] = deque(list(queue)[:keep])
        self.lawless |= {held.state for held in broker.held.values()}
        broker.reborn_epoch = max(broker.finder.clock.last, broker.reborn_epoch)
        broker.held.clear()
        broker.finder = self._finder(number, len(self.brokers))
        self.notice()

    def repeat(self) -> None:
        """Let a link that lost its memory send something again, sooner or later than other things."""
        wire = self.draw.choice([*self.wires])
        if self.delivered[wire]:
            message = self.draw.choice([*self.delivered[wire]])
            if isinstance(message, Found) and message.state is not None:
                self.lawless.add(message.state)
            self.wires[wire].insert(self.draw.randint(0, len(self.wires[wire])), message)

    def settle(self) -> None:
        """Let all links be whole, and everything be said and done."""
        self.cut.clear()
        self.notice()
        for _ in range(3):
            for _ in range(MESSAGES_MAX):
                if not (ready := self.ready()):
                    break
                self.deliver(self.draw.choice(ready))
            else:
                raise AssertionError("brokers come to an end")
            self.wait(PATIENCE_S + NAMED_PATIENCE_S + 0.1)
        assert not self.ready()
        assert not any(broker.finder._searches for broker in self.brokers), "every search ends"
        assert not any(broker.waiting for broker in self.brokers)
