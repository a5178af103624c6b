"""Tables that follow from a trace: what they hold, that they grow by what is new, and what they refuse."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline.derived_job import make_tables
from sojourn.pipeline.derived_rows import ALL, described
from sojourn.pipeline.views import views
from tests.pipeline.random_traces import RandomTrace, audit_by_hand, random_trace

pytestmark = pytest.mark.timeout(900)

COUNTS = ("expected", "delivered", "lost", "allowed", "unauthorised", "duplicated", "out_of_order")


def _sound_trace(run_id: str, seed: int) -> RandomTrace:
    """A random run without stays that end before they begin; it tells of one move's messages."""
    trace = random_trace(run_id, seed, 60)
    trace.rows["sojourns"] = [row for row in trace.rows["sojourns"] if row[3] is None or row[2] <= row[3]]
    client, *_rest = trace.rows["handoffs"][0]
    trace.rows["handoffs"] = [(*row[:6], f"move-{row[0]}") for row in trace.rows["handoffs"]]
    trace.rows["message_counts"] = [
        ("advertise", f"move-{client}", 3, 300, "build"),
        ("unadvertise", f"move-{client}", 2, 100, "teardown"),
        ("publish", "", 90, 9_000),
    ]
    trace.rows["broker_load"] = [("b1", 10, 30.0, 4, 0.5), ("b1", 10, 30.0, 2, 0.5)]
    return trace


def _measured(spark: SparkSession, folder: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in views(spark, str(folder))["measures"].collect():
        found.setdefault(row["run_id"], {})[row["measure"]] = row["value"]
    return found


def test_tables_hold_what_follows_and_grow_by_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    """Outcomes are a brute force's, a second call does nothing, a third what is new; SQL reads all layers."""
    root, folder = tmp_path / "trace", tmp_path / "tables"
    traces = [_sound_trace(f"r{seed}", seed) for seed in (1, 2)]
    traces[0].write(root)
    assert make_tables(spark, str(root), folder).new == ["r1"]
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*.parquet"))
    again = make_tables(spark, str(root), folder)
    assert (again.new, again.kept, again.faults) == ([], ["r1"], [])
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*.parquet")) == before
    traces[1].write(root)
    made = make_tables(spark, str(root), folder)
    assert (made.new, made.kept) == (["r2"], ["r1"])
    for trace in traces:
        by_hand, found = audit_by_hand(trace), _measured(spark, folder)[trace.run_id]
        assert {name: found[name] for name in COUNTS} == {name: by_hand[name] for name in COUNTS}
        assert found["handoffs"] == 12
        assert found["handoff_away_p50_s"] == pytest.approx(1.0)
        assert found["hops_per_handoff"] == 5
        assert found["busy_share_max"] == pytest.approx(60.0 / 300.0)
    known = views(spark, str(folder))
    assert set(known) == set(ALL)
    (row,) = known["means"].where("measure = 'handoffs'").collect()
    assert (row["mean"], row["runs"]) == (12.0, 2)
    shares = known["neighbours"].groupBy("run_id", "at").sum("probability").collect()
    assert all(row["sum(probability)"] == pytest.approx(1.0) for row in shares)
    catalogue = json.loads((folder / "catalogue.json").read_text())
    assert catalogue["tables"]["outcomes"] == described("outcomes")


def test_rows_that_cannot_be_what_happened_are_named_and_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A delivery of nothing, a stay that ends before it begins, a row without its client: none is made."""
    root, folder = tmp_path / "trace", tmp_path / "tables"
    bad = _sound_trace("bad", 3)
    bad.rows["deliveries"] += [("c1", "nobody", 4, 9.0, "b1"), (None, "p1", 3, 20.0, "b1")]
    bad.rows["sojourns"].append(("c1", "b1", 9.0, 8.0))
    bad.write(root)
    made = make_tables(spark, str(root), folder)
    assert (made.new, made.kept) == ([], [])
    assert {fault.run_id for fault in made.faults} == {"bad"}
    assert sorted(fault.sentence for fault in made.faults) == [
        "1 rows of deliveries have no client",
        "1 rows of deliveries refer to rows of clients that are missing",
        "1 rows of deliveries refer to rows of publications that are missing",
        "1 rows of sojourns have from_s after to_s",
    ]
    assert not (folder / "outcomes").exists()
    assert make_tables(spark, str(root), folder, anyway=True).new == ["bad"]


def test_every_table_and_column_is_explained() -> None:
    """No column of any layer is without its meaning and kind."""
    for table in ALL:
        about = described(table)
        assert about["is"].endswith(".") or about["is"].endswith(":")
        assert all(column["means"] and column["type"] for column in about["columns"]), table
