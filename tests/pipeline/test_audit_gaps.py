"""What a broker that was killed had noted and not sealed is no loss and no leak; what nothing explains is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline import audit_sizes
from sojourn.pipeline.audit_gaps import NOTED_LATE_S, broker_of
from sojourn.pipeline.audit_job import AuditReport, audit_trace
from sojourn.pipeline.audit_kernel import CLOCKS_S
from sojourn.pipeline.audit_options import AuditOptions
from sojourn.pipeline.derived_job import make_tables
from sojourn.pipeline.views import views
from sojourn.trace import SegmentWriter
from tests.pipeline.killed_traces import KilledTrace, Name, killed_trace

pytestmark = pytest.mark.timeout(900)

DEALT = AuditOptions(broadcast_filters_max=3, part_filters=10, slice_events=100)
"""So few filters that they're dealt into parts."""
SEEDS = range(12)


def _names(spark: SparkSession, found: Path, incident: str) -> dict[str, set[Name]]:
    """By run, what an audit wrote of one kind of incident."""
    names: dict[str, set[Name]] = {}
    for row in spark.read.parquet(str(found)).where(f"incident = '{incident}'").collect():
        names.setdefault(row["run_id"], set()).add((row["client"], row["source"], row["sequence"]))
    return names


@pytest.mark.parametrize(
    ("options", "bucket_rows"),
    [(AuditOptions(), None), (DEALT, None), (AuditOptions(), 100)],
    ids=["broadcast", "dealt", "hot"],
)
def test_what_was_not_sealed_is_neither_lost_nor_unauthorised(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: AuditOptions,
    bucket_rows: int | None,
) -> None:
    """In networks whose brokers are killed, only what was lost is lost, and only what leaked is a leak."""
    if bucket_rows is not None:
        monkeypatch.setattr(audit_sizes, "BUCKET_ROWS", bucket_rows)
        monkeypatch.setattr(audit_sizes, "HOT_ROWS", bucket_rows // 2)
    traces = {f"r{seed:02d}": killed_trace(f"r{seed:02d}", seed) for seed in SEEDS}
    for trace in traces.values():
        trace.write(tmp_path / "trace")
    report = audit_trace(
        spark, tmp_path / "trace", options, details=("clients", "windows"), incidents=tmp_path / "found"
    )
    lost, leaked = (_names(spark, tmp_path / "found", kind) for kind in ("lost", "unauthorised"))
    kept = 0
    for row in report.runs:
        trace = traces[row["run_id"]]
        run_lost, run_leaked = (found.get(row["run_id"], set()) for found in (lost, leaked))
        assert run_lost <= trace.lost
        assert run_leaked <= trace.leaked
        assert trace.lost - run_lost <= _explained(trace)
        kept += len(run_lost)
        assert row["expected"] == row["delivered"] + row["lost"] + row["unrecorded_deliveries"]
        told = ("delivered", "allowed", "unauthorised", "duplicated", "unrecorded_publications")
        assert row["deliveries"] == sum(row[name] for name in told)
        assert row["lost"] == sum(row[f"lost_{reason}"] for reason in ("in_flight", "never_routed"))
        for parts in (report.clients, report.windows):
            mine = [part for part in parts if part["run_id"] == row["run_id"]]
            for measure in ("lost", "unauthorised", "unrecorded_deliveries", "unrecorded_publications"):
                assert sum(part[measure] for part in mine) == row[measure], measure
    assert sum(row["unrecorded_deliveries"] for row in report.runs) > 50
    assert sum(row["unrecorded_publications"] for row in report.runs) > 50
    assert kept > sum(len(trace.lost) for trace in traces.values()) / 2


def _explained(trace: KilledTrace) -> set[Name]:
    """The losses that some gap could explain, by trying each with each."""
    first = {row[:3]: row[3] for row in trace.rows["deliveries"] if _is_sealed(trace, row[4], row[3])}
    published = {row[:2]: row[2] for row in trace.rows["publications"]}
    found = set()
    for client, source, sequence in trace.lost:
        later = [at for name, at in first.items() if name[:2] == (client, source) and name[2] > sequence]
        for broker in trace.kills:
            for sealed_s, _, again_s in trace.gaps(broker):
                before = published[source, sequence] <= again_s + CLOCKS_S
                if before and min(later, default=1e9) >= sealed_s - NOTED_LATE_S:
                    found.add((client, source, sequence))
    return found


def _is_sealed(trace: KilledTrace, broker: str, at_s: float) -> bool:
    return not any(sealed_s < at_s <= killed_s for sealed_s, killed_s, _ in trace.gaps(broker))


def test_without_gaps_nothing_is_unrecorded(spark: SparkSession, tmp_path: Path) -> None:
    """Where every broker closed, the audit says what it says of rows that were written at once."""
    trace = killed_trace("r1", 3)
    trace.kills.clear()
    trace.write(tmp_path / "closed")
    (closed,) = audit_trace(spark, tmp_path / "closed", details=("clients",)).runs
    assert (closed["unrecorded_deliveries"], closed["unrecorded_publications"]) == (0, 0)
    for path in (tmp_path / "closed").rglob("*.life"):
        path.unlink()
    report = audit_trace(spark, tmp_path / "closed")
    assert report.runs == [closed]
    assert report.problems == []
    assert closed["lost"] == len(trace.lost)
    assert closed["unauthorised"] == len(trace.leaked)


# -------------------------------------------------------------------------- one case each

P, Q = "p@B2~0a1b2c3d", "q@B1~0a1b2c3d"


def _case(
    root: Path,
    *rows: tuple[Any, ...],
    ends: bool = True,
    again_s: float | None = 14.0,
    run_id: str = "r1",
) -> None:
    """B2 is killed: all of it is sealed until 10 s, and it begins anew at 14 s; B1 writes on.

    Reader c1 stays at B1, c2 has been at B2 before and comes again after. Rows are told by B1.
    """
    one = SegmentWriter(root, run_id, name="B1", began_s=0.0)
    for client in ("c1", "c2"):
        one.add("clients", client, "{}")
        one.add("interests", client, "i", "n >= 0", 0.0, None, None)
    one.add("sojourns", "c1", "B1", 0.0, 60.0)
    for row in rows:
        one.add(*row)
    two = SegmentWriter(root, run_id, name="B2", began_s=0.0)
    two.add("sojourns", "c2", "B2", 1.0, 2.0)
    two.seal(10.0)
    if again_s is not None:
        SegmentWriter(root, run_id, name="B2", began_s=again_s).close(60.0)
    if not ends:
        one.seal(60.0)
        return
    one.add("runs", "live", None, None, "{}", None, 60.0, 0.0, None)
    one.close(60.0)


def _event(source: str, at_s: float) -> tuple[Any, ...]:
    return ("publications", source, int(at_s * 1e6), at_s, source[2:4], None, '{"n": 1}', None, 9)


def _got(client: str, source: str, published_s: float, at_s: float) -> tuple[Any, ...]:
    return ("deliveries", client, source, int(published_s * 1e6), at_s, "B1")


BOTH = (_got("c1", Q, 11.0, 11.1), _got("c2", Q, 11.0, 15.0))


CASES: list[tuple[tuple[tuple[Any, ...], ...], dict[str, int]]] = [
    # A missing delivery to who may have been at B2 in its gap, and to who was elsewhere all the time.
    ((_event(Q, 11.0), _got("c1", Q, 11.0, 11.1)), {"unrecorded_deliveries": 1}),
    ((_event(Q, 11.0), _got("c2", Q, 11.0, 15.0)), {"lost": 1}),
    # Published before the gap: it may have waited; not if a later one of its source came before the gap.
    ((_event(Q, 5.0), _got("c1", Q, 5.0, 5.1)), {"unrecorded_deliveries": 1}),
    (
        (
            _event(Q, 5.0),
            _got("c1", Q, 5.0, 5.1),
            _event(Q, 6.0),
            *(_got(c, Q, 6.0, 6.1) for c in ("c1", "c2")),
        ),
        {"lost": 1},
    ),
    # Published when B2 had begun anew.
    ((_event(Q, 14.5), _got("c1", Q, 14.5, 14.6)), {"lost": 1}),
    # Somebody says that it was given up.
    (
        (
            *(_event(Q, 11.0), _got("c1", Q, 11.0, 11.1)),
            ("drops", "c2", Q, 11_000_000, 11.5, "B1", "queue_full"),
        ),
        {"lost": 1, "lost_queue_full": 1},
    ),
    # An event of B2 that nobody wrote down, and one of B1, which has no gap.
    ((_got("c1", P, 11.0, 11.1),), {"unrecorded_publications": 1}),
    ((_got("c1", Q, 11.0, 11.1),), {"unauthorised": 1}),
    # Of B2 and written down, but nobody wanted it.
    (
        (
            ("publications", P, 11_000_000, 11.0, "B2", None, '{"n": -1}', None, 9),
            _got("c1", P, 11.0, 11.1),
        ),
        {"unauthorised": 1},
    ),
    # It came before the gap began.
    ((_got("c1", P, 5.0, 5.1),), {"unauthorised": 1}),
    # By its number it was published before an event that was, or after one that was published after it.
    (
        (_event(P, 6.0), *(_got(c, P, 6.0, 6.1) for c in ("c1", "c2")), _got("c1", P, 5.0, 30.0)),
        {"unauthorised": 1, "out_of_order": 1},
    ),
    (
        (_event(P, 20.0), *(_got(c, P, 20.0, 20.1) for c in ("c1", "c2")), _got("c1", P, 21.0, 21.1)),
        {"unauthorised": 1},
    ),
    # A source whose name does not say where it is.
    ((_got("c1", "p", 11.0, 11.1),), {"unauthorised": 1}),
]


def test_a_gap_explains_what_it_can(spark: SparkSession, tmp_path: Path) -> None:
    """One missing row each; what no gap can explain is lost, or a leak."""
    none = {"lost": 0, "unauthorised": 0, "unrecorded_deliveries": 0, "unrecorded_publications": 0}
    for number, (rows, _) in enumerate(CASES):
        _case(tmp_path, *rows, run_id=f"r{number:02d}")
    found = audit_trace(spark, tmp_path).runs
    for (rows, told), run in zip(CASES, found, strict=True):
        counts = none | told
        assert {name: run[name] for name in counts} == counts, rows


def _sentences(report: AuditReport) -> list[str]:
    assert not any(problem.refused for problem in report.problems)
    return [problem.sentence for problem in report.problems]


def test_a_broker_that_never_came_again_has_a_gap_until_the_end(spark: SparkSession, tmp_path: Path) -> None:
    """A run that has ended is over for all of its brokers."""
    _case(tmp_path, _event(Q, 40.0), _got("c1", Q, 40.0, 40.1), again_s=None)
    report = audit_trace(spark, tmp_path)
    assert (report.runs[0]["lost"], report.runs[0]["unrecorded_deliveries"]) == (0, 1)
    (said,) = _sentences(report)
    assert said.startswith(
        "B2 ended once without writing down what it noted last: up to 50 s of its rows are"
    )


def test_of_a_run_that_goes_on_only_what_is_new_is_unrecorded(spark: SparkSession, tmp_path: Path) -> None:
    """Its brokers may write on: what was published before they sealed last was to be there by then."""
    rows = (_event(Q, 5.0), _got("c1", Q, 5.0, 5.1), _event(Q, 40.0), _got("c1", Q, 40.0, 40.1))
    _case(tmp_path, *rows, ends=False, again_s=None)
    report = audit_trace(spark, tmp_path)
    assert (report.runs[0]["lost"], report.runs[0]["unrecorded_deliveries"]) == (1, 1)
    (said,) = _sentences(report)
    assert said.startswith("the run goes on, and B1, B2 may have noted what they have not written down")


def test_gaps_are_said_and_the_run_stays(spark: SparkSession, tmp_path: Path) -> None:
    """A sentence a broker; tables keep the run, with what is not known under its own name."""
    root, folder = tmp_path / "trace", tmp_path / "tables"
    _case(root, _event(Q, 11.0), _got("c1", Q, 11.0, 11.1), _got("c1", P, 11.0, 11.2))
    sentence = (
        "B2 ended once without writing down what it noted last: up to 4 s of its rows are missing; what "
        "those may have told counts as unrecorded."
    )
    assert _sentences(audit_trace(spark, root)) == [sentence]
    made = make_tables(spark, str(root), folder)
    assert (made.new, made.faults) == (["r1"], [])
    assert made.missing == {"r1": [sentence]}
    rows = views(spark, str(folder))["outcomes"].collect()
    assert sorted(
        (row["client"], row["outcome"], row["copies"], row["reason"], row["broker"]) for row in rows
    ) == [
        ("c1", "delivered", 1, None, "B1"),
        ("c1", "unrecorded", 1, None, "B1"),
        ("c2", "unrecorded", 0, None, "B2"),
    ]
    measured = {row["measure"]: row["value"] for row in views(spark, str(folder))["measures"].collect()}
    names = ("expected", "lost", "unauthorised", "unrecorded_deliveries", "unrecorded_publications")
    assert [measured[name] for name in names] == [2, 0, 0, 1, 1]


def test_what_no_gap_explains_is_a_fault_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """A delivery of nothing, of a source at a broker that wrote down everything: the run is left out."""
    root, folder = tmp_path / "trace", tmp_path / "tables"
    _case(root, _event(Q, 11.0), *BOTH, _got("c1", Q, 12.0, 12.1), _got("c1", P, 11.0, 11.2))
    made = make_tables(spark, str(root), folder)
    assert made.new == []
    assert [fault.sentence for fault in made.faults] == [
        "1 rows of deliveries refer to rows of publications that are missing"
    ]


def test_a_client_that_only_the_gap_knew_is_no_fault(spark: SparkSession, tmp_path: Path) -> None:
    """Who came to B2 a moment before it was killed has rows that refer to it, and none that says so."""
    root, folder = tmp_path / "trace", tmp_path / "tables"
    _case(root, _event(Q, 20.0), *(_got(client, Q, 20.0, 20.1) for client in ("c1", "c2", "c3")))
    assert make_tables(spark, str(root), folder).new == ["r1"]


@pytest.mark.parametrize(
    ("source", "broker"),
    [
        ("phone@B4~0a1b2c3d", "B4"),
        ("a@b~c@B1.x~0a1b2c3d", "B1.x"),
        ("g/sport name@B2~0a1b2c3d", "B2"),
        ("p1", None),
        ("p@B1", None),
        (None, None),
    ],
)
def test_a_source_says_where_it_is(source: str | None, broker: str | None) -> None:
    """By the end of its name, whatever its publisher is called."""
    assert broker_of(source) == broker
