"""What the pipeline teaches brokers: where clients go next, from a whole trace or as it grows.

`learn` reads a trace once. `start_learning` follows one: brokers tell a stay when it has ended, so the stays
of a client come in order, but those of two brokers may be sealed some seconds apart. A stay is *settled* when
the latest end that was told lies `delay_s` behind its own; then the move that led to it is known for good and
is appended to the table `moves`, once. From that table the graph is made by the very transforms that read a
whole trace (`models.py`), so a stream ends with what a batch gives, but for what the last seconds brought.

What is kept between two batches: stays that are not settled, and the last two of each client that is not gone
for longer than `forget_s`. Both tables are written by batch and overwritten when Spark tries one again, so a
query that dies and is started again on the same folder neither loses nor doubles a move.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from sojourn.mobility.learnt_graph import LearntGraph
from sojourn.pipeline.models import graph_of_moves, learnt_graph
from sojourn.pipeline.schemas import TRACE
from sojourn.pipeline.tables import Trace, read_table, small_table
from sojourn.trace.places import Place

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT, STAYS, MOVES = "checkpoint", "stays", "moves"
"""What a query keeps in its folder."""

_STAY = ("run_id", "client", "broker", "from_s", "to_s")
_CLIENT = ("run_id", "client")


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """How to follow a trace."""

    delay_s: float = 20.0
    """How much later than another broker's a stay may be told."""
    forget_s: float = 86_400.0
    """After how long a client that did not come back counts as new."""
    trigger_s: float = 10.0
    """Seconds between looks at the trace."""


def learn(spark: SparkSession, trace: Trace) -> LearntGraph:
    """Return what the sojourns of a trace teach."""
    return learnt_graph(read_table(spark, trace, "sojourns"), run_starts(trace))


def run_starts(trace: Trace) -> dict[str, float]:
    """Return when runs began, in seconds since 1970: as their last rows say, or as live brokers agreed."""
    found = small_table(trace, "runs", ["run_id", "started_at"]).to_pylist()
    told = {row["run_id"]: row["started_at"].timestamp() for row in found if row["started_at"] is not None}
    return agreed_starts(trace.root, trace.runs) | told


def agreed_starts(root: Place, runs: list[str]) -> dict[str, float]:
    """Return when live runs began that may still go on."""
    agreed = {}
    for run in runs:
        about = root / f"{run}.json"
        if about.is_file():
            agreed[run] = float(json.loads(about.read_text())["started_s"])
    return agreed


# ---------------------------------------------------------------------------- streams


def start_learning(
    spark: SparkSession,
    root: Path,
    folder: Path,
    taught: Callable[[LearntGraph], None],
    options: LearningOptions | None = None,
) -> StreamingQuery:
    """Start the query that follows a trace and tells `taught` what it learnt, whenever something is new."""
    chosen = options or LearningOptions()
    told = root / "sojourns"
    told.mkdir(parents=True, exist_ok=True)  # a query may start before the first segment
    stays = spark.readStream.schema(TRACE["sojourns"]).parquet(str(told))

    def take(batch: DataFrame, number: int) -> None:
        if take_in(batch, number, folder, chosen):
            moved = batch.sparkSession.read.parquet(str(folder / MOVES))
            runs = [row.run_id for row in moved.select("run_id").distinct().collect()]
            taught(graph_of_moves(moved, agreed_starts(root, runs)))

    return (
        stays.writeStream.foreachBatch(take)
        .queryName("sojourn-learn")
        .option("checkpointLocation", str(folder / CHECKPOINT))
        .trigger(processingTime=f"{chosen.trigger_s} seconds")
        .start()
    )


def take_in(batch: DataFrame, number: int, folder: Path, options: LearningOptions) -> bool:
    """Add the moves that a batch of stays settles to the table of moves; say whether there are any."""
    spark = batch.sparkSession
    kept = _last_before(folder / STAYS, number)
    rows = batch.select(*_STAY).withColumn("counted", sf.expr("false"))
    if kept is not None:
        rows = rows.unionByName(spark.read.parquet(str(kept)))
    stays = rows.transform(merged_stays).transform(with_settled(options.delay_s)).cache()
    try:
        left = folder / MOVES / f"batch={number}"
        new_moves(stays).write.mode("overwrite").parquet(str(left))
        now_kept = folder / STAYS / f"batch={number}"
        worth_keeping(stays, options.forget_s).write.mode("overwrite").parquet(str(now_kept))
        found = spark.read.parquet(str(left)).head() is not None
    finally:
        stays.unpersist()
    if kept is not None:
        _remove_before(folder / STAYS, kept)
    return found


def merged_stays(rows: DataFrame) -> DataFrame:
    """Make one of stays that are told twice, and of those that follow each other at the same broker."""
    path = Window.partitionBy(*_CLIENT).orderBy("from_s", "to_s")
    told_once = (
        rows.dropna(subset=[*_CLIENT, "broker", "from_s"])
        .groupBy("run_id", "client", "broker", "from_s")
        .agg(sf.max("to_s").alias("to_s"), sf.max("counted").alias("counted"))
    )
    changed = sf.coalesce((sf.col("broker") != sf.lag("broker").over(path)).cast("int"), sf.lit(1))
    return (
        told_once.withColumn("changed", changed)
        .withColumn("nth", sf.sum("changed").over(path.rowsBetween(Window.unboundedPreceding, 0)))
        .groupBy(*_CLIENT, "nth", "broker")
        .agg(
            sf.min("from_s").alias("from_s"),
            sf.max_by("to_s", "from_s").alias("to_s"),
            sf.max("counted").alias("counted"),
        )
    )


def with_settled(delay_s: float) -> Callable[[DataFrame], DataFrame]:
    """Say of each stay whether everything before its end has been told."""

    def transform(stays: DataFrame) -> DataFrame:
        last_s = sf.max("to_s").over(Window.partitionBy("run_id"))
        return stays.withColumn("last_s", last_s).withColumn(
            "settled", sf.coalesce(sf.col("to_s") <= sf.col("last_s") - delay_s, sf.expr("false"))
        )

    return transform


def new_moves(stays: DataFrame) -> DataFrame:
    """Return the moves that led to stays which are newly settled, as `models.moves` does."""
    path = Window.partitionBy(*_CLIENT).orderBy("from_s", "to_s")
    return (
        stays.withColumn("before", sf.lag("broker", 2).over(path))
        .withColumn("at", sf.lag("broker").over(path))
        .withColumn("arrived_s", sf.lag("from_s").over(path))
        .withColumn("left_s", sf.lag("to_s").over(path))
        .where("settled and not counted and at is not null")
        .withColumn("away_s", sf.col("from_s") - sf.col("left_s"))
        .withColumnRenamed("broker", "to")
        .select("run_id", "client", "before", "at", "to", "arrived_s", "left_s", "away_s")
    )


def worth_keeping(stays: DataFrame, forget_s: float) -> DataFrame:
    """Return what the next batch needs: stays that are not settled, and the two before them."""
    back = Window.partitionBy(*_CLIENT).orderBy(sf.desc("from_s"), sf.desc("to_s"))
    settled_after = sf.sum(sf.col("settled").cast("int")).over(back.rowsBetween(Window.unboundedPreceding, 0))
    is_recent = sf.coalesce(sf.col("to_s") >= sf.col("last_s") - forget_s, sf.expr("true"))
    return (
        stays.withColumn("settled_after", settled_after)
        .where(~sf.col("settled") | ((sf.col("settled_after") <= 2) & is_recent))
        .withColumn("counted", sf.col("counted") | sf.col("settled"))
        .select(*_STAY, "counted")
    )


def _batches(folder: Path) -> dict[int, Path]:
    return {int(path.name.removeprefix("batch=")): path for path in folder.glob("batch=*") if path.is_dir()}


def _last_before(folder: Path, number: int) -> Path | None:
    """What the batch before this one left; what this one left at an earlier try is not looked at."""
    earlier = {at: path for at, path in _batches(folder).items() if at < number}
    return earlier[max(earlier)] if earlier else None


def _remove_before(folder: Path, kept: Path) -> None:
    """Remove what no batch will look at again: the last one may be tried again, those before may not."""
    for at, path in _batches(folder).items():
        if at < int(kept.name.removeprefix("batch=")):
            shutil.rmtree(path, ignore_errors=True)
