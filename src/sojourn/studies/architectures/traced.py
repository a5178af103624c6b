"""The trace of a run of replicated brokers, for sweeps that keep traces; other tasks have none."""

import json

import pyarrow as pa

from sojourn.studies.architectures.replicas import Replicated
from sojourn.studies.architectures.spec import Run
from sojourn.studies.recorded import from_rows
from sojourn.studies.runner import run_id_of


def trace_of(run: Run, spec_json: str) -> dict[str, pa.Table]:
    """A replicated run as trace tables; an event that reached no broker has no broker."""
    played = Replicated(run)
    run_id = run_id_of(spec_json)
    world = played.world
    first = {key: broker for broker in reversed(range(run.brokers)) for key in world.received[broker]}
    names = [f"c{client} {name}" for client, name in enumerate(played.filters)]
    rows: dict[str, list[tuple[object, ...]]] = {
        "clients": [(name, "{}") for name in names],
        "interests": [
            (name, "0", str(wanted), 0.0, None) for name, wanted in zip(names, played.wanted, strict=True)
        ],
        "publications": [
            (source, sequence, time_s, _broker(first.get((source, sequence))), None,
             json.dumps(dict(event.flat)), None, run.workload.event_bytes)
            for (source, sequence), (time_s, event) in world.generated.items()
        ],
        "deliveries": [
            (names[each.client], each.source, each.sequence, each.time_s, f"EB{each.broker + 1}")
            for each in world.shown
        ],
        "runs": [("sim", "architectures", run.seed, spec_json, None, world.clock.now, played.start_s, None)],
    }  # fmt: skip
    return from_rows(run_id, rows)


def _broker(number: int | None) -> str | None:
    return None if number is None else f"EB{number + 1}"
