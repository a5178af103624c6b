"""Runs the cores of `edge/` as one world from one seed: brokers, sources, displayers, links that fail.

The driver decides nothing: it feeds facts, carries out effects, and counts what went over which link.

- Links between brokers are FIFO and reliable: what is sent over a link that is down waits and goes when it is
  up again. A broker that is down keeps its state; what reaches it waits, and its displayers lose their
  connections. That is what durable stores and resent frames amount to.
- A source's events on their way to a broker may be lost (`loss`), each copy on its own; nothing else is.
- Between a broker and a client messages take a varying time but keep their order. What is on the way to a
  displayer when its connection ends does not arrive.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sojourn.edge import displayer as displaying
from sojourn.edge import source as sourcing
from sojourn.edge.broker import (
    BrokerRules,
    DisplayerArrived,
    DisplayerLost,
    Drop,
    EventBroker,
    Fact,
    Received,
    SourceArrived,
    SourceAsked,
    SourceLeft,
    SourcePublished,
    ToBroker,
    ToDisplayer,
    ToSource,
)
from sojourn.edge.connections import Fetch, Handed
from sojourn.edge.custody import CustodyRules
from sojourn.edge.displayer import EventDisplayer
from sojourn.edge.queues import Queued
from sojourn.edge.source import EventSource
from sojourn.errors import SojournError
from sojourn.interest.advertisements import Advertisement
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.routing.architectures import routers_for
from sojourn.routing.filter_interests import FilterInterests
from sojourn.routing.messages import Message, Publish, Subscribe, Unsubscribe
from sojourn.sim.clock import Clock

HEADER_BYTES = 24
ID_BYTES = 12
"""A source and a sequence number."""


class EdgeWorldError(SojournError):
    """A world of edge brokers cannot be built as asked."""


class Links(NamedTuple):
    """How long messages take, and how often a source's are lost."""

    broker_s: float = 0.01
    client_s: float = 0.02
    jitter_s: float = 0.0
    """Up to this much more between a broker and a client, drawn for each message."""
    loss: float = 0.0


class Shown(NamedTuple):
    """One event shown to one user."""

    client: int
    source: str
    sequence: int
    time_s: float
    broker: int


class EdgeWorld:
    """Brokers with everything around them, and the clock."""

    def __init__(
        self,
        graph: Sequence[Sequence[int]],
        architecture: str,
        *,
        stream: np.random.Generator,
        rules: BrokerRules | None = None,
        links: Links | None = None,
        advertises: Advertisement | None = None,
        replicas: bool = False,
    ) -> None:
        self.clock = Clock()
        self.interests = FilterInterests()
        self._stream = stream
        self._links = links or Links()
        self._ad = None if advertises is None else self.interests.advertisement(advertises)
        filter_of = self.interests.subs.__getitem__
        if replicas:
            # Brokers that know nothing of each other: one plan each.
            plans = [routers_for("central", [()], self.interests) for _ in graph]
            routers = [plan.routers[0] for plan in plans]
            hops = None
            alone = CustodyRules(asks_others=False)
            rules = (rules or BrokerRules())._replace(custody=alone)
        else:
            plan = routers_for(architecture, graph, self.interests)
            routers, hops = plan.routers, plan.overlay.next_hop
        self.brokers = [
            EventBroker(number, router, rules, next_hop=hops, filter_of=filter_of)
            for number, router in enumerate(routers)
        ]
        self._down: set[int] = set()
        self._inbox: dict[int, deque[Fact]] = {}
        self._cut: dict[tuple[int, int], deque[Message | Fetch | Handed]] = {}
        """By link that is down, both ways: what waits to go over it."""
        self.sources: list[EventSource] = []
        self._source_at: list[tuple[int, ...]] = []
        self.displayers: list[EventDisplayer] = []
        self._last_arrival: dict[tuple[str, int, int], float] = {}
        self.generated: dict[tuple[str, int], tuple[float, Event]] = {}
        self.received: dict[int, set[tuple[str, int]]] = {number: set() for number in range(len(routers))}
        """By broker: the events that reached it from sources."""
        self.shown: list[Shown] = []
        self.drops: list[Drop] = []
        self.discards: Counter[str] = Counter()
        self.hops: Counter[str] = Counter()
        """Messages between brokers by kind."""
        self.bytes: Counter[str] = Counter()
        """Bytes by kind: between brokers, and over sources' and displayers' links."""

    # Setting up -------------------------------------------------------------------------------------

    def subscription(self, wanted: Filter) -> int:
        """The number of a subscription."""
        return self.interests.subscription(wanted)

    def add_source(self, core: EventSource, *brokers: int) -> int:
        """Put a source beside one broker, or several replicas; it is not connected yet."""
        self.sources.append(core)
        self._source_at.append(brokers)
        return len(self.sources) - 1

    def add_displayer(self, core: EventDisplayer) -> int:
        """Take in a displayer; it is not connected yet."""
        self.displayers.append(core)
        return len(self.displayers) - 1

    # Time -------------------------------------------------------------------------------------------

    def run_until(self, time_s: float) -> None:
        """Let everything happen that is due before a time."""
        self.clock.run_until(time_s)

    def settle(self, limit_s: float = 1e6) -> None:
        """Let everything happen that is under way."""
        self.clock.run(self.clock.now + limit_s)
        if self.clock.heap:
            raise EdgeWorldError(f"The world does not come to rest within {limit_s:g} s; look for a loop.")

    # What the world does to them --------------------------------------------------------------------

    def generate(self, source: int, event: Event, size_bytes: int) -> None:
        """The variable a source watches has changed."""
        self.generated[event.source, event.sequence] = self.clock.now, event
        self._source(source, sourcing.Generated(event, size_bytes))

    def connect_source(self, source: int) -> None:
        """A source reaches its brokers."""
        for broker in self._source_at[source]:
            self._from_source(source, broker, SourceArrived(source, self._ad))
        self._source(source, sourcing.Connected())

    def announce_source(self, source: int) -> None:
        """A source's brokers learn what it is going to publish, before it connects."""
        for broker in self._source_at[source]:
            self._from_source(source, broker, SourceArrived(source, self._ad))

    def disconnect_source(self, source: int) -> None:
        """A source loses its brokers."""
        self.sources[source].handle(sourcing.Disconnected(), self.clock.now)
        for broker in self._source_at[source]:
            self._from_source(source, broker, SourceLeft(source))

    def connect(self, client: int, broker: int) -> bool:
        """A displayer tries to reach a broker; says whether it is up."""
        if broker in self._down:
            return False
        for effect in self.displayers[client].handle(displaying.Connected(broker), self.clock.now):
            assert isinstance(effect, displaying.Upload)
            self.bytes["upload"] += HEADER_BYTES + ID_BYTES * (
                len(effect.subscriptions) + 3 * len(effect.log)
            )
            fact = DisplayerArrived(client, effect.number, effect.subscriptions, effect.log, effect.policy)
            self._from_displayer(client, broker, fact)
        return True

    def disconnect(self, client: int, broker: int, notice_s: float = 0.0) -> None:
        """A displayer's connection ends; the broker notices after a while."""
        number = self.displayers[client].number_at(broker)
        if number is None:
            return
        self.displayers[client].handle(displaying.Disconnected(broker), self.clock.now)
        self._from_displayer(client, broker, DisplayerLost(client, number), notice_s)

    def tell_broker(self, client: int, broker: int, fact: Fact) -> None:
        """A displayer says something to its broker, such as that it wants something else."""
        self._from_displayer(client, broker, fact)

    def take_down(self, broker: int) -> None:
        """A broker goes down, with its state on disk."""
        self._down.add(broker)
        self._inbox.setdefault(broker, deque())
        for client, core in enumerate(self.displayers):
            if core.number_at(broker) is not None:
                self.disconnect(client, broker)

    def bring_up(self, broker: int) -> None:
        """A broker comes back and reads what waited for it."""
        self._down.discard(broker)
        for fact in self._inbox.pop(broker, ()):
            self._feed(broker, fact)

    def is_up(self, broker: int) -> bool:
        """Whether a broker can be reached."""
        return broker not in self._down

    def cut(self, one: int, other: int) -> None:
        """A link between two brokers goes down."""
        self._cut.setdefault((one, other), deque())
        self._cut.setdefault((other, one), deque())

    def mend(self, one: int, other: int) -> None:
        """A link comes back, and what waited goes over it."""
        for ends in ((one, other), (other, one)):
            for message in self._cut.pop(ends, ()):
                self._send(*ends, message)

    # Carrying out -----------------------------------------------------------------------------------

    def _client_delay(self) -> float:
        jitter = self._links.jitter_s
        return self._links.client_s + (jitter * float(self._stream.random()) if jitter else 0.0)

    def _from_source(self, source: int, broker: int, fact: Fact) -> None:
        self._in_order(("source", source, broker), 0.0, self._reach, (broker, fact))

    def _from_displayer(self, client: int, broker: int, fact: Fact, later_s: float = 0.0) -> None:
        self._in_order(("displayer", client, broker), later_s, self._reach, (broker, fact))

    def _in_order(
        self, way: tuple[str, int, int], later_s: float, what: Callable[[Any], None], thing: object
    ) -> None:
        """Let something arrive over a client's link after what was sent before it, however long it takes."""
        due = max(self.clock.now + self._client_delay() + later_s, self._last_arrival.get(way, 0.0))
        self._last_arrival[way] = due
        self.clock.plan(due, what, thing)

    def _reach(self, thing: tuple[int, Fact]) -> None:
        broker, fact = thing
        if broker in self._down:
            self._inbox[broker].append(fact)
        else:
            self._feed(broker, fact)

    def _feed(self, broker: int, fact: Fact) -> None:
        if isinstance(fact, SourcePublished):
            self.received[broker].add((fact.item.event.source, fact.item.event.sequence))
        for effect in self.brokers[broker].handle(fact, self.clock.now):
            match effect:
                case ToBroker(neighbour, message):
                    self._send(broker, neighbour, message)
                case ToDisplayer(client, what):
                    self._in_order(("down", client, broker), 0.0, self._display, (client, broker, what))
                case ToSource(source, update):
                    self.bytes["quench"] += update.size_bytes
                    self.hops["quench"] += 1
                    self.clock.plan(self.clock.now + self._links.client_s, self._quench, (source, update))
                case Drop():
                    self.drops.append(effect)

    def _send(self, sender: int, receiver: int, message: Message | Fetch | Handed) -> None:
        waiting = self._cut.get((sender, receiver))
        if waiting is not None:
            waiting.append(message)
            return
        kind, size = self._kind_and_size(message)
        self.hops[kind] += 1
        self.bytes[kind] += size
        self.clock.plan(
            self.clock.now + self._links.broker_s, self._reach, (receiver, Received(message, sender))
        )

    def _kind_and_size(self, message: Message | Fetch | Handed) -> tuple[str, int]:
        if isinstance(message, Publish):
            return "event", HEADER_BYTES + message.size
        if isinstance(message, Fetch):
            return "handover", HEADER_BYTES + ID_BYTES * len(message.received)
        if isinstance(message, Handed):
            items = sum(item.size_bytes for item in message.items)
            return "handover", HEADER_BYTES + items + ID_BYTES * len(message.delivered)
        if isinstance(message, Subscribe | Unsubscribe):
            text = len(str(self.interests.subs[message.interest]))
            return "interest", HEADER_BYTES + text
        return "interest", HEADER_BYTES

    def _quench(self, thing: tuple[int, Any]) -> None:
        source, update = thing
        if self.sources[source].connected:
            self._source(source, sourcing.Quenched(update))

    def _source(self, source: int, fact: sourcing.Fact) -> None:
        for effect in self.sources[source].handle(fact, self.clock.now):
            match effect:
                case sourcing.Publish(event, size):
                    self._publish(source, event, size)
                case sourcing.AskQuench(version, _, _):
                    self.bytes["source_control"] += HEADER_BYTES
                    for broker in self._source_at[source]:
                        self._from_source(source, broker, SourceAsked(source, version))
                case sourcing.Discard(_, reason):
                    self.discards[reason] += 1

    def _publish(self, source: int, event: Event, size_bytes: int) -> None:
        generated_s = self.generated[event.source, event.sequence][0]
        for broker in self._source_at[source]:
            self.bytes["published"] += HEADER_BYTES + size_bytes
            self.hops["published"] += 1
            if self._links.loss and self._stream.random() < self._links.loss:
                continue
            self._from_source(source, broker, SourcePublished(Queued(event, generated_s, size_bytes)))

    def _display(self, thing: tuple[int, int, Any]) -> None:
        client, broker, what = thing
        for effect in self.displayers[client].handle(displaying.Arrived(broker, what), self.clock.now):
            assert isinstance(effect, displaying.Show)
            item = effect.item
            self.bytes["shown"] += HEADER_BYTES + item.size_bytes
            self.shown.append(
                Shown(client, item.event.source, item.event.sequence, self.clock.now, effect.broker)
            )
