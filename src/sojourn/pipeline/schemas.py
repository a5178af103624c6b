"""Every StructType of the pipeline, and no other place has one.

`TRACE` holds the tables that simulated and live runs write (see `sojourn.trace` for the writer, which knows
the same columns as Arrow types; a test holds the two together). Times are seconds since the run's start, ids
are strings. On disk a table is DIR/<table>/run_id=<id>/part-….parquet: `run_id` is in the path, not in the
files, so that one run can be read alone. The other schemas are those of intermediate and final results.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
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

_TEXT, _COUNT, _SECONDS = StringType(), LongType(), DoubleType()


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


TRACE: dict[str, StructType] = {
    "runs": _table(
        run_id=_TEXT,
        world=_TEXT,  # sim or live
        study=_TEXT,
        seed=_COUNT,
        spec_json=_TEXT,
        started_at=TimestampType(),
        duration_s=_SECONDS,  # null while the run goes on
        warmup_s=_SECONDS,
        error=_TEXT,
    ),
    "publications": _table(
        run_id=_TEXT,
        source=_TEXT,
        sequence=_COUNT,
        time_s=_SECONDS,
        broker=_TEXT,
        topic=_TEXT,
        attributes_json=_TEXT,
        policy=_TEXT,
        bytes=_COUNT,
    ),
    # `to_s` is null while in force. A live process tells an interest or a sojourn twice: when it begins, and
    # again with `to_s` when it ends; the second row replaces the first.
    "interests": _table(
        run_id=_TEXT, client=_TEXT, interest=_TEXT, filter=_TEXT, from_s=_SECONDS, to_s=_SECONDS
    ),
    "clients": _table(run_id=_TEXT, client=_TEXT, attributes_json=_TEXT),
    "sojourns": _table(run_id=_TEXT, client=_TEXT, broker=_TEXT, from_s=_SECONDS, to_s=_SECONDS),
    "handoffs": _table(
        run_id=_TEXT,
        client=_TEXT,
        from_broker=_TEXT,
        to_broker=_TEXT,
        left_s=_SECONDS,
        arrived_s=_SECONDS,
        ready_s=_SECONDS,  # when all was rebuilt or handed over
        cause=_TEXT,
    ),
    "deliveries": _table(
        run_id=_TEXT, client=_TEXT, source=_TEXT, sequence=_COUNT, time_s=_SECONDS, broker=_TEXT
    ),
    "drops": _table(
        run_id=_TEXT,
        client=_TEXT,
        source=_TEXT,
        sequence=_COUNT,
        time_s=_SECONDS,
        broker=_TEXT,
        reason=_TEXT,  # queue_full, expired, …
    ),
    "messages": _table(
        run_id=_TEXT,
        time_s=_SECONDS,
        sender=_TEXT,
        receiver=_TEXT,
        kind=_TEXT,
        bytes=_COUNT,
        cause=_TEXT,
    ),
    "message_counts": _table(run_id=_TEXT, kind=_TEXT, cause=_TEXT, hops=_COUNT, bytes=_COUNT),
    "broker_load": _table(
        run_id=_TEXT,
        broker=_TEXT,
        handled=_COUNT,
        busy_s=_SECONDS,
        queue_max=_COUNT,
        queue_mean=_SECONDS,
    ),
}

PARTITION = "run_id"
"""The column that is in the path and not in the files."""


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

FILTER_PARTS = _table(part=IntegerType(), slice=IntegerType(), compiled=BinaryType())
"""A compiled part of the interests, for a slice of the publications."""

FINDINGS = _table(
    run_id=_TEXT,
    scope=_TEXT,  # incident, run, client, broker, window or stranger
    key=_TEXT,  # which client, broker or window; for an incident, the client
    measure=_TEXT,  # a count's or an incident's name, or latency
    tally=_COUNT,
    bins=ArrayType(_table(bin=IntegerType(), tally=_COUNT)),  # of latencies, see `audit_kernel.py`
    source=_TEXT,
    sequence=_COUNT,
    published_s=_SECONDS,
    time_s=_SECONDS,
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
            "unauthorised",
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
"""A sweep's file of one run when no trace is kept: one row of kind `result`."""

STORE = StructType([*MEASURED, *(StructField(name, TRACE[name]) for name in TRACE)])
"""A sweep's file of one run: a row of kind `result`, and rows of its trace, each in the column of its table.

All of a run in one file is what lets it appear in one rename; columns that are not asked for cost nothing to
read."""

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
