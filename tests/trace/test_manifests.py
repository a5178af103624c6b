"""Segments that are missing, copied or a stranger's are named; a run whose writer died is whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from sojourn.pipeline.tables import open_trace
from sojourn.trace import SegmentWriter, TraceError, write_run
from sojourn.trace.manifests import Sealed, manifest_path, read_manifest

FOLDER = Path("deliveries/run_id=r1")


def write(root: Path, segments: int, *, writer: str = "b1") -> None:
    """Seal so many segments of two rows."""
    one = SegmentWriter(root, "r1", name=writer)
    for number in range(segments):
        for place in range(2):
            one.add("deliveries", "c1", "p1", 2 * number + place, 1.0, "b1")
        one.seal()


def fault(root: Path) -> str:
    """What is said of the run, if it is refused."""
    trace = open_trace(root)
    return "".join(problem.sentence for problem in trace.problems if problem.refused)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A trace of two writers."""
    write(tmp_path, 4)
    write(tmp_path, 2, writer="b2")
    assert fault(tmp_path) == ""
    return tmp_path


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_segment_that_is_gone_is_named(root: Path, number: int) -> None:
    """The first, one between and the last; the rest is judged where the manifest is removed."""
    (root / FOLDER / f"part-b1-{number:08d}.parquet").unlink()
    assert fault(root).startswith(f"{FOLDER}/part-b1-{number:08d}.parquet is missing")
    manifest_path(root, "r1", "b1").unlink()
    assert fault(root) == ""


def test_a_table_that_is_gone_is_named(root: Path) -> None:
    """All segments of a writer, while others have theirs."""
    for path in (root / FOLDER).glob("part-b1-*"):
        path.unlink()
    assert "part-b1-00000000.parquet and 3 more of 4 are missing" in fault(root)


@pytest.mark.parametrize("gone", ["deliveries/run_id=r1", "deliveries"])
def test_a_folder_that_is_gone_is_named(root: Path, gone: str) -> None:
    """A table without a folder is no table that nobody wrote: its manifest names it."""
    one = SegmentWriter(root, "r1", name="b1")
    one.add("sojourns", "c1", "b1", 1.0, 2.0)
    one.seal()
    assert fault(root) == ""
    shutil.rmtree(root / gone)
    assert "part-b1-00000000.parquet and 3 more of 4 are missing" in fault(root)


def test_a_copy_is_named_under_any_name(root: Path) -> None:
    """One that would be the next segment, and one that is in another one's place."""
    first = root / FOLDER / "part-b1-00000000.parquet"
    for name in ("part-b1-00000004.parquet", "part-b1-00000002.parquet", "part-b3-00000000.parquet"):
        other = root / FOLDER / name
        before = other.read_bytes() if other.exists() else None
        shutil.copy(first, other)
        assert f"{name} is a copy of another segment (deliveries/b1/0)" in fault(root)
        if before is None:
            other.unlink()
        else:
            other.write_bytes(before)


def test_a_strangers_file_is_named(root: Path) -> None:
    """By its name, or by its number."""
    first = root / FOLDER / "part-b1-00000000.parquet"
    shutil.copy(first, root / FOLDER / "mine.parquet")
    assert (
        fault(root)
        == f"{FOLDER}/mine.parquet is no segment that a writer of this run sealed; move it elsewhere."
    )


def test_a_writer_that_died_between_segment_and_note_goes_on(root: Path) -> None:
    """The segment counts, before it is noted and after."""
    noted = manifest_path(root, "r1", "b1")
    before = noted.read_text()
    write(root, 1)
    noted.write_text(before)
    assert fault(root) == ""
    write(root, 1)
    assert fault(root) == ""
    assert read_manifest(noted) == {"deliveries": Sealed(6, 12)}


def test_a_writer_does_not_fill_a_gap(root: Path) -> None:
    """What is gone stays missing, also where it was the last segment."""
    (root / FOLDER / "part-b1-00000003.parquet").unlink()
    write(root, 1)
    assert "part-b1-00000003.parquet is missing" in fault(root)


def test_runs_of_other_programs_and_older_versions_are_not_judged(root: Path) -> None:
    """They have no manifests."""
    (root / FOLDER / "part-b1-00000001.parquet").unlink()
    manifest_path(root, "r1", "b1").unlink()
    assert fault(root) == ""


def test_a_run_that_is_written_again_has_the_new_manifest(tmp_path: Path) -> None:
    """And a manifest speaks of the tables that somebody reads."""
    columns: dict[str, list[Any]] = {
        "client": ["c"],
        "source": ["p"],
        "sequence": [1],
        "time_s": [1.0],
        "broker": ["b"],
    }
    for rows in (1, 3):
        write_run(tmp_path, "r1", {"deliveries": {name: value * rows for name, value in columns.items()}})
        assert fault(tmp_path) == ""
    assert read_manifest(manifest_path(tmp_path, "r1", "main")) == {"deliveries": Sealed(1, 3)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"deliveries": 4}', '{"deliveries": {"segments": 4}}'])
def test_a_manifest_that_cannot_be_read_is_named(root: Path, text: str) -> None:
    """What a damaged manifest would have said is not known: the run is refused, and not judged without it."""
    manifest_path(root, "r1", "b2").write_text(text)
    assert fault(root).startswith("_manifests/run_id=r1/b2.json is no manifest that can be read")
    manifest_path(root, "r1", "b2").unlink()
    assert fault(root) == ""


def test_a_writer_does_not_replace_a_manifest_that_cannot_be_read(root: Path) -> None:
    """What it said would be gone for good, and a gap with it."""
    noted = manifest_path(root, "r1", "b1")
    noted.write_text("no JSON")
    with pytest.raises(TraceError, match=r"b1\.json is no manifest that can be read"):
        SegmentWriter(root, "r1", name="b1")
    assert noted.read_text() == "no JSON"
    noted.unlink()
    write(root, 1)
    assert fault(root) == ""
