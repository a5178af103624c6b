"""Tasks on quenching, absent sources, scaling, queues and advice: one world each, counted at its links."""

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
from sojourn.studies.architectures.informed import informed_choice
from sojourn.studies.architectures.spec import Run
from sojourn.studies.runner import Row


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


def quench(run: Run) -> Row:
    """Sources beside one broker, subscriptions that change: bytes on the sources' links, and their work."""
    streams = Streams(run.seed)
    world = make_world(run, streams)
    workload = run.workload
    subscribers = Subscribers(world, workload, run.subscriptions, streams)
    for source in range(run.sources):
        world.add_source(EventSource(SourceRules(quench=run.quench)), 0)
        world.connect_source(source)
    world.settle()
    first = sum(world.bytes[kind] for kind in ("quench", "source_control"))
    load, changes = streams.get("load"), streams.get("churn")
    unmatched = 0
    for number in range(run.events):
        for _ in range(int(changes.poisson(run.churn))):
            subscribers.replace_one()
        world.settle()
        for source in range(run.sources):
            event = draw_event(workload, load, f"s{source}", number)
            unmatched += not subscribers.want(event)
            world.generate(source, event, workload.event_bytes)
        world.settle()
    events = run.events * run.sources
    told = sum(world.bytes[kind] for kind in ("quench", "source_control"))
    work = sum(core.filter.comparisons for core in world.sources)
    return {
        "unmatched_share": unmatched / events,
        "bytes_per_event": (world.bytes["published"] + told - first) / events,
        "update_bytes_per_event": (told - first) / events,
        "first_bytes_per_source": first / run.sources,
        "comparisons_per_event": work / events,
        "sent_share": world.hops["published"] / events,
        "alternatives": float(np.mean([core.filter.size for core in world.sources])),
        "broker_events_share": world.brokers[0].handled / events,
    }


def offline(run: Run) -> Row:
    """A source that is away while subscriptions change: which interesting events its buffer kept."""
    streams = Streams(run.seed)
    row: Row = {}
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
        wanted = {key for key, (_, event) in world.generated.items() if subscribers.want(event)}
        row["interesting"] = len(wanted)
        row[f"lost_{discarding}"] = len(wanted - world.received[0])
    return row


def scaling(run: Run) -> Row:
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
    owed = sum(each.matches(event) for _, event in world.generated.values() for each in subscribers.filters)
    compared = [broker.compared / run.events for broker in world.brokers]
    local = [len(broker.router.local_subs) for broker in world.brokers]
    return {
        "compared_mean": float(np.mean(compared)),
        "compared_max": max(compared),
        "local_matching": float(
            np.mean([len_ * b.handled for len_, b in zip(local, world.brokers, strict=True)])
        )
        / run.events,
        "event_hops": world.hops["event"] / run.events,
        "interest_hops": world.hops["interest"] / run.subscriptions,
        "entries_mean": float(np.mean([broker.entries for broker in world.brokers])),
        "entries_max": max(broker.entries for broker in world.brokers),
        "matches_per_event": owed / run.events,
        "lost": owed - len(world.shown),
    }


def queues(run: Run) -> Row:
    """A policy over random streams: is the rest what an informed reader would keep, and how much is sent."""
    policy = parameters.QUEUE_POLICIES[run.policy]
    wrong, sent, everything = 0, 0, 0
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
        wrong += kept != informed_choice(policy, missed, now)
        sent += sum(item.size_bytes for item in kept)
        everything += sum(item.size_bytes for item in missed)
    return {
        "wrong": wrong,
        "streams": run.streams,
        "bytes_sent": sent / run.streams,
        "share_sent": sent / everything,
    }


def advice(run: Run) -> Row:
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
    unmatched = matches = 0
    for number in range(run.events):
        for _ in range(int(changes.poisson(run.churn))):
            subscribers.replace_one()
        for _ in range(int(moves.poisson(run.moves))):
            subscribers.move_one()
        world.settle()
        source = int(load.integers(run.sources))
        event = draw_event(run.workload, load, f"s{source}", number)
        found = sum(each.matches(event) for each in subscribers.filters)
        matches += found
        unmatched += not found
        world.generate(source, event, run.workload.event_bytes)
        world.settle()
    between = {kind: world.bytes[kind] / run.events for kind in ("event", "interest", "handover")}
    at_sources = sum(world.bytes[kind] for kind in ("published", "quench", "source_control"))
    return {
        "source_bytes": at_sources / run.events,
        "broker_bytes": sum(between.values()),
        **{f"{kind}_bytes": value for kind, value in between.items()},
        "busiest_compared": max(broker.compared for broker in world.brokers) / run.events,
        "busiest_handled": max(broker.handled for broker in world.brokers) / run.events,
        "entries_max": max(broker.entries for broker in world.brokers),
        "unmatched_share": unmatched / run.events,
        "match_share": matches / run.events / run.subscriptions,
    }
