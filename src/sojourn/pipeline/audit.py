"""The audit's transforms: expected deliveries, compared with actual ones, summed up.

All functions here take and return DataFrames and are chained by `.transform`; reading, collecting and
deciding are `audit_job.py`'s business. The way of the data: parts of the trace's files become chunks of
deliveries, drops, sojourns and publications, and, where publications meet the interests, of expected
deliveries (`chunks`); all chunks of a bucket of clients are compared into findings (`compared`), and findings
become counts and percentiles (`counted`) or single incidents (`filter_incidents`). That is one job of three
stages; nothing is sorted or joined by Spark.

Publications are matched with a broadcast index inside Arrow batches, never by a join. When there are too many
filters to broadcast, `expected_chunks_by_part` deals the interests into parts, compiles each part where it
lies, and lets every publication visit every part. What is lost, doubled, out of order or unauthorised is
defined in `audit_kernel.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so

from sojourn.pipeline.audit_chunks import (
    DELIVERED,
    DROPPED,
    EXPECTED,
    FAULTY,
    NAMES,
    NEAR_GAPS,
    NOBODY,
    PUBLISHED,
    STAYED,
    Hot,
    Packer,
    named_rows,
    packed,
    to_all,
    unpacked,
)
from sojourn.pipeline.audit_events import event_columns
from sojourn.pipeline.audit_findings import (
    INCIDENT,
    UNREADABLE,
    faulty_findings,
    findings,
    outcome_rows,
    publication_findings,
)
from sojourn.pipeline.audit_gaps import Gaps, near_gaps
from sojourn.pipeline.audit_interests import (
    RunInterests,
    check_filters,
    compile_interests,
    compile_texts,
    expected_in_parts,
    expected_rows,
    split_by,
)
from sojourn.pipeline.audit_kernel import CLOCKS_S, Outcomes, compare
from sojourn.pipeline.audit_losses import RunEnds, judged_by
from sojourn.pipeline.audit_sums import PERCENTILES, summed
from sojourn.pipeline.derived_rows import Outcome
from sojourn.pipeline.schemas import (
    CHUNKS,
    COUNTED,
    FAULTY_FILTERS,
    FILTER_PARTS,
    FINDINGS,
    INDEX_PARTS,
    rows_schema,
)
from sojourn.pipeline.tables import Split, split_batches, splits_of
from sojourn.trace.rows import TABLES

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast

Transform = Callable[[DataFrame], DataFrame]

PUBLICATION = ("run_id", "source", "sequence", "time_s", "topic", "attributes_json", "policy")
DELIVERY = ("run_id", "client", "source", "sequence", "time_s", "broker")
_PACKED = {
    "deliveries": (DELIVERED, DELIVERY),
    "drops": (DROPPED, ("run_id", "client", "source", "sequence", "time_s", "broker", "reason")),
    "sojourns": (STAYED, ("run_id", "client", "broker", "from_s", "to_s")),
}

COSTS = {"publications": 16.0, "deliveries": 1.0, "drops": 1.0, "sojourns": 1.0}
"""The tables that `chunks` reads, and about how many deliveries' time a row of them takes."""


# -------------------------------------------------------------------------- interests


def told_last(interests: DataFrame) -> DataFrame:
    """Join interests told when they were asked for, when they were in force and when they ended."""
    asked = interests.withColumn("asked_s", F.coalesce("asked_s", "from_s"))
    return asked.groupBy("run_id", *TABLES["interests"].named_by).agg(
        F.max("from_s").alias("from_s"), F.max("to_s").alias("to_s")
    )


def filter_faulty(texts: DataFrame) -> DataFrame:
    """Keep the filters of a one-column DataFrame that cannot be read."""
    return texts.mapInArrow(check_filters, FAULTY_FILTERS)


def compiled_indexes(texts: DataFrame) -> DataFrame:
    """Turn INDEX_TEXTS into INDEX_PARTS."""
    return texts.mapInArrow(_compile_indexes, INDEX_PARTS)


def _compile_indexes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for place, first, texts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            index, faulty = compile_texts(first, texts)
            told = [{"filter": text, "error": error} for text, error in faulty.items()]
            kind = pa.list_(pa.struct({"filter": pa.string(), "error": pa.string()}))
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([place], pa.int32()),
                    pa.array([pickle.dumps(index, protocol=5)], pa.binary()),
                    pa.array([told], kind),
                ],
                names=["place", "index", "faulty"],
            )


# -------------------------------------------------------------------------- chunks


def chunks(
    interests: Broadcast[dict[str, RunInterests]] | None,
    buckets: int,
    hot: Hot = NOBODY,
    gaps: Gaps = MappingProxyType({}),
) -> Transform:
    """Turn splits of a trace's tables into chunks; without interests nothing is expected."""
    missing = dict(gaps)

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        splits = sorted(splits_of(batches))
        for table, mine in groupby(splits, attrgetter("table")):
            if table == "publications":
                compiled = interests.value if interests else {}
                yield from _publication_chunks(mine, compiled, buckets, hot, missing)
            else:
                side, columns = _PACKED[table]
                rows = map(named_rows, split_batches(mine, columns, NAMES))
                yield from packed(rows, side, buckets, hot)

    def transform(splits: DataFrame) -> DataFrame:
        return splits.mapInArrow(pack, CHUNKS)

    return transform


def _publication_chunks(
    splits: Iterable[Split], interests: Mapping[str, RunInterests], buckets: int, hot: Hot, gaps: Gaps
) -> Iterator[pa.RecordBatch]:
    expected, published = Packer(EXPECTED, buckets, hot), Packer(PUBLISHED, buckets)
    for batch in split_batches(splits, PUBLICATION, NAMES):
        for run_id, rows in split_by(pa.Table.from_batches([batch]), "run_id"):
            columns, unreadable = event_columns(rows)
            told = rows.select(["run_id", "source", "sequence", "time_s"])
            yield from published.add(told.append_column(UNREADABLE, pa.array(unreadable.astype("int8"))))
            near = near_gaps(told, gaps[run_id]) if run_id in gaps else told.slice(0, 0)
            if len(near):
                yield to_all(near, NEAR_GAPS, buckets)
            if run_id in interests:
                for part in expected_in_parts(run_id, rows, columns, interests[run_id]):
                    yield from expected.add(part)
    yield from expected.rest()
    yield from published.rest()


def expected_chunks_by_part(
    interests: DataFrame, clients: DataFrame, *, parts: int, slices: int, buckets: int, hot: Hot = NOBODY
) -> Transform:
    """Turn publications into chunks of expected deliveries with an index too large to broadcast.

    Interests are dealt into `parts` by run and client and compiled part by part; publications into `slices`,
    each of which visits every part. A task holds one part and one slice.
    """

    def transform(publications: DataFrame) -> DataFrame:
        compiled = interests.transform(_compiled_parts(clients, parts, slices))
        visits = publications.select(
            *PUBLICATION,
            F.pmod(F.xxhash64("run_id", "source", "sequence"), F.lit(slices)).cast("int").alias("slice"),
            F.explode(F.sequence(F.lit(0), F.lit(parts - 1))).alias("part"),
        )
        return (
            visits.groupBy("part", "slice")
            .cogroup(compiled.groupBy("part", "slice"))
            .applyInArrow(_matcher(buckets, hot), CHUNKS)
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
        faulty: dict[str, str] = {}
        blob = pickle.dumps(compile_interests(interests, clients, faulty), protocol=5)
        wrong = [pickle.dumps(faulty, protocol=5), *[None] * (slices - 1)]  # told once
        return pa.table(
            {
                "part": pa.array([key[0].as_py()] * slices, pa.int32()),
                "slice": pa.array(range(slices), pa.int32()),
                "compiled": pa.array([blob] * slices, pa.binary()),
                "faulty": pa.array(wrong, pa.binary()),
            }
        )

    return compile_part


def _matcher(buckets: int, hot: Hot) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def match(publications: pa.Table, compiled: pa.Table) -> pa.Table:
        empty = pa.table({"bucket": pa.array([], pa.int32()), "side": pa.array([], pa.int32())})
        gathered = [empty.append_column("payload", pa.array([], pa.binary()))]
        for blob in compiled.column("compiled").to_pylist():
            interests: Mapping[str, RunInterests] = pickle.loads(blob)  # noqa: S301  made by `_compile_part`
            rows = expected_rows(publications, interests)
            gathered += [pa.Table.from_batches([chunk]) for chunk in packed(rows, EXPECTED, buckets, hot)]
        for blob in compiled.column("faulty").drop_null().to_pylist():
            wrong: dict[str, str] = pickle.loads(blob)  # noqa: S301  likewise
            told = pa.table({"filter": list(wrong), "error": list(wrong.values())}) if wrong else None
            gathered += [] if told is None else [pa.Table.from_batches([to_all(told, FAULTY, 1)])]
        return pa.concat_tables(gathered)

    return match


# -------------------------------------------------------------------------- findings


def compared(buckets: int, window_s: float, scopes: Sequence[str], ends: RunEnds) -> Transform:
    """Compare chunks bucket by bucket into FINDINGS of some scopes."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sides = _sides(batches)
        outcomes = _judged(sides, ends)
        if outcomes is not None:
            yield from findings(outcomes, window_s, scopes).to_batches()
        if FAULTY in sides:
            yield from faulty_findings(sides[FAULTY]).to_batches()
        if PUBLISHED in sides:
            yield from publication_findings(sides[PUBLISHED]).to_batches()

    def transform(packed_rows: DataFrame) -> DataFrame:
        # A partition is a bucket: nothing need be sorted or grouped within it.
        return packed_rows.repartitionById(buckets, F.col("bucket")).mapInArrow(judge, FINDINGS)

    return transform


def outcomes(buckets: int, ends: RunEnds) -> Transform:
    """Compare chunks bucket by bucket into rows of what became of every event for every client."""
    schema = rows_schema(Outcome)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        judged = _judged(_sides(batches), ends)
        if judged is not None:
            yield from outcome_rows(judged).to_batches()

    def transform(packed_rows: DataFrame) -> DataFrame:
        return packed_rows.repartitionById(buckets, F.col("bucket")).mapInArrow(judge, schema)

    return transform


def _sides(batches: Iterator[pa.RecordBatch]) -> dict[int, pa.Table | None]:
    """Return the rows of a bucket by what they are rows of."""
    payloads: dict[int, list[pa.Buffer]] = {}
    for batch in batches:
        for side, payload in zip(batch.column("side").to_pylist(), batch.column("payload"), strict=True):
            payloads.setdefault(side, []).append(payload.as_buffer())
    return {side: unpacked(payloads.pop(side)) for side in list(payloads)}


def _judged(sides: Mapping[int, pa.Table | None], ends: RunEnds) -> Outcomes | None:
    """Compare a bucket; None where nothing was expected or delivered."""
    if EXPECTED not in sides and DELIVERED not in sides:
        return None
    compared_rows = compare(sides.get(EXPECTED), sides.get(DELIVERED))
    return judged_by(compared_rows, sides.get(DROPPED), sides.get(STAYED), sides.get(NEAR_GAPS), ends)


def counted(found: DataFrame) -> DataFrame:
    """Sum up what buckets found, but for single incidents."""
    return (
        found.where(F.col("scope") != INCIDENT)
        .repartition("run_id", "scope", "key")
        .mapInArrow(_sum_up, COUNTED)
    )


def _sum_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = [batch for batch in batches if batch.num_rows]
    if found:
        yield from summed(pa.Table.from_batches(found)).to_batches()


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
        "reason",
    )


def of_clocks(time: Column) -> Column:
    """What `audit_kernel.by_clocks` makes of times between moments of two clocks."""
    return F.when((time < 0) & (time >= -CLOCKS_S), 0.0).otherwise(time)


def handoff_times(handoffs: DataFrame) -> DataFrame:
    """Percentiles of hand-offs by run: until the client was back, until all was rebuilt, and between them."""
    left, arrived, ready = F.col("left_s"), F.col("arrived_s"), F.col("ready_s")
    apart = {"away": arrived - left, "ready": ready - left, "wait": ready - arrived}
    measures = {measure: of_clocks(time) for measure, time in apart.items()}
    return handoffs.groupBy("run_id").agg(
        F.count("*").alias("handoffs"),
        *(
            F.percentile(time, F.lit(share)).alias(f"handoff_{measure}_{name}_s")
            for measure, time in measures.items()
            for name, share in PERCENTILES.items()
        ),
    )
