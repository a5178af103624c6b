"""What a run of the study records: the facts that `measuring.py` computes its measures from.

| table | rows |
|---|---|
| `rebuildings` | one row per move that began in the measured time, with all hops that it set off, whenever they happened |
| `windows` | `published`, `expected`, `delivered`, `in_time`, `duplicate`: events of the measured time; `hops` by kind in it; `all_hops` and `quiet` of the whole run, until the world was at rest |
| `broker_load` | one row per broker, of the measured time |
| `runs` | the run |

Deliveries are far too many for rows: they are counted over the measured time, and `tests/studies/test_facts.py`
holds those windows to the rows of a trace.
"""  # noqa: E501  a table

import msgspec
import pyarrow as pa

from sojourn.pipeline.sweep import Outcome
from sojourn.sim.publishers.world import World
from sojourn.sim.recorder import Recorder, cause_name
from sojourn.sim.results import RunResult
from sojourn.sim.scenario import Scenario
from sojourn.studies.publisher_mobility.moves import to_own_proxy
from sojourn.studies.recorded import from_columns, from_recorder, from_rows
from sojourn.studies.runner import run_id_of

STUDY = "publisher-mobility"
_AS_THEY_ARE = (
    "left_s", "arrived_s", "rebuild_s", "visible_wait_s", "teardown_s", "finished",
    "advertise", "unadvertise", "subscribe", "unsubscribe", "prefetch",
)  # fmt: skip


def record(spec_json: str) -> Outcome:
    """Run the scenario of a JSON text and record what its measures are made of."""
    scenario = msgspec.json.decode(spec_json, type=Scenario)
    world = World(scenario)
    return Outcome({}, facts(world, world.run(), spec_json))


def record_traced(spec_json: str) -> Outcome:
    """The same with a whole trace."""
    scenario = msgspec.json.decode(spec_json, type=Scenario)
    recorder = Recorder(run_id_of(spec_json), study=STUDY)
    world = World(scenario, recorder=recorder)
    result = world.run()
    return Outcome({}, facts(world, result, spec_json) | from_recorder(recorder))


def facts(world: World, result: RunResult, spec_json: str) -> dict[str, pa.Table]:
    """All facts of a run that is over."""
    scenario, run_id, names = world.scenario, run_id_of(spec_json), world.topology.names
    ends_s = scenario.warmup_s + scenario.duration_s
    moves = result.moves
    found = from_rows(
        run_id,
        {
            "windows": _windows(result, scenario.warmup_s, ends_s),
            "broker_load": [
                (names[load.broker], load.handled, load.busy_s, load.queue_max, load.queue_mean)
                for load in result.load
            ],
            "runs": [("sim", STUDY, scenario.seed, spec_json, None, ends_s, scenario.warmup_s, None)],
        },
    )
    columns = {
        **{name: getattr(moves, name) for name in _AS_THEY_ARE},
        "cause": [cause_name(2 * number) for number in moves.number],
        "client": [f"p{publisher}" for publisher in moves.publisher],
        "from_broker": [names[broker] for broker in moves.from_broker],
        "to_broker": [names[broker] for broker in moves.to_broker],
        "to_own_proxy": to_own_proxy(result, scenario),
    }
    return found | {"rebuildings": from_columns(run_id, "rebuildings", columns)}


def _windows(result: RunResult, begin_s: float, end_s: float) -> list[tuple[object, ...]]:
    counts = {
        "published": result.publications,
        "expected": result.deliveries_expected,
        "delivered": result.delivered,
        "in_time": result.delivered_in_time,
        "duplicate": result.duplicates,
    }
    return [
        *((what, "", begin_s, end_s, count) for what, count in counts.items()),
        *(("hops", kind, begin_s, end_s, hops) for kind, hops in result.hops_by_kind.items()),
        ("all_hops", "", 0.0, result.drained_s, result.hops_total),
        ("quiet", "", 0.0, result.drained_s, int(result.quiet)),
    ]
