"""The streaming audit finds what a batch audit finds: killed at any moment, with late rows and odd clocks."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sojourn.cli.audit_follow import said_missing
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.audit_options import LiveOptions
from sojourn.pipeline.streaming import by_window, read_findings, start_live_audit
from sojourn.trace import SegmentWriter
from tests.pipeline.killed_traces import killed_trace
from tests.pipeline.random_traces import RandomTrace, Row, audit_by_hand, expected_of, random_trace, wanted_of

pytestmark = pytest.mark.timeout(900)  # half a minute alone, minutes on a machine that others use too

OPTIONS = LiveOptions(delay_s=5.0, patience_s=30.0, buckets=2, trigger_s=0.1)
MEASURES = (
    *("expected", "delivered", "deliveries", "lost", "duplicated", "out_of_order"),
    *("allowed", "unauthorised", "lost_queue_full", "lost_expired"),
)
LATE = ("late_publications", "late_deliveries", "late_interests")
WAIT_S_MAX = 280.0
_TIMES: dict[str, Callable[[Row], float]] = {
    "clients": lambda _row: 0.0,
    "interests": lambda row: float(row[3] if row[4] is None else row[4]),
    "publications": lambda row: float(row[2]),
    "deliveries": lambda row: float(row[3]),
    "handoffs": lambda row: float(row[5]),
    "drops": lambda row: float(row[3]),
    "sojourns": lambda row: float(row[2] if row[3] is None else row[3]),
}


def _feed(
    root: Path,
    trace: RandomTrace,
    begin_s: float,
    end_s: float,
    *,
    tables: tuple[str, ...] = tuple(_TIMES),
    wanted: Callable[[Row], bool] = lambda _row: True,
    told: Callable[[Row], Row] = lambda row: row,
) -> None:
    """Append what was told in a while: of an interest, that it began, and later that it ended."""
    writer = SegmentWriter(root, trace.run_id, name="b1")
    for table in tables:
        for row in trace.rows[table]:
            if begin_s <= _TIMES[table](row) < end_s and wanted(row):
                writer.add(table, *(told(row) if table == "deliveries" else row))
    writer.seal()


def _end(root: Path, trace: RandomTrace) -> None:
    writer = SegmentWriter(root, trace.run_id, name="end")
    writer.add("runs", *trace.rows["runs"][0])
    writer.seal()


def _watch(spark: SparkSession, root: Path, out: Path, *steps: Callable[[], None]) -> None:
    """Let the query see each step by itself."""
    query = start_live_audit(spark, root, "r1", out, OPTIONS)
    for step in steps:
        step()
        query.processAllAvailable()
        query.processAllAvailable()  # the watermark that the step moved
    query.stop()


def _live(spark: SparkSession, out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = by_window(read_findings(spark, out)).toArrow().to_pylist()
    return rows


def _sums(rows: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in names}


def _assert_as_batch(spark: SparkSession, root: Path, out: Path) -> list[dict[str, Any]]:
    live = _live(spark, out)
    report = audit_trace(spark, root, details=("windows",))
    batch = sorted(report.windows, key=lambda row: float(row["window_s"]))
    judged = [row for row in live if row["deliveries"] or row["expected"]]
    assert [{name: row[name] for name in (*MEASURES, "window_s")} for row in judged] == [
        {name: row[name] for name in (*MEASURES, "window_s")} for row in batch
    ]
    return live


def _wait_until(true: Callable[[], bool], what: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not true():
        assert process.poll() is None, f"the query ended while we waited for {what}"
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.002)


def test_a_query_killed_in_a_batch_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """Segments, SIGKILL within a batch, more segments, a restart, the end: the totals of the batch audit."""
    root, out = tmp_path / "trace", tmp_path / "live"
    trace = random_trace("r1", 7)
    _feed(root, trace, 0.0, 120.0)
    offsets, commits = out / "checkpoint" / "offsets", out / "checkpoint" / "commits"
    # With a session of its own, so that Java and the Python workers die with it.
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "live_driver.py"), str(root), "r1", str(out)],
        start_new_session=True,
    )
    try:
        _wait_until((commits / "1").exists, "the first batches", process)
        _feed(root, trace, 120.0, 200.0)
        _wait_until(lambda: (offsets / "2").exists() and not (commits / "2").exists(), "a batch", process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (commits / "2").exists(), "the batch was over before the kill"
    _feed(root, trace, 200.0, 240.0)
    _watch(
        spark,
        root,
        out,
        lambda: None,
        lambda: _feed(root, trace, 240.0, 1e9),
        lambda: _end(root, trace),
    )
    live = _assert_as_batch(spark, root, out)
    by_hand = audit_by_hand(trace)
    assert _sums(live, MEASURES) == {name: by_hand[name] for name in MEASURES}
    assert _sums(live, ("handoffs", *LATE)) == {"handoffs": 12, **dict.fromkeys(LATE, 0)}
    away = [row["handoff_away_p50_s"] for row in live if row["handoffs"]]
    assert away == [pytest.approx(1.0, rel=0.005)] * len(away)


def test_late_segments_and_odd_clocks_are_judged_as_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Publications sealed after later ones, and deliveries stamped before theirs, make no difference."""
    root, out = tmp_path / "trace", tmp_path / "live"
    trace = random_trace("r1", 8)

    def skewed(row: Row) -> Row:
        """Client c3's clock is 50 s behind: more than delay and patience together."""
        return (*row[:3], row[3] - 50.0, row[4]) if row[0] == "c3" else row

    def of_p1(row: Row) -> bool:
        return "p1" in row[:2]

    def others(row: Row) -> bool:
        return not of_p1(row)

    _watch(
        spark,
        root,
        out,
        lambda: _feed(root, trace, 0.0, 80.0, wanted=others, told=skewed),
        lambda: _feed(root, trace, 80.0, 160.0, wanted=others, told=skewed),
        # What source p1 did is sealed now, when the moment 125 s has been judged; deliveries come first.
        lambda: _feed(root, trace, 0.0, 160.0, tables=("deliveries",), wanted=of_p1, told=skewed),
        lambda: _feed(root, trace, 0.0, 160.0, tables=("publications",), wanted=of_p1),
        lambda: _feed(root, trace, 160.0, 1e9, told=skewed),
        lambda: _end(root, trace),
    )
    live = _assert_as_batch(spark, root, out)
    late = _sums(live, LATE)
    assert late["late_publications"] > 10, "they were late, and it was said"
    assert late["late_deliveries"] == late["late_interests"] == 0
    assert sum(row["before_published"] for row in live) > 0


def test_what_comes_after_its_event_was_judged_is_counted_as_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A delivery, a copy and an interest beyond all patience change nothing that was said, and show."""
    root, out = tmp_path / "trace", tmp_path / "live"
    trace = random_trace("r1", 9)
    slow = [row for row in trace.rows["deliveries"] if row[3] < 100.0][:5]
    trace.rows["deliveries"] = [row for row in trace.rows["deliveries"] if row not in slow]
    copies = [row for row in trace.rows["deliveries"] if row[3] < 100.0][:3]
    late = [*slow, *((*row[:3], row[3] + 120.0, row[4]) for row in copies)]

    def feed_late() -> None:
        writer = SegmentWriter(root, "r1", name="late")
        for row in late:
            writer.add("deliveries", *row)
        writer.add("interests", "c1", "new", "price >= 0", 10.0, None)
        writer.seal()

    _watch(
        spark,
        root,
        out,
        lambda: _feed(root, trace, 0.0, 290.0),
        feed_late,
        lambda: _feed(root, trace, 290.0, 1e9),
        lambda: _end(root, trace),
    )
    live = _live(spark, out)
    assert _sums(live, LATE) == {"late_publications": 0, "late_deliveries": len(late), "late_interests": 1}
    # What was judged before it came is as if it had never come.
    times = {row[:2]: row[2] for row in trace.rows["publications"]}
    expected = expected_of(trace)
    judged = [row for row in live if row["window_s"] < 240.0]
    wanted = wanted_of(trace)
    moments = [times[row[1:3]] if row[:3] in wanted else row[3] for row in trace.rows["deliveries"]]
    assert _sums(judged, ("deliveries",)) == {"deliveries": sum(moment < 240.0 for moment in moments)}
    delivered = {row[:3] for row in trace.rows["deliveries"]}
    lost = [name for name, moment in expected.items() if name not in delivered and moment < 240.0]
    assert _sums(judged, ("lost",)) == {"lost": len(lost)}


UNRECORDED = ("unrecorded_deliveries", "unrecorded_publications")


def test_what_killed_brokers_had_not_sealed_is_unrecorded_as_in_a_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A run that is seen as a whole gives the counts of the batch audit, and says who was killed."""
    root, out = tmp_path / "trace", tmp_path / "live"
    killed_trace("r1", 4).write(root)
    _watch(spark, root, out, lambda: None)
    live = _assert_as_batch(spark, root, out)
    report = audit_trace(spark, root)
    (batch,) = report.runs
    assert _sums(live, UNRECORDED) == {name: batch[name] for name in UNRECORDED}
    assert min(_sums(live, UNRECORDED).values()) > 0
    assert said_missing(root, "r1") == [problem.sentence for problem in report.problems]


def test_of_a_broker_that_has_not_come_again_what_is_new_is_unrecorded(
    spark: SparkSession, tmp_path: Path
) -> None:
    """While it is away, and when it has come; what a writer that goes on has not sealed yet is not judged."""
    root, out = tmp_path / "trace", tmp_path / "live"
    one, two = (SegmentWriter(root, "r1", name=name, began_s=0.0) for name in ("B1", "B2"))
    one.add("clients", "c1", "{}")
    one.add("interests", "c1", "i", "n >= 0", 0.0, None, None)
    two.seal(10.0)

    def publish(*moments_s: float) -> None:
        for at_s in moments_s:
            one.add("publications", "q@B1~0a1b2c3d", int(at_s * 1e6), at_s, "B1", None, '{"n": 1}', None, 9)
        one.seal(moments_s[-1])

    def counts() -> tuple[int, int]:
        sums = _sums(_live(spark, out), ("lost", "unrecorded_deliveries"))
        return sums["lost"], sums["unrecorded_deliveries"]

    found = []
    _watch(
        spark,
        root,
        out,
        lambda: publish(2.0, 5.0),
        lambda: publish(12.0, 13.0),
        lambda: publish(60.0),
        lambda: found.append(counts()),
        lambda: publish(110.0),
        lambda: found.append(counts()),
    )
    # What was published at 2 and 5 was to be there when B2 sealed; what came later B2 may have delivered.
    assert found == [(2, 2), (2, 3)]
    assert said_missing(root, "r1") == []
