"""A trace of many small segments written again as few large ones, so that reading costs what its rows do.

An hour of six brokers is thousands of files, and opening them takes longer than auditing what they hold. A
run is copied table by table into another folder, every row of it and in the order of its segments, with what
its writers say of rows that are missing; the old folder stays as it is. What there will be is noted first, as
writers' manifests note it, so that a copy which was not finished is known for one. A run that was copied
whole is not copied again, one that has grown since is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from sojourn.errors import SojournError
from sojourn.pipeline.places import NoTraceError
from sojourn.pipeline.tables import Trace, TraceFile, open_trace
from sojourn.trace import COLUMNS, segment_folder
from sojourn.trace.lives import life_path, write_life
from sojourn.trace.manifests import (
    IDENTITY,
    Sealed,
    identity_of,
    manifest_path,
    read_manifest,
    segment_name,
    write_manifest,
)
from sojourn.trace.places import parquet_file
from sojourn.trace.segments import MAIN

GROUP_ROWS = 262_144
"""Rows of a table that are held at once, and that a part of a file has."""


class CompactError(SojournError):
    """A trace cannot be compacted as asked."""


class Compacted(NamedTuple):
    """What became of a run."""

    run_id: str
    segments: int
    """How many it had."""
    tables: int
    """How many segments it has now: one a table."""
    rows: int
    was_there: bool
    """Whether it had been copied before, as it is."""


def compact(
    root: str, into: Path, tell: Callable[[str], None] = lambda _what: None
) -> tuple[list[Compacted], Trace]:
    """Copy all runs that can be read; also return what was looked at, with what is wrong in it."""
    trace = open_trace(root)
    if into.absolute() == trace.root:
        raise CompactError(f"{into} is the trace itself; name another folder, and remove the old one later.")
    whole = _whole_runs(into)
    done = []
    for run_id in trace.runs:
        mine = {
            table: [file for file in trace.files.get(table, []) if file.run_id == run_id] for table in COLUMNS
        }
        files = {table: found for table, found in mine.items() if found}
        rows = {table: sum(sum(file.group_rows) for file in found) for table, found in files.items()}
        wanted = {table: Sealed(1, count) for table, count in rows.items() if count}
        _copy_lives(into, run_id, trace)
        was_there = run_id in whole and read_manifest(manifest_path(into, run_id, MAIN)) == wanted
        if not was_there:
            tell(run_id)
            write_manifest(manifest_path(into, run_id, MAIN), wanted)
            for table in wanted:
                _write(into, run_id, table, files[table])
        segments = sum(len(found) for found in files.values())
        done.append(Compacted(run_id, segments, len(wanted), sum(rows.values()), was_there))
    return done, trace


def _copy_lives(into: Path, run_id: str, trace: Trace) -> None:
    """Say of each writer what the trace says: what is missing there is missing here."""
    for writer, life in trace.lives.get(run_id, {}).items():
        if life is not None:
            write_life(life_path(manifest_path(into, run_id, writer)), life)


def _whole_runs(into: Path) -> set[str]:
    """Return the runs of which a folder has all that their manifests say."""
    try:
        return set(open_trace(into).runs)
    except NoTraceError:
        return set()


def _write(into: Path, run_id: str, table: str, files: list[TraceFile]) -> None:
    """Write a table as one segment, under a name that no reader takes until it is whole."""
    path = segment_folder(into, table, run_id) / segment_name(MAIN, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name("." + path.name)
    schema = COLUMNS[table].with_metadata({IDENTITY: identity_of(table, MAIN, 0)})
    with pq.ParquetWriter(hidden, schema, compression="zstd") as writer:
        for rows in _gathered(files, schema):
            writer.write_table(rows, row_group_size=GROUP_ROWS)
    hidden.replace(path)


def _gathered(files: list[TraceFile], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of files, about so many at once, in the types of today."""
    held: list[pa.Table] = []
    count = 0
    for file in files:
        with parquet_file(file.path) as source:
            for batch in source.iter_batches(GROUP_ROWS):
                held.append(_as_today(pa.Table.from_batches([batch]), schema))
                count += batch.num_rows
                if count >= GROUP_ROWS:
                    yield pa.concat_tables(held)
                    held, count = [], 0
    if held:
        yield pa.concat_tables(held)


def _as_today(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
