"""The audit while the system runs: loss, duplicates, order and hand-offs by the minute, from live segments.

One query watches one run, whose times are seconds since its start. Rows come as they are sealed, tables in
any order. What a delivery is judged by may be sealed later than the delivery, so nothing is judged before the
watermark: the latest time seen less `delay_s`, the most that one table may lag behind another. An event is
settled `patience_s` before the watermark, when every copy that may still come has come; it's then compared
by the very code of the batch audit, counted in its window and forgotten. The sums of all tallies are the
batch audit's when no delivery took longer than `patience_s` and no segment came later than `delay_s`. What
comes later is never dropped unseen: `streaming_state.py` says what becomes of it, and every window tells how
many publications, deliveries and interests came late. Hand-offs need no judging and are counted as they come.

A run's last row, in `runs` with its duration, settles everything. State and what was read are in the
checkpoint, what was written is in the sink's own log: a query that dies, at any moment and without a word,
and is started again with the same output directory neither loses nor doubles a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sojourn.pipeline.audit import DELIVERY, PUBLICATION, Transform, counted
from sojourn.pipeline.audit_chunks import named_rows, split, to_all
from sojourn.pipeline.audit_findings import BY_WINDOW
from sojourn.pipeline.audit_gaps import Gaps
from sojourn.pipeline.audit_options import LiveOptions
from sojourn.pipeline.schemas import FINDINGS, LIVE_ROWS, LIVE_STATE, TRACE, file_schema
from sojourn.pipeline.session import parallelism
from sojourn.pipeline.streaming_state import (
    CLIENTS,
    DELIVERIES,
    DROPS,
    END,
    HANDOFFS,
    INTERESTS,
    PUBLICATIONS,
    SOJOURNS,
    Held,
)
from sojourn.pipeline.tables import KEYS
from sojourn.trace import segment_folder
from sojourn.trace.lives import missing_of, read_lives

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FOUND, CHECKPOINT = "findings", "checkpoint"
"""What the query keeps in its output directory."""

_BUCKETS_MIN = 4
_MOMENT = pa.timestamp("us", tz="UTC")
_SIDES = {
    "publications": PUBLICATIONS,
    "deliveries": DELIVERIES,
    "interests": INTERESTS,
    "clients": CLIENTS,
    "handoffs": HANDOFFS,
    "drops": DROPS,
    "sojourns": SOJOURNS,
}
_COLUMNS = {
    "publications": PUBLICATION,
    "deliveries": DELIVERY,
    "interests": tuple(TRACE["interests"].names),
    "clients": tuple(TRACE["clients"].names),
    "handoffs": ("run_id", "client", "left_s", "arrived_s", "ready_s"),
    "drops": ("run_id", "client", "source", "sequence", "time_s", "broker", "reason"),
    "sojourns": tuple(TRACE["sojourns"].names),
}


def start_live_audit(
    spark: SparkSession, root: str | Path, run_id: str, out: str | Path, options: LiveOptions | None = None
) -> StreamingQuery:
    """Start the query that audits a run; what it finds is appended to the table `findings` in `out`."""
    chosen = sized(options or LiveOptions(), spark)
    base, target = Path(root), Path(out)
    found = live_findings(_reader(spark, base, run_id), chosen, _missing(base.absolute(), run_id))
    with _partitions(spark, chosen.buckets or 1):
        return (
            found.writeStream.format("parquet")
            .queryName(f"sojourn-audit-{run_id}")
            .option("checkpointLocation", str(target / CHECKPOINT))
            .option("path", str(target / FOUND))
            .trigger(processingTime=f"{chosen.trigger_s} seconds")
            .start()
        )


def sized(options: LiveOptions, spark: SparkSession) -> LiveOptions:
    """Return options with a number of buckets: what was asked for, else one for each core."""
    return replace(options, buckets=options.buckets or max(_BUCKETS_MIN, parallelism(spark)))


def read_findings(spark: SparkSession, out: str | Path) -> DataFrame:
    """Return what the query has written so far: all of every batch that was completed, nothing of others."""
    folder = Path(out) / FOUND
    if not (folder / "_spark_metadata").is_dir():
        return spark.createDataFrame([], FINDINGS)
    return spark.read.schema(FINDINGS).parquet(str(folder))


def by_window(found: DataFrame) -> DataFrame:
    """Sum up what the query wrote so far, by window, as the batch audit does."""
    windows = found.transform(counted).where(F.col("scope") == BY_WINDOW)
    return (
        windows.withColumn("window_s", F.col("key").cast("double")).drop("scope", "key").orderBy("window_s")
    )


def live_findings(
    read: Callable[[str], DataFrame],
    options: LiveOptions,
    missing: Callable[[float | None], Gaps] = lambda _duration_s: {},
) -> DataFrame:
    """Return the stream of findings from streams of the trace's tables.

    `missing` tells at any time of which brokers rows are missing; it is given how long the run was, if it has
    ended.
    """
    buckets = options.buckets or _BUCKETS_MIN
    # The end of the run is looked for first: whoever sees it then sees all that was sealed before it.
    rows = read("runs").transform(_ends(buckets))
    for table, side in _SIDES.items():
        rows = rows.unionByName(read(table).transform(_packed(table, side, buckets)))
    return (
        rows.withWatermark("at", f"{options.delay_s} seconds")
        .groupBy("bucket")
        .applyInPandasWithState(
            _settling(options, missing), FINDINGS, LIVE_STATE, "append", GroupStateTimeout.EventTimeTimeout
        )
    )


# -------------------------------------------------------------------------- streams


@contextmanager
def _partitions(spark: SparkSession, count: int) -> Iterator[None]:
    """Give queries started meanwhile a state partition a bucket: more would be empty and cost time."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, str(count))
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _reader(spark: SparkSession, root: Path, run_id: str) -> Callable[[str], DataFrame]:
    def read(table: str) -> DataFrame:
        folder = segment_folder(root, table, run_id)
        folder.mkdir(parents=True, exist_ok=True)  # a query may start before the first segment
        rows = spark.readStream.schema(file_schema(table)).parquet(str(folder))
        return rows.withColumn("run_id", F.lit(run_id))

    return read


def _missing(root: Path, run_id: str) -> Callable[[float | None], Gaps]:
    def missing(duration_s: float | None) -> Gaps:
        found = missing_of(read_lives(root, run_id).get(run_id, {}), duration_s)
        return {run_id: found} if found else {}

    return missing


def _ends(buckets: int) -> Transform:
    """Tell every bucket that the run has ended, once its duration is known."""

    def transform(runs: DataFrame) -> DataFrame:
        return runs.where(F.col("duration_s").isNotNull()).select(
            F.explode(F.sequence(F.lit(0), F.lit(buckets - 1))).alias("bucket"),
            F.lit(None).cast("timestamp").alias("at"),
            F.lit(END).alias("side"),
            F.col("duration_s").cast("string").cast("binary").alias("payload"),
        )

    return transform


def _packed(table: str, side: int, buckets: int) -> Transform:
    """Turn rows into chunks; publications go to every bucket, all else to its client's.

    Chunks have no moment, so that Spark does not drop late ones; a row beside them moves the watermark.
    """

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = named_rows(batch)
            to_everybody = side == PUBLICATIONS
            for chunks in [to_all(rows, side, buckets)] if to_everybody else split(rows, side, buckets):
                none = pa.nulls(chunks.num_rows, _MOMENT)
                columns = (chunks.column(name) for name in ("bucket", "side", "payload"))
                bucket, sides, payload = columns
                yield _live_rows(bucket, none, sides, payload)
            if "time_s" in rows.column_names:
                last = pa.array([round(pc.max(rows.column("time_s")).as_py() * 1e6)], _MOMENT)
                yield _live_rows(
                    pa.array([0], pa.int32()), last, pa.nulls(1, pa.int32()), pa.nulls(1, pa.binary())
                )

    def transform(rows: DataFrame) -> DataFrame:
        keys = list(KEYS[table]) + (["ready_s"] if table == "handoffs" else [])
        return rows.dropna(subset=keys).select(*_COLUMNS[table]).mapInArrow(pack, LIVE_ROWS)

    return transform


def _live_rows(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=LIVE_ROWS.names)


def _settling(
    options: LiveOptions,
    missing: Callable[[float | None], Gaps],
) -> Callable[[tuple[Any, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """Return the function that settles what a bucket holds each time the watermark moves."""

    def settle(
        _key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        held = Held.loads(state.get[0]) if state.exists else Held()
        watermark_ms = state.getCurrentWatermarkMs()
        for frame in frames:
            told = frame[frame["side"].notna()]
            for side, payload in zip(told["side"], told["payload"], strict=True):
                held.add(int(side), payload, watermark_ms / 1e3, options.window_s)
        gaps = missing(held.duration_s if held.has_ended else None)
        found = held.settle(watermark_ms / 1e3 - options.patience_s, options, gaps)
        state.update((held.dumps(),))
        if held.is_waiting:
            state.setTimeoutTimestamp(watermark_ms + 1)
        if found is not None:
            yield found.to_pandas()

    return settle
