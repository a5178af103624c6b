"""What can be asked by SQL: tables of a trace, of a folder that `sojourn tables` made, of a study's results.

Each becomes a view under its own name. A folder of tables has those of the trace it was made from too, as far
as that is still there. A study's results have `runs` (every run's measures beside its labels), `metrics`
(means over seeds) and `claims` (the verdicts); made on Spark they also have `measures` (one row a run and
measure), `measures_each` (one row a layout, where runs look at many), `definitions` (the question that gives
each measure from facts) and the facts themselves, by their tables' names, but for the table `runs` of facts,
which is `recorded_runs` here.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sojourn.pipeline.derived_job import CATALOGUE, read_catalogue
from sojourn.pipeline.derived_rows import DERIVED
from sojourn.pipeline.measuring import RECORDED_RUNS, RUNS
from sojourn.pipeline.places import NoTraceError
from sojourn.pipeline.schemas import MEASURES, MEASURES_EACH, PARTITION, RECORDED, TRACE, rows_schema
from sojourn.pipeline.sweep import best_results, read_store, recorded_rows
from sojourn.pipeline.tables import open_trace, read_table
from sojourn.trace.places import Place, place

RESULTS = ("runs", "metrics")


def views(spark: SparkSession, named: str) -> dict[str, DataFrame]:
    """Return by name what is in a folder."""
    folder = place(named)
    if isinstance(folder, Path) and (folder / CATALOGUE).is_file():
        return _tables(spark, folder)
    if isinstance(folder, Path) and (folder / "runs.parquet").is_file():
        return _results(spark, folder)
    return _trace(spark, folder)


def _trace(spark: SparkSession, folder: Place) -> dict[str, DataFrame]:
    trace = open_trace(folder)
    refused = [problem for problem in trace.problems if problem.refused]
    if refused:
        raise NoTraceError(f"{refused[0].run_id}: {refused[0].sentence}")
    return {table: read_table(spark, trace, table) for table in TRACE}


def _tables(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    catalogue = read_catalogue(folder)
    assert catalogue is not None
    found: dict[str, DataFrame] = {}
    try:
        trace = open_trace(catalogue["trace"]).only(catalogue["runs"])
    except NoTraceError:
        pass  # it was moved away: what was made of it is here
    else:
        found = {table: read_table(spark, trace, table) for table in TRACE}
    for table, about in DERIVED.items():
        rows = spark.read.schema(rows_schema(about.row, by_run=about.by_run)).parquet(str(folder / table))
        found[table] = rows.where(rows[PARTITION].isin(list(catalogue["runs"]))) if about.by_run else rows
    return found


def _results(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    files = {name: folder / f"{name}.parquet" for name in RESULTS}
    found = {name: spark.read.parquet(str(path)) for name, path in files.items() if path.is_file()}
    for name in ("claims", "definitions"):
        file = folder / f"{name}.json"
        if file.is_file():
            found[name] = spark.read.json(str(file), multiLine=True)
    measured, store = folder / "measures", folder / "store"
    if measured.is_dir():
        found["measures"] = spark.read.schema(MEASURES).parquet(str(measured))
    if (each := folder / "measures_each").is_dir():
        found["measures_each"] = spark.read.schema(MEASURES_EACH).parquet(str(each))
    if store.is_dir() and "key" in found["runs"].columns:
        found |= _facts(spark, str(store), found["runs"].select("key").distinct())
    return found


def _facts(spark: SparkSession, store: str, keys: DataFrame) -> dict[str, DataFrame]:
    """What the runs recorded whose keys are these: a store may have others, of other code."""
    rows = read_store(spark, store)
    chosen = spark.createDataFrame(best_results(rows, keys).select("file").collect(), "file string")
    return {
        RECORDED_RUNS if table == RUNS else table: recorded_rows(rows, chosen, table) for table in RECORDED
    }
