"""Whatever clients do and however links interleave, a quiet network delivers exactly what matches."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sojourn.mobility import facts
from sojourn.mobility.policies import Policy
from tests.routing.network import Network, Numbers, joined

# Few numbers, clients and brokers, so that interests overlap and coincide most of the time.
NUMBERS = range(4)
CLIENTS = 4
sets = st.frozensets(st.sampled_from(NUMBERS), min_size=1, max_size=3)
clients = st.integers(0, CLIENTS - 1)
POLICIES = [
    Policy.named(name)
    for name in ("standard", "prefetching", "proxy", "delayed", "prefetch-delayed", "proxy+delayed")
] + [Policy(predicts=True, delay_s=10.0, proxies=2)]


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """A connected graph: a random tree and perhaps more links."""
    count = draw(st.integers(1, 6))
    links = [(draw(st.integers(0, child - 1)), child) for child in range(1, count)]
    if count > 2 and draw(st.booleans()):
        broker = st.integers(0, count - 1)
        links += draw(st.lists(st.tuples(broker, broker), max_size=5))
    return joined(count, links)


class RestlessNetwork(RuleBasedStateMachine):
    """Clients advertise, subscribe, move and go, while messages are let through one by one.

    Two networks are fed the same facts, one with covering and one without, each with its own interleaving.
    """

    @initialize(graph=graphs(), policy=st.sampled_from(POLICIES))
    def build(self, graph: list[list[int]], policy: Policy) -> None:
        """An empty network twice, with and without covering."""
        self.size = len(graph)
        self.policy = policy
        self.networks = [Network(graph, policy=policy, covering=covering) for covering in (True, False)]
        self.subscriptions: dict[int, dict[Numbers, int]] = {}
        self.publishers: dict[int, tuple[int, frozenset[Numbers]]] = {}
        self.away: dict[int, frozenset[Numbers]] = {}
        self.home: dict[int, int] = {}

    def both(self, broker: int, fact: Callable[[Network], facts.Fact]) -> None:
        """Feed one fact to both networks, which number interests by themselves."""
        for network in self.networks:
            network.feed(broker, fact(network))

    def feed_subscription(self, broker: int, client: int, wanted: Numbers) -> None:
        """A client subscribes at a broker."""
        self.both(broker, lambda net: facts.ClientSubscribed(client, net.interests.sub(*wanted)))

    def feed_unsubscription(self, broker: int, client: int, wanted: Numbers) -> None:
        """A client withdraws a subscription."""
        self.both(broker, lambda net: facts.ClientUnsubscribed(client, net.interests.sub(*wanted)))

    def feed_arrival(
        self, broker: int, client: int, ads: frozenset[Numbers], proxies: tuple[int, ...] = ()
    ) -> None:
        """A publisher arrives with its advertisements."""
        ordered = sorted(ads, key=sorted)
        self.both(
            broker,
            lambda net: facts.ClientArrived(
                client, tuple(net.interests.ad(*one) for one in ordered), proxies=proxies
            ),
        )

    def feed_goodbye(self, broker: int, client: int) -> None:
        """A publisher goes for good."""
        home = self.home.pop(client, None)
        self.both(broker, lambda _net: facts.ClientGone(client, home=home))

    @rule(client=clients, wanted=sets, where=st.integers(0, 6))
    def subscribe(self, client: int, wanted: Numbers, where: int) -> None:
        """A subscription is made at the broker where the client's others are, if it has any."""
        held = self.subscriptions.setdefault(client, {})
        broker = next(iter(held.values()), where % self.size)
        if wanted not in held:
            held[wanted] = broker
            self.feed_subscription(broker, client, wanted)

    @precondition(lambda self: any(self.subscriptions.values()))
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        """One subscription of one client goes."""
        client = data.draw(st.sampled_from(sorted(c for c, held in self.subscriptions.items() if held)))
        held = self.subscriptions[client]
        wanted = data.draw(st.sampled_from(sorted(held, key=sorted)))
        self.feed_unsubscription(held.pop(wanted), client, wanted)

    @precondition(lambda self: any(self.subscriptions.values()))
    @rule(data=st.data(), where=st.integers(0, 6))
    def move_subscriber(self, data: st.DataObject, where: int) -> None:
        """A subscriber withdraws at one broker and subscribes at another."""
        client = data.draw(st.sampled_from(sorted(c for c, held in self.subscriptions.items() if held)))
        for wanted, broker in self.subscriptions[client].items():
            self.feed_unsubscription(broker, client, wanted)
        for wanted in self.subscriptions[client]:
            self.subscriptions[client][wanted] = where % self.size
            self.feed_subscription(where % self.size, client, wanted)

    @rule(client=clients, ads=st.frozensets(sets, max_size=3), where=st.integers(0, 6))
    def arrive(self, client: int, ads: frozenset[Numbers], where: int) -> None:
        """A publisher connects for the first time, or again, or names other advertisements where it is."""
        broker = where % self.size
        proxies: tuple[int, ...] = ()
        if client in self.publishers:
            broker = self.publishers[client][0]
            if self.policy.proxies:
                return  # what proxies hold is set once, at the first arrival
        elif client in self.away:
            ads = self.away.pop(client)
        elif self.policy.proxies:
            count = min(self.policy.proxies, self.size)
            self.home[client] = broker
            proxies = tuple((broker + step) % self.size for step in range(count))
        self.publishers[client] = (broker, ads)
        self.feed_arrival(broker, client, ads, proxies)

    @precondition(lambda self: self.publishers)
    @rule(data=st.data(), guess=st.none() | st.integers(0, 6))
    def leave(self, data: st.DataObject, guess: int | None) -> None:
        """A publisher disconnects; where it is expected may be right, wrong or unknown."""
        client = data.draw(st.sampled_from(sorted(self.publishers)))
        broker, ads = self.publishers.pop(client)
        self.away[client] = ads
        expected = None if guess is None else guess % self.size
        self.both(broker, lambda _net: facts.ClientLeft(client, expected_at=expected))

    @precondition(lambda self: self.publishers)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        """A publisher says goodbye."""
        client = data.draw(st.sampled_from(sorted(self.publishers)))
        broker, _ = self.publishers.pop(client)
        self.feed_goodbye(broker, client)

    @rule(choices=st.lists(st.integers(0, 1000), max_size=12))
    def let_through(self, choices: list[int]) -> None:
        """Some messages arrive, of whichever links."""
        for network in self.networks:
            for choice in choices:
                waiting = network.waiting()
                if waiting:
                    network.step(waiting[choice % len(waiting)])

    @rule(choice=st.integers(0, 1000))
    def expire(self, choice: int) -> None:
        """A timer runs out in each network."""
        for network in self.networks:
            timers = sorted(network.timers)
            if timers:
                network.expire(timers[choice % len(timers)])

    @rule(choice=st.integers(0, 1000))
    def check(self, choice: int) -> None:
        """The network is looked at in the middle of its life too."""
        self.settle(choice)

    def settle(self, choice: int) -> None:
        """Once quiet, every event reaches exactly the subscribers that match, once, covering on or off."""
        for network in self.networks:
            network.settle(lambda count: (choice * 7919) % count)
        for broker, ads in self.publishers.values():
            for number in sorted(frozenset().union(*ads)):
                expected = sorted(
                    {
                        (where, client, number)
                        for client, held in self.subscriptions.items()
                        for wanted, where in held.items()
                        if number in wanted
                    }
                )
                for network in self.networks:
                    assert network.publish(broker, number) == expected

    @invariant()
    def held_back_is_covered(self) -> None:
        """An entry that was not sent is covered by one that was, to the same neighbour."""
        for network in getattr(self, "networks", ()):
            for broker in network.brokers:
                for table, book in (
                    (broker.router.out_ads(), network.interests.ad_above),
                    (broker.router.out_subs(), network.interests.sub_above),
                ):
                    sent = {(interest, bit) for interest, bit, flag in table if flag}
                    for interest, bit, flag in table:
                        above = book[interest]
                        assert flag or (above and any((one, bit) in sent for one in above.all()))

    def teardown(self) -> None:
        """When everybody has gone and every timer has fired, no table keeps anything."""
        if not hasattr(self, "networks"):
            return
        self.settle(0)
        for client in list(self.away):
            ads = self.away.pop(client)
            self.publishers[client] = (0, ads)
            self.feed_arrival(0, client, ads)
        for client, (broker, _) in self.publishers.items():
            self.feed_goodbye(broker, client)
        for client, held in self.subscriptions.items():
            for wanted, broker in held.items():
                self.feed_unsubscription(broker, client, wanted)
        for network in self.networks:
            network.settle()
            while network.timers:
                network.expire(min(network.timers))
                network.settle()
            for left in network.brokers:
                assert left.router.is_empty()
                assert not left.stays
                assert not left.enrolled


TestRestlessNetwork = RestlessNetwork.TestCase
TestRestlessNetwork.settings = settings(
    max_examples=250, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
