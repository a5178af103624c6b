"""Runs the grid of a study on Spark: one task simulates one row, and Spark writes what it returns.

How it works:
1. A grid is a DataFrame with `run_id`, `seed`, `cost` and `spec_json`, one row per run.
2. A run's key is a digest of its specification and of the code that simulates it. Keys that the store
   already holds a result for are not run again; a failed run is.
3. What is missing is put one row per partition, the dearest first, so that no long run starts last.
4. Each task yields one row of the run's own numbers and texts (or of the error) and the rows of the tables
   that are asked for: facts that measures are computed from (`measuring.py`), or a whole trace.
5. A task's file appears in the store in one rename when the task commits; so a sweep that is killed
   keeps every run that had finished and nothing of those that had not.

Rules: a run function takes the text of a specification and no other input, so the result does not depend
on partitioning, order, retries or machine. Whatever a run raises becomes its row's `error`. A run that
takes its process down with it is tried `CRASHES_MAX` times and then becomes such a row too.
Not here: what a run means, how measures are averaged (`metrics`), what a study does with them.
"""

import ast
import hashlib
import platform
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.utils import is_remote

import sojourn
from sojourn.errors import SojournError
from sojourn.pipeline import schemas
from sojourn.pipeline.progress import Counters, Listener, Watch

Measure = float | int | str | None
Measures = Mapping[str, Measure]

CRASHES_MAX = 3
"""Spark gives a task up at its fourth failure and the whole job with it; the fourth try reports instead."""

ERROR_CHARS_MAX = 2000
TRACE_ROWS_MAX = 65_536
"""Rows of a trace in one Arrow batch."""


class SweepError(SojournError):
    """A sweep cannot be run as asked."""


class Outcome(NamedTuple):
    """What one run returns."""

    measures: Measures
    tables: Mapping[str, pa.Table] = {}
    """What it recorded, by names of `schemas.RECORDED`; a sweep keeps those that it is asked to."""


RunFunction = Callable[[str], Measures | Outcome]
"""From the text of a specification to the run's measures; importable by name, since it is sent to tasks."""


def code_version(run: Callable[..., object]) -> str:
    """A digest of all code of ours that a run goes through, and of the versions below it."""
    function = getattr(run, "func", run)
    file = import_module(function.__module__).__file__
    own = [Path(file)] if file else []
    digest = hashlib.sha256(f"{function.__qualname__} {platform.python_version()} {np.__version__}".encode())
    for module in _with_imports(own):
        digest.update(module.name.encode() + b"\0" + module.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _with_imports(modules: Iterable[Path]) -> list[Path]:
    """The modules and every module of this package that they import, directly or not."""
    found: set[Path] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imports(module)
    return sorted(found)


def _imports(module: Path) -> Iterator[Path]:
    """The files of this package that a module names in its imports."""
    above = Path(sojourn.__file__).parent.parent
    for node in ast.walk(ast.parse(module.read_bytes())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{name}" for name in names)]
        for name in names:
            if name.split(".")[0] == sojourn.__name__:
                place = above / name.replace(".", "/")
                yield from (
                    file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()
                )


def sweep(
    spark: SparkSession,
    grid: DataFrame,
    run: RunFunction,
    store: str,
    *,
    tables: Collection[str] = (),
    listener: Listener | None = None,
) -> DataFrame:
    """Simulate what the store lacks of a grid and return one row per run, as `schemas.RESULTS` has them.

    Of what runs record, the `tables` named are kept in the store too; the rest is let go.
    """
    validate_grid(grid)
    code = code_version(run)
    keyed = with_key(grid, code).cache()
    try:
        missing = keyed.join(whole_keys(read_store(spark, store)), "key", "left_anti")
        count, cost = _size(missing)
        if count:
            task = partial(_run_task, run=run, code=code, tables=tuple(tables))
            _simulate(spark, missing, task, store, count, cost, listener)
        wanted = spark.createDataFrame(keyed.select("key").collect(), "key string")
    finally:
        keyed.unpersist()
    return best_results(read_store(spark, store), wanted)


def validate_grid(grid: DataFrame) -> None:
    """Raise one sentence that names the columns a grid lacks."""
    lacking = [name for name in schemas.GRID.fieldNames() if name not in grid.columns]
    if lacking:
        raise SweepError(f"grid lacks the column {', '.join(lacking)}: name it in the run specifications.")


# ------------------------------------------------------------------------- transforms


def with_key(grid: DataFrame, code: str) -> DataFrame:
    """Add what a result is found by: a digest of the specification and the code."""
    return grid.withColumn("key", sf.sha2(sf.concat_ws("\n", "spec_json", sf.lit(code)), 256))


def with_rank(grid: DataFrame) -> DataFrame:
    """Number rows from 0 by falling cost; ties by key, so that the order is a fact of the grid alone."""
    order = Window.orderBy(sf.col("cost").desc_nulls_last(), "key")
    return grid.withColumn("rank", (sf.row_number().over(order) - 1).cast("long"))


def whole_keys(store: DataFrame) -> DataFrame:
    """Keep the keys of runs that ended well."""
    return store.where(_is_result() & sf.col("error").isNull()).select("key").distinct()


def best_results(store: DataFrame, wanted: DataFrame) -> DataFrame:
    """One row for each wanted key: a whole result if there is one, else the latest error."""
    latest = Window.partitionBy("key").orderBy(sf.col("error").isNotNull(), sf.col("file").desc())
    return (
        store.where(_is_result())
        .join(sf.broadcast(wanted), "key", "left_semi")
        .withColumn("nth", sf.row_number().over(latest))
        .where("nth = 1")
        .select(*schemas.RESULTS.fieldNames(), "file")
        .orderBy("run_id", "key")
    )


def recorded_rows(store: DataFrame, results: DataFrame, table: str) -> DataFrame:
    """The rows of one table that belong to some results."""
    chosen = sf.broadcast(results.select("file"))
    return store.where(sf.col("kind") == table).join(chosen, "file", "left_semi").select(f"{table}.*")


def _is_result() -> Column:
    return sf.col("kind") == "result"


# -------------------------------------------------------------------- reading, writing


def read_store(spark: SparkSession, store: str) -> DataFrame:
    """Everything a store holds, with the file each row came from; an empty frame if there is none yet.

    A file that cannot be read counts as absent: its run is simulated again.
    """
    options = {"recursiveFileLookup": "true", "ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}
    try:
        rows = spark.read.schema(schemas.STORE).options(**options).parquet(store)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        rows = spark.createDataFrame([], schemas.STORE)
        return rows.withColumn("file", sf.lit(""))
    return rows.withColumn("file", sf.col("_metadata.file_path"))


def write_traces(spark: SparkSession, store: str, results: DataFrame, folder: str) -> None:
    """Write the traces of results as the tables of a trace directory; runs already there are replaced.

    A run that recorded no table of a trace but what it is (`runs`, which measures need) has no trace.
    """
    chosen = spark.createDataFrame(results.select("file").collect(), "file string")
    rows = read_store(spark, store).join(sf.broadcast(chosen), "file", "left_semi")
    traced = rows.where(sf.col("kind").isin([name for name in schemas.TRACE if name != "runs"]))
    files = spark.createDataFrame(traced.select("file").distinct().collect(), "file string")
    kinds = {row.kind for row in rows.select("kind").distinct().collect()}
    for table in sorted(kinds & set(schemas.TRACE)):
        (
            recorded_rows(rows, files, table)
            .repartition(sf.col(schemas.PARTITION))
            .write.option("partitionOverwriteMode", "dynamic")
            .mode("overwrite")
            .partitionBy(schemas.PARTITION)
            .parquet(f"{folder.rstrip('/')}/{table}")
        )


def _size(missing: DataFrame) -> tuple[int, float]:
    count, cost = missing.agg(sf.count("*"), sf.coalesce(sf.sum("cost"), sf.lit(0.0))).head() or (0, 0.0)
    return int(count), float(cost)


def _simulate(
    spark: SparkSession,
    missing: DataFrame,
    task: "partial[Iterator[pa.RecordBatch]]",
    store: str,
    count: int,
    cost: float,
    listener: Listener | None,
) -> None:
    """Run one task per row and let each write its file."""
    # A range of `count` partitions holds one number each and a broadcast join moves none of them: this is
    # what makes one row per task, and rank order the order in which tasks start.
    rows = spark.range(0, count, 1, count).join(
        sf.broadcast(with_rank(missing)), sf.col("id") == sf.col("rank"), "inner"
    )
    chosen = rows.select("key", *schemas.GRID.fieldNames())
    # Few columns: with those of a whole trace, a small run costs ten times as much to write.
    schema = schemas.store_with(task.keywords["tables"])

    def write(counters: Counters | None) -> None:
        simulated = chosen.mapInArrow(partial(task, counters=counters), schema)
        # With version 2 a task's file is renamed into place when that task commits, not when the job does.
        # A folder a sweep keeps two sweeps at once from clearing each other's unfinished files away.
        folder = f"{store.rstrip('/')}/{int(time.time()):010d}-{uuid.uuid4().hex[:8]}"
        simulated.write.option("mapreduce.fileoutputcommitter.algorithm.version", "2").parquet(folder)

    if listener is None or is_remote():  # by Spark Connect a client sees no task
        write(None)
        return
    with Watch(spark.sparkContext, count, cost, listener) as watch:
        write(watch.counters)


# ------------------------------------------------------------------------ inside a task


def _run_task(
    batches: Iterable[pa.RecordBatch],
    *,
    run: RunFunction,
    code: str,
    tables: tuple[str, ...],
    counters: Counters | None = None,
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    crashed = context is not None and context.attemptNumber() >= CRASHES_MAX
    schema = to_arrow_schema(schemas.store_with(tables), timezone="UTC")
    for batch in batches:
        for row in batch.to_pylist():
            outcome, error, wall_s = _crash(row) if crashed else run_one(run, row["spec_json"])
            labels = {name: row[name] for name in ("run_id", "key", "seed", "spec_json")}
            labels |= {"code": code, "error": error, "wall_s": wall_s}
            yield _result_batch(schema, labels, outcome.measures)
            for table, rows in outcome.tables.items():
                if table not in tables:
                    continue
                yield from _table_batches(schema, row["run_id"], row["key"], table, rows)
            if counters is not None:
                counters.done.add(1)
                counters.failed.add(int(error is not None))
                counters.cost.add(row["cost"] or 0.0)


def run_one(run: RunFunction, spec: str) -> tuple[Outcome, str | None, float]:
    """A run's outcome, or the error in one line, and how long it took."""
    started = time.perf_counter()
    error = None
    outcome = Outcome({})
    try:
        returned = run(spec)
        outcome = returned if isinstance(returned, Outcome) else Outcome(returned)
    except (Exception, SystemExit) as raised:  # noqa: BLE001  whatever a run raises, the other runs go on
        error = f"{type(raised).__name__}: {raised}"[:ERROR_CHARS_MAX]
    return outcome, error, time.perf_counter() - started


def _crash(row: Mapping[str, Any]) -> tuple[Outcome, str, float]:
    text = f"Crash: the process that ran seed {row['seed']} ended {CRASHES_MAX} times without an answer."
    return Outcome({}), text, 0.0


def _result_batch(schema: pa.Schema, labels: Mapping[str, Any], measures: Measures) -> pa.RecordBatch:
    texts = {name: value for name, value in measures.items() if isinstance(value, str)}
    numbers = {
        name: None if value is None else float(value) for name, value in measures.items() if name not in texts
    }
    row = {"kind": "result", **labels, "numbers": sorted(numbers.items()), "texts": sorted(texts.items())}
    columns = [pa.array([row.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _table_batches(
    schema: pa.Schema, run_id: str, key: str, table: str, rows: pa.Table
) -> Iterator[pa.RecordBatch]:
    """A table's rows, each in the column of the store that has the table's name."""
    kind = schema.field(table).type
    names = [field.name for field in kind]
    lacking = [name for name in names if name not in rows.column_names]
    assert not lacking, f"the table {table} lacks {lacking}"
    typed = rows.select(names).cast(pa.schema(list(kind)))
    for batch in typed.to_batches(max_chunksize=TRACE_ROWS_MAX):
        count = batch.num_rows
        given = {
            "run_id": pa.array([run_id] * count, pa.string()),
            "key": pa.array([key] * count, pa.string()),
            "kind": pa.array([table] * count, pa.string()),
            table: pa.StructArray.from_arrays(batch.columns, fields=list(kind)),
        }
        columns = [given.get(field.name, pa.nulls(count, field.type)) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
