"""A trace of many small segments written again: the same rows in few files, nothing half-done."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sojourn.pipeline.compacting import CompactError, compact
from sojourn.pipeline.tables import open_trace, small_table
from sojourn.trace import COLUMNS, SegmentWriter, segment_folder
from sojourn.trace.lives import Gap, Life
from tests.pipeline.random_traces import RandomTrace, random_trace


def _write_small(root: Path, trace: RandomTrace, parts: range = range(6)) -> None:
    """Write a run as many segments of two writers."""
    for name in ("b1", "b2"):
        writer = SegmentWriter(root, trace.run_id, name=name)
        for part in parts:
            for table, rows in trace.rows.items():
                for row in rows[part::6][:: 1 if name == "b1" else 2]:
                    writer.add(table, *row)
            writer.seal()


def _rows(root: Path, table: str) -> list[tuple[object, ...]]:
    found = small_table(open_trace(root), table, ("run_id", *COLUMNS[table].names)).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def test_the_rows_are_the_same_in_few_files(tmp_path: Path) -> None:
    """One segment a table, with every row; a second call copies nothing, a grown run is copied again."""
    root, into = tmp_path / "trace", tmp_path / "compacted"
    trace = random_trace("r1", 4, 60)
    _write_small(root, trace, range(5))
    (run,), _ = compact(str(root), into)
    assert run.segments > 5 * run.tables
    assert len(list(into.rglob("part-*.parquet"))) == run.tables
    for table in ("publications", "deliveries", "interests", "sojourns"):
        assert _rows(into, table) == _rows(root, table)
    times = {path: path.stat().st_mtime_ns for path in into.rglob("*.parquet")}
    assert compact(str(root), into)[0][0].was_there
    assert {path: path.stat().st_mtime_ns for path in into.rglob("*.parquet")} == times
    _write_small(root, trace, range(5, 6))
    assert not compact(str(root), into)[0][0].was_there
    assert _rows(into, "deliveries") == _rows(root, "deliveries")


def test_a_copy_that_was_not_finished_is_known_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads it is told what is missing, and the next call finishes it."""
    root, into = tmp_path / "trace", tmp_path / "compacted"
    _write_small(root, random_trace("r1", 4, 60))
    whole = pq.ParquetWriter.write_table

    def fails(writer: pq.ParquetWriter, table: object, **options: object) -> None:
        if len(list(into.rglob("part-*.parquet"))) >= 3:
            raise OSError("no space left")
        whole(writer, table, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fails)
    with pytest.raises(OSError, match="no space"):
        compact(str(root), into)
    monkeypatch.undo()
    (problem,) = open_trace(into).problems
    assert problem.refused
    assert "missing" in problem.sentence
    assert not compact(str(root), into)[0][0].was_there
    assert open_trace(into).problems == []


def test_what_is_missing_in_the_trace_is_missing_in_the_copy(tmp_path: Path) -> None:
    """A broker that was killed is known for it there too, also if that is all that is new."""
    root, into = tmp_path / "trace", tmp_path / "compacted"
    for began_s in (0.0, 9.0):
        writer = SegmentWriter(root, "r1", name="B1", began_s=began_s)
        writer.add("deliveries", "c1", "p1", 1, began_s, "B1")
        writer.seal(began_s + 5.0)
        compact(str(root), into)
        assert open_trace(into).lives == open_trace(root).lives
    assert open_trace(into).lives["r1"]["B1"] == Life(14.0, gaps=(Gap(5.0, 9.0),))
    SegmentWriter(root, "r1", name="B1", began_s=20.0).close(21.0)
    assert compact(str(root), into)[0][0].was_there
    assert open_trace(into).lives["r1"]["B1"] == Life(21.0, False, (Gap(5.0, 9.0), Gap(14.0, 20.0)))


def test_a_trace_with_a_gap_and_the_trace_itself_are_refused(tmp_path: Path) -> None:
    """What would look like losses is not copied; and nothing is written over what is read."""
    root = tmp_path / "trace"
    _write_small(root, random_trace("r1", 4, 60))
    with pytest.raises(CompactError, match="is the trace itself"):
        compact(str(root), root)
    next(iter(segment_folder(root, "deliveries", "r1").glob("part-b1-*.parquet"))).unlink()
    done, looked_at = compact(str(root), tmp_path / "compacted")
    assert done == []
    assert [problem.refused for problem in looked_at.problems] == [True]
