"""Writes trace tables as Parquet segments.

A segment is written under a name that starts with a dot, which no reader takes for data, brought to disk, and
renamed in one step when it is sealed. A process that dies leaves its sealed segments and at most one dotted
file a table; the next writer of that name removes those. Rows not yet sealed are lost with the process; a
writer that is told the time says until when it has sealed all (`lives.py`), so that readers know of them.

Rules: one writer a name and run; rows are kept in memory up to `rows_max` a table, then sealed by themselves;
`seal` seals all tables in the order of `COLUMNS`, `runs` last. After the segments the writer notes them
(`manifests.py`), and before it seals another one of a table: no more than one of each is ever without a note.
No time, no thread here: the caller decides when a segment ends.
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
from sojourn.trace.lives import Life, begun, interrupted, life_path, read_life, write_life
from sojourn.trace.manifests import (
    IDENTITY,
    Sealed,
    identity_of,
    manifest_path,
    read_manifest,
    segment_name,
    write_manifest,
)
from sojourn.trace.rows import TABLES, young_columns

ROWS_MAX = 100_000
ROW_GROUP_ROWS = 1_000_000
CONVERTED_ROWS = 4_096
"""Rows that become columns at a time: other threads of the process stand still for as long."""
MAIN = "main"
"""The writer's name in runs that have one writer."""

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
        name: str = MAIN,
        rows_max: int = ROWS_MAX,
        mode: int = 0o666,
        began_s: float | None = None,
    ) -> None:
        """Join a run; `mode` says who may read its segments, as far as the process lets anybody.

        With the time, `began_s`, it says until when all is sealed, at each `seal` that is told the time.
        """
        if not _NAME.match(name) or "-" in name:
            raise TraceError(f"The writer's name {name!r} is not letters, digits, dots, + and _.")
        self._root = Path(root)
        self.run_id = run_id
        self._name = name
        self._rows_max = rows_max
        self._mode = mode
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in COLUMNS}
        self._manifest = manifest_path(self._root, run_id, name)
        noted = read_manifest(self._manifest) if self._manifest.exists() else {}
        if noted is None:
            raise TraceError(
                f"{self._manifest} is no manifest that can be read; restore it, remove it to count on from "
                "the segments that are there, or give the run another name."
            )
        self._life = None if began_s is None else self._begun(began_s)
        self._sealed = {table: self._sealed_before(table, noted.get(table, Sealed())) for table in COLUMNS}
        self._unnoted: set[str] = set()
        """Tables of which a segment was sealed that the manifest does not have yet."""
        self._lacks_rows = False
        """Whether rows were let go since all was sealed."""
        if self._life is not None:
            write_life(life_path(self._manifest), self._life, mode)

    def _begun(self, now_s: float) -> Life:
        """Begin a life; nothing is written yet."""
        path = life_path(self._manifest)
        before = read_life(path)
        if before is None and path.exists():
            raise TraceError(f"{path} cannot be read; restore it, remove it, or give the run another name.")
        return begun(before, now_s)

    def add(self, table: str, *values: object) -> None:
        """Add a row; the values follow the table's columns, of which the last have defaults.

        Rows that cannot be sealed stay for the next try. Where there are too many of them, a writer that says
        until when it has sealed all lets them go, and says that.
        """
        try:
            row = TABLES[table].row(*values)
        except TypeError:
            raise TraceError(f"A row of {table} has {_how_many(table)} values, not {len(values)}.") from None
        self.take({table: [row]})

    def take(self, rows: Mapping[str, Sequence[tuple[Any, ...]]], *, lacks_rows: bool = False) -> None:
        """Add rows that were made elsewhere, as `add` does; say whether some were let go there."""
        self._lacks_rows |= lacks_rows
        for table, more in rows.items():
            self._rows[table] += more
        failed: OSError | TraceError | None = None
        for table in rows:
            waiting = self._rows[table]
            if len(waiting) < self._rows_max:
                continue
            try:
                self._seal(table)
                self._note()
            except (OSError, TraceError) as error:
                failed = error
                if self._life is not None and waiting:
                    waiting.clear()
                    self._lacks_rows = True
        if failed is not None:
            raise failed

    def seal(self, now_s: float | None = None) -> list[Path]:
        """Make all rows added so far readable, and return the segments that hold them."""
        sealed = [self._seal(table) for table in COLUMNS if self._rows[table]]
        self._note()
        if now_s is not None:
            self._say(now_s, is_open=True)
        return sealed

    def close(self, now_s: float | None = None) -> None:
        """Seal the last rows, and say that nothing is missing."""
        self.seal()
        if now_s is not None:
            self._say(now_s, is_open=False)

    def _say(self, now_s: float, *, is_open: bool) -> None:
        if self._life is not None:
            life = interrupted(self._life, now_s) if self._lacks_rows else self._life
            life = life._replace(sealed_s=now_s, is_open=is_open)
            write_life(life_path(self._manifest), life, self._mode)
            self._life, self._lacks_rows = life, False

    def _note(self) -> None:
        if self._unnoted:
            write_manifest(self._manifest, self._sealed, self._mode)
            self._unnoted.clear()

    def _seal(self, table: str) -> Path:
        if table in self._unnoted:
            self._note()
        rows = self._rows[table]
        number, count = self._sealed[table]
        path = segment_folder(self._root, table, self.run_id) / segment_name(self._name, number)
        write_segment(path, _named(_columns_of(table, rows), table, self._name, number), self._mode)
        self._sealed[table] = Sealed(number + 1, count + len(rows))
        self._unnoted.add(table)
        rows.clear()
        return path

    def _sealed_before(self, table: str, noted: Sealed) -> Sealed:
        """Count on from what was noted and what is there, and remove what was left half-written."""
        folder = segment_folder(self._root, table, self.run_id)
        for left in folder.glob(f".part-{self._name}-*.parquet"):
            left.unlink()
        files = {
            int(path.stem.rsplit("-", 1)[1]): path for path in folder.glob(f"part-{self._name}-*.parquet")
        }
        unnoted = [
            pq.read_metadata(path).num_rows for number, path in files.items() if number >= noted.segments
        ]
        return Sealed(max([*(number + 1 for number in files), noted.segments]), noted.rows + sum(unnoted))


def write_run(root: str | Path, run_id: str, tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[Path]:
    """Write the tables of a run that is over, one segment each, and return the segments.

    Writing the same run again replaces it. A table without rows, like one not named, gets no file.
    """
    written = []
    manifest = {}
    for table in COLUMNS:
        columns = tables.get(table, {})
        if any(len(values) for values in columns.values()):
            path = segment_folder(Path(root), table, run_id) / segment_name(MAIN, 0)
            made = arrow_table(table, columns)
            write_segment(path, _named(made, table, MAIN, 0))
            written.append(path)
            manifest[table] = Sealed(1, len(made))
    write_manifest(manifest_path(Path(root), run_id, MAIN), manifest)
    return written


def _how_many(table: str) -> str:
    most = len(COLUMNS[table])
    least = most - len(young_columns(table))
    return str(most) if least == most else f"{least} to {most}"


def _columns_of(table: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    names = COLUMNS[table].names
    parts = [rows[start : start + CONVERTED_ROWS] for start in range(0, len(rows), CONVERTED_ROWS)]
    made = [arrow_table(table, dict(zip(names, zip(*part, strict=True), strict=True))) for part in parts]
    return pa.concat_tables(made).combine_chunks()


def _named(made: pa.Table, table: str, writer: str, number: int) -> pa.Table:
    return made.replace_schema_metadata({IDENTITY: identity_of(table, writer, number)})


def arrow_table(table: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return the columns of a table in the types of the trace; `run_id` among them is left out."""
    schema = COLUMNS[table]
    young = young_columns(table)
    missing = [name for name in schema.names if name not in columns and name not in young]
    if missing:
        raise TraceError(f"The table {table} needs the column{'s'[: len(missing) > 1]} {', '.join(missing)}.")
    try:
        rows = len(next(iter(columns.values())))
        arrays = [
            _array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in schema
        ]
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
    try:
        with open(hidden, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            pq.write_table(table, file, compression="zstd", row_group_size=ROW_GROUP_ROWS)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise
