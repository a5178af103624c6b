"""A writer that ended without sealing all that it had noted is known for one, and when that was."""

from __future__ import annotations

import errno
import json
import os
from math import inf
from pathlib import Path

import pytest

from sojourn.pipeline.tables import open_trace
from sojourn.trace import SegmentWriter, TraceError, lives, manifests, segments, write_run
from sojourn.trace.lives import Gap, Life, Missing, life_path, missing_of, read_life, read_lives, said_of
from sojourn.trace.manifests import manifest_path, read_manifest

ROW = ("c1", "p1", 1, 1.0, "B1")


def writer(root: Path, began_s: float | None, rows_max: int = 100) -> SegmentWriter:
    """A broker that joins the run."""
    return SegmentWriter(root, "r1", name="B1", began_s=began_s, rows_max=rows_max)


def life(root: Path) -> Life | None:
    """What it says of itself."""
    return read_life(life_path(manifest_path(root, "r1", "B1")))


def sealed_at(root: Path, began_s: float, *moments_s: float) -> SegmentWriter:
    """A broker that sealed rows at some moments, and goes on."""
    one = writer(root, began_s)
    for moment_s in moments_s:
        one.add("deliveries", *ROW)
        one.seal(moment_s)
    return one


def test_who_is_killed_has_a_gap_from_its_last_seal_until_the_next_begins(tmp_path: Path) -> None:
    """Each life that did not close has one; one that closed has none, however long nobody wrote."""
    one = sealed_at(tmp_path, 0.0, 5.0, 10.0)
    one.add("deliveries", *ROW)  # and is killed
    assert life(tmp_path) == Life(10.0)
    two = sealed_at(tmp_path, 14.0, 19.0)
    assert life(tmp_path) == Life(19.0, gaps=(Gap(10.0, 14.0),))
    two.close(21.0)
    assert life(tmp_path) == Life(21.0, is_open=False, gaps=(Gap(10.0, 14.0),))
    sealed_at(tmp_path, 500.0)  # killed at once
    sealed_at(tmp_path, 502.0)
    assert life(tmp_path) == Life(502.0, gaps=(Gap(10.0, 14.0), Gap(500.0, 502.0)))


def test_a_seal_without_rows_counts_and_a_full_table_does_not(tmp_path: Path) -> None:
    """Who noted nothing misses nothing; a table that seals itself says nothing of the others."""
    one = writer(tmp_path, 0.0, rows_max=2)
    one.seal(5.0)
    assert life(tmp_path) == Life(5.0)
    one.add("clients", "c1", "{}")
    for _ in range(2):
        one.add("deliveries", *ROW)
    assert len(list(tmp_path.rglob("part-*.parquet"))) == 1
    assert life(tmp_path) == Life(5.0)


def test_a_seal_that_fails_leaves_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that found no room on the disk are not said to be there."""
    one = sealed_at(tmp_path, 0.0, 5.0)
    one.add("deliveries", *ROW)

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("sojourn.trace.segments.write_segment", full)
    with pytest.raises(OSError, match="no space"):
        one.seal(10.0)
    assert life(tmp_path) == Life(5.0)


def test_simulated_runs_and_writers_without_time_say_nothing(tmp_path: Path) -> None:
    """As traces of earlier builds do: none of them has gaps."""
    write_run(tmp_path, "sim", {})
    one = writer(tmp_path, None)
    one.add("deliveries", *ROW)
    one.seal(5.0)
    assert read_lives(tmp_path) == {}
    assert open_trace(tmp_path).lives == {}
    assert missing_of({}, None) == ()


def test_a_clock_that_was_set_back_between_two_lives_makes_no_gap_of_less_than_nothing(
    tmp_path: Path,
) -> None:
    """It ends no sooner than it began."""
    sealed_at(tmp_path, 0.0, 10.0)
    sealed_at(tmp_path, 4.0)
    assert life(tmp_path) == Life(4.0, gaps=(Gap(10.0, 10.0),))


def test_of_too_many_gaps_two_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is started every second for a day has a file that stays small, and each end counts."""
    monkeypatch.setattr(lives, "GAPS_MAX", 3)
    for began_s in (0.0, 150.0, 200.0, 201.0, 300.0, 400.0):
        sealed_at(tmp_path, began_s, began_s + 0.5)
    found = life(tmp_path)
    assert found is not None
    assert found.gaps == (Gap(0.5, 150.0), Gap(150.5, 300.0, 3), Gap(300.5, 400.0))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"sealed_s": 4}', '{"sealed_s": 1, "is_open": 1, "gaps": [1]}']
)
def test_a_life_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    """What it would have said of missing rows is not known: the run is refused, and no writer starts."""
    sealed_at(tmp_path, 0.0, 5.0)
    path = life_path(manifest_path(tmp_path, "r1", "B1"))
    path.write_text(text)
    (problem,) = open_trace(tmp_path).problems
    assert problem.refused
    assert problem.sentence.startswith("_manifests/run_id=r1/B1.life cannot be read")
    with pytest.raises(TraceError, match=r"B1\.life cannot be read"):
        writer(tmp_path, 9.0)
    assert path.read_text() == text
    path.unlink()
    assert open_trace(tmp_path).problems == []


def test_earlier_builds_read_the_manifests(tmp_path: Path) -> None:
    """What is new stands beside them, under a name that they do not look at."""
    sealed_at(tmp_path, 0.0, 5.0)
    manifests = list((tmp_path / "_manifests").rglob("*.json"))
    assert [json.loads(path.read_text()) for path in manifests] == [
        {"deliveries": {"segments": 1, "rows": 1}}
    ]


def test_an_open_writer_has_a_gap_from_its_last_seal_on() -> None:
    """Of a run that has ended it is one that was killed; of one that has not it may go on."""
    told = {"B1": Life(20.0, is_open=False, gaps=(Gap(3.0, 5.0),)), "B2": Life(18.0)}
    killed = Missing("B1", 3.0, 5.0)
    assert missing_of(told, 30.0) == (killed, Missing("B2", 18.0, inf))
    assert missing_of(told, None) == (killed, Missing("B2", 18.0, inf, may_go_on=True))
    again = {"B1": Life(32.0), "B2": Life(18.0)}
    assert {gap.may_go_on for gap in missing_of(again, 30.0)} == {True}, "B1 ended the run, and began anew"


def test_gaps_are_said_in_a_sentence_a_broker() -> None:
    """How often, and how much is missing at the most; nothing where all is there."""
    gaps = (Gap(3.0, 5.0), Gap(9.0, 13.5, 2))
    told = {"B1": Life(20.0, is_open=False, gaps=gaps), "B2": Life(18.0)}
    first = (
        "B1 ended 3 times without writing down what it noted last: up to 4.5 s of its rows are missing each "
        "time; what those may have told counts as unrecorded."
    )
    second = (
        "B2 ended once without writing down what it noted last: up to 12 s of its rows are missing; what "
        "those may have told counts as unrecorded."
    )
    assert said_of(missing_of(told, 30.0), 30.0) == [first, second]
    goes_on = "the run goes on, and B2 may have noted what it has not written down yet;"
    said = said_of(missing_of(told, None), None)
    assert said[0] == first
    assert said[1].startswith(goes_on)
    assert said_of(missing_of({"B1": Life(20.0, is_open=False)}, 30.0), 30.0) == []


def test_rows_that_cannot_be_written_wait_and_then_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a disk is full: who comes to have room again in time misses nothing, and else that is told."""
    real = segments.write_segment

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fills(*, is_full: bool) -> None:
        monkeypatch.setattr(segments, "write_segment", full if is_full else real)

    one = writer(tmp_path, 0.0, rows_max=4)
    fills(is_full=True)
    for _ in range(3):
        one.add("deliveries", *ROW)
    with pytest.raises(OSError, match="No space"):
        one.seal(5.0)
    fills(is_full=False)
    one.seal(10.0)
    assert life(tmp_path) == Life(10.0), "they waited"
    assert read_manifest(manifest_path(tmp_path, "r1", "B1"))["deliveries"].rows == 3  # type: ignore[index]  # it is there
    fills(is_full=True)
    for _ in range(3):
        one.add("deliveries", *ROW)
    with pytest.raises(OSError, match="No space"):
        one.add("deliveries", *ROW)
    one.add("deliveries", *ROW)
    fills(is_full=False)
    one.seal(15.0)
    assert life(tmp_path) == Life(15.0, gaps=(Gap(10.0, 15.0),)), "four were let go"
    assert read_manifest(manifest_path(tmp_path, "r1", "B1"))["deliveries"].rows == 4  # type: ignore[index]  # it is there
    one.close(20.0)
    assert life(tmp_path) == Life(20.0, is_open=False, gaps=(Gap(10.0, 15.0),))


def test_segments_wait_for_the_note_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a disk takes them and not the note: readers know of one that is not noted, and not of two."""
    real = manifests.write_manifest

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(segments, "write_manifest", full)
    one = writer(tmp_path, 0.0, rows_max=9)
    for _ in range(3):
        one.add("deliveries", *ROW)
        with pytest.raises(OSError, match="No space"):
            one.seal(5.0)
    assert len(list((tmp_path / "deliveries").rglob("part-*.parquet"))) == 1
    monkeypatch.setattr(segments, "write_manifest", real)
    one.close(10.0)
    manifest = read_manifest(manifest_path(tmp_path, "r1", "B1"))
    assert manifest is not None
    assert manifest["deliveries"] == (2, 3)


def test_a_segment_that_could_not_be_written_takes_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a disk that is full would stay so."""

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    one = SegmentWriter(tmp_path, "r1", name="B1")
    one.add("deliveries", *ROW)
    with pytest.raises(OSError, match="No space"):
        one.seal()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
