"""The trace of a simulated run, as plain columns by table.

The tables and columns are those that live runs write too (`trace/rows.py`). Clients and brokers are written
by name (`p3`, `s17`, a broker's name in its topology). Hops are written one by one (`messages`) only if asked
for, since they are by far the most; `message_counts` sums them up by kind and cause in any case.
"""

import json
from typing import Any

from sojourn.sim.results import HOP_NAMES
from sojourn.trace.rows import TABLES, names_of

Columns = dict[str, list[Any]]

NAMES: dict[str, tuple[str, ...]] = {table: names_of(table) for table in TABLES}


class Recorder:
    """Collects rows; a world calls `add`, whoever writes files reads `tables`."""

    def __init__(self, run_id: str, *, study: str = "", messages: bool = False) -> None:
        self.run_id = run_id
        self.study = study
        self.messages = messages
        """Whether every hop becomes a row."""
        self.tables: dict[str, Columns] = {
            table: {column: [] for column in ("run_id", *names)} for table, names in NAMES.items()
        }

    def add(self, table: str, *values: object) -> None:
        """Add a row; the values follow the table's columns, of which the last have defaults."""
        columns = self.tables[table]
        columns["run_id"].append(self.run_id)
        for name, value in zip(NAMES[table], TABLES[table].row(*values), strict=True):
            columns[name].append(value)


def cause_name(cause: int) -> str:
    """A cause as the trace writes it: the move; empty for none."""
    return f"move-{cause // 2}" if cause > 1 else ""


def phase_name(cause: int) -> str:
    """Whether a cause of a moving publisher builds or tears down; empty for none."""
    return ("teardown" if cause & 1 else "build") if cause > 1 else ""


def kind_name(kind: int) -> str:
    """A kind of message as the trace writes it."""
    return HOP_NAMES[kind]


def as_json(value: object) -> str:
    """JSON with the keys in order, so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
