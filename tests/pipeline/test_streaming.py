"""A query that is stopped in the middle and started again finds what a batch audit finds."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.streaming import LiveOptions, by_window, start_live_audit
from sojourn.trace import SegmentWriter
from tests.pipeline.random_traces import RandomTrace, Row, audit_by_hand, random_trace

OPTIONS = LiveOptions(delay_s=5.0, patience_s=30.0, buckets=2, trigger_s=0.1)
MEASURES = ("expected", "delivered", "deliveries", "lost", "duplicated", "out_of_order", "unauthorised")
_TIMES: dict[str, Callable[[Row], float]] = {
    "clients": lambda _row: 0.0,
    "interests": lambda row: float(row[3] if row[4] is None else row[4]),
    "publications": lambda row: float(row[2]),
    "deliveries": lambda row: float(row[3]),
    "handoffs": lambda row: float(row[5]),
}


def _feed(root: Path, trace: RandomTrace, begin_s: float, end_s: float) -> None:
    """Append what was told in a while: of an interest, that it began, and later that it ended."""
    writer = SegmentWriter(root, trace.run_id, name="b1")
    for table, time_of in _TIMES.items():
        for row in trace.rows[table]:
            if begin_s <= time_of(row) < end_s:
                writer.add(table, *row)
    writer.seal()


def _crash(out: Path) -> None:
    """Leave the checkpoints as a process does that dies between its last output and noting it."""
    for commits in (out / "checkpoint").glob("*/commits"):
        last = max((int(path.name) for path in commits.iterdir() if path.name.isdigit()), default=None)
        if last is not None:
            (commits / str(last)).unlink()
            (commits / f".{last}.crc").unlink(missing_ok=True)


def _watch(spark: SparkSession, root: Path, out: Path, *, to_the_end: bool) -> None:
    queries = start_live_audit(spark, root, "r1", out, OPTIONS)
    for query in queries:
        query.processAllAvailable()
        if to_the_end:
            query.processAllAvailable()  # the watermark that the end moved settles the rest
    for query in queries:
        query.stop()


def test_a_query_that_died_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Segments, a crash, more segments, a restart, the end: totals by minute equal the batch audit's."""
    root, out = tmp_path / "trace", tmp_path / "live"
    trace = random_trace("r1", 7)
    _feed(root, trace, 0.0, 120.0)
    _watch(spark, root, out, to_the_end=False)
    _feed(root, trace, 120.0, 200.0)
    queries = start_live_audit(spark, root, "r1", out, OPTIONS)
    queries[0].processAllAvailable()
    _feed(root, trace, 200.0, 240.0)
    for query in queries:
        query.stop()  # whatever it was doing
    _crash(out)
    _feed(root, trace, 240.0, 1e9)
    writer = SegmentWriter(root, "r1", name="end")
    writer.add("runs", *trace.rows["runs"][0])
    writer.seal()
    _watch(spark, root, out, to_the_end=True)

    live = by_window(spark.read.parquet(str(out / "findings"))).toArrow().to_pylist()
    report = audit_trace(spark, root, details=("windows",))
    batch = sorted(report.windows, key=lambda row: float(row["window_s"]))
    assert [{name: row[name] for name in (*MEASURES, "window_s")} for row in live] == [
        {name: row[name] for name in (*MEASURES, "window_s")} for row in batch
    ]
    by_hand = audit_by_hand(trace)
    assert {name: sum(row[name] for row in live) for name in MEASURES} == {n: by_hand[n] for n in MEASURES}
    handoffs = spark.read.parquet(str(out / "handoffs")).toArrow().to_pylist()
    assert sum(row["handoffs"] for row in handoffs) == len(trace.rows["handoffs"])
