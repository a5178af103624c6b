from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sojourn.sim.recorder import Recorder
from sojourn.trace import COLUMNS, SegmentWriter, TraceError, segment_folder, write_run

_DELIVERY = ("c1", "p1", 7, 1.5, "b1")


def _read(root: Path, table: str, run_id: str) -> list[dict[str, object]]:
    files = sorted(segment_folder(root, table, run_id).glob("part-*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_columns_are_those_the_simulator_records() -> None:
    """Simulated runs and live ones have the same tables with the same columns."""
    assert {table: ("run_id", *schema.names) for table, schema in COLUMNS.items()} == {
        table: tuple(columns) for table, columns in Recorder("r1").tables.items()
    }


def test_rows_are_readable_once_sealed_and_not_before(tmp_path: Path) -> None:
    """An appended row is nowhere until `seal`, then in exactly one segment."""
    writer = SegmentWriter(tmp_path, "r1")
    writer.add("deliveries", *_DELIVERY)
    assert _read(tmp_path, "deliveries", "r1") == []
    assert len(writer.seal()) == 1
    assert writer.seal() == []
    writer.add("deliveries", "c2", "p1", 8, None, None)
    writer.seal()
    rows = _read(tmp_path, "deliveries", "r1")
    assert [row["client"] for row in rows] == ["c1", "c2"]
    assert rows[1]["time_s"] is None


def test_a_table_with_many_rows_seals_itself(tmp_path: Path) -> None:
    """Memory is bounded: at `rows_max` rows a segment is sealed unasked."""
    writer = SegmentWriter(tmp_path, "r1", rows_max=10)
    for i in range(25):
        writer.add("deliveries", "c1", "p1", i, 1.0, "b1")
    assert len(_read(tmp_path, "deliveries", "r1")) == 20
    writer.seal()
    assert [row["sequence"] for row in _read(tmp_path, "deliveries", "r1")] == list(range(25))


def test_a_second_writer_goes_on_and_removes_what_was_left_half_written(tmp_path: Path) -> None:
    """After a crash no sealed segment is overwritten and no half-written one stays."""
    first = SegmentWriter(tmp_path, "r1", name="b1")
    first.add("deliveries", *_DELIVERY)
    (sealed,) = first.seal()
    half = sealed.with_name(".part-b1-00000001.parquet")
    half.write_bytes(b"PAR1 and no end")
    others = sealed.with_name(".part-b2-00000000.parquet")
    others.write_bytes(b"PAR1")
    second = SegmentWriter(tmp_path, "r1", name="b1")
    assert not half.exists()
    assert others.exists(), "another process may be writing it"
    second.add("deliveries", *_DELIVERY)
    assert second.seal()[0].name == "part-b1-00000001.parquet"
    assert len(_read(tmp_path, "deliveries", "r1")) == 2


def test_a_failed_write_leaves_nothing_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk gives up in the middle, no file with a segment's name appears."""

    def half_written(_table: pa.Table, file: object, **_options: object) -> None:
        file.write(b"PAR1half")  # type: ignore[attr-defined]  # parametrised
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", half_written)
    writer = SegmentWriter(tmp_path, "r1")
    writer.add("deliveries", *_DELIVERY)
    with pytest.raises(OSError, match="no space"):
        writer.seal()
    assert list(tmp_path.rglob("part-*.parquet")) == []
    monkeypatch.undo()
    writer.seal()
    assert len(_read(tmp_path, "deliveries", "r1")) == 1


def test_runs_is_sealed_last() -> None:
    """Whoever sees the end of a run sees all of it; what deliveries are judged by comes before them."""
    order = list(COLUMNS)
    assert order[-1] == "runs"
    judged_by = ("clients", "interests", "publications")
    assert all(order.index(table) < order.index("deliveries") for table in judged_by)


def test_a_run_written_again_replaces_itself(tmp_path: Path) -> None:
    """Writing twice what a run recorded gives the same rows, not twice as many."""
    columns: dict[str, list[object]] = {name: [None] for name in COLUMNS["runs"].names}
    for _ in range(2):
        write_run(tmp_path, "r1", {"runs": {**columns, "run_id": ["r1"], "world": ["sim"], "seed": [4]}})
    assert [(row["world"], row["seed"]) for row in _read(tmp_path, "runs", "r1")] == [("sim", 4)]


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (lambda w: w.add("deliveries", "c1"), "A row of deliveries has 5 values, not 1."),
        (
            lambda w: write_run(w._root, "r", {"clients": {"client": ["c"]}}),
            "the column attributes_json",
        ),
        (lambda w: SegmentWriter(w._root, "../r"), "The run id '../r' is not a file name"),
        (lambda w: SegmentWriter(w._root, "r", name="a-b"), "The writer's name 'a-b'"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(tmp_path: Path, action: object, sentence: str) -> None:
    """A wrong row, table, run id or writer's name is named in one sentence."""
    with pytest.raises(TraceError) as caught:
        action(SegmentWriter(tmp_path, "r1"))  # type: ignore[operator]  # parametrised
    assert sentence in str(caught.value)


def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    """A text where a number belongs is a sentence that names the table."""
    writer = SegmentWriter(tmp_path, "r1")
    writer.add("deliveries", "c1", "p1", "seven", 1.0, "b1")
    with pytest.raises(TraceError, match="A row of deliveries does not fit"):
        writer.seal()
