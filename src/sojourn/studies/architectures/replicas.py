"""Replicated brokers at random: large runs held to the three properties.

Each event of each source reaches or misses each broker on its own; the streams of the brokers reach the
displayers with delays of their own. All three filters see the same copies in the same order.
"""

from collections.abc import Iterator

from sojourn.edge.displayer import EventDisplayer
from sojourn.edge.filters import FILTER_NAMES, FilterName
from sojourn.edge.properties import violations
from sojourn.edge.source import EventSource
from sojourn.interest.filters import Filter
from sojourn.sim.edge.workload import draw_event, draw_filter
from sojourn.sim.edge.world import EdgeWorld, Links
from sojourn.sim.streams import Streams
from sojourn.studies.architectures.spec import Fact, Run

CLIENTS = 3
INTERVAL_S = 0.1
JITTER_S = 0.5
"""Delays vary by up to five events' time, so that copies of one event overtake others' by other brokers."""


class Replicated:
    """One run: a world in which displayers watch all brokers, one displayer a filter and interest."""

    def __init__(self, run: Run) -> None:
        streams = Streams(run.seed)
        self.world = world = EdgeWorld(
            [()] * run.brokers,
            "central",
            stream=streams.get("links"),
            links=Links(jitter_s=JITTER_S, loss=run.loss),
            replicas=True,
        )
        self.wanted: list[Filter] = []
        self.filters: list[FilterName] = []
        draws = streams.get("subscriptions")
        for _ in range(CLIENTS):
            wanted = draw_filter(run.workload, draws)
            for name in FILTER_NAMES:
                self.wanted.append(wanted)
                self.filters.append(name)
                client = world.add_displayer(EventDisplayer((world.subscription(wanted),), name))
                for broker in range(run.brokers):
                    world.connect(client, broker)
        for source in range(run.sources):
            world.add_source(EventSource(), *range(run.brokers))
            world.connect_source(source)
        world.settle()
        self.start_s = world.clock.now
        load = streams.get("load")
        for number in range(run.events):
            source = number % run.sources
            event = draw_event(run.workload, load, f"s{source}", number // run.sources)
            world.generate(source, event, run.workload.event_bytes)
            world.run_until(world.clock.now + INTERVAL_S / run.sources)
        world.settle()

    def shown(self, client: int) -> list[tuple[str, int]]:
        """What a displayer showed, in order."""
        return [(each.source, each.sequence) for each in self.world.shown if each.client == client]

    def matching(self, client: int) -> set[tuple[str, int]]:
        """What was published and matches."""
        wanted = self.wanted[client]
        return {key for key, (_, event) in self.world.generated.items() if wanted.matches(event)}

    def received(self) -> set[tuple[str, int]]:
        """What some broker received."""
        return set().union(*self.world.received.values())


def replicas(run: Run) -> Iterator[Fact]:
    """Which properties broke, and what each filter showed of what was published: displayer by displayer."""
    played = Replicated(run)
    union = played.received()
    for client, name in enumerate(played.filters):
        shown, matching = played.shown(client), played.matching(client)
        for promise, violation in violations(shown, matching, union & matching).items():
            yield f"not {promise}", name, client, violation is not None
        yield "matching", name, client, len(matching)
        yield "missed", name, client, len(matching.difference(shown))
        yield "doubled", name, client, len(shown) - len(set(shown))
        yield "dropped", name, client, played.world.displayers[client].filter.dropped
