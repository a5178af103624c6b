"""A subscription that covered many others is withdrawn in parts, and nobody misses anything meanwhile."""

from __future__ import annotations

import random

import pytest

from sojourn.mobility.facts import ClientArrived, ClientGone, ClientSubscribed, ClientUnsubscribed
from tests.routing.network import Network, chain

NUMBERS = range(5)
STEPS = 150


def in_parts(length: int, part_max: int) -> Network:
    """Brokers in a line that look at no more than so many subscriptions at once."""
    net = Network(chain(length))
    for broker in net.brokers:
        broker.router.withdraw_in_parts(part_max)
    return net


def covered(part_max: int = 1) -> Network:
    """One that wants all of five numbers, and five that want one each, towards a publisher of all."""
    net = in_parts(2, part_max)
    net.feed(1, ClientArrived(1, (net.interests.ad(*NUMBERS),)))
    net.settle()
    net.feed(0, ClientSubscribed(9, net.interests.sub(*NUMBERS)))
    for number in NUMBERS:
        net.feed(0, ClientSubscribed(number, net.interests.sub(number)))
    net.settle()
    net.hops.clear()
    net.feed(0, ClientUnsubscribed(9, net.interests.sub(*NUMBERS)))
    return net


def said(net: Network) -> list[str]:
    """What brokers said to each other."""
    return [kind for _, _, kind in net.hops]


def test_what_it_covered_is_sent_part_by_part_and_the_withdrawal_comes_last() -> None:
    """In between the neighbour has it, so that every event comes; those that nobody wants go no further."""
    net = covered(part_max=2)
    assert said(net) == []
    for sent in (2, 4):
        assert net.go_on_withdrawing(0)
        net.settle()
        assert said(net) == ["Subscribe"] * sent
        assert [net.publish(1, number) for number in NUMBERS] == [[(0, number, number)] for number in NUMBERS]
        net.hops[:] = [hop for hop in net.hops if hop[2] != "Publish"]
    assert net.go_on_withdrawing(0)
    assert said(net) == ["Subscribe"] * 5 + ["Unsubscribe"]
    assert not net.go_on_withdrawing(0)


def test_one_that_is_wanted_again_stays() -> None:
    """Without a word to the neighbour, which had it all the time; what it covers is held back or sent."""
    net = covered()
    net.go_on_withdrawing(0)
    net.feed(0, ClientSubscribed(8, net.interests.sub(*NUMBERS)))
    assert not net.go_on_withdrawing(0)
    net.settle()
    assert said(net) == ["Subscribe"]
    assert net.publish(1, 3) == [(0, 3, 3), (0, 8, 3)]


def test_what_comes_meanwhile_may_rest_on_it_too() -> None:
    """What is covered by something that is still held back for its sake is looked at as well."""
    net = in_parts(2, 1)
    net.feed(1, ClientArrived(1, (net.interests.ad(*NUMBERS),)))
    net.settle()
    for client, numbers in ((9, NUMBERS), (7, (0, 1)), (8, (2, 3))):
        net.feed(0, ClientSubscribed(client, net.interests.sub(*numbers)))
    net.feed(0, ClientUnsubscribed(9, net.interests.sub(*NUMBERS)))
    net.feed(0, ClientSubscribed(6, net.interests.sub(2)))
    while net.go_on_withdrawing(0):
        net.settle()
    assert [net.publish(1, number) for number in (2, 4)] == [[(0, 6, 2), (0, 8, 2)], []]


class Walk:
    """Subscribers and publishers at three brokers that come and go as a seed says."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.net = in_parts(3, self.draw.choice((0, 1, 2)))
        self.wants: dict[tuple[int, int], set[frozenset[int]]] = {}
        self.publishers: set[int] = set()
        self.parts = 0

    def step(self) -> None:
        """Let one thing happen."""
        draw, net = self.draw, self.net
        act, broker, client = draw.random(), draw.randrange(3), draw.randrange(3)
        held = self.wants.setdefault((broker, client), set())
        if act < 0.35:
            wanted = frozenset(draw.sample(NUMBERS, draw.choice((1, 1, 2, 3, 5))))
            if wanted not in held:
                held.add(wanted)
                net.feed(broker, ClientSubscribed(10 * broker + client, net.interests.sub(*wanted)))
        elif act < 0.6 and held:
            self.withdraw(broker, client, max(sorted(held, key=sorted), key=len))
        elif act < 0.65:
            self.publishers ^= {broker}
            ads = (net.interests.ad(*NUMBERS),)
            came = broker in self.publishers
            net.feed(broker, ClientArrived(100 + broker, ads) if came else ClientGone(100 + broker))
        elif act < 0.8:
            self.parts += net.go_on_withdrawing(broker)

    def withdraw(self, broker: int, client: int, wanted: frozenset[int]) -> None:
        """Let a client want something no longer."""
        self.wants[broker, client].discard(wanted)
        self.net.feed(broker, ClientUnsubscribed(10 * broker + client, self.net.interests.sub(*wanted)))

    def check(self) -> None:
        """Let an event of every publisher reach exactly those who want it, each once."""
        self.net.settle(self.draw.randrange)
        for place in sorted(self.publishers):
            number = self.draw.choice(NUMBERS)
            expected = {
                (where, 10 * where + who, number)
                for (where, who), some in self.wants.items()
                if any(number in one for one in some)
            }
            assert self.net.publish(place, number) == sorted(expected)

    def end(self) -> None:
        """Let everybody go, and do all parts that are left."""
        for (broker, client), some in self.wants.items():
            for wanted in sorted(some, key=sorted):
                self.withdraw(broker, client, wanted)
        for place in self.publishers:
            self.net.feed(place, ClientGone(100 + place))
        self.net.settle()
        while any(self.net.go_on_withdrawing(broker) for broker in range(3)):
            self.parts += 1
            self.net.settle()


@pytest.mark.parametrize("seed", range(12))
def test_at_any_time_each_event_reaches_exactly_those_who_want_it(seed: int) -> None:
    """Whoever comes and goes, while parts are done now and then; in the end no table keeps anything."""
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
        if walk.draw.random() < 0.5:
            walk.check()
    walk.end()
    assert walk.parts > 0
    for one in walk.net.brokers:
        assert one.router.is_empty()
        assert not one.router.leaving
