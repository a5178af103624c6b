"""`sojourn bench roam` on real brokers, for a moment."""

from __future__ import annotations

import pytest

from sojourn.cli import bench_live, bench_roam


def test_sessions_that_move_are_given_what_was_stored_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each move ends when the event came that was published meanwhile, with the session still there."""
    with_mosquitto = bench_live.find_mosquitto() is not None
    systems = {name: bench_roam.SYSTEMS[name] for name in ("proactive", "mosquitto")[: 1 + with_mosquitto]}
    monkeypatch.setattr(bench_roam, "SYSTEMS", systems)
    monkeypatch.setattr(bench_roam, "WALKERS", 2)
    said: list[str] = []
    rows = bench_roam.run(said.append, sessions=6, seconds=1.0)
    assert {row["system"] for row in rows} == set(systems)
    assert {row["walkers"] for row in rows} == {1, 2}
    rest_ms = 1e3 * bench_roam.AWAY * bench_roam.PAUSE_S
    assert any(row["away_ms"] > rest_ms for row in rows if row["walkers"] == 1)
    assert all(row["moves"] > 0 and row["p99_ms"] >= row["p50_ms"] > 0 for row in rows)
    assert all(row["sessions_lost"] == 0 for row in rows)
    assert said


def test_who_is_near_is_what_the_template_says() -> None:
    """Links lead both ways."""
    near = bench_roam.near_of(6)
    assert near[0] == [1, 5]
    assert all(one in near[other] for one, others in enumerate(near) for other in others)
