"""What an audit will hold is told from samples: enough buckets whatever was delivered, and whom to split."""

from pathlib import Path

import pytest

from sojourn.pipeline import audit_interests, audit_sizes
from sojourn.pipeline.audit_events import event_columns
from sojourn.pipeline.audit_interests import (
    INTEREST,
    FilterMemory,
    compile_interests,
    expected_in_parts,
    told_once,
)
from sojourn.pipeline.audit_sizes import sizes_of, some_interests
from sojourn.pipeline.tables import Trace, open_trace, small_table
from tests.pipeline.random_traces import RandomTrace, random_trace, wanted_of


def _silent(root: Path) -> tuple[RandomTrace, Trace]:
    """A run of which nothing was delivered, and whose events everybody may get."""
    trace = random_trace("r1", 3)
    trace.rows["deliveries"].clear()
    trace.rows["publications"] = [(*row[:6], None, row[7]) for row in trace.rows["publications"]]
    trace.write(root)
    return trace, open_trace(root)


def _compiled(found: Trace) -> dict[str, audit_interests.RunInterests]:
    clients = small_table(found, "clients", ("run_id", "client", "attributes_json"))
    return compile_interests(told_once(small_table(found, "interests", INTEREST)), clients)


def test_a_run_without_deliveries_has_buckets_for_what_it_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage nothing was delivered, and all that was expected still has to be held somewhere."""
    trace, found = _silent(tmp_path)
    sizes = sizes_of(found, _compiled(found), {"r1": 300.0})
    assert sizes.delivered == 0
    # Interests of one client overlap, and its event is expected once: the estimate is above.
    assert len(wanted_of(trace)) * 0.9 <= sizes.expected <= 2 * len(wanted_of(trace))
    monkeypatch.setattr(audit_sizes, "BUCKET_ROWS", 100)
    assert sizes.buckets(2) == -(-sizes.expected // 100)


def test_some_interests_stand_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where interests are too many to be tried, every second one tells about as much as all."""
    trace, found = _silent(tmp_path)
    interests = told_once(small_table(found, "interests", INTEREST))
    monkeypatch.setattr(audit_sizes, "_SAMPLED_INTERESTS", len(interests) // 2)
    some, scale = some_interests(interests)
    assert scale == pytest.approx(2.0, rel=0.1)
    sizes = sizes_of(found, some, {"r1": 300.0}, scale)
    assert len(wanted_of(trace)) * 0.4 <= sizes.expected <= 4 * len(wanted_of(trace))


def test_a_client_with_more_rows_than_half_a_bucket_is_hot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whom a sample shows to get very much is split by source, and nobody else."""
    trace = random_trace("r1", 3)
    trace.rows["deliveries"] += [("c3", f"p{n % 4}", n, 1.0, "b1") for n in range(2_000)]
    trace.write(tmp_path)
    found = open_trace(tmp_path)
    monkeypatch.setattr(audit_sizes, "HOT_ROWS", 1_000)
    assert sizes_of(found, _compiled(found), {"r1": 300.0}).hot == {("r1", "c3")}


def test_what_is_made_at_once_is_bounded_however_many_want_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expected deliveries come in parts of about the size that was asked for, and nothing is left out."""
    trace, found = _silent(tmp_path)
    run = _compiled(found)["r1"]
    names = ("run_id", "source", "sequence", "time_s", "topic", "attributes_json", "policy")
    publications = small_table(found, "publications", names)
    for name, value in {"PART_ROWS": 40, "_FIRST_EVENTS": 8, "_EVENTS_MIN": 4}.items():
        monkeypatch.setattr(audit_interests, name, value)
    parts = list(expected_in_parts("r1", publications, event_columns(publications)[0], run))
    assert len(parts) > 5
    assert max(len(part) for part in parts) < 4 * 40
    made = {
        (row["client"], row["source"], row["sequence"]): row["is_owed"]
        for part in parts
        for row in part.to_pylist()
    }
    assert made == {name: owed for name, (_, owed) in wanted_of(trace).items()}


def test_a_filter_is_read_once_however_often_interests_are_compiled() -> None:
    """Another set of interests reads only what is new in it; the same set is there as it was."""
    memory = FilterMemory(filters_max=3, indexes_max=2)
    first, _ = memory.compile(0, ["a = 1", "b = 2"])
    assert memory.compile(0, ["a = 1", "b = 2"])[0] is first
    memory.compile(0, ["a = 1", "b = 2", "c = 3"])
    assert memory.parsed == 3
    _, faulty = memory.compile(0, ["a =", "d = 4"])
    assert list(faulty) == ["a ="]
    assert memory.compile(0, ["a = 1", "b = 2"])[0] is not first, "only so many are kept"
