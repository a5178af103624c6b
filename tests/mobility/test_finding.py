"""Sessions are found wherever they are, and are with one broker at a time, whatever crosses."""

from __future__ import annotations

import random
from collections import deque

import pytest

from sojourn.mobility.finding import EVERYBODY, Find, Finder, Found

CLIENT = 7


class Network:
    """Brokers that know one another, with a FIFO channel for each ordered pair."""

    def __init__(self, brokers: int, patience_s: float = 1e9) -> None:
        self.finders = [
            Finder(number, brokers, patience_s=patience_s, named_patience_s=patience_s)
            for number in range(brokers)
        ]
        self.held: dict[int, tuple[int, bytes]] = {}
        """By broker: the epoch and session of the client there."""
        self.giver = 0
        """The broker that had the session last."""
        self.refused: list[tuple[int, int]] = []
        self.fresh: list[int] = []
        self.wires: dict[tuple[int, int], deque[Find | Found]] = {}

    def connect(self, broker: int, epoch: int, previous: int | None, now: float = 0.0) -> None:
        """The client comes to a broker."""
        if broker in self.held:
            self.held[broker] = (epoch, self.held[broker][1])
            return
        self.finders[broker].seek(CLIENT, epoch, previous, now)
        self.carry_out(broker)

    def carry_out(self, broker: int) -> None:
        """Do what a finder says."""
        finder = self.finders[broker]
        for give in finder.gives:
            epoch, state = self.held.pop(broker)
            finder.give(give.client, give.epoch, give.to, state, epoch)
            self.giver = broker
        finder.gives.clear()
        for message in finder.sends:
            others = [n for n in range(len(self.finders)) if n != broker]
            for to in others if message.destination == EVERYBODY else [message.destination]:
                self.wires.setdefault((broker, to), deque()).append(message)
        finder.sends.clear()
        for result in finder.results:
            if result.superseded:
                self.refused.append((broker, result.epoch))
            elif result.state is not None:
                assert result.holder == self.giver, "what is stored for the client is there"
                # One that another broker began for a connection which was gone already comes too late.
                self.held.setdefault(broker, (result.epoch, result.state))
            else:
                self.fresh.append(broker)
                self.held[broker] = (result.epoch, b"new")
        finder.results.clear()

    def step(self, draw: random.Random) -> bool:
        """Deliver one message of a channel chosen by chance; say whether there was one."""
        ready = [pair for pair, wire in self.wires.items() if wire]
        if not ready:
            return False
        pair = draw.choice(ready)
        message = self.wires[pair].popleft()
        finder = self.finders[pair[1]]
        if isinstance(message, Find):
            held = self.held.get(pair[1])
            finder.asked(message, held[0] if held else None)
        else:
            finder.answered(message, 0.0)
        self.carry_out(pair[1])
        return True


@pytest.mark.parametrize("seed", range(400))
def test_a_client_that_runs_ahead_of_the_answers_keeps_its_one_session(seed: int) -> None:
    """Connections to any brokers at any moment: in the end the last broker has the old session, alone."""
    draw = random.Random(seed)
    net = Network(draw.randrange(2, 6))
    net.held[0] = (1, b"the session")
    last = 0
    for epoch in range(2, 2 + draw.randrange(1, 7)):
        for _ in range(draw.randrange(8)):
            net.step(draw)
        previous = last if draw.random() < 0.5 else None
        last = draw.randrange(len(net.finders))
        net.connect(last, epoch, previous)
    while net.step(draw):
        pass
    assert {broker: state for broker, (_, state) in net.held.items()} == {last: b"the session"}
    assert not any(finder.seeks(CLIENT) for finder in net.finders)


def test_a_client_nobody_knows_starts_anew_once_all_have_answered() -> None:
    """And not before."""
    net = Network(3)
    net.connect(1, 5, None)
    draw = random.Random(1)
    net.step(draw)
    assert not net.fresh
    while net.step(draw):
        pass
    assert net.fresh == [1]


def test_silent_brokers_are_given_up_on_in_two_steps() -> None:
    """First the one that was named, then all the others."""
    net = Network(3, patience_s=2.0)
    net.connect(1, 5, previous=2, now=10.0)
    assert net.finders[1].next_moment() == 12.0
    net.finders[1].time_passed(12.0)
    net.carry_out(1)
    assert not net.fresh
    assert [message.destination for message in net.wires[1, 0]] == [EVERYBODY]
    net.finders[1].time_passed(14.0)
    net.carry_out(1)
    assert net.fresh == [1]


def test_one_broker_alone_asks_nobody() -> None:
    """The answer is there at once."""
    net = Network(1)
    net.connect(0, 5, None)
    assert net.fresh == [0]
