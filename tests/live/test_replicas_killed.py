"""A stream over two live replicas, one of which is killed with `kill -9` in the middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.cli.check_replicas import Stream, Verdict, try_replicas
from sojourn.live.client.replicas import Dropped


def _check(verdicts: list[Verdict], events: int) -> None:
    assert [verdict.filter for verdict in verdicts] == ["duplicates", "ordered"]
    duplicates, ordered = verdicts
    assert duplicates.shown == events
    assert duplicates.missed == duplicates.doubled == 0
    assert ordered.out_of_order == ordered.doubled == 0
    assert ordered.missed == ordered.dropped.late
    assert all(verdict.fault is None for verdict in verdicts)
    # Both replicas sent the first half, and only one what came while the other was dead.
    assert events * 0.3 < duplicates.dropped.copies < events


def test_a_replica_killed_in_the_middle_of_a_stream_costs_nothing(tmp_path: Path) -> None:
    """Ten thousand events; the one that is killed stays dead, so that `ordered` has no reason to drop any."""
    verdicts = try_replicas(Stream(10_000, sources=3, restart_at=None), tmp_path)
    _check(verdicts, 10_000)
    assert verdicts[1].missed == 0


@pytest.mark.slow
def test_the_same_with_a_hundred_thousand_events_and_a_replica_that_comes_back(tmp_path: Path) -> None:
    """It comes back empty after three fifths, and its copies are told from news again."""
    _check(try_replicas(Stream(100_000), tmp_path), 100_000)


def test_a_verdict_says_what_is_wrong() -> None:
    """Each broken promise is named; what `ordered` dropped for good is none."""
    good = Verdict("ordered", 9, 1, 0, 0, Dropped(3, 1))
    assert good.fault is None
    assert "missing" in str(good._replace(missed=2).fault)
    assert "twice" in str(good._replace(doubled=1).fault)
    assert "out of order" in str(good._replace(out_of_order=1).fault)
    assert good._replace(filter="duplicates", out_of_order=1).fault is None
