"""Subscribers that move, as a state machine: hypothesis chooses who moves, what crosses, what comes twice."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.copies import State
from sojourn.mobility.policies import Policy
from sojourn.mobility.schemes import Scheme
from sojourn.routing.messages import Handoff, Publish
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay
from tests.routing.network import SetInterests, joined

TREES = [
    joined(2, [(0, 1)]),
    joined(3, [(0, 1), (1, 2)]),
    joined(4, [(0, 1), (0, 2), (0, 3)]),
    joined(4, [(0, 1), (1, 2), (2, 3)]),
]
WISHES = [(1, 2, 3), (1,), (2, 3), (3,)]
CLIENTS = 2
PUBLISHER = 100


class Subscriber:
    """What a client knows of itself."""

    def __init__(self, wishes: tuple[int, ...]) -> None:
        self.wishes = wishes
        self.epoch = 0
        self.at: int | None = None
        self.previous: int | None = None
        self.marks: dict[str, int] = {}
        self.seen: list[int] = []
        self.since: int | None = None
        """The first event that it must see."""
        self.is_over = False


class Moving(RuleBasedStateMachine):
    """A few brokers on a tree, one publisher, two subscribers; links deliver when hypothesis says so."""

    @initialize(
        tree=st.sampled_from(TREES),
        scheme=st.sampled_from(["reactive", "proactive"]),
        flooding=st.booleans(),
        wishes=st.lists(st.sampled_from(WISHES), min_size=CLIENTS, max_size=CLIENTS),
        at=st.integers(0, 3),
    )
    def begin(self, tree: Any, scheme: str, flooding: bool, wishes: list[tuple[int, ...]], at: int) -> None:
        """Everybody is connected and everything settled once, so that all interests are in force."""
        overlay = Overlay(tree)
        self.interests = SetInterests()
        self.brokers = [
            Broker(
                number,
                Neighbours(near),
                self.interests,
                Policy(),
                overlay.next_hop,
                scheme=Scheme.named(scheme, passive_s=1.0),
                flooding=flooding,
            )
            for number, near in enumerate(overlay.neighbours)
        ]
        self.links: dict[tuple[int, int], deque[Any]] = {
            (one, other): deque() for one, near in enumerate(overlay.neighbours) for other in near
        }
        self.home = at % len(self.brokers)
        self.lost: list[tuple[int, facts.SubscriberLost]] = []
        self.published: list[int] = []
        self.subscribers = [Subscriber(one) for one in wishes]
        self.feed(self.home, facts.ClientArrived(PUBLISHER, (self.interests.ad(1, 2, 3),)))
        self.settle()
        for number in range(CLIENTS):
            self.connect(number, number, hears=True)
        self.settle()
        for one in self.subscribers:
            one.since = 0

    # The network -------------------------------------------------------------------------------------

    def feed(self, broker: int, fact: facts.Fact) -> None:
        """Give a broker a fact and carry out what follows."""
        effects = self.brokers[broker].handle(fact, 0.0)
        for mask, message in effects.sends:
            for near in self.brokers[broker].router.neighbours.named(mask):
                self.links[broker, near].append(message)
        for delivery in effects.deliveries:
            for client in delivery.clients:
                self.see(broker, client, delivery.publication)
        assert not effects.drops
        for ready in effects.ready:
            assert ready.complete, "served without all its events"
        effects.clear()

    def see(self, broker: int, number: int, publication: Publish) -> None:
        """An event reaches a client, unless its connection is not what the broker thinks."""
        one = self.subscribers[number]
        if one.at == broker and self.brokers[broker].subscribers.main[number].epoch == one.epoch:
            one.seen.append(publication.event.sequence)
            one.marks["p"] = publication.event.sequence

    def settle(self) -> None:
        """Let all links deliver everything."""
        for _ in range(100_000):
            waiting = [link for link, messages in self.links.items() if messages]
            if not waiting:
                return
            self.step(waiting[0])
        raise AssertionError("the network does not come to rest")

    def step(self, link: tuple[int, int]) -> None:
        """One link delivers one message."""
        self.feed(link[1], facts.Received(self.links[link].popleft(), link[0]))

    # What happens ------------------------------------------------------------------------------------

    @precondition(lambda self: any(self.links.values()))
    @rule(choice=st.integers(0, 1000), count=st.integers(1, 4), twice=st.integers(0, 5))
    def deliver(self, choice: int, count: int, twice: int) -> None:
        """A link delivers a few messages; one about a subscriber may come a second time, later."""
        waiting = sorted(link for link, messages in self.links.items() if messages)
        link = waiting[choice % len(waiting)]
        for _ in range(min(count, len(self.links[link]))):
            message = self.links[link][0]
            self.step(link)
            if twice == 0 and isinstance(message, Handoff):
                self.links[link].append(message)
                twice = 1

    @rule(number=st.integers(1, 3))
    def publish(self, number: int) -> None:
        """The publisher sends an event."""
        event = Event({"n": number}, source="p", sequence=len(self.published))
        self.published.append(number)
        self.feed(self.home, facts.ClientPublished(Publish(event)))

    @rule(number=st.integers(0, CLIENTS - 1), broker=st.integers(0, 3), hears=st.booleans())
    def connect(self, number: int, broker: int, hears: bool) -> None:
        """A client connects; it may not hear that it was taken in, and then is not there any more."""
        one = self.subscribers[number]
        broker %= len(self.brokers)
        if one.is_over:
            return
        self.part(number)
        one.epoch += 1
        one.at = broker if hears else None
        wishes = (self.interests.sub(*one.wishes),)
        arrived = facts.SubscriberArrived(number, one.epoch, wishes, one.previous, dict(one.marks))
        self.feed(broker, arrived)
        if hears:
            one.previous = broker
        else:
            self.lost.append((broker, facts.SubscriberLost(number, one.epoch)))

    @rule(number=st.integers(0, CLIENTS - 1))
    def part(self, number: int) -> None:
        """A client's connection breaks; its broker will notice."""
        one = self.subscribers[number]
        if one.at is not None:
            self.lost.append((one.at, facts.SubscriberLost(number, one.epoch)))
            one.at = None

    @precondition(lambda self: self.lost)
    @rule(choice=st.integers(0, 1000))
    def notice(self, choice: int) -> None:
        """A broker notices one of the broken connections."""
        self.feed(*self.lost.pop(choice % len(self.lost)))

    @rule(choice=st.integers(0, 1000))
    def forget_copy(self, choice: int) -> None:
        """The time of a passive copy runs out, at any moment."""
        copies = [
            (broker.number, holding)
            for broker in self.brokers
            for holding in broker.subscribers.main.values()
            if holding.state is State.PASSIVE
        ]
        if copies:
            broker, copy = copies[choice % len(copies)]
            self.feed(broker, facts.TimerFired(copy.client, copy.token))
            assert self.brokers[broker].subscribers.main.get(copy.client) is not copy

    @rule(number=st.integers(0, CLIENTS - 1))
    def consume(self, number: int) -> None:
        """A client says what it has consumed."""
        one = self.subscribers[number]
        if one.at is not None and one.marks:
            self.feed(one.at, facts.Consumed(number, "p", one.marks["p"]))

    @rule(number=st.integers(0, CLIENTS - 1))
    def say_goodbye(self, number: int) -> None:
        """A connected client leaves for good."""
        one = self.subscribers[number]
        if one.at is not None and one.epoch > 3:
            self.feed(one.at, facts.SubscriberGone(number, one.epoch))
            one.at, one.is_over = None, True

    # What must hold ----------------------------------------------------------------------------------

    @invariant()
    def nothing_comes_twice_or_out_of_order(self) -> None:
        """Sequence numbers grow, and everything was wanted."""
        for one in getattr(self, "subscribers", ()):
            assert all(before < after for before, after in zip(one.seen, one.seen[1:], strict=False))
            assert all(self.published[sequence] in one.wishes for sequence in one.seen)

    def teardown(self) -> None:
        """In the end everybody has everything, and then nobody has anything."""
        if not hasattr(self, "subscribers"):
            return
        for number, one in enumerate(self.subscribers):
            if not one.is_over and one.at is None:
                self.connect(number, number, hears=True)
        self.settle()
        while self.lost:
            self.feed(*self.lost.pop())
        self.settle()
        for number, one in enumerate(self.subscribers):
            if one.is_over:
                continue
            expected = [place for place, value in enumerate(self.published) if value in one.wishes]
            assert one.seen == expected, f"client {number} lacks events"
            assert one.at is not None, "connected above"
            self.feed(one.at, facts.SubscriberGone(number, one.epoch))
        self.settle()
        for broker in self.brokers:
            assert not broker.subscribers.main
            assert not broker.subscribers.older
            assert not broker.subscribers.store.events
            assert not broker.router.local_subs


TestMoving = Moving.TestCase
TestMoving.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
