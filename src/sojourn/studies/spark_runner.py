"""Runs a study's grid on Spark: tasks record facts, Spark computes measures and their means from them.

    definitions.json    by measure, the question to the facts that gives it
    store/              what every run recorded, one file per run, by a digest of its scenario and code
    measures/           one row per run and measure, computed from the store
    measures_each/      likewise, one row per layout or history that a run looked at, in studies of many

A store's runs are not simulated again; measures are computed anew each time, which takes seconds. A run whose
measures cannot be computed from facts (it drew a picture, say) returns texts, which stand in the store too.
The measures are those that plain processes return (`runner`), up to how floating-point numbers add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from sojourn.pipeline import schemas
from sojourn.pipeline.measuring import Each, Measuring, measures, measures_each
from sojourn.pipeline.metrics import with_intervals
from sojourn.pipeline.progress import Listener
from sojourn.pipeline.sweep import RunFunction, read_store, recorded_rows, sweep, write_traces
from sojourn.studies.base import KEYS
from sojourn.studies.runner import Row, RunSpec


class Places(NamedTuple):
    """Where a study's tables are kept, as addresses."""

    store: str
    measures: str
    traces: str | None = None
    """Where whole traces go, if they are wanted."""


class Found(NamedTuple):
    """What a study's runs came to."""

    rows: list[Row]
    """One row a run: measures and texts by name, or the error; by ascending run_id."""
    measures: DataFrame
    """One row a run and measure, as it was written."""


def run_grid_on_spark(
    spark: SparkSession,
    specs: Iterable[RunSpec],
    record: RunFunction,
    how: Measuring,
    places: Places,
    progress: Listener | None = None,
) -> Found:
    """Simulate every distinct run of a grid that the store lacks, and compute the measures of all of them."""
    distinct = {spec.run_id: msgspec.structs.asdict(spec) for spec in specs}
    names = schemas.GRID.fieldNames()
    rows = [tuple(distinct[run_id][name] for name in names) for run_id in sorted(distinct)]
    grid = spark.createDataFrame(rows, schemas.GRID)
    kept = schemas.RECORDED if places.traces is not None else how.tables
    results = sweep(spark, grid, record, places.store, tables=kept, listener=progress)
    found = results.collect()
    if places.traces is not None:
        write_traces(spark, places.store, results, places.traces)
    files = [row.file for row in found]
    measured = write_measures(spark, from_facts(spark, how, places.store, files), places.measures)
    numbers: dict[str, Row] = {}
    for run_id, measure, value in measured.collect():
        numbers.setdefault(run_id, {})[measure] = value
    if how.each:
        place = f"{places.measures.rstrip('/')}_each"
        for run_id, lists in _lists(_write_each(spark, how.each, places.store, files, place)).items():
            numbers.setdefault(run_id, {}).update(lists)
    return Found(
        [
            {
                "run_id": row.run_id,
                "seed": row.seed,
                "key": row.key,
                "error": row.error,
                **row.texts,
                **numbers.get(row.run_id, {}),
                "wall_s": row.wall_s,
            }
            for row in found
        ],
        measured,
    )


def from_facts(spark: SparkSession, how: Measuring, store: str, files: Sequence[str]) -> DataFrame:
    """All measures of the runs in some files of a store."""
    chosen = spark.createDataFrame([(file,) for file in files], "file string")
    rows = read_store(spark, store)
    return measures(lambda table: recorded_rows(rows, chosen, table), how)


def write_measures(spark: SparkSession, made: DataFrame, place: str) -> DataFrame:
    """Write measures in place of those that were there, and return what was written."""
    ordered = made.select(*schemas.MEASURES.names).coalesce(1).sortWithinPartitions("run_id", "measure")
    ordered.write.mode("overwrite").parquet(place)
    return spark.read.schema(schemas.MEASURES).parquet(place)


def _write_each(spark: SparkSession, how: Each, store: str, files: Sequence[str], place: str) -> DataFrame:
    """Write measures of single layouts or histories, and return what was written."""
    chosen = spark.createDataFrame([(file,) for file in files], "file string")
    rows = read_store(spark, store)
    made = measures_each(lambda table: recorded_rows(rows, chosen, table), how)
    ordered = made.coalesce(1).sortWithinPartitions("run_id", "measure", "at")
    ordered.write.mode("overwrite").parquet(place)
    return spark.read.schema(schemas.MEASURES_EACH).parquet(place)


def _lists(measured: DataFrame) -> dict[str, Row]:
    """By run and measure the values in order, as JSON; those of NAME/KIND by kind, in a text of that name."""
    found: dict[str, dict[str, Any]] = {}
    for run_id, measure, _, value in measured.orderBy("run_id", "measure", "at").collect():
        name, _, kind = measure.partition("/")
        of_run = found.setdefault(run_id, {})
        if kind:
            of_run.setdefault(name, {}).setdefault(kind, []).append(value)
        else:
            of_run.setdefault(name, []).append(value)
    return {
        run_id: {name: json.dumps(values) for name, values in lists.items()}
        for run_id, lists in found.items()
    }


def means_on_spark(
    spark: SparkSession, specs: Iterable[RunSpec], measured: DataFrame, wanted: Sequence[str]
) -> pd.DataFrame:
    """Mean and 95% interval over seeds for every configuration and measure, in the order of their keys."""
    labels = spark.createDataFrame(
        pd.DataFrame(
            [
                {"run_id": spec.run_id, **{key: getattr(spec, key) for key in KEYS}, "seed": spec.seed}
                for spec in specs
            ]
        )
    )
    chosen = measured.where(measured["measure"].isin(list(wanted)))
    means = with_intervals(labels.join(chosen, "run_id"), KEYS).toPandas()
    return means.sort_values([*KEYS, "measure"], ignore_index=True)


def write_definitions(how: Measuring, file: Path) -> None:
    """Write down which question to the facts gives each measure, run by run."""
    told = [
        {"measure": measure, "query": how.query(measure)}
        for measure in (*how.measures, *(how.each.measures if how.each else ()))
    ]
    file.write_text(json.dumps(told, indent=1) + "\n")


def measuring_of(module: str) -> Measuring:
    """How a study's measures follow from facts, by the module that says so."""
    how: Measuring = import_module(module).MEASURING
    return how
