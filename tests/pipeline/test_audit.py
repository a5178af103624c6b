from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline import audit_sizes
from sojourn.pipeline.audit_job import TABLES, AuditReport, audit_trace, build_audit
from sojourn.pipeline.audit_options import AuditOptions
from sojourn.pipeline.places import NoTraceError
from sojourn.pipeline.tables import open_trace
from sojourn.trace import segment_folder
from tests.pipeline.random_traces import RandomTrace, audit_by_hand, expected_of, longest_of, random_trace

DEALT = AuditOptions(broadcast_filters_max=5, part_filters=10, slice_events=100)
"""So few filters that they're dealt into parts."""


def _segment(root: Path, table: str, run_id: str) -> Path:
    (path,) = segment_folder(root, table, run_id).glob("*.parquet")
    return path


def _rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.ParquetFile(path).read()), path)


@pytest.mark.parametrize(
    ("options", "bucket_rows"),
    [(AuditOptions(), None), (DEALT, None), (AuditOptions(), 50)],
    ids=["broadcast", "dealt", "hot"],
)
def test_the_audit_finds_what_trying_everything_finds(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: AuditOptions,
    bucket_rows: int | None,
) -> None:
    """Counts and reasons are those of a brute force, however filters reach events and clients are split."""
    if bucket_rows is not None:
        monkeypatch.setattr(audit_sizes, "BUCKET_ROWS", bucket_rows)
        monkeypatch.setattr(audit_sizes, "HOT_ROWS", bucket_rows // 2)
    traces = [random_trace(f"r{seed}", seed) for seed in range(2)]
    for trace in traces:
        trace.write(tmp_path)
    report = audit_trace(spark, tmp_path, options, details=("clients", "brokers", "windows"))
    assert len(report.runs) == len(traces)
    for trace, row in zip(traces, report.runs, strict=True):
        by_hand = audit_by_hand(trace)
        assert {name: row[name] for name in by_hand} == by_hand
        assert row["expected"] == row["delivered"] + row["lost"]
        assert row["allowed"] > 0
        told = ("delivered", "allowed", "unauthorised", "duplicated")
        assert row["deliveries"] == sum(row[name] for name in told)
        reasons = ("queue_full", "expired", "in_flight", "never_routed", "other")
        assert sum(row[f"lost_{reason}"] for reason in reasons) == row["lost"]
        assert 0 < row["latency_p50_s"] < row["latency_p90_s"] <= row["latency_max_s"] < 16
        assert row["latency_max_s"] == longest_of(trace)
        assert max(part["latency_max_s"] or 0.0 for part in report.windows) == max(map(longest_of, traces))
        assert row["handoffs"] == 12
        assert row["handoff_away_p50_s"] == pytest.approx(1)
        for parts in (report.clients, report.windows, report.brokers):
            mine = [part for part in parts if part["run_id"] == trace.run_id]
            for measure in ("delivered", "lost", "duplicated", "out_of_order", "allowed", "unauthorised"):
                assert sum(part[measure] for part in mine) == row[measure], measure


def test_no_plan_has_a_product(spark: SparkSession, tmp_path: Path) -> None:
    """Neither way of matching, nor anything after it, is a cross or nested loop join."""
    random_trace("r1", 1).write(tmp_path)
    for options in (AuditOptions(), DEALT):
        audit = build_audit(spark, open_trace(tmp_path, TABLES), options)
        assert audit.unreadable is not None, "there are policies to read"
        for frame in (audit.counts, audit.incidents, audit.handoffs, audit.unreadable, audit.known):
            plan = frame._jdf.queryExecution().executedPlan().toString()
            assert "CartesianProduct" not in plan
            assert "NestedLoopJoin" not in plan
        plan = audit.counts._jdf.queryExecution().optimizedPlan().toString()
        assert "MapInArrow" in plan
        assert "Join" not in plan, "events meet filters in the index, not in a join"


def _audited_beside(
    spark: SparkSession,
    root: Path,
    *,
    rows: Callable[[RandomTrace], None] = lambda _trace: None,
    files: Callable[[Path], None] = lambda _root: None,
    options: AuditOptions | None = None,
) -> AuditReport:
    """Audit a good run beside one whose rows or files are spoilt."""
    good, bad = random_trace("good", 1, 40), random_trace("bad", 2, 40)
    rows(bad)
    for trace in (good, bad):
        trace.write(root)
    files(root)
    report = audit_trace(spark, root, options)
    by_hand = audit_by_hand(good)
    (row,) = (row for row in report.runs if row["run_id"] == "good")
    assert {name: row[name] for name in by_hand} == by_hand
    return report


def _without_time(root: Path) -> None:
    _rewritten(_segment(root, "deliveries", "bad"), lambda table: table.drop_columns(["time_s"]))


def _cut_short(root: Path) -> None:
    path = _segment(root, "publications", "bad")
    path.write_bytes(path.read_bytes()[:-40])


def _wrong_type(root: Path) -> None:
    path = _segment(root, "deliveries", "bad")
    _rewritten(path, lambda table: table.set_column(2, "sequence", pa.array(["x"] * len(table))))


def _damaged_inside(root: Path) -> None:
    path = _segment(root, "deliveries", "bad")
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_without_time, "lacks the column time_s; write the table again"),
        (_cut_short, "is cut short or not Parquet; restore it or remove it."),
        (_wrong_type, "has sequence as string, not bigint"),
        (_damaged_inside, "Spark cannot read it"),
    ],
)
def test_a_run_with_a_bad_file_is_refused_and_the_other_audited(
    spark: SparkSession, tmp_path: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    """A missing column, a truncated file, a wrong type or a damaged page costs its own run only."""
    report = _audited_beside(spark, tmp_path, files=spoil)
    assert [row["run_id"] for row in report.runs] == ["good"]
    (problem,) = (problem for problem in report.problems if problem.refused)
    assert problem.run_id == "bad"
    assert sentence in problem.sentence
    assert "\n" not in problem.sentence


def _odd_rows(trace: RandomTrace) -> None:
    trace.rows["deliveries"].append(("stranger", "p1", 3, 20.0, "b1"))
    trace.rows["deliveries"].append((None, "p1", 3, 20.0, "b1"))
    early = trace.rows["publications"][-1]
    trace.rows["publications"][-1] = (*early[:2], 1.0, *early[3:])
    trace.rows["interests"].append(("c1", "bad", "price >", 0.0, None))
    trace.rows["publications"].append(("p9", 0, 5.0, "b0", None, "{not json", "level >", 1))
    trace.rows["publications"].append(("p9", 1, 6.0, "b0", None, '{"many": [1, 2]}', None, 1))
    trace.rows["clients"].append(("c99", "level 2"))


@pytest.mark.parametrize("options", [AuditOptions(), DEALT], ids=["broadcast", "dealt"])
def test_what_looks_wrong_is_audited_and_said(
    spark: SparkSession, tmp_path: Path, options: AuditOptions
) -> None:
    """An unknown client, a clock that jumps, a row without a key, unreadable texts: a sentence each."""
    report = _audited_beside(spark, tmp_path, rows=_odd_rows, options=options)
    assert [row["run_id"] for row in report.runs] == ["bad", "good"]
    said = {problem.sentence for problem in report.problems if problem.run_id == "bad"}
    for part in (
        "deliveries name the client 'stranger' that neither clients nor interests have",
        "a clock jumped back: publications older than the one before them: 1;",
        "in deliveries a row lacks one of client, source, sequence, time_s",
        "the filter 'price >' cannot be read and matches nothing",
        "the policy 'level >' cannot be read and permits nobody",
        "the attributes of 2 publications cannot be read; they count as events without attributes",
        "the attributes of the client 'c99' cannot be read; policies see none",
    ):
        assert any(part in sentence for sentence in said), part
    assert not any(problem.refused for problem in report.problems)


def test_a_directory_that_is_no_trace_is_a_sentence(tmp_path: Path) -> None:
    """A wrong path, or one where nothing is sealed yet, says what to do."""
    with pytest.raises(NoTraceError, match="is not a trace"):
        open_trace(tmp_path)
    folder = segment_folder(tmp_path, "deliveries", "r1")
    folder.mkdir(parents=True)
    (folder / ".part-main-00000000.parquet").write_bytes(b"PAR1")
    with pytest.raises(NoTraceError, match="no sealed segment yet"):
        open_trace(tmp_path)


@pytest.mark.parametrize("options", [AuditOptions(), DEALT], ids=["broadcast", "dealt"])
def test_incidents_are_written_one_by_one(spark: SparkSession, tmp_path: Path, options: AuditOptions) -> None:
    """Every loss is there with its reason and broker, and their sums are those of the summary."""
    trace = random_trace("r1", 5)
    trace.write(tmp_path / "trace")
    report = audit_trace(spark, tmp_path / "trace", options, incidents=tmp_path / "found")
    rows = spark.read.parquet(str(tmp_path / "found")).toArrow().to_pylist()
    (run,) = report.runs
    for incident in ("lost", "duplicated", "out_of_order", "unauthorised"):
        assert sum(row["times"] for row in rows if row["incident"] == incident) == run[incident]
    lost = {(row["client"], row["source"], row["sequence"]): row for row in rows if row["incident"] == "lost"}
    delivered = {row[:3] for row in trace.rows["deliveries"]}
    assert set(lost) == expected_of(trace).keys() - delivered
    dropped = {row[:3]: (row[5], row[4]) for row in trace.rows["drops"]}
    stays: dict[str, list[tuple[float, str]]] = {}
    for client, broker, from_s, _ in trace.rows["sojourns"]:
        stays.setdefault(client, []).append((from_s, broker))
    for name, row in lost.items():
        last = max(stay for stay in stays[name[0]] if stay[0] <= row["published_s"])
        reason, broker = dropped.get(name, (row["reason"], last[1]))
        assert (row["reason"], row["broker"]) == (reason, broker)
        assert name in dropped or row["reason"] in ("in_flight", "never_routed")
