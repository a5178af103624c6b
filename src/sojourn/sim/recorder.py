"""The trace of a simulated run, as plain columns by table.

The tables and columns are those that live runs write too; their types are the pipeline's business. Clients
and brokers are written by name (`p3`, `s17`, a broker's name in its topology), times in seconds since the
run's start. Hops are written one by one (`messages`) only if asked for, since they are by far the most;
`message_counts` sums them up by kind and cause in any case.
"""

import json
from typing import Any

from sojourn.sim.results import HOP_NAMES

Columns = dict[str, list[Any]]

TABLES: dict[str, tuple[str, ...]] = {
    "runs": (
        "run_id",
        "world",
        "study",
        "seed",
        "spec_json",
        "started_at",
        "duration_s",
        "warmup_s",
        "error",
    ),
    "publications": (
        "run_id",
        "source",
        "sequence",
        "time_s",
        "broker",
        "topic",
        "attributes_json",
        "policy",
        "bytes",
    ),
    "interests": ("run_id", "client", "interest", "filter", "from_s", "to_s"),
    "clients": ("run_id", "client", "attributes_json"),
    "sojourns": ("run_id", "client", "broker", "from_s", "to_s"),
    "handoffs": (
        "run_id",
        "client",
        "from_broker",
        "to_broker",
        "left_s",
        "arrived_s",
        "ready_s",
        "cause",
    ),
    "deliveries": ("run_id", "client", "source", "sequence", "time_s", "broker"),
    "drops": ("run_id", "client", "source", "sequence", "time_s", "broker", "reason"),
    "messages": ("run_id", "time_s", "sender", "receiver", "kind", "bytes", "cause"),
    "message_counts": ("run_id", "kind", "cause", "hops", "bytes"),
    "broker_load": ("run_id", "broker", "handled", "busy_s", "queue_max", "queue_mean"),
}


class Recorder:
    """Collects rows; a world calls `add`, whoever writes files reads `tables`."""

    def __init__(self, run_id: str, *, study: str = "", messages: bool = False) -> None:
        self.run_id = run_id
        self.study = study
        self.messages = messages
        """Whether every hop becomes a row."""
        self.tables: dict[str, Columns] = {
            table: {column: [] for column in columns} for table, columns in TABLES.items()
        }

    def add(self, table: str, *values: object) -> None:
        """Add a row; the values follow the table's columns after `run_id`."""
        columns = self.tables[table]
        names = TABLES[table]
        columns["run_id"].append(self.run_id)
        for name, value in zip(names[1:], values, strict=True):
            columns[name].append(value)


def cause_name(cause: int) -> str:
    """A cause as the trace writes it: empty for none, else the move and whether it builds or tears down."""
    if cause < 2:
        return ""
    return f"move-{cause // 2}-{'teardown' if cause & 1 else 'build'}"


def kind_name(kind: int) -> str:
    """A kind of message as the trace writes it."""
    return HOP_NAMES[kind]


def as_json(value: object) -> str:
    """JSON with the keys in order, so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
