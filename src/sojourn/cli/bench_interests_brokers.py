"""The brokers that `sojourn bench interests` measures: six in a tree, in one process, without a socket.

`Six` has the routing cores alone, each with its own book of interests; a subscription goes from one to the
next as text, as it does on a link, and what each broker spends on reading and routing it is noted. `Hall` has
the whole pure part of live brokers, from the packets of a client to the frames on the links.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from mqtt5 import ConnectPacket, SubscribePacket

from sojourn.broker.names import LiveInterests, Names
from sojourn.broker.network import Network
from sojourn.broker.settings import RoutingConfig, Settings
from sojourn.interest.algebra import Looks
from sojourn.interest.filters import Filter
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.policies import Policy
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.core import Core
from sojourn.mqtt.limits import Limits
from sojourn.routing.messages import Advertise, Subscribe, Unsubscribe
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay

LINKS = ((0, 1), (1, 2), (1, 3), (3, 4), (3, 5))
COUNT = 6
HOME = 0
"""Where clients subscribe: a leaf of the tree."""
BROKER_ITSELF = 0


class Counting(LiveInterests):
    """Interests that count how often two are compared for covering."""

    def __init__(self, *, covering: bool = True) -> None:
        self.questions = 0
        super().__init__(covering=covering)

    def sub_covers(self, wide: int, narrow: int, looks: Looks) -> bool:
        """Whether a subscription wants all that another does."""
        self.questions += 1
        return super().sub_covers(wide, narrow, looks)


class Spent:
    """What brokers spent, a figure a subscription and broker, in milliseconds."""

    def __init__(self) -> None:
        self.clock_ms: list[list[float]] = [[] for _ in range(COUNT)]
        self.processor_ms: list[list[float]] = [[] for _ in range(COUNT)]


class Six:
    """Six routing cores in a tree, and what is on its way between them."""

    def __init__(self, *, covering: bool) -> None:
        near: list[list[int]] = [[] for _ in range(COUNT)]
        for one, other in LINKS:
            near[one].append(other)
            near[other].append(one)
        overlay = Overlay(near)
        self.interests = [Counting(covering=covering) for _ in range(COUNT)]
        self.names = [Names(interests) for interests in self.interests]
        self.brokers = [
            Broker(number, Neighbours(overlay.neighbours[number]), interests, Policy(), overlay.next_hop)
            for number, interests in enumerate(self.interests)
        ]
        self._links: deque[tuple[int, int, Any]] = deque()
        self.sent = 0
        """Subscriptions and withdrawals that went over a link."""
        for number, broker in enumerate(self.brokers):
            broker.router.client_advertises(BROKER_ITSELF, self.interests[number].anything)
            self._collect(number)
        self._settle(None)

    @property
    def questions(self) -> int:
        """How often two subscriptions were compared for covering."""
        return sum(interests.questions for interests in self.interests)

    def fill(self, client: int, wanted: Filter) -> None:
        """A client subscribes; brokers tell each other the filter itself, which saves reading it again."""
        number = self.interests[HOME].subscription(wanted)
        self.brokers[HOME].handle(facts.ClientSubscribed(client, number), 0.0)
        self._collect(HOME)
        self._settle(None)

    def subscribe(self, client: int, text: str, spent: Spent) -> None:
        """A client subscribes, and every broker spends on it what a live one does."""
        start, start_cpu = time.perf_counter_ns(), time.thread_time_ns()
        number = self.names[HOME].subscription_number(text)
        self.brokers[HOME].handle(facts.ClientSubscribed(client, number), 0.0)
        self._collect(HOME, as_text=True)
        _note(spent, HOME, start, start_cpu)
        self._settle(spent)

    def unsubscribe(self, client: int, wanted: Filter) -> None:
        """A client withdraws a subscription."""
        number = self.interests[HOME].subscription(wanted)
        self.brokers[HOME].handle(facts.ClientUnsubscribed(client, number), 0.0)
        self._collect(HOME)
        self._settle(None)

    def _collect(self, broker: int, *, as_text: bool = False) -> None:
        """Put what a broker sends on the links, named as its neighbours know it."""
        effects = self.brokers[broker].effects
        for mask, message in effects.sends:
            said: str | Filter | None = None
            if not isinstance(message, (Advertise, Subscribe, Unsubscribe)):
                raise TypeError(f"nobody here moves or publishes, so {message} is not due")
            if isinstance(message, Advertise):
                pass  # of anything at all, which every broker numbers for itself
            elif as_text:
                said = self.names[broker].subscription_text(message.interest)
            else:
                said = self.interests[broker].subs[message.interest]
            for neighbour in self.brokers[broker].router.neighbours.named(mask):
                self._links.append((broker, neighbour, (type(message), said)))
        effects.clear()

    def _settle(self, spent: Spent | None) -> None:
        while self._links:
            sender, receiver, (kind, said) = self._links.popleft()
            self.sent += kind in (Subscribe, Unsubscribe)
            start, start_cpu = time.perf_counter_ns(), time.thread_time_ns()
            if said is None:
                number = self.interests[receiver].anything
            elif isinstance(said, str):
                number = self.names[receiver].subscription_number(said)
            else:
                number = self.interests[receiver].subscription(said)
            self.brokers[receiver].handle(facts.Received(kind(number), sender), 0.0)
            self._collect(receiver, as_text=isinstance(said, str))
            if spent is not None:
                _note(spent, receiver, start, start_cpu)


def _note(spent: Spent, broker: int, start: int, start_cpu: int) -> None:
    spent.processor_ms[broker].append((time.thread_time_ns() - start_cpu) / 1e6)
    spent.clock_ms[broker].append((time.perf_counter_ns() - start) / 1e6)


class Hall:
    """Six whole brokers but for their sockets, which clients connect to and send packets."""

    def __init__(self, *, covering: bool = True) -> None:
        names = tuple(f"B{number}" for number in range(COUNT))
        links = tuple((names[one], names[other]) for one, other in LINKS)
        self.now = 1_000.0
        self._cores = {name: Core(name, Limits(), shared_subscriptions=False) for name in names}
        self._networks: dict[str, Network] = {}
        for name, core in self._cores.items():
            routing = RoutingConfig(covering=covering)
            settings = Settings(name=name, brokers=names, links=links, routing=routing)
            self._networks[name] = Network(settings, core, "life")
        self._ways = [way for one, other in links for way in ((one, other), (other, one))]
        for end, far in self._ways:
            self._networks[end].links.channels[far].opened()
        for end, far in self._ways:
            channel = self._networks[far].links.channels[end]
            self._arrive(end, far, self._networks[end].links.channels[far].greet())
            channel.agreed()
            self._networks[far].link_changed(end, self.now, up=True)
        self._home = names[HOME]
        self._connections = 0
        self.settle()

    def connect(self, client_id: str) -> int:
        """Let a client connect at the home broker; its session outlives its connection."""
        self.now += 0.01
        self._connections += 1
        core = self._cores[self._home]
        core.opened(self._connections, "bench", client_id, self.now)
        self._feed(ConnectPacket(client_id, session_expiry_interval=600, keep_alive=0).write())
        core.effects.knocks.clear()
        self._networks[self._home].arrivals.admit(self._connections, Admission(), self.now)
        self._report(self._home)
        self.settle()
        return self._connections

    def send(self, connection: int, packets: list[SubscribePacket]) -> bool:
        """Let a client send packets, all at once; say whether the broker has an answer to each of them."""
        core = self._cores[self._home]
        core.effects.subacks.clear()
        core.received(connection, b"".join(packet.write() for packet in packets), self.now)
        self._report(self._home)
        while core.effects.unread:
            core.received(core.effects.unread.pop(0), b"", self.now)
            self._report(self._home)
        return len(core.effects.subacks) >= len(packets)

    def settle(self) -> None:
        """Let links carry until all is said."""
        while sum(self._carry(end, far) for end, far in self._ways):
            pass

    def _feed(self, data: bytes) -> None:
        self._cores[self._home].received(self._connections, data, self.now)

    def _carry(self, end: str, far: str) -> bool:
        data = self._networks[end].links.channels[far].outgoing()
        if data:
            self._arrive(end, far, data)
        return bool(data)

    def _arrive(self, end: str, far: str, data: bytes) -> None:
        network = self._networks[far]
        channel = network.links.channels[end]
        for position, body in channel.arrived(data):
            network.receive(network.links.wire.decode(body, self.now), end, self.now)
            channel.took(position)
            self._report(far)

    def _report(self, name: str) -> None:
        self._networks[name].clients.report(self.now)
