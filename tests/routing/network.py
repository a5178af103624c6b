"""A network of brokers for tests: FIFO links, any interleaving of different links, sets as interests.

An interest is a set of numbers, an event is one number; so covering is inclusion and the oracle is plain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from sojourn.interest.algebra import Looks
from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.policies import Policy
from sojourn.routing.interests import Interests
from sojourn.routing.messages import Message, Publish
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay

Numbers = frozenset[int]


class SetInterests(Interests):
    """Interests that are sets of numbers."""

    def __init__(self, *, covering: bool = True) -> None:
        super().__init__(covering=covering)
        self.ads: dict[Numbers, int] = {}
        self.subs: dict[Numbers, int] = {}

    def ad(self, *numbers: int) -> int:
        """The number of an advertisement."""
        new = frozenset(numbers)
        if new not in self.ads:
            self.ads[new] = self.enter_ad(subs=[sub for one, sub in self.subs.items() if one & new])
        return self.ads[new]

    def sub(self, *numbers: int) -> int:
        """The number of a subscription."""
        new = frozenset(numbers)
        if new not in self.subs:
            self.subs[new] = self.enter_sub(ads=[ad for one, ad in self.ads.items() if one & new])
        return self.subs[new]

    def wider_ads(self, ad: int) -> Iterable[int]:
        """All others, of which few will do."""
        return [one for one in self.ads.values() if one != ad]

    def wider_subs(self, sub: int) -> Iterable[int]:
        """All others, of which few will do."""
        return [one for one in self.subs.values() if one != sub]

    def ad_covers(self, wide: int, narrow: int, looks: Looks) -> bool:  # noqa: ARG002 - the same door
        """Inclusion."""
        sets = list(self.ads)
        return sets[wide] >= sets[narrow]

    def sub_covers(self, wide: int, narrow: int, looks: Looks) -> bool:  # noqa: ARG002 - the same door
        """Inclusion."""
        sets = list(self.subs)
        return sets[wide] >= sets[narrow]

    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that contain the event's number."""
        number = event.get("n")
        return tuple(sorted(sub for one, sub in self.subs.items() if number in one))


class Network:
    """Brokers joined by FIFO links whose messages wait until a test lets them through."""

    def __init__(
        self, graph: Sequence[Sequence[int]], *, policy: Policy | None = None, covering: bool = True
    ) -> None:
        self.interests = SetInterests(covering=covering)
        self.overlay = Overlay(graph)
        self.brokers = [
            Broker(number, Neighbours(near), self.interests, policy or Policy(), self.overlay.next_hop)
            for number, near in enumerate(self.overlay.neighbours)
        ]
        self.links: dict[tuple[int, int], deque[Message]] = {
            (one, other): deque() for one, near in enumerate(self.overlay.neighbours) for other in near
        }
        self.hops: list[tuple[int, int, str]] = []
        self.delivered: list[tuple[int, int, int]] = []
        self.timers: dict[tuple[int, int, int], float] = {}
        self.now = 0.0

    def feed(self, broker: int, fact: facts.Fact) -> None:
        """Give a broker a fact and put what it sends onto the links."""
        self.brokers[broker].handle(fact, self.now)
        self.forward(broker)

    def forward(self, broker: int) -> None:
        """Carry out a broker's effects."""
        effects = self.brokers[broker].effects
        for mask, message in effects.sends:
            for neighbour in self.brokers[broker].router.neighbours.named(mask):
                self.links[broker, neighbour].append(message)
                self.hops.append((broker, neighbour, type(message).__name__))
        for delivery in effects.deliveries:
            number = delivery.publication.event.get("n")
            assert isinstance(number, int)
            self.delivered += [(broker, client, number) for client in delivery.clients]
        for timer in effects.timers:
            self.timers[broker, timer.client, timer.token] = timer.delay_s
        for cancel in effects.cancels:
            self.timers.pop((broker, cancel.client, cancel.token), None)
        effects.clear()

    def waiting(self) -> list[tuple[int, int]]:
        """The links that have a message to deliver."""
        return [link for link, messages in self.links.items() if messages]

    def step(self, link: tuple[int, int]) -> None:
        """Let the first message of one link through."""
        sender, receiver = link
        self.feed(receiver, facts.Received(self.links[link].popleft(), sender))

    def go_on_withdrawing(self, broker: int) -> bool:
        """Let a broker do a part of what is left to do for subscriptions that leave; say if there was any."""
        router = self.brokers[broker].router
        if not router.leaving:
            return False
        router.go_on_withdrawing()
        self.forward(broker)
        return True

    def settle(self, pick: Callable[[int], int] = lambda _count: 0) -> None:
        """Let messages through, chosen among the links by `pick`, until none is left."""
        for _ in range(100_000):
            waiting = self.waiting()
            if not waiting:
                return
            self.step(waiting[pick(len(waiting))])
        raise AssertionError("the network does not come to rest")

    def expire(self, key: tuple[int, int, int]) -> None:
        """Let one timer fire."""
        del self.timers[key]
        broker, client, token = key
        self.feed(broker, facts.TimerFired(client, token))

    def publish(self, broker: int, number: int) -> list[tuple[int, int, int]]:
        """Publish one event in a quiet network; say who got it, as (broker, client, number)."""
        self.delivered.clear()
        self.feed(broker, facts.ClientPublished(Publish(Event({"n": number}))))
        self.settle()
        return sorted(self.delivered)

    def sent_since(self, start: int, *kinds: str) -> list[tuple[int, int]]:
        """The hops of some kinds since an earlier length of `hops`, as (from, to)."""
        return [(one, other) for one, other, kind in self.hops[start:] if kind in kinds]


def chain(length: int) -> list[list[int]]:
    """Brokers in a row."""
    return [[at for at in (one - 1, one + 1) if 0 <= at < length] for one in range(length)]


def joined(count: int, links: Iterable[tuple[int, int]]) -> list[list[int]]:
    """A graph from its links."""
    near: list[set[int]] = [set() for _ in range(count)]
    for one, other in links:
        if one != other:
            near[one].add(other)
            near[other].add(one)
    return [sorted(brokers) for brokers in near]
