"""Clocks of brokers that differ a little are said to, by how much; no time between them is below zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline import audit_job
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.derived_job import make_tables
from sojourn.pipeline.views import views
from sojourn.trace import SegmentWriter

pytestmark = pytest.mark.timeout(900)


def _write(root: Path, *after_s: float, away_s: float = 1.0) -> None:
    """A run in which a reader has an event so long after each publication, and moves once."""
    writer = SegmentWriter(root, "r1")
    writer.add("clients", "c1", "{}")
    writer.add("interests", "c1", "i", "n >= 0", 0.0, None)
    for number, latency_s in enumerate(after_s):
        at_s = 10.0 + number
        writer.add("publications", "p1", number, at_s, "B1", None, '{"n": 1}', None, 9)
        writer.add("deliveries", "c1", "p1", number, at_s + latency_s, "B2")
    writer.add("handoffs", "c1", "B1", "B2", 5.0, 5.0 + away_s, 5.0 + away_s, "move")
    writer.add("runs", "live", None, None, "{}", None, 60.0, 0.0, None)
    writer.seal()


def _times(row: dict[str, Any]) -> list[float]:
    times = [row[name] for name in row if name.startswith(("latency_", "handoff_")) and row[name] is not None]
    assert len(times) == 16
    return times


@pytest.mark.parametrize("few", [0, audit_job._FEW_HANDOFFS])
def test_milliseconds_are_clocks_that_differ(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Nobody set a clock: by how much they differ is said, and what came so early took no time."""
    monkeypatch.setattr(audit_job, "_FEW_HANDOFFS", few)
    _write(tmp_path, -0.0051, -0.002, 0.02, away_s=-0.003)
    report = audit_trace(spark, tmp_path)
    (run,) = report.runs
    (problem,) = report.problems
    assert problem.sentence == (
        "clocks of brokers differ by at least 5.1 ms: deliveries older than their publication: 2; latencies "
        "take those for 0."
    )
    assert run["before_published"] == 2
    assert run["before_published_max_s"] == pytest.approx(0.0051)
    assert min(_times(run)) >= 0.0
    assert run["latency_p50_s"] < 1e-5, "two of three took no time"
    assert run["latency_max_s"] == pytest.approx(0.02)


def test_more_than_that_is_a_clock_that_jumped(spark: SparkSession, tmp_path: Path) -> None:
    """By how much is said, and such latencies are left out, as nobody knows them."""
    _write(tmp_path, -0.5, -0.01, 0.02)
    report = audit_trace(spark, tmp_path)
    (run,) = report.runs
    (problem,) = report.problems
    assert problem.sentence == (
        "a clock jumped back: publications older than the one before them: 0; deliveries older than their "
        "publication: 2, by up to 0.5 s; latencies leave out those of more than 0.1 s, and take others for 0."
    )
    assert min(_times(run)) >= 0.0


def test_clocks_that_agree_are_not_spoken_of(spark: SparkSession, tmp_path: Path) -> None:
    """A delivery at the very time of its publication is none that is older."""
    _write(tmp_path, 0.0, 0.02)
    report = audit_trace(spark, tmp_path)
    assert report.problems == []
    assert report.runs[0]["before_published_max_s"] is None


def test_tables_take_clocks_as_the_audit_does(spark: SparkSession, tmp_path: Path) -> None:
    """A move that seems to end milliseconds before it began is no fault; its times are not below zero."""
    _write(tmp_path / "trace", -0.5, -0.01, 0.02, away_s=-0.003)
    made = make_tables(spark, str(tmp_path / "trace"), tmp_path / "tables")
    assert (made.new, made.faults) == (["r1"], [])
    known = views(spark, str(tmp_path / "tables"))
    rows = sorted(known["outcomes"].collect(), key=lambda row: int(row["sequence"]))
    assert [row["latency_s"] for row in rows] == [None, 0.0, pytest.approx(0.02)]
    measured = known["measures"].where("measure like '%_s'").collect()
    assert min(row["value"] for row in measured if row["value"] is not None) >= 0.0
    _write(tmp_path / "other", 0.02, away_s=-0.2)
    (fault,) = make_tables(spark, str(tmp_path / "other"), tmp_path / "others").faults
    assert fault.sentence == "1 rows of handoffs have left_s after arrived_s"
