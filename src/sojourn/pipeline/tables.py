"""Trace tables on disk: which runs are there, which files can be trusted, and how to read them with Spark.

`open_trace` looks at every file's footer, without reading data. A run with a file that is cut short, lacks a
column or has one of another type, with a segment that is missing, copied or a stranger's
(`trace/manifests.py`), is refused as a whole, with a sentence that names the file; the others are read.
Files whose names begin with a dot or underscore are being written and are not there yet.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, TimestampType

from sojourn.pipeline.places import NoTraceError, no_trace
from sojourn.pipeline.schemas import PARTITION, SPLITS, TRACE, file_schema
from sojourn.pipeline.session import parallelism
from sojourn.trace.lives import Life, fault_of_lives, read_lives
from sojourn.trace.manifests import IDENTITY, Manifest, SegmentFile, fault_of_run, read_manifests
from sojourn.trace.places import Place, RemotePath, below, parquet_file, place
from sojourn.trace.rows import TABLES, young_columns

_PREFIX = f"{PARTITION}="
_READERS = 8
_TASKS_PER_CORE = 8
_TASK_COST = 500_000
"""Rows that are worth a task of their own."""
_BATCH_ROWS = 1 << 16
_WIDENS = {pa.int32(): pa.int64(), pa.int16(): pa.int64(), pa.float32(): pa.float64()}

KEYS = {name: table.keys for name, table in TABLES.items() if table.keys}
"""Columns without which a row says nothing; such rows are left out and counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with one run."""

    run_id: str
    sentence: str
    refused: bool
    """Whether the run is left out because of it."""


class TraceFile(NamedTuple):
    """A file that can be read."""

    run_id: str
    path: Place
    group_rows: tuple[int, ...]
    """Rows of each of its row groups."""


class Split(NamedTuple):
    """A part of a file, to be read by the task that needs it; a row of SPLITS."""

    task: int
    table: str
    run_id: str
    path: str
    row_group: int


@dataclass(slots=True)
class Trace:
    """A directory of tables, as its files' footers describe it."""

    root: Place
    runs: list[str]
    """The runs that can be read, ascending."""
    problems: list[Problem]
    rows: dict[str, int]
    """Rows by table, of the runs that can be read."""
    bytes: int
    has_policies: bool
    """Whether an event may have a policy, as far as the footers tell."""
    files: dict[str, list[TraceFile]] = field(repr=False)
    """By table, the files of those runs."""
    lives: Mapping[str, Mapping[str, Life | None]] = field(default_factory=dict, repr=False)
    """By run and writer, until when all of it is there, and when it was not (`trace/lives.py`)."""

    def only(self, runs: Iterable[str]) -> Trace:
        """Return the same trace with some of its runs; row counts stay as an upper bound."""
        chosen = sorted(set(runs) & set(self.runs))
        files = {table: [f for f in found if f.run_id in chosen] for table, found in self.files.items()}
        return replace(self, runs=chosen, problems=list(self.problems), rows=dict(self.rows), files=files)


@dataclass(frozen=True, slots=True)
class _Checked:
    table: str
    path: Place
    group_rows: tuple[int, ...] = ()
    nulls: int = 0
    has_policies: bool = False
    identity: str = ""
    """Which segment it says it is."""
    fault: str = ""


def open_trace(
    root: str | Place, tables: Iterable[str] = TRACE, progress: Callable[[int, int], None] | None = None
) -> Trace:
    """Look at the files of a trace; `progress` is told how many of how many are done."""
    base = place(root).absolute()  # tasks may have another working directory
    asked = list(tables)
    wanted = [table for table in asked if (base / table).is_dir()]
    if not wanted:
        raise no_trace(base)
    lives = read_lives(base)  # first: a run that goes on may have more by then, not less
    manifests = read_manifests(base)
    files = [
        (table, path)
        for table in wanted
        for path in below(base / table, f"{_PREFIX}*/*.parquet")
        if not path.name.startswith((".", "_"))
    ]
    if not files:
        raise NoTraceError(f"{base} has no sealed segment yet; look again when the run has written one.")
    checked = []
    with ThreadPoolExecutor(_READERS) as readers:
        for done, result in enumerate(readers.map(lambda file: _check(*file), files), 1):
            checked.append(result)
            if progress is not None:
                progress(done, len(files))
    return _sorted_out(base, checked, _chosen(manifests, asked), lives)


def read_table(spark: SparkSession, trace: Trace, table: str, *, keyless: bool = False) -> DataFrame:
    """Return a table of the runs that can be read, without rows that lack a key column unless asked for."""
    folders = sorted({str(file.path.parent) for file in trace.files.get(table, [])})
    if not folders:
        return spark.createDataFrame([], TRACE[table])
    if isinstance(trace.root, RemotePath):
        rows = _read_by_tasks(spark, trace, table)
    else:
        rows = spark.read.schema(TRACE[table]).option("basePath", str(trace.root / table)).parquet(*folders)
    keys = (PARTITION,) if keyless else KEYS.get(table, (PARTITION,))
    return rows.select(*TRACE[table].names).dropna(subset=list(keys))


def _read_by_tasks(spark: SparkSession, trace: Trace, table: str) -> DataFrame:
    """Read a table that is at an address as everything else is read there: by pyarrow, in the tasks.

    Spark itself would need a library of Hadoop's for that kind of address, which it does not come with.
    """
    names = TRACE[table].names
    kinds = {name: _arrow_type(TRACE[table][name].dataType) for name in names}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in split_batches(splits_of(batches), names):
            columns = [column.cast(kinds[name]) for name, column in zip(names, batch.columns, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    splits, _ = read_splits(spark, trace, {table: 1.0})
    return splits.mapInArrow(read, TRACE[table])


def small_table(trace: Trace, table: str, names: Sequence[str]) -> pa.Table:
    """Read columns of a table known to be small here and now: sooner done than a job is started."""
    splits = [
        Split(0, table, file.run_id, str(file.path), group)
        for file in trace.files.get(table, [])
        for group in range(len(file.group_rows))
    ]
    schema = pa.schema([(name, _arrow_type(TRACE[table][name].dataType)) for name in names])
    batches = [
        pa.RecordBatch.from_arrays(
            [_as_type(batch.column(name), schema.field(name).type) for name in names], schema=schema
        )
        for batch in split_batches(splits, names)
    ]
    return pa.Table.from_batches(batches, schema)


def read_splits(spark: SparkSession, trace: Trace, costs: Mapping[str, float]) -> tuple[DataFrame, int]:
    """Return parts of the files of some tables, dealt to tasks that read them with `split_batches`; how many.

    What goes straight into Arrow batches need not be taken apart into Spark's rows and put together again.
    `costs` says what a row of each table is to be taken for, so that tasks end at about the same time.
    """
    parts = [
        (rows * cost, Split(0, table, file.run_id, str(file.path), group))
        for table, cost in costs.items()
        for file in trace.files.get(table, [])
        for group, rows in enumerate(file.group_rows)
    ]
    cores = parallelism(spark)
    by_cost = int(sum(cost for cost, _ in parts) // _TASK_COST)
    tasks = max(1, min(len(parts), max(cores, min(by_cost, _TASKS_PER_CORE * cores))))
    loads = [(0.0, task) for task in range(tasks)]
    dealt = []
    for cost, split in sorted(parts, key=lambda part: (-part[0], part[1])):
        load, task = loads[0]
        heapq.heapreplace(loads, (load + cost, task))
        dealt.append(split._replace(task=task))
    columns = zip(*sorted(dealt), strict=True) if dealt else ([] for _ in SPLITS)
    arrays = [
        pa.array(values, to_arrow_type(column.dataType))
        for values, column in zip(columns, SPLITS, strict=True)
    ]
    frame = spark.createDataFrame(pa.Table.from_arrays(arrays, names=SPLITS.names), SPLITS)
    return frame.repartitionById(tasks, F.col("task")), tasks


def splits_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Split]:
    """Return a task's part of what `read_splits` dealt."""
    for batch in batches:
        yield from (
            Split(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )


def split_batches(
    splits: Iterable[Split], columns: Sequence[str], names: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Read parts of files of one table, in a task: `columns` with `names` among them as dictionaries.

    As with `read_table`, `run_id` comes from the path and rows that lack a key column are left out.
    """
    stored = [name for name in columns if name != PARTITION]
    coded = [name for name in names if name in stored]
    for split in splits:
        kinds = {name: _arrow_type(TRACE[split.table][name].dataType) for name in stored}
        with parquet_file(split.path, read_dictionary=coded) as file:
            there = [name for name in stored if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[split.row_group], columns=there):
                runs = pa.DictionaryArray.from_arrays(np.zeros(batch.num_rows, np.int32), [split.run_id])
                rows = _with_keys(batch, KEYS.get(split.table, ()))
                told = {name: _told(rows.column(name), kinds[name], coded=name in coded) for name in there}
                told |= {name: pa.nulls(rows.num_rows, kinds[name]) for name in stored if name not in told}
                told[PARTITION] = runs.slice(0, rows.num_rows)
                yield pa.RecordBatch.from_arrays([told[name] for name in columns], names=list(columns))


def _told(column: pa.Array, kind: pa.DataType, *, coded: bool) -> pa.Array:
    """Return a column as its table has it, whatever the writer of the file made of it."""
    if coded:
        wanted = pa.dictionary(pa.int32(), kind)
        return column if column.type == wanted else _as_type(column, kind).dictionary_encode()
    return _as_type(column, kind)


def _arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a column; moments are told by UTC."""
    return pa.timestamp("us", tz="UTC") if isinstance(kind, TimestampType) else to_arrow_type(kind)


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _with_keys(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    for key in keys:
        if key in batch.schema.names and batch.column(key).null_count:
            batch = batch.filter(pc.is_valid(batch.column(key)))
    return batch


def _chosen(
    manifests: Mapping[str, Mapping[str, Manifest | None]], tables: Sequence[str]
) -> dict[str, dict[str, Manifest | None]]:
    """Leave out what manifests say of tables that nobody asked for."""
    return {
        run_id: {
            writer: manifest and {table: sealed for table, sealed in manifest.items() if table in tables}
            for writer, manifest in writers.items()
        }
        for run_id, writers in manifests.items()
    }


def _sorted_out(
    base: Place,
    checked: list[_Checked],
    manifests: Mapping[str, Mapping[str, Manifest | None]],
    lives: Mapping[str, Mapping[str, Life | None]],
) -> Trace:
    by_run: dict[str, list[_Checked]] = {}
    for file in checked:
        by_run.setdefault(file.path.parent.name.removeprefix(_PREFIX), []).append(file)
    problems: list[Problem] = []
    rows: dict[str, int] = {}
    trusted: dict[str, list[TraceFile]] = {}
    size = 0
    runs = []
    noted = {run_id for run_id, writers in manifests.items() if any(one != {} for one in writers.values())}
    for run_id in sorted({*by_run, *noted}):
        files = by_run.get(run_id, [])
        faults = [file.fault for file in files if file.fault]
        if not faults and run_id in manifests:
            found = [
                SegmentFile(file.table, file.path.name, sum(file.group_rows), file.identity) for file in files
            ]
            faults = [fault for fault in [fault_of_run(run_id, manifests[run_id], found)] if fault]
        unread = fault_of_lives(run_id, lives.get(run_id, {}))
        faults += [unread] if unread else []
        if faults:
            problems.append(Problem(run_id, faults[0], refused=True))
            continue
        runs.append(run_id)
        for file in files:
            rows[file.table] = rows.get(file.table, 0) + sum(file.group_rows)
            size += file.path.stat().st_size
            trusted.setdefault(file.table, []).append(TraceFile(run_id, file.path, file.group_rows))
        for table in {file.table for file in files}:
            nulls = sum(file.nulls for file in files if file.table == table)
            if nulls:
                problems.append(Problem(run_id, _null_sentence(table, nulls), refused=False))
    policies = any(file.has_policies for file in checked)
    said = {run_id: lives[run_id] for run_id in runs if run_id in lives}
    return Trace(base, runs, problems, rows, size, policies, trusted, said)


def _null_sentence(table: str, nulls: int) -> str:
    rows = "a row lacks" if nulls == 1 else f"up to {nulls} rows lack"
    return f"in {table} {rows} one of {', '.join(KEYS[table])}, and what lacks it was left out."


def _check(table: str, path: Place) -> _Checked:
    where = f"{table}/{path.parent.name}/{path.name}"
    try:
        with parquet_file(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
    except (pa.ArrowInvalid, pa.ArrowException, OSError):
        return _Checked(table, path, fault=f"{where} is cut short or not Parquet; restore it or remove it.")
    fault = _schema_fault(table, schema)
    if fault:
        return _Checked(table, path, fault=f"{where} {fault}")
    policies = table == "publications" and _nulls(metadata, {"policy"}) != metadata.num_rows
    nulls = _nulls(metadata, set(KEYS.get(table, ())))
    group_rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    identity = (metadata.metadata or {}).get(IDENTITY, b"").decode(errors="replace")
    return _Checked(table, path, group_rows, nulls, policies, identity)


def _schema_fault(table: str, schema: pa.Schema) -> str:
    wanted = file_schema(table)
    missing = [name for name in wanted.names if name not in schema.names]
    missing = [name for name in missing if name not in young_columns(table)]
    if missing:
        return (
            f"lacks the column{'s'[: len(missing) > 1]} {', '.join(missing)}; write the table again with all."
        )
    for column in (one for one in wanted if one.name in schema.names):
        found = schema.field(column.name).type
        if pa.types.is_dictionary(found):
            found = found.value_type
        if pa.types.is_large_string(found):
            found = pa.string()
        if pa.types.is_null(found):
            continue
        if isinstance(column.dataType, TimestampType):
            fits = pa.types.is_timestamp(found)
        else:
            expected = to_arrow_type(column.dataType)
            fits = expected in (found, _WIDENS.get(found))
        if not fits:
            return (
                f"has {column.name} as {found}, not {column.dataType.simpleString()}; write the table again."
            )
    return ""


def _nulls(metadata: pq.FileMetaData, columns: set[str]) -> int:
    """Return how many nulls the columns have together, as far as the footer tells."""
    nulls = 0
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for column in range(chunks.num_columns):
            chunk = chunks.column(column)
            statistics = chunk.statistics if chunk.path_in_schema in columns else None
            if statistics is not None and statistics.has_null_count:
                nulls += statistics.null_count
    return nulls
