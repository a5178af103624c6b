"""The audit while the system runs: loss, duplicates, order and hand-offs by the minute, from live segments.

One query watches one run, whose times are seconds since its start. Rows come as they are sealed, tables in
any order. What a delivery is judged by may be sealed later than the delivery, so nothing is judged before the
watermark: the latest time seen less `delay_s`, the most that one table may lag behind another. An event is
settled `patience_s` before the watermark, when every copy that may still come has come; it's then compared
by the very code of the batch audit, counted in its window and forgotten. The sums of all tallies are the
batch audit's when no delivery took longer than `patience_s` and no segment came later than `delay_s`; one
that did is left out and shows in the query's progress as rows dropped by the watermark.

A run's last row, in `runs` with its duration, moves the watermark past everything. State and what was read
are in the checkpoint, what was written is in the sink's own log: a query that dies and is started again with
the same output directory neither loses nor doubles a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from sojourn.pipeline.audit import DELIVERY, PUBLICATION, Transform, counted
from sojourn.pipeline.audit_chunks import named_rows, serialised, split
from sojourn.pipeline.audit_findings import BY_WINDOW
from sojourn.pipeline.audit_sums import PERCENTILES
from sojourn.pipeline.schemas import FINDINGS, LIVE_ROWS, LIVE_STATE, TRACE, file_schema
from sojourn.pipeline.streaming_state import CLIENTS, DELIVERIES, INTERESTS, PUBLICATIONS, Held
from sojourn.pipeline.tables import KEYS
from sojourn.trace import segment_folder

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_SIDES = {"publications": PUBLICATIONS, "deliveries": DELIVERIES, "interests": INTERESTS, "clients": CLIENTS}
_COLUMNS = {
    "publications": PUBLICATION,
    "deliveries": DELIVERY,
    "interests": tuple(TRACE["interests"].names),
    "clients": tuple(TRACE["clients"].names),
}


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """How to audit a running system."""

    window_s: float = 60.0
    delay_s: float = 10.0
    """How much later than another table's a segment may be sealed."""
    patience_s: float = 30.0
    """How long after its publication a delivery, or a copy of it, may still come."""
    buckets: int = 4
    """Parts of the clients, judged side by side."""
    trigger_s: float = 5.0
    """Seconds between looks at the directory."""


def start_live_audit(
    spark: SparkSession, root: str | Path, run_id: str, out: str | Path, options: LiveOptions | None = None
) -> list[StreamingQuery]:
    """Start the queries that audit a run; what they find is appended to tables in `out`."""
    chosen = options or LiveOptions()
    base, target = Path(root), Path(out)
    read = _reader(spark, base, run_id)
    frames = {
        "findings": live_findings(read, chosen),
        "handoffs": read("handoffs").transform(handoffs_by_window(_ends(read, chosen), chosen)),
    }
    with _partitions(spark, chosen.buckets):
        return [
            frame.writeStream.format("parquet")
            .queryName(f"sojourn-{name}-{run_id}")
            .option("checkpointLocation", str(target / "checkpoint" / name))
            .option("path", str(target / name))
            .trigger(processingTime=f"{chosen.trigger_s} seconds")
            .start()
            for name, frame in frames.items()
        ]


def by_window(found: DataFrame) -> DataFrame:
    """Sum up what the queries wrote so far, by window, as the batch audit does."""
    windows = found.transform(counted).where(F.col("scope") == BY_WINDOW)
    return (
        windows.withColumn("window_s", F.col("key").cast("double")).drop("scope", "key").orderBy("window_s")
    )


def live_findings(read: Callable[[str], DataFrame], options: LiveOptions) -> DataFrame:
    """Return the stream of findings from streams of the trace's tables."""
    ends = _ends(read, options).transform(_marked(options.buckets))
    # The end of the run is looked for first: whoever sees it then sees all that was sealed before it.
    rows = ends
    for table, side in _SIDES.items():
        rows = rows.unionByName(read(table).transform(_packed(table, side, options.buckets)))
    return (
        rows.withWatermark("at", f"{options.delay_s} seconds")
        .groupBy("bucket")
        .applyInPandasWithState(
            _settling(options), FINDINGS, LIVE_STATE, "append", GroupStateTimeout.EventTimeTimeout
        )
    )


def handoffs_by_window(ends: DataFrame, options: LiveOptions) -> Transform:
    """Percentiles of hand-offs by the window in which they were complete."""
    times = {"away": F.col("arrived_s") - F.col("left_s"), "ready": F.col("ready_s") - F.col("left_s")}

    def transform(handoffs: DataFrame) -> DataFrame:
        timed = handoffs.where(F.col("ready_s").isNotNull()).withColumn("at", F.timestamp_seconds("ready_s"))
        wanted = ("run_id", "at", "left_s", "arrived_s", "ready_s")
        watched = ends.unionByName(timed.select(*wanted), allowMissingColumns=True)
        return (
            watched.withWatermark("at", f"{options.delay_s} seconds")
            .groupBy("run_id", F.window("at", f"{options.window_s} seconds").alias("window"))
            .agg(
                F.count("left_s").alias("handoffs"),
                *(
                    F.percentile(time, F.lit(share)).alias(f"handoff_{measure}_{name}_s")
                    for measure, time in times.items()
                    for name, share in PERCENTILES.items()
                ),
            )
            .where(F.col("handoffs") > 0)
            .withColumn("window_s", F.unix_micros("window.start") / 1e6)
            .drop("window")
        )

    return transform


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


def _ends(read: Callable[[str], DataFrame], options: LiveOptions) -> DataFrame:
    """The end of the run as a moment after which nothing is waited for."""
    after_s = options.patience_s + options.delay_s + options.window_s + 1
    ended = read("runs").where(F.col("duration_s").isNotNull())
    return ended.select("run_id", F.timestamp_seconds(F.col("duration_s") + after_s).alias("at"))


def _marked(buckets: int) -> Transform:
    """Send a moment to every bucket."""

    def transform(moments: DataFrame) -> DataFrame:
        return moments.select(
            F.explode(F.sequence(F.lit(0), F.lit(buckets - 1))).alias("bucket"),
            "at",
            F.lit(None).cast("int").alias("side"),
            F.lit(None).cast("binary").alias("payload"),
        )

    return transform


def _packed(table: str, side: int, buckets: int) -> Transform:
    """Turn rows into chunks; publications go to every bucket, all else to its client's.

    A chunk's moment is its last row's, so that it's late only as a whole. Interests and clients have none:
    they are never late.
    """

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = named_rows(batch)
            chunks = _to_all(rows, side, buckets) if side == PUBLICATIONS else split(rows, side, buckets)
            last = pc.max(rows.column("time_s")).as_py() if "time_s" in rows.column_names else None
            moment = None if last is None else round(last * 1e6)
            moments = pa.array([moment] * chunks.num_rows, pa.timestamp("us", tz="UTC"))
            yield pa.RecordBatch.from_arrays(
                [chunks.column("bucket"), moments, chunks.column("side"), chunks.column("payload")],
                names=["bucket", "at", "side", "payload"],
            )

    def transform(rows: DataFrame) -> DataFrame:
        return rows.dropna(subset=list(KEYS[table])).select(*_COLUMNS[table]).mapInArrow(pack, LIVE_ROWS)

    return transform


def _to_all(rows: pa.Table, side: int, buckets: int) -> pa.RecordBatch:
    """Return the rows of a table as a chunk for every bucket."""
    columns = [
        pa.array(range(buckets), pa.int32()),
        pa.array([side] * buckets, pa.int32()),
        pa.array([serialised(rows)] * buckets, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "side", "payload"])


def _settling(
    options: LiveOptions,
) -> Callable[[tuple[Any, ...], Iterable[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """Return the function that settles what a bucket holds each time the watermark moves."""

    def settle(
        _key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        held = Held.loads(state.get[0]) if state.exists else Held()
        for frame in frames:
            for side, payload in zip(frame["side"], frame["payload"], strict=True):
                if payload is not None:
                    held.add(int(side), payload)
        watermark_ms = state.getCurrentWatermarkMs()
        found = held.settle(watermark_ms / 1e3 - options.patience_s, options.window_s)
        state.update((held.dumps(),))
        if held.is_waiting:
            state.setTimeoutTimestamp(watermark_ms + 1)
        if found is not None:
            yield found.to_pandas()

    return settle
