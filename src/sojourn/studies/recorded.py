"""What a run of a study recorded, as Arrow tables: the types of `trace/rows.py`, and the run beside each row.

One place for all studies: facts from plain rows, and a whole trace from a simulation's recorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from sojourn.sim.recorder import Recorder
from sojourn.trace import COLUMNS, FACT_COLUMNS
from sojourn.trace.rows import FACTS, TABLES

_COLUMNS = COLUMNS | FACT_COLUMNS
_TABLES = TABLES | FACTS


def from_rows(run_id: str, rows: Mapping[str, Iterable[tuple[object, ...]]]) -> dict[str, pa.Table]:
    """Tables of plain rows, whose last columns may have defaults; those without rows are left out."""
    found = {}
    for name, given in rows.items():
        typed = [_TABLES[name].row(*row) for row in given]
        if typed:
            columns = dict(zip(_COLUMNS[name].names, zip(*typed, strict=True), strict=True))
            found[name] = from_columns(run_id, name, columns)
    return found


def from_columns(run_id: str, name: str, columns: Mapping[str, Iterable[Any]]) -> pa.Table:
    """A table of plain columns."""
    typed = {field.name: pa.array(list(columns[field.name]), field.type) for field in _COLUMNS[name]}
    count = len(next(iter(typed.values())))
    return pa.table({"run_id": pa.array([run_id] * count, pa.string()), **typed})


def from_recorder(recorder: Recorder) -> dict[str, pa.Table]:
    """All tables of a recorder that have rows."""
    return {
        name: from_columns(recorder.run_id, name, columns)
        for name, columns in recorder.tables.items()
        if columns["run_id"]
    }
