"""`sojourn bench crowd` on real brokers, with a small crowd."""

from __future__ import annotations

from sojourn.cli import bench_crowd


def test_nothing_is_lost_of_a_crowd_that_moves() -> None:
    """Each session that moves finds its events; loops and memory are said."""
    said: list[str] = []
    (row,) = bench_crowd.run(said.append, sessions=40, moves_a_minute=600, seconds=2.0)
    assert row["moves"] > 0
    assert row["missing"] == row["sessions_lost"] == 0
    assert row["published"] > row["moves"]
    assert row["p99_ms"] >= row["p50_ms"] > 0
    assert row["longest_turn_coming_s"] > 0
    assert row["longest_turn_moving_s"] > 0
    assert row["longest_cpu_coming_s"] > 0
    assert row["longest_cpu_moving_s"] > 0
    assert said
