"""What is counted in a run of roaming subscribers, and the result made of it.

Throughput counts messages that arrive in the measured time. Loss, duplication and latency are about the
events published in it, whenever they arrive. The time of a hand-off is what the subscriber sees: from its
request to the new broker until its first message from there (paper 001, section 5.1.3); `ready` is when
everything stored had been handed over. All hops of hand-off messages in the measured time are its cost.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn.mobility.facts import How, SubscriberArrived
from sojourn.routing.effects import Dropped, Ready
from sojourn.routing.messages import Forward, Kind, Message
from sojourn.sim.roaming.clients import Client
from sojourn.sim.roaming.trace import RoamingTrace
from sojourn.sim.roaming.workload import VALUES, Publication
from sojourn.sim.servers import Port, Site

if TYPE_CHECKING:
    from sojourn.sim.roaming.publishers import Publisher
    from sojourn.sim.roaming.world import RoamingWorld

SAMPLE_S = 5.0
BUCKET_S = 60.0


@dataclass(slots=True)
class BrokerResult:
    """One broker in the measured time."""

    name: str
    routed_per_s: float
    """Messages delivered to subscribers."""
    routed: int
    """The same, counted."""
    event_ms: float
    """Mean service time of an event."""
    events: int
    """How many events it handled."""
    event_s: float
    """How long all of them took."""
    present_s: float
    """How long subscribers were connected to it, added up."""
    handled: int
    """Messages of any kind that it worked off."""
    busy_s: float
    present: float
    """Mean number of connected subscribers."""
    utilisation: float
    queue_max: int
    queue_mean: float
    learnt: list[str]
    """Its neighbours in the learnt graph, at the end of the measured time."""


@dataclass(slots=True)
class Arrival:
    """A client that asked another broker to serve it, and what became of that."""

    client: int
    to: int
    asked_s: float
    came_from: int | None = None
    """Its broker before; None where it came back and was sent on to another one."""
    left_s: float | None = None
    move: int = 0
    first_s: float | None = None
    """When its first message came; told of hand-offs in the measured time."""
    ready_s: float | None = None
    """When everything had been handed over; likewise."""
    how: str | None = None


@dataclass(slots=True)
class RoamingResult:
    """A whole run."""

    duration_s: float
    published: int
    expected: int
    received: int
    """Messages that arrived in the measured time, duplicates included."""
    duplicates: int
    """How many of those the subscriber had got before."""
    unique: int
    """Owed deliveries that were made, whenever they arrived."""
    doubled: int
    """Owed deliveries that were made once more."""
    late: int
    """Owed deliveries that came for the first time after a younger event of their source."""
    latency_s: float
    """Mean time from publisher to subscriber, of events that came for the first time."""
    latency_all_s: float
    """The same, added up."""
    transferred: int
    """First-time deliveries that came by way of another broker's queue."""
    moves: int
    """Hand-offs in the measured time: the new broker is not the old one."""
    departures: int
    """Broken links in the measured time."""
    first_message_s: list[float]
    """By hand-off of the measured time: from the request to the first message."""
    ready_s: list[float]
    """By hand-off: from the request until all was handed over."""
    how: dict[str, int]
    """By way a subscriber came by its events (`facts.How`): how many arrivals in the measured time."""
    unprepared_by_minute: list[tuple[int, int]]
    """By minute of the run: hand-offs, and those of them that found no copy at their new broker."""
    hops: dict[str, int]
    bytes: dict[str, int]
    drops: dict[str, int]
    into_the_air: int
    """Messages sent to clients whose link was broken already."""
    passive_copies: float
    active_copies: float
    """Mean numbers of copies at all brokers together."""
    queued_bytes: float
    """Mean bytes in all queues together."""
    brokers: list[BrokerResult] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    """Those in the measured time."""
    samples: list[tuple[int, int, int]] = field(default_factory=list)
    """Every few seconds: passive copies, active copies, queued bytes."""
    redirects: int = 0
    stale_edges: int = 0
    """Entries of brokers' neighbour tables that nobody crossed for longer than the edge timeout."""
    drained: bool = True


class RoamingTally:
    """Counters of a world."""

    def __init__(self, world: "RoamingWorld") -> None:
        self.world = world
        self.trace = RoamingTrace(world) if world.recorder is not None else None
        brokers = world.topology.brokers
        self.begin_s, self.end_s = world.scenario.warmup_s, world.end_s
        self.published: list[tuple[float, int]] = []
        """(time, value) of every counted event."""
        self.received = self.duplicates = self.unique = self.doubled = self.late = self.transferred = 0
        self.latency_s = 0.0
        self.routed = [0] * brokers
        self.event_s = [0.0] * brokers
        self.events = [0] * brokers
        self.connected_s = [0.0] * brokers
        self.hops: Counter[int] = Counter()
        self.bytes: Counter[int] = Counter()
        self.drops: Counter[str] = Counter()
        self.how: Counter[str] = Counter()
        self.minutes: Counter[tuple[int, bool]] = Counter()
        self.first_message_s: list[float] = []
        self.ready_s: list[float] = []
        self.arrivals: list[Arrival] = []
        self._latest: dict[int, Arrival] = {}
        """By client, its latest arrival."""
        self.moves = self.departures = self.into_the_air = self.redirects = 0
        self.samples: list[tuple[int, int, int]] = []
        self.measuring = False
        self.loads: list[tuple[float, int, float]] = []
        self.learnt: list[list[str]] = []
        self.crossed: dict[frozenset[int], float] = {}
        """By pair of brokers: when a client last went from one to the other, as the brokers were told."""
        self.stale_edges = 0

    # The measured time -----------------------------------------------------------------------------

    def begin(self, _nothing: object) -> None:
        """Start counting."""
        self.measuring = True
        for site in self.world.sites:
            site.begin_measuring(self.world.clock.now)
        self._sample(None)

    def _sample(self, _nothing: object) -> None:
        passive = active = queued = 0
        for site in self.world.sites:
            counts = site.broker.subscribers.counts()
            passive += counts["passive"]
            active += counts["active"]
            queued += site.broker.subscribers.store.bytes
        self.samples.append((passive, active, queued))
        if self.world.clock.now + SAMPLE_S < self.end_s:
            self.world.clock.plan(self.world.clock.now + SAMPLE_S, self._sample)

    def end(self, _nothing: object) -> None:
        """Stop counting what happens; what was published goes on being followed."""
        self.measuring = False
        now = self.world.clock.now
        for client in self.world.clients:
            if client.broker >= 0:
                self._stayed(client, client.broker, now)
        names = self.world.topology.names
        for site in self.world.sites:
            site.note_queue(now)
            self.loads.append((site.busy_s, site.queue_max, site.queue_area))
            near = site.broker.subscribers.table.neighbours(now)
            oldest_s = now - self.world.scenario.edge_timeout_s
            self.stale_edges += sum(
                self.crossed.get(frozenset((site.number, other)), 0.0) < oldest_s for other in near
            )
            self.learnt.append(sorted(names[broker] for broker in near))

    def _stayed(self, client: Client, broker: int, now: float) -> None:
        since = max(client.connected_s, self.begin_s)
        self.connected_s[broker] += max(0.0, min(now, self.end_s) - since)

    # What happens ----------------------------------------------------------------------------------

    def note_published(self, publisher: "Publisher", publication: Publication) -> None:
        """A publisher sends an event."""
        now = self.world.clock.now
        publication.time_s = now
        publication.counted = self.measuring
        if self.measuring:
            self.published.append((now, publication.value))
        if self.trace is not None:
            self.trace.published(publisher, publication)

    def note_event(self, site: Site, work_s: float) -> None:
        """A broker handles an event."""
        if self.measuring:
            self.event_s[site.number] += work_s
            self.events[site.number] += 1

    def note_hops(self, site: Site, message: Message, ports: tuple[Port, ...], size: int) -> None:
        """A broker sends a message to neighbours."""
        if self.measuring:
            self.hops[message.kind] += len(ports)
            self.bytes[message.kind] += size * len(ports)
        if self.trace is not None:
            self.trace.hops(site, message, ports, size)

    def note_forwarded(self, site: Site, message: Forward) -> None:
        """Events reach the broker that asked for them."""
        client = self.world.clients[message.client]
        for publication in message.publications:
            assert isinstance(publication, Publication)
            client.transferred.add((site.number, publication.publisher, publication.sequence))

    def note_arrival(self, site: Site, fact: SubscriberArrived) -> None:
        """A broker is about to take in a client; one that comes from elsewhere may find its copy there."""
        if fact.previous is not None and fact.previous != site.number:
            self.crossed[frozenset((fact.previous, site.number))] = self.world.clock.now
            is_found = fact.client in site.broker.subscribers.main
            self.minutes[int(self.world.clock.now // BUCKET_S), is_found] += 1

    def note_drop(self, site: Site, dropped: Dropped) -> None:
        """A broker gives an event up."""
        if self.measuring:
            self.drops[dropped.reason] += 1
        if self.trace is not None:
            self.trace.dropped(site, dropped)

    def note_left(self, client: Client, broker: int, now: float) -> None:
        """A client's link breaks."""
        self._stayed(client, broker, now)
        client.transferred.clear()
        self.departures += self.measuring
        if self.trace is not None:
            self.trace.left(client, broker, now)

    def note_move(self, client: Client, old: int | None, new: int) -> None:
        """A client turns up at another broker than before."""
        self.moves += self.measuring
        if self.measuring:
            self._arrived(client, new, old)
        if self.trace is not None and old is not None:
            self.trace.moved(client, old, new)

    def note_first_message(self, client: Client, arrival: float) -> None:
        """A client's first message since its request; only hand-offs count."""
        if client.changed and self.begin_s <= client.requested_s < self.end_s:
            self.first_message_s.append(arrival - client.requested_s)
            self._arrival_of(client, client.requested_s).first_s = arrival
        client.requested_s = -1.0

    def note_ready(self, ready: Ready) -> None:
        """A broker has handed everything over."""
        now, client = self.world.clock.now, self.world.clients[ready.client]
        if client.epoch != ready.epoch:
            return
        how = How(ready.how)
        asked = client.asked_s
        if self.begin_s <= asked < self.end_s:
            self.how[how.name.lower()] += 1
            if how in (How.COPY, How.FETCHED):
                self.ready_s.append(now - asked)
                found = self._arrival_of(client, asked)
                if found.ready_s is not None:
                    found = self._arrived(client, client.broker)
                found.ready_s, found.how = now, how.name.lower()
        if self.trace is not None:
            self.trace.ready(client, now)

    def _arrived(self, client: Client, to: int, came_from: int | None = None) -> Arrival:
        found = Arrival(client.number, to, client.asked_s, came_from, client.left_s, client.move)
        self._latest[client.number] = found
        self.arrivals.append(found)
        return found

    def _arrival_of(self, client: Client, asked_s: float) -> Arrival:
        """The arrival that a client asked for at some time."""
        found = self._latest.get(client.number)
        if found is None or found.asked_s != asked_s:
            return self._arrived(client, client.broker)
        return found

    # The result ------------------------------------------------------------------------------------

    def result(self) -> RoamingResult:
        """Everything that was counted."""
        world, samples = self.world, np.array(self.samples or [(0, 0, 0)], dtype=float)
        minutes = max((minute for minute, _ in self.minutes), default=-1) + 1
        if self.trace is not None:
            self.trace.finish(self.loads)
        return RoamingResult(
            duration_s=world.scenario.duration_s,
            published=len(self.published),
            expected=self._expected(),
            received=self.received,
            duplicates=self.duplicates,
            unique=self.unique,
            doubled=self.doubled,
            late=self.late,
            latency_s=self.latency_s / max(1, self.unique),
            latency_all_s=self.latency_s,
            transferred=self.transferred,
            moves=self.moves,
            departures=self.departures,
            first_message_s=self.first_message_s,
            ready_s=self.ready_s,
            how=dict(self.how),
            unprepared_by_minute=[
                (self.minutes[at, False] + self.minutes[at, True], self.minutes[at, False])
                for at in range(minutes)
            ],
            hops={Kind(kind).name.lower(): count for kind, count in sorted(self.hops.items())},
            bytes={Kind(kind).name.lower(): count for kind, count in sorted(self.bytes.items())},
            drops=dict(self.drops),
            into_the_air=self.into_the_air,
            passive_copies=float(samples[:, 0].mean()),
            active_copies=float(samples[:, 1].mean()),
            queued_bytes=float(samples[:, 2].mean()),
            brokers=[self._broker(site) for site in world.sites],
            arrivals=self.arrivals,
            samples=self.samples,
            redirects=self.redirects,
            stale_edges=self.stale_edges,
            drained=not any(site.queue or site.busy_with for site in world.sites),
        )

    def _broker(self, site: Site) -> BrokerResult:
        at, duration = site.number, self.world.scenario.duration_s
        busy_s, queue_max, queue_area = self.loads[at]
        return BrokerResult(
            name=self.world.topology.names[at],
            routed_per_s=self.routed[at] / duration,
            routed=self.routed[at],
            events=self.events[at],
            event_s=self.event_s[at],
            present_s=self.connected_s[at],
            handled=site.handled,
            busy_s=busy_s,
            event_ms=1000 * self.event_s[at] / max(1, self.events[at]),
            present=self.connected_s[at] / duration,
            utilisation=busy_s / duration,
            queue_max=queue_max,
            queue_mean=queue_area / duration,
            learnt=self.learnt[at],
        )

    def _expected(self) -> int:
        """How many deliveries are owed: each counted event to everybody who wants it and has come by then."""
        times: list[list[float]] = [[] for _ in range(VALUES)]
        for time_s, value in self.published:
            times[value].append(time_s)
        ordered = [np.array(at) for at in times]
        wanting: dict[int, list[int]] = {}
        for value, subs in enumerate(self.world.workload.matched):
            for sub in subs:
                wanting.setdefault(sub, []).append(value)
        owed = 0
        for client in self.world.clients:
            for value in wanting.get(client.sub, ()):
                at = ordered[value]
                owed += len(at) if client.owed_s <= self.begin_s else int((at >= client.owed_s).sum())
        return owed


def percentiles(values: list[float], shares: Any) -> list[float]:
    """The values below which those shares of all values lie; not a number where there are none."""
    if not values:
        return [float("nan")] * len(shares)
    return [float(value) for value in np.quantile(np.array(values), shares)]
