"""Tasks on quenching, absent sources, scaling, queues and advice: one world each, counted at its links.

What is told of each is facts (`recording.py` lists them); what they come to is not decided here.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from sojourn.edge.broker import BrokerRules, Subscribed, Unsubscribed
from sojourn.edge.displayer import EventDisplayer
from sojourn.edge.queues import PolicyQueue, Queued
from sojourn.edge.source import EventSource, SourceRules
from sojourn.interest.filters import Filter
from sojourn.sim.edge.workload import ADVERTISEMENT, Workload, draw_event, draw_filter
from sojourn.sim.edge.world import EdgeWorld, Links
from sojourn.sim.streams import Streams
from sojourn.studies.architectures import parameters
from sojourn.studies.architectures.queue_oracle import oracle_choice
from sojourn.studies.architectures.spec import Fact, Run

TO_SOURCES = ("quench", "source_control")
"""Kinds of messages that tell sources what is wanted."""


def random_graph(brokers: int, stream: np.random.Generator) -> list[list[int]]:
    """A connected graph: a random tree, and half as many links again as there are brokers."""
    graph: list[set[int]] = [set() for _ in range(brokers)]
    pairs = [(broker, int(stream.integers(broker))) for broker in range(1, brokers)]
    for _ in range(brokers // 2 if brokers > 2 else 0):
        one, other = stream.choice(brokers, 2, replace=False)
        pairs.append((int(one), int(other)))
    for one, other in pairs:
        graph[one].add(other)
        graph[other].add(one)
    return [sorted(near) for near in graph]


def make_world(run: Run, streams: Streams) -> EdgeWorld:
    """Brokers as the run asks for them, with nobody connected yet."""
    return EdgeWorld(
        random_graph(run.brokers, streams.get("graph")),
        run.architecture,
        stream=streams.get("links"),
        rules=BrokerRules(
            quench=run.quench, narrow_after=run.narrow_after, alternatives_max=run.alternatives_max
        ),
        links=Links(),
        advertises=ADVERTISEMENT,
    )


class Subscribers:
    """Displayers with one subscription each, which they can replace, and a broker they can leave."""

    def __init__(self, world: EdgeWorld, workload: Workload, count: int, streams: Streams) -> None:
        self.world = world
        self.workload = workload
        # Apart from each other, so that every architecture sees the same subscriptions.
        self._stream, self._places = streams.get("subscriptions"), streams.get("places")
        self.filters: list[Filter] = []
        self.at: list[int] = []
        for client in range(count):
            self.filters.append(draw_filter(workload, self._stream))
            number = world.subscription(self.filters[client])
            world.add_displayer(EventDisplayer((number,)))
            self.at.append(int(self._places.integers(len(world.brokers))))
            world.connect(client, self.at[client])

    def replace_one(self) -> None:
        """Somebody wants something else."""
        client = int(self._stream.integers(len(self.filters)))
        old = self.world.subscription(self.filters[client])
        self.filters[client] = draw_filter(self.workload, self._stream)
        new = self.world.subscription(self.filters[client])
        if new == old:
            return
        self.world.displayers[client].subscriptions = (new,)
        self.world.tell_broker(client, self.at[client], Subscribed(client, new))
        self.world.tell_broker(client, self.at[client], Unsubscribed(client, old))

    def move_one(self) -> None:
        """Somebody goes to another broker."""
        client = int(self._places.integers(len(self.filters)))
        self.world.disconnect(client, self.at[client])
        self.at[client] = int(self._places.integers(len(self.world.brokers)))
        self.world.connect(client, self.at[client])

    def want(self, event: Any) -> bool:
        """Whether anybody wants an event now."""
        return any(each.matches(event) for each in self.filters)


def quench(run: Run) -> Iterator[Fact]:
    """Sources beside one broker, subscriptions that change: bytes on the sources' links, and their work."""
    streams = Streams(run.seed)
    world = make_world(run, streams)
    workload = run.workload
    subscribers = Subscribers(world, workload, run.subscriptions, streams)
    for source in range(run.sources):
        world.add_source(EventSource(SourceRules(quench=run.quench)), 0)
        world.connect_source(source)
    world.settle()
    for kind in TO_SOURCES:
        yield "first_bytes", kind, 0, world.bytes[kind]
    load, changes = streams.get("load"), streams.get("churn")
    for number in range(run.events):
        for _ in range(int(changes.poisson(run.churn))):
            subscribers.replace_one()
        world.settle()
        for source in range(run.sources):
            event = draw_event(workload, load, f"s{source}", number)
            yield "wanted", "", number * run.sources + source, subscribers.want(event)
            world.generate(source, event, workload.event_bytes)
        world.settle()
    for kind in ("published", *TO_SOURCES):
        yield "bytes", kind, 0, world.bytes[kind]
    yield "sent", "", 0, world.hops["published"]
    for source, core in enumerate(world.sources):
        yield "comparisons", "", source, core.filter.comparisons
        yield "alternatives", "", source, core.filter.size
    for number, broker in enumerate(world.brokers):
        yield "handled", "", number, broker.handled


def offline(run: Run) -> Iterator[Fact]:
    """A source that is away while subscriptions change: which interesting events its buffer kept."""
    streams = Streams(run.seed)
    for discarding in ("oldest", "quench"):
        world = make_world(run, Streams(run.seed))
        subscribers = Subscribers(world, run.workload, run.subscriptions, Streams(run.seed))
        rules = SourceRules(
            quench=True,
            discarding=discarding,
            buffer_events_max=run.buffer_events,
        )
        world.add_source(EventSource(rules), 0)
        world.connect_source(0)
        world.settle()
        world.disconnect_source(0)
        for _ in range(round(run.new_share * run.subscriptions)):
            subscribers.replace_one()
        load = streams.fresh("load")
        for number in range(run.events):
            event = draw_event(run.workload, load, "s0", number)
            world.generate(0, event, run.workload.event_bytes)
        world.settle()
        world.connect_source(0)
        world.settle()
        for at, (key, (_, event)) in enumerate(world.generated.items()):
            if subscribers.want(event):
                yield "missed", discarding, at, key not in world.received[0]


def scaling(run: Run) -> Iterator[Fact]:
    """Subscriptions spread over brokers: who matches what, what goes between brokers, what each must know."""
    streams = Streams(run.seed)
    world = make_world(run, streams)
    for source in range(run.brokers):
        world.add_source(EventSource(), source)
        world.connect_source(source)
    world.settle()
    subscribers = Subscribers(world, run.workload, run.subscriptions, streams)
    world.settle()
    load = streams.get("load")
    for number in range(run.events):
        source = int(load.integers(run.brokers))
        world.generate(source, draw_event(run.workload, load, f"s{source}", number), run.workload.event_bytes)
        world.settle()
    shown = Counter((each.source, each.sequence) for each in world.shown)
    for at, (key, (_, event)) in enumerate(world.generated.items()):
        yield "wanted", "", at, sum(each.matches(event) for each in subscribers.filters)
        yield "shown", "", at, shown[key]
    for kind in ("event", "interest"):
        yield "hops", kind, 0, world.hops[kind]
    for at, broker in enumerate(world.brokers):
        yield "compared", "", at, broker.compared
        yield "compared_own", "", at, len(broker.router.local_subs) * broker.handled
        yield "entries", "", at, broker.entries


def queues(run: Run) -> Iterator[Fact]:
    """A policy over random streams: is the rest what an informed reader would keep, and how much is sent."""
    policy = parameters.QUEUE_POLICIES[run.policy]
    for stream_number in range(run.streams):
        draw = Streams(run.seed).fresh("queue", stream_number)
        queue = PolicyQueue(policy)
        missed = []
        now = 0.0
        for number in range(run.events):
            now += float(draw.exponential(2.0))
            event = draw_event(run.workload, draw, "s", number)
            # Some readings took a detour and are older than others that came before.
            age = float(draw.exponential(20.0)) if draw.random() < 0.2 else 0.0
            item = Queued(event, now - age, int(draw.integers(50, 350)))
            missed.append(item)
            queue.add(item, now)
        kept, _ = queue.drain(now)
        yield "wrong", "", stream_number, kept != oracle_choice(policy, missed, now)
        yield "kept_bytes", "", stream_number, sum(item.size_bytes for item in kept)
        yield "missed_bytes", "", stream_number, sum(item.size_bytes for item in missed)


def advice(run: Run) -> Iterator[Fact]:
    """One situation under one architecture: what everything costs for an event."""
    streams = Streams(run.seed)
    world = make_world(run, streams)
    for source in range(run.sources):
        world.add_source(EventSource(SourceRules(quench=run.quench)), source % run.brokers)
    for source in range(run.sources):
        # Announced before anybody subscribes, and connected for good when the tables are built.
        world.announce_source(source)
    world.settle()
    subscribers = Subscribers(world, run.workload, run.subscriptions, streams)
    world.settle()
    for source in range(run.sources):
        world.connect_source(source)
    world.settle()
    world.bytes.clear()
    for broker in world.brokers:
        broker.handled = broker.compared = 0
    load, changes, moves = streams.get("load"), streams.get("churn"), streams.get("moves")
    for number in range(run.events):
        for _ in range(int(changes.poisson(run.churn))):
            subscribers.replace_one()
        for _ in range(int(moves.poisson(run.moves))):
            subscribers.move_one()
        world.settle()
        source = int(load.integers(run.sources))
        event = draw_event(run.workload, load, f"s{source}", number)
        yield "wanted", "", number, sum(each.matches(event) for each in subscribers.filters)
        world.generate(source, event, run.workload.event_bytes)
        world.settle()
    for kind in ("published", *TO_SOURCES, "event", "interest", "handover"):
        yield "bytes", kind, 0, world.bytes[kind]
    for at, broker in enumerate(world.brokers):
        yield "compared", "", at, broker.compared
        yield "handled", "", at, broker.handled
        yield "entries", "", at, broker.entries
