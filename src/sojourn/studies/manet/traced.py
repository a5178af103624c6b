"""A run of the study with its trace, for sweeps that keep traces."""

import msgspec
import pyarrow as pa

from sojourn.pipeline.sweep import Outcome
from sojourn.sim.manet.trace import record
from sojourn.sim.recorder import Recorder
from sojourn.studies.manet.grid import run_id_of
from sojourn.studies.manet.runs import Run, carry_out
from sojourn.trace import COLUMNS


def simulate_traced(spec_json: str) -> Outcome:
    """Carry out a run, measure it, and return all that it recorded."""
    world, row = carry_out(msgspec.json.decode(spec_json, type=Run))
    recorder = Recorder(run_id_of(spec_json), study="manet")
    record(world, recorder, spec_json)
    tables = {name: _table(name, columns) for name, columns in recorder.tables.items()}
    return Outcome(row, {name: rows for name, rows in tables.items() if rows.num_rows})


def _table(name: str, columns: dict[str, list[object]]) -> pa.Table:
    typed = {field.name: pa.array(columns[field.name], field.type) for field in COLUMNS[name]}
    return pa.table({"run_id": pa.array(columns["run_id"], pa.string()), **typed})
