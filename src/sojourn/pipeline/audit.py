"""The audit's transforms: expected deliveries, compared with actual ones, summed up.

All functions here take and return DataFrames and are chained by `.transform`; reading, collecting and
deciding are `audit_job.py`'s business. The way of the data: publications become chunks of expected deliveries
(`expected_chunks`), deliveries chunks of actual ones (`delivered_chunks`), the union of both becomes findings
(`compared`), and these become counts, percentiles and incidents.

Publications are matched with a broadcast index inside Arrow batches, never by a join. When there are too many
filters to broadcast, `expected_chunks_by_part` deals the interests into parts, compiles each part where it
lies, and lets every publication visit every part. Both sides meet by bucket of clients (`audit_chunks.py`);
what is lost, doubled, out of order or unauthorised is defined in `audit_kernel.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so

from sojourn.pipeline.audit_chunks import DELIVERED, EXPECTED, NAMES, named_rows, packed, unpacked
from sojourn.pipeline.audit_findings import BY_RUN, COUNTS, INCIDENT, LOST, findings
from sojourn.pipeline.audit_interests import (
    RunInterests,
    compile_interests,
    expected_rows,
    filters_by_text,
    parse_filters,
)
from sojourn.pipeline.audit_kernel import BIN_BITS, compare
from sojourn.pipeline.schemas import CHUNKS, FILTER_PARTS, FINDINGS, PARSED_FILTERS
from sojourn.pipeline.tables import split_batches

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast

Transform = Callable[[DataFrame], DataFrame]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
QUEUE_FULL, EXPIRED, IN_FLIGHT, NEVER_ROUTED = "queue_full", "expired", "in_flight", "never_routed"
REASONS = (QUEUE_FULL, EXPIRED, IN_FLIGHT, NEVER_ROUTED)
PUBLISHED = ("run_id", "source", "sequence", "time_s", "topic", "attributes_json", "policy")
DELIVERY = ("run_id", "client", "source", "sequence", "time_s", "broker")


# -------------------------------------------------------------------------- expected and delivered


def told_last(*keys: str) -> Transform:
    """Join rows told when something began and again when it ended: the end, if told, wins."""

    def transform(rows: DataFrame) -> DataFrame:
        return rows.groupBy("run_id", *keys).agg(F.max("to_s").alias("to_s"))

    return transform


def with_parsed(texts: DataFrame) -> DataFrame:
    """Read the filters of a one-column DataFrame."""
    return texts.mapInArrow(parse_filters, PARSED_FILTERS)


def expected_chunks(interests: Broadcast[dict[str, RunInterests]], buckets: int) -> Transform:
    """Turn splits of publications into chunks of expected deliveries with a broadcast index."""

    def match(splits: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        compiled = interests.value
        batches = split_batches(splits, "publications", PUBLISHED)
        expected = (rows for batch in batches for rows in expected_rows(_as_table(batch), compiled))
        return packed(expected, EXPECTED, buckets)

    def transform(splits: DataFrame) -> DataFrame:
        return splits.mapInArrow(match, CHUNKS)

    return transform


def expected_chunks_by_part(
    interests: DataFrame, clients: DataFrame, *, parts: int, slices: int, buckets: int
) -> Transform:
    """Turn publications into chunks of expected deliveries with an index too large to broadcast.

    Interests are dealt into `parts` by run and client and compiled part by part; publications into `slices`,
    each of which visits every part. A task holds one part and one slice.
    """

    def transform(publications: DataFrame) -> DataFrame:
        compiled = interests.transform(_compiled_parts(clients, parts, slices))
        visits = publications.select(
            *PUBLISHED,
            F.pmod(F.xxhash64("run_id", "source", "sequence"), F.lit(slices)).cast("int").alias("slice"),
            F.explode(F.sequence(F.lit(0), F.lit(parts - 1))).alias("part"),
        )
        return (
            visits.groupBy("part", "slice")
            .cogroup(compiled.groupBy("part", "slice"))
            .applyInArrow(_matcher(buckets), CHUNKS)
        )

    return transform


def _compiled_parts(clients: DataFrame, parts: int, slices: int) -> Transform:
    part = F.pmod(F.xxhash64("run_id", "client"), F.lit(parts)).cast("int")

    def transform(interests: DataFrame) -> DataFrame:
        mine = interests.withColumn("part", part).groupBy("part")
        theirs = clients.withColumn("part", part).groupBy("part")
        return mine.cogroup(theirs).applyInArrow(_compile_part(slices), FILTER_PARTS)

    return transform


def _compile_part(slices: int) -> Callable[[tuple[pa.Scalar, ...], pa.Table, pa.Table], pa.Table]:
    def compile_part(key: tuple[pa.Scalar, ...], interests: pa.Table, clients: pa.Table) -> pa.Table:
        texts = pa.RecordBatch.from_arrays([interests.column("filter").unique()], names=["filter"])
        parsed = pa.Table.from_batches(parse_filters(iter([texts])))
        compiled = compile_interests(interests, clients, filters_by_text(parsed))
        blob = pickle.dumps(compiled, protocol=5)
        return pa.table(
            {
                "part": pa.array([key[0].as_py()] * slices, pa.int32()),
                "slice": pa.array(range(slices), pa.int32()),
                "compiled": pa.array([blob] * slices, pa.binary()),
            }
        )

    return compile_part


def _matcher(buckets: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def match(publications: pa.Table, compiled: pa.Table) -> pa.Table:
        empty = pa.table({"bucket": pa.array([], pa.int32()), "side": pa.array([], pa.int32())})
        chunks = [empty.append_column("payload", pa.array([], pa.binary()))]
        for blob in compiled.column("compiled").to_pylist():
            interests: Mapping[str, RunInterests] = pickle.loads(blob)  # noqa: S301  made by `_compile_part`
            rows = expected_rows(publications, interests)
            chunks += [pa.Table.from_batches([chunk]) for chunk in packed(rows, EXPECTED, buckets)]
        return pa.concat_tables(chunks)

    return match


def delivered_chunks(buckets: int) -> Transform:
    """Turn splits of deliveries into chunks."""

    def pack(splits: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = split_batches(splits, "deliveries", DELIVERY, NAMES)
        return packed((named_rows(batch) for batch in batches), DELIVERED, buckets)

    def transform(splits: DataFrame) -> DataFrame:
        return splits.mapInArrow(pack, CHUNKS)

    return transform


def compared(buckets: int, window_s: float) -> Transform:
    """Compare the chunks of both sides, bucket by bucket, into FINDINGS."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        payloads: dict[int, list[pa.Scalar]] = {EXPECTED: [], DELIVERED: []}
        for batch in batches:
            for side, payload in zip(batch.column("side").to_pylist(), batch.column("payload"), strict=True):
                payloads[side].append(payload.as_buffer())
        if payloads[EXPECTED] or payloads[DELIVERED]:
            outcomes = compare(unpacked(payloads[EXPECTED]), unpacked(payloads[DELIVERED]))
            yield from findings(outcomes, window_s).to_batches()

    def transform(chunks: DataFrame) -> DataFrame:
        # A partition is a bucket: nothing need be sorted or grouped within it.
        return chunks.repartitionById(buckets, F.col("bucket")).mapInArrow(judge, FINDINGS)

    return transform


def _as_table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


# -------------------------------------------------------------------------- summing up


def filter_incidents(found: DataFrame) -> DataFrame:
    """Keep the single incidents, under their own names."""
    return found.where(F.col("scope") == INCIDENT).select(
        "run_id",
        F.col("key").alias("client"),
        "source",
        "sequence",
        F.col("measure").alias("incident"),
        F.col("tally").alias("times"),
        "published_s",
        "time_s",
        "broker",
    )


def counts_by(scope: str, name: str | None = None) -> Transform:
    """Sum the tallies of a scope by run, and by client, broker or window when `name` names the column."""
    keys = ["run_id"] + ([name] if name else [])

    def transform(found: DataFrame) -> DataFrame:
        tallies = found.where(F.col("scope") == scope).select(
            "run_id", F.col("key").alias(name or "key"), "measure", "tally", "bins"
        )
        counted = tallies.groupBy(*keys).agg(
            *(_tally_of(measure).alias(measure) for measure in COUNTS),
            F.sort_array(F.flatten(F.collect_list("bins"))).alias("bins"),
        )
        return counted.withColumns(_latency_percentiles()).drop("bins")

    return transform


def _tally_of(measure: str) -> Column:
    return F.coalesce(F.sum(F.when(F.col("measure") == measure, F.col("tally"))), F.lit(0))


def _latency_percentiles() -> dict[str, Column]:
    """Read percentiles off sorted bins: the first bin with enough latencies in and below it."""
    total = F.col("delivered") - F.col("before_published")
    start = F.struct(F.lit(0).cast("long").alias("upto"), F.lit(None).cast("int").alias("bin"))

    def percentile(share: float) -> Column:
        def step(at: Column, bin_: Column) -> Column:
            upto = at["upto"] + bin_["tally"]
            reached = F.coalesce(at["bin"], F.when(upto >= total * share, bin_["bin"]))
            return F.struct(upto.alias("upto"), reached.alias("bin"))

        return _middle(F.aggregate("bins", start, step)["bin"])

    return {f"latency_{name}_s": percentile(share) for name, share in PERCENTILES.items()}


def _middle(number: Column) -> Column:
    """The latency in the middle of a bin, as `audit_kernel.bin_middle_s` has it."""
    fine = 1 << BIN_BITS
    exponent = F.floor(number / fine) - 20
    middle = F.pow(F.lit(2.0), exponent) * (1 + (F.pmod(number, F.lit(fine)) + 0.5) / fine)
    return F.when(number <= 0, F.lit(2.0**-21)).otherwise(middle)


def with_loss_reason(runs: DataFrame, drops: DataFrame, sojourns: DataFrame, in_flight_s: float) -> Transform:
    """Add to lost deliveries why, and at which broker, as far as the trace shows it.

    `reason` is the one a broker gave when it dropped the event for this client; else `in_flight` when it was
    published within the last `in_flight_s` of the run or after its client had left for good; else
    `never_routed`. The broker is the one that dropped it, else the one the client was at or had last been at.
    """
    told = drops.groupBy("run_id", "client", "source", "sequence").agg(
        F.min_by("reason", "time_s").alias("dropped"), F.min_by("broker", "time_s").alias("drop_broker")
    )
    ends = runs.groupBy("run_id").agg(F.max("duration_s").alias("duration_s"))
    stays = sojourns.groupBy("run_id", "client").agg(
        F.sort_array(F.collect_list(F.struct("from_s", "broker", "to_s"))).alias("stays"),
        (F.max(F.col("to_s").isNull()).alias("is_somewhere")),
        F.max("to_s").alias("left_s"),
    )

    def transform(incidents: DataFrame) -> DataFrame:
        begun = F.filter("stays", lambda stay: stay["from_s"] <= F.col("published_s"))
        ending = F.col("published_s") >= F.col("duration_s") - in_flight_s
        away = (
            ~F.col("is_somewhere")
            & (F.col("published_s") >= F.col("left_s"))
            & (F.col("left_s") < F.col("duration_s"))
        )
        reason = F.when(F.col("dropped").isNotNull(), F.col("dropped"))
        reason = reason.when(ending | away, F.lit(IN_FLIGHT)).otherwise(F.lit(NEVER_ROUTED))
        at = F.coalesce("drop_broker", F.try_element_at(begun, F.lit(-1))["broker"], "broker")
        is_lost = F.col("incident") == LOST
        return (
            incidents.join(told, ["run_id", "client", "source", "sequence"], "left")
            .join(F.broadcast(ends), "run_id", "left")
            .join(stays, ["run_id", "client"], "left")
            .withColumns(
                {"reason": F.when(is_lost, reason), "broker": F.when(is_lost, at).otherwise(F.col("broker"))}
            )
            .select(*incidents.columns, "reason")
        )

    return transform


def losses_by_reason(incidents: DataFrame) -> DataFrame:
    """Count lost deliveries by run, a column for each reason a trace can show."""
    other = ~F.col("reason").isin(*REASONS)
    return (
        incidents.where(F.col("incident") == LOST)
        .groupBy("run_id")
        .agg(
            *(F.count_if(F.col("reason") == reason).alias(f"lost_{reason}") for reason in REASONS),
            F.count_if(other).alias("lost_other"),
        )
    )


def with_losses_by_broker(incidents: DataFrame) -> Transform:
    """Add to counts by broker what was lost there: the findings alone cannot tell."""
    lost = (
        incidents.where(F.col("incident") == LOST).groupBy("run_id", "broker").agg(F.count("*").alias("lost"))
    )

    def transform(counts: DataFrame) -> DataFrame:
        joined = counts.drop("lost", "expected").join(lost, ["run_id", "broker"], "full")
        numbers = [name for name in COUNTS if name != "expected"]
        return joined.fillna(0, numbers).withColumn("expected", F.col("delivered") + F.col("lost"))

    return transform


def handoff_times(handoffs: DataFrame) -> DataFrame:
    """Percentiles of hand-offs by run: until the client was back, and until all was rebuilt for it."""
    measures = {"away": F.col("arrived_s") - F.col("left_s"), "ready": F.col("ready_s") - F.col("left_s")}
    return handoffs.groupBy("run_id").agg(
        F.count("*").alias("handoffs"),
        *(
            F.percentile(time, F.lit(share)).alias(f"handoff_{measure}_{name}_s")
            for measure, time in measures.items()
            for name, share in PERCENTILES.items()
        ),
    )


def published_by_run(publications: DataFrame) -> DataFrame:
    """Count publications by run, and those with an earlier time than the one before them in sequence."""
    ahead = Window.partitionBy("run_id", "source").orderBy("sequence")
    jumped = F.col("time_s") < F.lag("time_s").over(ahead)
    return (
        publications.select("run_id", "source", "sequence", "time_s")
        .withColumn("jumped", jumped)
        .groupBy("run_id")
        .agg(F.count("*").alias("published"), F.count_if("jumped").alias("clock_jumps"))
    )


def run_summary(
    runs: DataFrame, publications: DataFrame, handoffs: DataFrame, incidents: DataFrame
) -> Transform:
    """Turn findings into one row a run: what was published, expected, delivered, lost and why, and times."""

    def transform(found: DataFrame) -> DataFrame:
        told = (F.max(name).alias(name) for name in ("world", "duration_s", "error"))
        parts = [
            publications.transform(published_by_run),
            found.transform(counts_by(BY_RUN)),
            incidents.transform(losses_by_reason),
            handoffs.transform(handoff_times),
        ]
        rows = runs.groupBy("run_id").agg(*told)
        # Stacked and grouped once instead of joined one after the other: a fifth of the shuffles.
        for part in parts:
            rows = rows.unionByName(part, allowMissingColumns=True)
        one = rows.groupBy("run_id").agg(
            *(F.max(name).alias(name) for name in rows.columns if name != "run_id")
        )
        counts = [name for name, kind in one.dtypes if kind == "bigint"]
        return one.fillna(0, counts)

    return transform
