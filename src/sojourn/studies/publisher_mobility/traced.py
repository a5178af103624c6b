"""A run of the study with its trace, for sweeps that keep traces."""

import msgspec
import pyarrow as pa

from sojourn.pipeline.sweep import Outcome
from sojourn.sim.publishers.world import World
from sojourn.sim.recorder import Recorder
from sojourn.sim.scenario import Scenario
from sojourn.studies.publisher_mobility.grid import run_id_of
from sojourn.studies.publisher_mobility.measures import measure
from sojourn.trace import COLUMNS


def simulate_traced(spec_json: str) -> Outcome:
    """Run the scenario of a JSON text, measure it, and return all that it recorded."""
    scenario = msgspec.json.decode(spec_json, type=Scenario)
    recorder = Recorder(run_id_of(spec_json), study="publisher-mobility")
    result = World(scenario, recorder=recorder).run()
    tables = {name: trace_table(name, columns) for name, columns in recorder.tables.items()}
    return Outcome(measure(result, scenario), {name: rows for name, rows in tables.items() if rows.num_rows})


def trace_table(name: str, columns: dict[str, list[object]]) -> pa.Table:
    """A recorded table with the types of traces on disk, and the run beside each row."""
    typed = {field.name: pa.array(columns[field.name], field.type) for field in COLUMNS[name]}
    return pa.table({"run_id": pa.array(columns["run_id"], pa.string()), **typed})
