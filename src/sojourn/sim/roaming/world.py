"""The world of roaming subscribers: a deterministic driver around the broker cores (paper 001, section 5.1).

A publisher sends its next event when the last one is acknowledged: when every broker that has to do with it
has handled it (synchronous publish), so the brokers set the pace. Each broker is one server with a queue; a
job's service time follows from what the core did: a message, matches, stored events, transferred events
(`scenario`'s costs). Passing on somebody else's message costs nothing, since the testbed's brokers hang on
one switch. Subscribers' links break without a word; brokers learn it from missed pings.

The world makes no decision of the protocol: it carries facts to the cores and effects to links and radios.
It draws nothing itself: movement, workload and radio come from named streams. When the measured time is over
nobody publishes or leaves any more, whoever is under way arrives, and queues run empty; what was published in
the measured time and not received by then is lost.

Speed: an event reaches all brokers at the same instant in one heap entry, and a delivery needs none at all,
since when a radio link will break is known when something is sent over it (`clients.py`).
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.placement import least_loaded
from sojourn.mobility.policies import Policy
from sojourn.mobility.schemes import Scheme
from sojourn.routing.messages import Forward, Kind, Message
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay
from sojourn.sim.clock import FIRST, LAST, Clock, uncollected
from sojourn.sim.links import BITS_A_BYTE
from sojourn.sim.recorder import Recorder
from sojourn.sim.roaming.clients import Client
from sojourn.sim.roaming.publishers import Publisher
from sojourn.sim.roaming.radio import Radio
from sojourn.sim.roaming.run import RoamingError
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.setting import Setting, make_setting, slowness
from sojourn.sim.roaming.subscribers import Subscribers
from sojourn.sim.roaming.tally import RoamingResult, RoamingTally
from sojourn.sim.roaming.workload import RoamingWorkload
from sojourn.sim.servers import Job, Port, Site
from sojourn.sim.streams import Streams

BACKLOG_MAX = 1_000_000
DRAIN_MAX_S = 600.0
MS = 1000.0

Observer = Callable[[float, tuple[str, *tuple[object, ...]]], None]
"""Told (now, what), where `what` is ("left" or "arrived", client, broker) or ("ready", client, how)."""


class RoamingWorld:
    """One scenario, to be run once."""

    def __init__(
        self,
        scenario: RoamingScenario,
        *,
        recorder: Recorder | None = None,
        observer: Observer | None = None,
        setting: Setting | None = None,
    ) -> None:
        scenario.validate()
        self.scenario = scenario
        self.recorder = recorder
        self.observer = observer
        streams = Streams(scenario.seed)
        self.setting = setting if setting is not None else make_setting(scenario, streams)
        self.topology = self.setting.topology
        self.end_s = scenario.warmup_s + scenario.duration_s
        self.clock = Clock()
        self.workload = RoamingWorkload(
            self.setting.subscribers,
            scenario.selectivity,
            streams.fresh("workload"),
            covering=scenario.covering,
        )
        self.overlay = Overlay(self.topology.neighbours)
        self.sites = self._make_sites()
        self._link_free_s = [0.0] * sum(len(near) for near in self.overlay.neighbours)
        self.clients = [
            Client(
                number,
                self.setting.names[number],
                self.workload.subs[number],
                self.setting.paths.sojourns(number),
                scenario.publishers,
            )
            for number in range(self.setting.subscribers)
        ]
        self.publishers = [
            Publisher(self, number, streams.fresh("events", number)) for number in range(scenario.publishers)
        ]
        phases = streams.fresh("pings").random(self.setting.subscribers).tolist()
        self.subscribers = Subscribers(self, phases)
        self.tally = RoamingTally(self)
        self.radio = Radio(scenario, self.clients, self.tally, streams.fresh("radio"))
        self._backlog = 0
        self._bit_s = BITS_A_BYTE / scenario.link_bandwidth_bps
        self._link_latency_s = scenario.link_latency_ms / MS
        self._message_s = scenario.message_cost_ms / MS
        self._match_s = scenario.match_cost_ms / MS
        self._store_s = scenario.store_cost_ms / MS
        self._transfer_s = scenario.transfer_cost_ms / MS
        self._slow = slowness(scenario, self.topology)

    def _make_sites(self) -> list[Site]:
        scenario, setting = self.scenario, self.setting
        policy = Policy.named(scenario.publisher_protocol)
        scheme = Scheme.named(
            scenario.scheme,
            queue_bytes_max=scenario.queue_bytes,
            event_bytes=scenario.event_bytes,
            evicts=scenario.queue_evicts,
            edge_timeout_s=scenario.edge_timeout_s,
            **({} if scenario.scheme == "durable" else {"timeout_s": scenario.subscriber_timeout_s}),
        )
        sites = []
        for number, near in enumerate(self.overlay.neighbours):
            broker = Broker(
                number,
                Neighbours(near),
                self.workload.interests,
                policy,
                self.overlay.next_hop,
                scheme=scheme,
                flooding=scenario.routing == "flooding",
                foresight=setting.foresight,
                placement=self._placement() if scenario.placement == "load" else None,
            )
            if setting.graph is not None:
                broker.load_graph(setting.graph, self.topology.names, 0.0)
            sites.append(Site(number, broker))
        links = 0
        for site in sites:
            links = site.join(sites, links)
        return sites

    # The run ---------------------------------------------------------------------------------------

    def run(self, progress: Callable[[float], None] | None = None) -> RoamingResult:
        """Run the scenario; `progress` is told the share that is done, now and then."""
        clock = self.clock
        self.subscribers.start()
        for publisher in self.publishers:
            publisher.start()
        clock.plan_apart(self.scenario.warmup_s, FIRST, self.tally.begin)
        clock.plan_apart(self.end_s, LAST, self.tally.end)
        clock.plan_progress(self.end_s, progress)
        with uncollected():
            self._loop()
        return self.tally.result()

    def _loop(self) -> None:
        clock, heap, pop = self.clock, self.clock.heap, heappop
        limit_s = self.end_s + DRAIN_MAX_S
        submit = self.submit
        while heap:
            now, _order, what, thing = pop(heap)
            if now > limit_s:
                break
            clock.now = now
            if what.__class__ is tuple:
                for site, bit in what:
                    submit(site, bit, thing)
            else:
                what(thing)

    # Brokers as servers ----------------------------------------------------------------------------

    def submit(self, site: Site, bit: int, thing: Any) -> None:
        """Hand a message or a fact (bit 0) to a broker, or to its queue while it is busy."""
        job = (self.clock.now, bit, thing)
        if site.busy_with is None:
            self._serve(site, job)
            return
        site.note_queue(self.clock.now)
        site.queue.append(job)
        site.queue_max = max(site.queue_max, len(site.queue))
        self._backlog += 1
        if self._backlog > BACKLOG_MAX:
            raise RoamingError(
                f"brokers must keep up: {BACKLOG_MAX:,} messages wait at {self.clock.now:.0f} s; "
                "lower publishers, publish_window or the costs."
            )

    def _serve(self, site: Site, job: Job) -> None:
        """Serve a job and, as long as that takes no time, the jobs behind it."""
        clock = self.clock
        while True:
            seconds = self._handle(site, job[1], job[2]) * self._slow[site.number]
            if seconds > 0:
                site.busy_with = job
                site.busy_s += seconds
                heappush(clock.heap, (clock.now + seconds, clock.next_order(), self._served, site))
                return
            if self._finish(site, job[1], job[2]) or not site.queue:
                return
            job = self._next_job(site)

    def _served(self, site: Site) -> None:
        job = site.busy_with
        assert job is not None, "a broker can only finish what it began"
        site.busy_with = None
        if not self._finish(site, job[1], job[2]) and site.queue:
            self._serve(site, self._next_job(site))

    def _replayed(self, site: Site) -> None:
        """A broker is done with sending what was stored."""
        site.busy_with = None
        if site.queue:
            self._serve(site, self._next_job(site))

    def _next_job(self, site: Site) -> Job:
        site.note_queue(self.clock.now)
        self._backlog -= 1
        return site.queue.popleft()

    def _handle(self, site: Site, bit: int, thing: Any) -> float:
        """Let the core handle a job; say how long that takes."""
        site.handled += 1
        broker, effects = site.broker, site.broker.effects
        if bit:
            kind = thing.kind
            if kind == Kind.PUBLISH:
                site.receivers[kind](thing, bit)
                return self._event_s(site)
            broker.subscribers.now = self.clock.now
            site.receivers[kind](thing, bit)
            if kind > Kind.PUBLISH and thing.destination != site.number:
                return 0.0
            work = self._message_s
            if kind == Kind.FORWARD:
                work += self._transfer_s * len(thing.publications)
                self.tally.note_forwarded(site, thing)
        else:
            if thing.__class__ is facts.SubscriberArrived:
                self.tally.note_arrival(site, thing)
            broker.handle(thing, self.clock.now)
            if thing.__class__ is facts.ClientPublished:
                return self._event_s(site)
            if thing.__class__ is facts.Consumed:
                return 0.0
            work = self._message_s if thing.__class__ is not facts.TimerFired else 0.0
        for _mask, message in effects.sends:
            if message.kind == Kind.FORWARD and message.sender == site.number:  # type: ignore[union-attr]  # by its kind
                work += self._transfer_s * len(message.publications)  # type: ignore[union-attr]  # by its kind
        return work

    def _event_s(self, site: Site) -> float:
        """How long a broker takes for an event."""
        broker = site.broker
        stored = broker.subscribers.stored
        effects = broker.effects
        # An event that is delivered stays stored until it is acknowledged: that is one match, not two.
        # One that finds no room was matched all the same.
        delivered = sum([len(delivery.clients) for delivery in effects.deliveries])
        matches = max(stored, delivered + len(effects.drops))
        work = self._message_s + self._match_s * matches + (self._store_s if stored else 0.0)
        for _mask, message in broker.effects.sends:
            if message.kind == Kind.FORWARD:  # to brokers that have not acknowledged their activation yet
                work += self._transfer_s * len(message.publications)  # type: ignore[union-attr]  # by its kind
        self.tally.note_event(site, work * self._slow[site.number])
        return work

    def _finish(self, site: Site, bit: int, thing: Any) -> bool:
        """Carry out the effects of a job; say whether the broker stays busy.

        It does while it sends a client what was stored: the first of these messages does not wait for all.
        """
        now = self.clock.now
        effects = site.broker.effects
        if thing.__class__ is facts.SubscriberArrived:
            self.subscribers.linked(site, thing)
        if effects.sends:
            self._emit(site, now)
        for clients, publication in effects.deliveries:
            self.radio.deliver(site, clients, publication, now)
        replayed = len(effects.deliveries)
        if effects.timers or effects.cancels:
            self._set_timers(site, now)
        for dropped in effects.drops:
            self.tally.note_drop(site, dropped)
        for ready in effects.ready:
            self.tally.note_ready(ready)
        redirected = effects.redirects[0].broker if effects.redirects else None
        effects.clear()
        if thing.__class__ is facts.ClientPublished:
            return self._handled(thing.publication)
        if bit and thing.kind == Kind.PUBLISH:
            return self._handled(thing)
        if thing.__class__ is facts.SubscriberArrived:
            self.subscribers.accepted(site, thing, redirected)
        return self._stays_busy(site, replayed * self._match_s * self._slow[site.number])

    def _stays_busy(self, site: Site, seconds: float) -> bool:
        if seconds <= 0:
            return False
        site.busy_with = (self.clock.now, 0, None)
        site.busy_s += seconds
        self.clock.plan(self.clock.now + seconds, self._replayed, site)
        return True

    def _set_timers(self, site: Site, now: float) -> None:
        effects = site.broker.effects
        for cancel in effects.cancels:
            site.timers.discard(cancel)
        for timer in effects.timers:
            site.timers.add((timer.client, timer.token))
            self.clock.plan(now + timer.delay_s, self._timer_fired, (site, timer.client, timer.token))

    def _handled(self, publication: Any) -> bool:
        """One broker less has to do with an event; the last one's end acknowledges it. Nobody stays busy."""
        publication.outstanding -= 1
        if not publication.outstanding:
            self.publishers[publication.publisher].acknowledged()
        return False

    def _emit(self, site: Site, now: float) -> None:
        """Put what a core sends onto the links, as one entry where it arrives everywhere at once."""
        free_s, heap = self._link_free_s, self.clock.heap
        for mask, message in site.sends:
            ports, numbers, single = site.fans.get(mask) or site.fan(mask)
            size = self.size_of(message)
            if message.kind == Kind.PUBLISH:
                message.outstanding += len(ports)  # type: ignore[union-attr]  # by its kind
            self.tally.note_hops(site, message, ports, size)
            transmit_s = size * self._bit_s
            starts = [max(now, free_s[number]) for number in numbers]
            for number, start in zip(numbers, starts, strict=True):
                free_s[number] = start + transmit_s
            if len(ports) > 1 and min(starts) != max(starts):
                for port, start in zip(single, starts, strict=True):
                    self._arrive(start + transmit_s, port, message)
            else:
                arrival = starts[0] + transmit_s + self._link_latency_s
                heappush(heap, (arrival, self.clock.next_order(), ports, message))
        site.sends.clear()

    def _arrive(self, last_bit_s: float, ports: tuple[Port, ...], message: Message) -> None:
        arrival = last_bit_s + self._link_latency_s
        heappush(self.clock.heap, (arrival, self.clock.next_order(), ports, message))

    def size_of(self, message: Message) -> int:
        """The length of a message on the wire."""
        if message.kind == Kind.PUBLISH:
            return self.scenario.event_bytes
        if isinstance(message, Forward):
            return self.scenario.control_bytes + len(message.publications) * self.scenario.event_bytes
        return self.scenario.control_bytes

    def _timer_fired(self, which: tuple[Site, int, int]) -> None:
        site, client, token = which
        if (client, token) in site.timers:
            site.timers.discard((client, token))
            self.submit(site, 0, facts.TimerFired(client, token))

    def sent_up(self, which: tuple[Site, facts.Fact]) -> None:
        """What a client sent reaches its broker."""
        self.submit(which[0], 0, which[1])

    def send_up(self, site: Site, fact: facts.Fact, size: int) -> None:
        """Something comes from a publisher, over a link like those between brokers."""
        arrival = self.clock.now + size * self._bit_s + self._link_latency_s
        self.clock.plan(arrival, self.sent_up, (site, fact))

    def _placement(self) -> Callable[[int, int, int], int]:
        """What tells a broker who is to serve a client: brokers know their neighbours' loads here."""
        near, margin = self.topology.neighbours, self.scenario.placement_margin

        def choose(_client: int, broker: int, present: int) -> int:
            others = {at: self.sites[at].broker.subscribers.counts()["present"] for at in near[broker]}
            return least_loaded(broker, present, others, margin)

        return choose
