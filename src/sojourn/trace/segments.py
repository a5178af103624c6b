"""Writes trace tables as Parquet segments.

A segment is written under a name that starts with a dot, which no reader takes for data, brought to disk, and
renamed in one step when it is sealed. A process that dies leaves its sealed segments and at most one dotted
file a table; the next writer of that name removes those. Rows not yet sealed are lost with the process.

Rules: one writer a name and run; rows are kept in memory up to `rows_max` a table, then sealed by themselves;
`seal` seals all tables in the order of `COLUMNS`, `runs` last. No time, no thread here: the caller decides
when a segment ends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sojourn.errors import SojournError
from sojourn.trace.columns import COLUMNS

ROWS_MAX = 100_000
ROW_GROUP_ROWS = 1_000_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}\Z")


class TraceError(SojournError):
    """A trace cannot be written as asked."""


def segment_folder(root: Path, table: str, run_id: str) -> Path:
    """Return where the segments of a table of a run are."""
    if not _NAME.match(run_id):
        raise TraceError(
            f"The run id {run_id!r} is not a file name; use up to 128 letters, digits, dots, + - and _."
        )
    return root / table / f"run_id={run_id}"


class SegmentWriter:
    """Appends rows to the tables of one run and seals them as segments."""

    def __init__(
        self,
        root: str | Path,
        run_id: str,
        *,
        name: str = "main",
        rows_max: int = ROWS_MAX,
        mode: int = 0o666,
    ) -> None:
        """Join a run; `mode` says who may read its segments, as far as the process lets anybody."""
        if not _NAME.match(name) or "-" in name:
            raise TraceError(f"The writer's name {name!r} is not letters, digits, dots, + and _.")
        self._root = Path(root)
        self.run_id = run_id
        self._name = name
        self._rows_max = rows_max
        self._mode = mode
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in COLUMNS}
        self._next = {table: self._first_free(table) for table in COLUMNS}

    def add(self, table: str, *values: object) -> None:
        """Add a row; the values follow the table's columns after `run_id`."""
        if len(values) != len(COLUMNS[table]):
            raise TraceError(f"A row of {table} has {len(COLUMNS[table])} values, not {len(values)}.")
        rows = self._rows[table]
        rows.append(values)
        if len(rows) >= self._rows_max:
            self._seal(table)

    def seal(self) -> list[Path]:
        """Make all rows added so far readable, and return the segments that hold them."""
        sealed = [self._seal(table) for table in COLUMNS if self._rows[table]]
        return [path for path in sealed if path is not None]

    def _seal(self, table: str) -> Path:
        rows = self._rows[table]
        columns = zip(*rows, strict=True)
        names = COLUMNS[table].names
        path = self._path(table, self._next[table])
        write_segment(path, arrow_table(table, dict(zip(names, columns, strict=True))), self._mode)
        self._next[table] += 1
        rows.clear()
        return path

    def _path(self, table: str, number: int) -> Path:
        return segment_folder(self._root, table, self.run_id) / f"part-{self._name}-{number:08d}.parquet"

    def _first_free(self, table: str) -> int:
        """Return the next number, and remove what an earlier process left half-written."""
        folder = segment_folder(self._root, table, self.run_id)
        for left in folder.glob(f".part-{self._name}-*.parquet"):
            left.unlink()
        numbers = [int(path.stem.rsplit("-", 1)[1]) for path in folder.glob(f"part-{self._name}-*.parquet")]
        return max(numbers, default=-1) + 1


def write_run(root: str | Path, run_id: str, tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[Path]:
    """Write the tables of a run that is over, one segment each, and return the segments.

    Writing the same run again replaces it. A table without rows, like one not named, gets no file.
    """
    written = []
    for table in COLUMNS:
        columns = tables.get(table, {})
        if any(len(values) for values in columns.values()):
            path = segment_folder(Path(root), table, run_id) / "part-main-00000000.parquet"
            write_segment(path, arrow_table(table, columns))
            written.append(path)
    return written


def arrow_table(table: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return the columns of a table in the types of the trace; `run_id` among them is left out."""
    schema = COLUMNS[table]
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise TraceError(f"The table {table} needs the column{'s'[: len(missing) > 1]} {', '.join(missing)}.")
    try:
        arrays = [_array(columns[field.name], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise TraceError(f"A row of {table} does not fit its columns: {error}.") from error


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values.cast(kind)
    return pa.array(values, kind)


def write_segment(path: Path, table: pa.Table, mode: int = 0o666) -> None:
    """Write a segment under a name no reader takes, then give it its own in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name("." + path.name)
    with open(hidden, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        pq.write_table(table, file, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
