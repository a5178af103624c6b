"""What a run of the study records: the facts that `measuring.py` computes its measures from.

| table | rows |
|---|---|
| `arrivals` | one row per hand-off of the measured time |
| `windows` | events `published`, `expected`, `received`, `duplicate`; of those expected, `unique` (with their latencies), `late`, `transferred`; `departure`, `redirect`, `undrained`, `stale_edge`; `hops` by kind of message (with their bytes); `dropped` by reason; by broker `routed`, `event` (with service times), `present` (seconds of subscribers); all of the measured time. And `arrival`, minute by minute of the whole run, of the `prepared` and the `unprepared` |
| `observations` | every few seconds `passive_copies`, `active_copies`, `queued_bytes`; at the end `neighbours` by pair of brokers |
| `broker_load` | one row per broker, of the measured time |
| `runs` | the run |

Deliveries are far too many for rows: `tests/studies/test_facts.py` holds the windows to the rows of a trace.
"""  # noqa: E501  a table

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from sojourn.pipeline.sweep import Outcome
from sojourn.sim.recorder import Recorder, cause_name
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.tally import BUCKET_S, RoamingResult
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.studies.recorded import from_recorder, from_rows
from sojourn.studies.runner import run_id_of

STUDY = "handoff"
SAMPLED = ("passive_copies", "active_copies", "queued_bytes")


def record(spec_json: str) -> Outcome:
    """Run the scenario of a JSON text and record what its measures are made of."""
    world = RoamingWorld(msgspec.json.decode(spec_json, type=RoamingScenario))
    return Outcome({}, facts(world, world.run(), spec_json))


def record_traced(spec_json: str) -> Outcome:
    """The same with a whole trace."""
    recorder = Recorder(run_id_of(spec_json), study=STUDY)
    world = RoamingWorld(msgspec.json.decode(spec_json, type=RoamingScenario), recorder=recorder)
    result = world.run()
    return Outcome({}, facts(world, result, spec_json) | from_recorder(recorder))


def facts(world: RoamingWorld, result: RoamingResult, spec_json: str) -> dict[str, pa.Table]:
    """All facts of a run that is over."""
    scenario, names = world.scenario, world.topology.names
    begin_s, end_s = scenario.warmup_s, world.end_s
    return from_rows(
        run_id_of(spec_json),
        {
            "arrivals": [
                (
                    world.clients[one.client].name,
                    None if one.came_from is None else names[one.came_from],
                    names[one.to],
                    one.left_s,
                    one.asked_s,
                    one.first_s,
                    one.ready_s,
                    one.how,
                    cause_name(2 * one.move),
                )
                for one in result.arrivals
            ],
            "windows": [
                *((what, of, begin_s, end_s, count, total) for what, of, count, total in _counts(result)),
                *_minutes(result),
            ],
            "observations": list(_observations(result)),
            "broker_load": [
                (broker.name, broker.handled, broker.busy_s, broker.queue_max, broker.queue_mean)
                for broker in result.brokers
            ],
            "runs": [("sim", STUDY, scenario.seed, spec_json, None, end_s, begin_s, None)],
        },
    )


def _counts(result: RoamingResult) -> Iterator[tuple[str, str, int, float | None]]:
    """What was counted over the measured time: what, of which, how often, and seconds or bytes."""
    yield "published", "", result.published, None
    yield "expected", "", result.expected, None
    yield "received", "", result.received, None
    yield "duplicate", "", result.duplicates, None
    yield "unique", "", result.unique, result.latency_all_s
    yield "late", "", result.late, None
    yield "transferred", "", result.transferred, None
    yield "departure", "", result.departures, None
    yield "redirect", "", result.redirects, None
    yield "undrained", "", int(not result.drained), None
    yield "stale_edge", "", result.stale_edges, None
    for kind, hops in result.hops.items():
        yield "hops", kind, hops, float(result.bytes[kind])
    for reason, count in result.drops.items():
        yield "dropped", reason, count, None
    for broker in result.brokers:
        yield "routed", broker.name, broker.routed, None
        yield "event", broker.name, broker.events, broker.event_s
        yield "present", broker.name, 0, broker.present_s


def _minutes(result: RoamingResult) -> Iterator[tuple[object, ...]]:
    for minute, (moves, bare) in enumerate(result.unprepared_by_minute):
        begin_s, end_s = minute * BUCKET_S, (minute + 1) * BUCKET_S
        yield "arrival", "prepared", begin_s, end_s, moves - bare
        yield "arrival", "unprepared", begin_s, end_s, bare


def _observations(result: RoamingResult) -> Iterator[tuple[object, ...]]:
    for at, sample in enumerate(result.samples):
        for what, value in zip(SAMPLED, sample, strict=True):
            yield what, "", at, float(value)
    for broker in result.brokers:
        for other in broker.learnt:
            yield "neighbours", " ".join(sorted((broker.name, other))), len(result.samples), 1.0
