"""The world of moving publishers: a deterministic driver around the broker cores (paper 000, section 5).

A run has four parts. Set-up: every client connects, subscribes and advertises, and the network comes to rest,
untimed and uncharged, so that no run starts under the storm of its own beginning. Warm-up: publishers move,
nothing is counted. Measured time: they move on and everything counts. Drain: nobody moves or publishes any
more, and the world runs until it is quiet.

The world makes no decision of the protocol: it carries facts to the cores and effects to the links. It draws
nothing itself either; movement and workload come from the scenario's named streams. The same scenario gives
the same run, event by event.

Speed: one heap event carries a message to all neighbours it reaches at the same instant, and without
computations a core handles it right from the loop in `_run`. Garbage collection is off while the loop runs,
since the loop makes no cycles.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.mobility import facts
from sojourn.mobility.broker import IDLE, Broker
from sojourn.mobility.policies import Policy
from sojourn.routing.filter_interests import FilterInterests
from sojourn.routing.messages import Kind, Message, Publish
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay
from sojourn.sim.causes import KINDS, Causes
from sojourn.sim.clock import FIRST, LAST, Clock, uncollected
from sojourn.sim.links import Links
from sojourn.sim.publishers.costs import service_times
from sojourn.sim.publishers.movement import Move, Movement
from sojourn.sim.publishers.summary import Tally, summarise
from sojourn.sim.publishers.workload import Workload, make_workload
from sojourn.sim.recorder import Recorder
from sojourn.sim.results import RunResult
from sojourn.sim.scenario import Scenario
from sojourn.sim.servers import Job, Port, Site
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology, make_topology

BACKLOG_MAX = 5_000_000
"""Messages that may wait in all brokers together before a run is stopped and says so."""
DRAIN_MAX_S = 86_400.0
"""How long the world may take to come to rest after the measured time."""

_TREE_WORK = (Kind.ADVERTISE, Kind.UNADVERTISE)

Observer = Callable[[float, tuple[str, *tuple[object, ...]]], None]
"""Told (now, what), where `what` is one of ("left", publisher, broker), ("arrived", publisher, broker),
("hop", kind, sender, receiver, cause), ("built" or "torn-down", publisher, cause, seconds)."""


class _StopError(Exception):
    """Leaves the loop; never leaves this module."""


class Publication(Publish):
    """An event on its way through the world, which remembers who has got it."""

    __slots__ = ("counted", "got")

    def __init__(self, event: Event, *, counted: bool) -> None:
        super().__init__(event)
        self.counted = counted
        self.got: set[int] = set()


class World:
    """One scenario, to be run once."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        recorder: Recorder | None = None,
        observer: Observer | None = None,
        topology: Topology | None = None,
    ) -> None:
        scenario.validate()
        self.scenario = scenario
        self.topology = topology if topology is not None else make_topology(scenario)
        self.recorder = recorder
        self.observer = observer
        self.end_s = scenario.warmup_s + scenario.duration_s
        streams = Streams(scenario.seed)
        self.movement = Movement(scenario, self.topology, streams)
        self.workload: Workload = make_workload(scenario, self.topology, streams)
        self.policy = Policy.named(
            scenario.protocol, delay_s=scenario.unadvertise_delay_s, proxies=scenario.proxies
        )
        self.clock = Clock()
        self.causes = Causes()
        self.tally = Tally()
        self.interests = FilterInterests(covering=scenario.covering)
        overlay = Overlay(self.topology.neighbours)
        self.sites = [
            Site(number, Broker(number, Neighbours(near), self.interests, self.policy, overlay.next_hop))
            for number, near in enumerate(overlay.neighbours)
        ]
        links = 0
        for site in self.sites:
            links = site.join(self.sites, links)
        self.links = Links(links, scenario.link_latency_ms / 1000, scenario.link_bandwidth_bps, scenario)
        clients = scenario.publishers + scenario.subscribers
        self.client_links = Links(
            clients, scenario.client_latency_ms / 1000, scenario.client_bandwidth_bps, scenario
        )
        self.ads: list[tuple[int, ...]] = []
        """By publisher: its advertisements' numbers."""
        self.at: list[int | None] = [None] * scenario.publishers
        """By publisher: the broker it is connected to."""
        self.moved: list[tuple[int, float, float, int, int]] = [(-1, 0.0, 0.0, -1, -1)]
        """By move: (publisher, left_s, arrived_s, from, to); numbered from 1, as the pairs of causes are."""
        self._service = service_times(scenario)
        self._backlog = 0
        self.quiet = False
        """Whether the world has run and come to rest."""
        self._moves = [self.movement.moves(publisher) for publisher in range(scenario.publishers)]
        self._hop_hook = self._make_hop_hook()

    # The run -----------------------------------------------------------------------------------------

    def run(self, progress: Callable[[float], None] | None = None) -> RunResult:
        """Run the scenario; `progress` is told the share that is done, now and then."""
        assert not self.quiet, "a world runs once"
        if not self.ads:
            self.set_up()
        self._plan_run(progress)
        with uncollected(), suppress(_StopError):
            self._run()
            self.quiet = True
        return summarise(self)

    def _plan_run(self, progress: Callable[[float], None] | None) -> None:
        clock, scenario = self.clock, self.scenario
        clock.plan_apart(scenario.warmup_s, FIRST, self._begin_measuring)
        clock.plan_apart(self.end_s, LAST, self._end_measuring)
        for publisher in range(scenario.publishers):
            self._plan_move(publisher)
            if scenario.publish_interval_s > 0:
                clock.plan(self.workload.publish_phase_s[publisher], self._publish, (publisher, 0))
        clock.plan_progress(self.end_s, progress)

    def _run(self) -> None:
        """Let everything happen in order; see the module's docstring for why this loop is written out."""
        clock, heap, pop = self.clock, self.clock.heap, heappop
        pending, emit, close = self.causes.pending, self._emit, self._close
        is_free = self._service is None
        limit_s = self.end_s + DRAIN_MAX_S
        while heap:
            now, _order, what, thing = pop(heap)
            if now > limit_s:
                raise _StopError
            clock.now = now
            if what.__class__ is not tuple:
                what(thing)
                continue
            kind = thing.kind
            if is_free and kind <= Kind.UNSUBSCRIBE:
                for site, bit in what:
                    site.handled += 1
                    site.receivers[kind](thing, bit)
                    if site.sends:
                        emit(site, now)
                cause = thing.cause
                left = pending[cause] - len(what)
                pending[cause] = left
                if not left:
                    close(cause, now)
            elif is_free and kind == Kind.PUBLISH:
                self._relay(what, thing)
            else:
                for site, bit in what:
                    self._submit(site, bit, thing)

    def _relay(self, ports: tuple[Port, ...], publication: Publish) -> None:
        """An event arrives at brokers that take no time to match it: the short way through `_submit`."""
        now = self.clock.now
        for site, bit in ports:
            site.handled += 1
            site.receivers[Kind.PUBLISH](publication, bit)
            if site.sends:
                self._emit(site, now)
            deliveries = site.broker.effects.deliveries
            if deliveries:
                for delivery in deliveries:
                    self._deliver(site, delivery.clients, publication)
                deliveries.clear()

    # Brokers as servers --------------------------------------------------------------------------------

    def _submit(self, site: Site, bit: int, thing: Any) -> None:
        """Hand a message or a fact (bit 0) to a broker, or to its queue while it is busy."""
        job = (self.clock.now, bit, thing)
        if site.busy_with is None:
            self._serve(site, job)
            return
        site.note_queue(self.clock.now)
        site.queue.append(job)
        site.queue_max = max(site.queue_max, len(site.queue))
        self._backlog += 1
        if self._backlog > self.tally.backlog_max:
            self.tally.backlog_max = self._backlog
            if self._backlog > BACKLOG_MAX:
                raise _StopError

    def _serve(self, site: Site, job: Job) -> None:
        """Serve a job and, as long as that takes no time, the jobs behind it."""
        now = self.clock.now
        while True:
            work = self._handle(site, job)
            if self._service is not None and work != IDLE:
                seconds = self._service(work, len(site.broker.router.subs))
                if seconds > 0:
                    site.busy_with = job
                    site.busy_s += seconds
                    heappush(self.clock.heap, (now + seconds, self.clock.next_order(), self._served, site))
                    return
            self._finish(site, job)
            if not site.queue:
                return
            job = self._next_job(site)

    def _served(self, site: Site) -> None:
        job = site.busy_with
        assert job is not None, "a broker can only finish what it began"
        site.busy_with = None
        self._finish(site, job)
        if site.queue:
            self._serve(site, self._next_job(site))

    def _next_job(self, site: Site) -> Job:
        site.note_queue(self.clock.now)
        self._backlog -= 1
        return site.queue.popleft()

    def _handle(self, site: Site, job: Job) -> int:
        """Let the core handle a job; say what kind of work it was."""
        received_s, bit, thing = job
        broker = site.broker
        site.handled += 1
        if bit:
            kind: int = thing.kind
            site.receivers[kind](thing, bit)
            if kind <= Kind.PUBLISH:
                return kind
        else:
            broker.handle(thing, self.clock.now)
        if broker.work in _TREE_WORK:
            self.causes.open(broker.work_cause, received_s)
        return broker.work

    def _finish(self, site: Site, job: Job) -> None:
        """Carry out the effects of a job, and account for it."""
        now = self.clock.now
        _, bit, thing = job
        broker = site.broker
        effects = broker.effects
        if effects.sends:
            self._emit(site, now)
        if effects.deliveries:
            for delivery in effects.deliveries:
                self._deliver(site, delivery.clients, delivery.publication)
        for cancel in effects.cancels:
            site.timers.discard(cancel)
        for timer in effects.timers:
            site.timers.add((timer.client, timer.token))
            self.clock.plan(now + timer.delay_s, self._timer_fired, (site, timer.client, timer.token))
        effects.clear()
        if bit and thing.kind <= Kind.UNSUBSCRIBE:
            self._account(thing.cause)
        elif broker.work in _TREE_WORK and not (bit and thing.kind == Kind.PUBLISH):
            self._account(broker.work_cause)

    def _account(self, cause: int) -> None:
        """One message of a cause has been processed."""
        self.causes.pending[cause] -= 1
        if not self.causes.pending[cause]:
            self._close(cause, self.clock.now)

    def _close(self, cause: int, now: float) -> None:
        self.causes.close(cause, now)
        if self.observer is not None and cause > 1:
            what = "torn-down" if cause & 1 else "built"
            publisher = self.moved[cause // 2][0]
            self.observer(now, (what, publisher, cause, now - self.causes.opened_s[cause]))

    def _emit(self, site: Site, now: float) -> None:
        """Put what a core sends onto the links, as one event where it arrives everywhere at once."""
        links, causes = self.links, self.causes
        free_s, heap = links.free_s, self.clock.heap
        for mask, message in site.sends:
            fan = site.fans.get(mask) or site.fan(mask)
            ports, numbers, single = fan
            kind, cause = message.kind, message.cause
            causes.hops[cause * KINDS + kind] += len(ports)
            if kind <= Kind.UNSUBSCRIBE:
                causes.pending[cause] += len(ports)
            if self._hop_hook is not None:
                self._hop_hook(site, ports, message, now)
            for number in numbers:
                if free_s[number] > now:
                    break
            else:
                last_bit = now + links.transmit_s[kind]
                for number in numbers:
                    free_s[number] = last_bit
                arrival = last_bit + links.latency_s
                heappush(heap, (arrival, self.clock.next_order(), ports, message))
                continue
            for number, port in zip(numbers, single, strict=True):
                arrival = links.send(number, kind, now)
                heappush(heap, (arrival, self.clock.next_order(), port, message))
        site.sends.clear()

    def _timer_fired(self, which: tuple[Site, int, int]) -> None:
        site, client, token = which
        if (client, token) in site.timers:
            site.timers.discard((client, token))
            self._submit(site, 0, facts.TimerFired(client, token))

    # Clients -------------------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Connect everybody, untimed, until the network is quiet; `run` does it if nobody did before."""
        workload, scenario = self.workload, self.scenario
        ads = [self.interests.advertisement(Advertisement.parse(text)) for text in workload.advertisements]
        subs = [self.interests.subscription(Filter.parse(text)) for text in workload.subscriptions]
        self.ads = [(ads[ad],) for ad in workload.publisher_ad]
        waiting: deque[tuple[tuple[Port, ...], Message]] = deque()
        for place, sub in enumerate(workload.subscriber_sub):
            site = self.sites[workload.subscriber_broker[place]]
            client = scenario.publishers + place
            site.broker.handle(facts.ClientSubscribed(client, subs[sub]), 0.0)
            self._carry(site, waiting)
            self.tally.subscribers[subs[sub]] = self.tally.subscribers.get(subs[sub], 0) + 1
        self._settle(waiting)
        for publisher in range(scenario.publishers):
            start = self.movement.start(publisher)
            self.at[publisher] = start
            proxies = self.movement.proxies(publisher) if self.policy.proxies else ()
            site = self.sites[start]
            site.broker.handle(facts.ClientArrived(publisher, self.ads[publisher], proxies=proxies), 0.0)
            self._carry(site, waiting)
            self._settle(waiting)
        if self.recorder is not None:
            self.tally.record_clients(self, self.recorder)

    def _settle(self, waiting: deque[tuple[tuple[Port, ...], Message]]) -> None:
        hops = 0
        while waiting:
            ports, message = waiting.popleft()
            hops += len(ports)
            kind = message.kind
            for site, bit in ports:
                site.receivers[kind](message, bit)
                if site.sends:
                    self._carry(site, waiting)
        self.tally.setup_hops += hops

    def _carry(self, site: Site, waiting: deque[tuple[tuple[Port, ...], Message]]) -> None:
        """What a core sends while the world is being set up."""
        waiting.extend((site.fan(mask)[0], message) for mask, message in site.sends)
        site.broker.effects.clear()

    def _plan_move(self, publisher: int) -> None:
        move = next(self._moves[publisher], None)
        if move is not None and move.left_s < self.end_s:
            self.clock.plan(move.left_s, self._leave, (publisher, move))

    def _leave(self, which: tuple[int, Move]) -> None:
        publisher, move = which
        number = self.causes.add_pair() // 2
        self.moved.append((publisher, *move[:4]))
        site = self.sites[move.from_broker]
        self.at[publisher] = None
        if self.observer is not None:
            self.observer(self.clock.now, ("left", publisher, move.from_broker))
        if self.recorder is not None:
            self.tally.record_sojourn(self, self.recorder, publisher, move)
        self._submit(site, 0, facts.ClientLeft(publisher, 2 * number, move.predicted))
        self.clock.plan(move.arrived_s, self._arrive, (publisher, number, move.to_broker))
        self._plan_move(publisher)

    def _arrive(self, which: tuple[int, int, int]) -> None:
        """A publisher is connected again and sends its advertisement over its own link."""
        publisher, number, broker = which
        self.at[publisher] = broker
        if self.observer is not None:
            self.observer(self.clock.now, ("arrived", publisher, broker))
        self.causes.client_hops[2 * number] += 1
        fact = facts.ClientArrived(publisher, self.ads[publisher], 2 * number)
        self._send_up(publisher, Kind.ADVERTISE, broker, fact)

    def _send_up(self, publisher: int, kind: int, broker: int, fact: facts.Fact) -> None:
        arrival = self.client_links.send(publisher, kind, self.clock.now)
        self.clock.plan(arrival, self._sent_up, (self.sites[broker], fact))

    def _sent_up(self, which: tuple[Site, facts.Fact]) -> None:
        self._submit(which[0], 0, which[1])

    def _publish(self, which: tuple[int, int]) -> None:
        """A publisher sends an event if it is connected, and plans the next one."""
        publisher, sequence = which
        now, broker = self.clock.now, self.at[publisher]
        if broker is not None:
            event = Event(self.workload.publisher_event[publisher], source=f"p{publisher}", sequence=sequence)
            publication = Publication(event, counted=now >= self.scenario.warmup_s)
            if publication.counted:
                # The oracle asks the index; the brokers need not ask again, since they share it.
                publication.matched = self.interests.match(event)
                publication.version = self.interests.version
                self.tally.expect(publication.matched)
            if self.recorder is not None:
                self.tally.record_publication(self, self.recorder, publication, broker)
            self._send_up(publisher, Kind.PUBLISH, broker, facts.ClientPublished(publication))
            sequence += 1
        later = now + self.scenario.publish_interval_s
        if later < self.end_s:
            self.clock.plan(later, self._publish, (publisher, sequence))

    def _deliver(self, site: Site, clients: tuple[int, ...], publication: Publish) -> None:
        assert isinstance(publication, Publication)
        for client in clients:
            # Subscribers stay where they are, so when the event gets there is known now.
            arrival = self.client_links.send(client, Kind.PUBLISH, self.clock.now)
            if publication.counted:
                self.tally.delivered += 1
                self.tally.duplicates += client in publication.got
                self.tally.delivered_in_time += arrival <= self.end_s
            publication.got.add(client)
            if self.recorder is not None:
                self.tally.record_delivery(self, self.recorder, publication, client, arrival, site.number)

    # Measuring -----------------------------------------------------------------------------------------

    def _begin_measuring(self, _nothing: object) -> None:
        self.tally.hops_before = self.causes.totals()
        for site in self.sites:
            site.begin_measuring(self.clock.now)

    def _end_measuring(self, _nothing: object) -> None:
        self.tally.end_measuring(self)

    def _make_hop_hook(self) -> Callable[[Site, tuple[Port, ...], Message, float], None] | None:
        """What is told of every hop, if anybody wants to know."""
        recorder, observer = self.recorder, self.observer
        if observer is None and (recorder is None or not recorder.messages):
            return None

        def hop(site: Site, ports: tuple[Port, ...], message: Message, now: float) -> None:
            for receiver, _ in ports:
                if observer is not None:
                    observer(now, ("hop", message.kind, site.number, receiver.number, message.cause))
                if recorder is not None and recorder.messages:
                    self.tally.record_hop(self, recorder, (site.number, receiver.number), message)

        return hop
