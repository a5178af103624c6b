"""The simulator's benchmark measures what it says, and calibrations are what the world reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.cli import bench_simulate
from sojourn.sim.publishers.costs import load_calibration
from sojourn.sim.publishers.world import World
from sojourn.sim.scenario import Scenario


def test_a_row_holds_figures_with_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hops, seconds and their ratio fit together, beside the bare heap and the memory."""
    small = {"protocol": "delayed", "duration_s": 60.0, "publishers": 5, "subscribers": 10, "tree_height": 2}
    monkeypatch.setitem(bench_simulate.ROWS, "small", small)
    row = bench_simulate.measure("small")
    assert row["protocol"] == "delayed"
    assert row["hops"] > 0
    assert row["hops_per_s"] == pytest.approx(row["hops"] / row["seconds"], rel=0.2)
    assert row["peer_heapq_events_per_s"] > 0
    assert row["peak_rss_mb"] > 10


def test_rows_cover_the_yardstick_and_the_large_city() -> None:
    """The first row is the one the goal is stated for; the last is the tree of height 6."""
    names = list(bench_simulate.ROWS)
    assert names[0] == "standard"
    assert bench_simulate.PUBLISHERS == 250
    assert names[-1] == "scale"
    assert bench_simulate.ROWS["scale"]["tree_height"] == 6


def test_a_calibration_is_what_the_world_reads(tmp_path: Path) -> None:
    """What `calibrate` writes, `computations = measured` charges."""
    path = tmp_path / "calibration.json"
    rows = bench_simulate.calibrate(path, sizes=(50, 200))
    assert [row["subscriptions"] for row in rows] == [50, 200]
    curves = load_calibration(path)
    assert all(seconds > 0 for _, curve in curves.values() for seconds in curve)
    measured = Scenario(
        publishers=5,
        subscribers=10,
        tree_height=3,
        duration_s=60.0,
        computations="measured",
        calibration_file=str(path),
        total_subscriptions=200,
    )
    result = World(measured).run()
    assert sum(load.busy_s for load in result.load) > 0


def test_the_roaming_row_counts_deliveries() -> None:
    """The row of roaming subscribers is the goal's: 200, pro-active, neighbours, an hour; nothing doubled."""
    goal = bench_simulate.ROAMING_CHANGES
    assert (goal["subscribers"], goal["scheme"], goal["movement"]) == (200, "proactive", "neighbour")
    assert goal["duration_s"] == 3600.0
    row = bench_simulate.measure_roaming(subscribers=10, duration_s=20.0, warmup_s=5.0)
    assert row["deliveries"] > 100
    assert row["doubled"] == 0
    assert row["deliveries_per_cpu_s"] == pytest.approx(row["deliveries"] / row["cpu_seconds"], rel=0.05)


@pytest.mark.slow
def test_the_large_city_fits_into_memory() -> None:
    """1,365 brokers, 5,000 publishers and 50,000 subscribers for ten simulated minutes, under 4 GiB."""
    (row,) = bench_simulate.run(names=["scale"])
    assert row["brokers"] == 1365
    assert row["simulated_s"] == 600.0
    assert row["peak_rss_mb"] < 4096
