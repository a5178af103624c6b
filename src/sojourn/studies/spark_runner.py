"""Runs a study's grid on Spark, behind the same function as the process pool of `runner`.

The rows are those of the pool, bit for bit; what a store already holds is not simulated again. Means and
intervals come from `pipeline.metrics`, so that a study of any size is averaged where its results are.
"""

from collections.abc import Iterable, Sequence

import msgspec
import pandas as pd
from pyspark.sql import SparkSession

from sojourn.pipeline import schemas
from sojourn.pipeline.metrics import with_intervals
from sojourn.pipeline.progress import Listener
from sojourn.pipeline.sweep import RunFunction, sweep, write_traces
from sojourn.studies.runner import Row, RunSpec


def run_grid_on_spark(
    spark: SparkSession,
    specs: Iterable[RunSpec],
    simulate: RunFunction,
    store: str,
    *,
    traces: str | None = None,
    progress: Listener | None = None,
) -> list[Row]:
    """Simulate every distinct run of a grid that the store lacks; all measures by ascending run_id.

    Where `traces` names a directory, what the runs recorded is written there as trace tables.
    """
    distinct = {spec.run_id: msgspec.structs.asdict(spec) for spec in specs}
    names = schemas.GRID.fieldNames()
    rows = [tuple(distinct[run_id][name] for name in names) for run_id in sorted(distinct)]
    grid = spark.createDataFrame(rows, schemas.GRID)
    results = sweep(spark, grid, simulate, store, trace=traces is not None, listener=progress)
    if traces is not None:
        write_traces(spark, store, results, traces)
    return [
        {
            "run_id": result.run_id,
            "seed": result.seed,
            "error": result.error,
            **result.numbers,
            **result.texts,
            "wall_s": result.wall_s,
        }
        for result in results.collect()
    ]


def means_on_spark(
    spark: SparkSession, runs: pd.DataFrame, by: Sequence[str], measures: Sequence[str]
) -> pd.DataFrame:
    """Mean and 95% interval over seeds for every configuration and measure, in the order of their keys."""
    known = [measure for measure in measures if measure in runs.columns]
    long = runs[[*by, "seed", *known]].melt(id_vars=[*by, "seed"], var_name="measure", value_name="value")
    long["value"] = long["value"].astype(float)
    means = with_intervals(spark.createDataFrame(long), by).toPandas()
    return means.sort_values([*by, "measure"], ignore_index=True)
