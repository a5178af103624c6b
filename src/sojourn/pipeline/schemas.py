"""Every StructType of the pipeline, and no other place has one.

`TRACE` holds the tables that simulated and live runs write; it follows from `trace/rows.py`, where every
column is declared and explained. On disk a table is DIR/<table>/run_id=<id>/part-….parquet: `run_id` is in
the path, not in the files, so that one run can be read alone. The other schemas are those of intermediate and
final results.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sojourn.trace.rows import FACTS as FACT_TABLES
from sojourn.trace.rows import TABLES, columns_of

_TEXT, _COUNT, _SECONDS = StringType(), LongType(), DoubleType()


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


PARTITION = "run_id"
"""The column that is in the path and not in the files."""

_KINDS: dict[type, DataType] = {
    str: _TEXT,
    int: _COUNT,
    float: _SECONDS,
    bool: BooleanType(),
    datetime: TimestampType(),
}


def rows_schema(row: type[Any], *, by_run: bool = True) -> StructType:
    """Return the columns of a class of rows (`trace/rows.py`), after that of the run; with their meaning."""
    columns = [
        StructField(column.name, _KINDS[column.kind], metadata={"comment": column.meaning})
        for column in columns_of(row)
    ]
    run = [StructField(PARTITION, _TEXT, metadata={"comment": "the run"})] if by_run else []
    return StructType([*run, *columns])


TRACE: dict[str, StructType] = {name: rows_schema(table.row) for name, table in TABLES.items()}
"""The tables that runs write."""

FACTS: dict[str, StructType] = {name: rows_schema(table.row) for name, table in FACT_TABLES.items()}
"""What runs of studies record beside them, for their measures."""


def file_schema(table: str) -> StructType:
    """Return the columns that the files of a table hold."""
    return StructType([field for field in TRACE[table] if field.name != PARTITION])


SPLITS = _table(task=IntegerType(), table=_TEXT, run_id=_TEXT, path=_TEXT, row_group=IntegerType())
"""A part of a file of a trace, to be read by the task that needs it (see `tables.py`)."""

CHUNKS = _table(bucket=IntegerType(), side=IntegerType(), payload=BinaryType())
"""Many rows of one kind for one bucket of clients, as Arrow bytes (see `audit_chunks.py`)."""

FAULTY_FILTERS = _table(filter=_TEXT, error=_TEXT)
"""A filter's text that cannot be read, and what is wrong with it."""

INDEX_TEXTS = _table(place=IntegerType(), first=_COUNT, texts=ArrayType(_TEXT))
"""Filters to be compiled into one index, whose keys count up from `first` (see `audit_interests.py`)."""

INDEX_PARTS = _table(place=IntegerType(), index=BinaryType(), faulty=ArrayType(FAULTY_FILTERS))
"""The pickled index, and what in it could not be read."""

FILTER_PARTS = _table(part=IntegerType(), slice=IntegerType(), compiled=BinaryType(), faulty=BinaryType())
"""A compiled part of the interests, for a slice of the publications; and once what could not be read."""

FINDINGS = _table(
    run_id=_TEXT,
    scope=_TEXT,  # incident, run, client, broker, window, stranger or filter
    key=_TEXT,  # which client, broker, window or filter; for an incident, the client
    measure=_TEXT,  # a count's or an incident's name, or latency
    tally=_COUNT,
    bins=ArrayType(_table(bin=IntegerType(), tally=_COUNT)),  # of latencies, see `audit_kernel.py`
    source=_TEXT,
    sequence=_COUNT,
    published_s=_SECONDS,
    time_s=_SECONDS,  # of an incident, or the longest of latencies, or of what is older than its publication
    broker=_TEXT,
    reason=_TEXT,  # of a loss
)
"""What comparing expected with actual deliveries finds: tallies, and single incidents."""

COUNTED = _table(
    run_id=_TEXT,
    scope=_TEXT,
    key=_TEXT,
    **dict.fromkeys(
        (
            "published",
            "clock_jumps",
            "unreadable",  # publications whose attributes cannot be read
            "expected",
            "delivered",
            "deliveries",
            "lost",
            "duplicated",
            "out_of_order",
            "allowed",  # delivered between asking for an interest and its coming into force
            "unauthorised",
            "unrecorded_deliveries",  # expected and without a row, where rows are missing
            "unrecorded_publications",  # delivered of events without a row, likewise
            "before_published",
            "lost_queue_full",
            "lost_expired",
            "lost_in_flight",
            "lost_never_routed",
            "lost_other",
            "late_publications",  # the streaming audit's: what came after its time had been judged
            "late_deliveries",
            "late_interests",
            "handoffs",
        ),
        _COUNT,
    ),
    before_published_max_s=_SECONDS,
    **{
        f"{what}_{share}_s": _SECONDS
        for what in ("latency", "handoff_away", "handoff_ready")
        for share in ("p50", "p90", "p99", "max")
    },
)
"""The findings summed up: a row a run, client, broker or window."""

LIVE_STATE = _table(payload=BinaryType())
"""What the streaming audit keeps for a bucket of clients between two micro-batches."""

LIVE_ROWS = _table(bucket=IntegerType(), at=TimestampType(), side=IntegerType(), payload=BinaryType())
"""Rows of a trace on their way into the streaming audit."""

GRID = _table(run_id=_TEXT, seed=_COUNT, cost=_SECONDS, spec_json=_TEXT)
"""The run specifications of a sweep; `cost` is an estimate in any unit, to start the dearest first."""

RESULTS = _table(
    run_id=_TEXT,
    key=_TEXT,  # digest of the specification and the code
    seed=_COUNT,
    spec_json=_TEXT,
    code=_TEXT,
    error=_TEXT,
    wall_s=_SECONDS,
    numbers=MapType(_TEXT, _SECONDS),
    texts=MapType(_TEXT, _TEXT),
)
"""One row a run of a sweep: its measures by name, or its error."""

MEASURED = StructType([StructField("kind", _TEXT), *RESULTS])
"""A sweep's file of one run when nothing else is kept: one row of kind `result`."""

RECORDED = TRACE | FACTS
"""Every table that a run in a sweep can record."""


def store_with(tables: Iterable[str]) -> StructType:
    """Return what a sweep's file of a run holds that records some tables: each a column, with its name."""
    return StructType([*MEASURED, *(StructField(name, RECORDED[name]) for name in tables)])


STORE = store_with(RECORDED)
"""A sweep's file of one run: a row of kind `result`, and rows of its tables, each in the column of its table.

All of a run in one file is what lets it appear in one rename; columns that are not asked for cost nothing to
read."""

MEASURES = _table(run_id=_TEXT, measure=_TEXT, value=_SECONDS)
"""A study's measures: one row a run and measure."""

MEASURES_EACH = _table(run_id=_TEXT, measure=_TEXT, at=_COUNT, value=_SECONDS)
"""Measures of single layouts or histories that a run looked at: one row each and measure."""

LIVE_EVENTS = _table(
    topic=_TEXT,
    payload=BinaryType(),
    attributes=MapType(_TEXT, _TEXT),
    source=_TEXT,
    sequence=_COUNT,
    publisher=_TEXT,  # who published it, by its own word; empty where it did not say
    number=_COUNT,  # and under which number
    time=TimestampType(),  # when its broker accepted it, or what the option timeAttribute names
)
"""An event as `events_source.py` reads it from live brokers."""
