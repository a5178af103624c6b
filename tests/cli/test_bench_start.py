"""`sojourn bench start` on real processes, once."""

from __future__ import annotations

from sojourn.cli import bench_start


def test_starts_are_measured_beside_what_we_aim_at() -> None:
    """Every figure has its aim; how they compare depends on the machine."""
    said: list[str] = []
    median, most, aim = bench_start.run(said.append, rounds=1)
    assert median.keys() == most.keys() == aim.keys()
    assert all(value > 0 for key, value in median.items() if key)
    assert said
