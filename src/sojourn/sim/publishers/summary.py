"""What a world counts while it runs, and the result and trace it leaves."""

from typing import TYPE_CHECKING

import msgspec

from sojourn.mobility import facts
from sojourn.routing.messages import Kind, Message, Prepare, undoing
from sojourn.sim.causes import KINDS
from sojourn.sim.links import message_bytes
from sojourn.sim.publishers.movement import Move
from sojourn.sim.recorder import Recorder, as_json, cause_name, kind_name, phase_name
from sojourn.sim.results import HOP_NAMES, BrokerLoad, MoveTable, RunResult, add_move

if TYPE_CHECKING:
    from sojourn.sim.publishers.world import Publication, World


class Tally:
    """The sums that belong to no single cause, and the rows of the trace."""

    def __init__(self) -> None:
        self.setup_hops = 0
        self.hops_before = [0] * KINDS
        self.hops_measured = [0] * KINDS
        self.load: list[BrokerLoad] = []
        self.subscribers: dict[int, int] = {}
        """By subscription: how many clients made it."""
        self.publications = 0
        self.deliveries_expected = 0
        self.delivered = 0
        self.delivered_in_time = 0
        self.duplicates = 0
        self.backlog_max = 0
        self.since_s: dict[int, float] = {}

    def expect(self, matched: tuple[int, ...]) -> None:
        """The oracle's word on one event: every client with a matching subscription gets it."""
        self.publications += 1
        self.deliveries_expected += sum(self.subscribers.get(sub, 0) for sub in matched)

    def end_measuring(self, world: "World") -> None:
        """Take the hops and the load of the measured time, before the drain adds to them."""
        totals = world.causes.totals()
        self.hops_measured = [now - before for now, before in zip(totals, self.hops_before, strict=True)]
        duration_s = world.scenario.duration_s
        for site in world.sites:
            site.note_queue(world.clock.now)
            busy_s = min(site.busy_s, duration_s)
            mean = site.queue_area / duration_s
            self.load.append(
                BrokerLoad(site.number, site.handled, busy_s, busy_s / duration_s, site.queue_max, mean)
            )

    # The trace -----------------------------------------------------------------------------------------

    def record_clients(self, world: "World", recorder: Recorder) -> None:
        """Who is there, what they want and where the subscribers stay."""
        workload, names = world.workload, world.topology.names
        for publisher in range(world.scenario.publishers):
            recorder.add("clients", f"p{publisher}", "{}")
        for place, sub in enumerate(workload.subscriber_sub):
            recorder.add("clients", f"s{place}", "{}")
            text = workload.subscriptions[sub]
            recorder.add("interests", f"s{place}", f"i{sub}", text, 0.0, None)
            recorder.add("sojourns", f"s{place}", names[workload.subscriber_broker[place]], 0.0, None)

    def record_sojourn(self, world: "World", recorder: Recorder, publisher: int, move: Move) -> None:
        """The stay that a move ends."""
        began = self.since_s.get(publisher, 0.0)
        broker = world.topology.names[move.from_broker]
        recorder.add("sojourns", f"p{publisher}", broker, began, move.left_s)
        self.since_s[publisher] = move.arrived_s

    def record_publication(
        self, world: "World", recorder: Recorder, publication: "Publication", broker: int
    ) -> None:
        """An event and where its publisher was."""
        event = publication.event
        attributes = as_json(dict(event.flat))
        name = world.topology.names[broker]
        size = world.scenario.event_bytes
        recorder.add(
            "publications", event.source, event.sequence, world.clock.now, name, None, attributes, None, size
        )

    def record_delivery(
        self,
        world: "World",
        recorder: Recorder,
        publication: "Publication",
        client: int,
        arrival: float,
        broker: int,
    ) -> None:
        """An event that reached a subscriber."""
        event = publication.event
        name = f"s{client - world.scenario.publishers}"
        recorder.add("deliveries", name, event.source, event.sequence, arrival, world.topology.names[broker])

    def record_hop(self, world: "World", recorder: Recorder, ends: tuple[int, int], message: Message) -> None:
        """One message on one link."""
        sender, receiver = (world.topology.names[end] for end in ends)
        size = message_bytes(message.kind, world.scenario)
        kind, cause, phase = kind_name(message.kind), cause_name(message.cause), phase_name(message.cause)
        recorder.add("messages", world.clock.now, sender, receiver, kind, size, cause, phase)


def summarise(world: "World") -> RunResult:
    """The result of a world that has run; the rest of its trace is recorded on the way."""
    scenario, tally, causes, now = world.scenario, world.tally, world.causes, world.clock.now
    waiting_since = _waiting_since(world)
    everything, counted = MoveTable(), MoveTable()
    for number in range(1, len(world.moved)):
        move = world.moved[number]
        if scenario.warmup_s <= move[1] < world.end_s:
            add_move(counted, causes, number, move, now, waiting_since)
        if world.recorder is not None:
            add_move(everything, causes, number, move, now, waiting_since)
    result = RunResult(
        warmup_s=scenario.warmup_s,
        duration_s=scenario.duration_s,
        moves=counted,
        hops_by_kind=dict(zip(HOP_NAMES, tally.hops_measured, strict=True)),
        hops_total=sum(causes.totals()),
        setup_hops=tally.setup_hops,
        publications=tally.publications,
        deliveries_expected=tally.deliveries_expected,
        delivered=tally.delivered,
        delivered_in_time=tally.delivered_in_time,
        duplicates=tally.duplicates,
        load=tally.load,
        drained_s=now,
        quiet=world.quiet,
        backlog_max=tally.backlog_max,
    )
    if world.recorder is not None:
        _record_rest(world, world.recorder, everything, result)
    return result


def _waiting_since(world: "World") -> dict[int, float]:
    """The causes whose first work still waits in a broker's queue, and since when."""
    waiting: dict[int, float] = {}
    for site in world.sites:
        for received_s, _, thing in site.queue:
            if isinstance(thing, facts.ClientArrived | Prepare):
                waiting.setdefault(thing.cause, received_s)
            elif isinstance(thing, facts.ClientLeft) and not world.policy.delay_s:
                waiting.setdefault(undoing(thing.cause), received_s)
    return waiting


def _record_rest(world: "World", recorder: Recorder, moves: MoveTable, result: RunResult) -> None:
    """What is only known at the end of a run."""
    names, scenario, causes = world.topology.names, world.scenario, world.causes
    for publisher, broker in enumerate(world.at):
        if broker is not None:
            began = world.tally.since_s.get(publisher, 0.0)
            recorder.add("sojourns", f"p{publisher}", names[broker], began, None)
    for row in range(len(moves)):
        cause = 2 * moves.number[row]
        ready_s = None
        if not causes.pending[cause] and moves.finished[row]:
            ready_s = max(causes.ended_s[cause], moves.arrived_s[row])
        recorder.add(
            "handoffs",
            f"p{moves.publisher[row]}",
            names[moves.from_broker[row]],
            names[moves.to_broker[row]],
            moves.left_s[row],
            moves.arrived_s[row],
            ready_s,
            cause_name(cause),
        )
    for cause in range(2, len(causes.pending)):
        for kind in range(KINDS):
            hops = causes.hops[cause * KINDS + kind]
            if hops:
                size = hops * message_bytes(kind, scenario)
                named = (kind_name(kind), cause_name(cause), hops, size, phase_name(cause))
                recorder.add("message_counts", *named)
    publish_hops = causes.hops[Kind.PUBLISH]
    if publish_hops:
        recorder.add(
            "message_counts", kind_name(Kind.PUBLISH), "", publish_hops, publish_hops * scenario.event_bytes
        )
    for load in result.load:
        recorder.add(
            "broker_load", names[load.broker], load.handled, load.busy_s, load.queue_max, load.queue_mean
        )
    spec = msgspec.json.encode(scenario).decode()
    # In a trace a run's duration is where its times end, warm-up included: live runs know no other.
    ends_s = scenario.warmup_s + scenario.duration_s
    recorder.add("runs", "sim", recorder.study, scenario.seed, spec, None, ends_s, scenario.warmup_s, None)
