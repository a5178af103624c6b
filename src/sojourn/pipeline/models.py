"""What sojourns teach: the neighbour graph and where a client goes next.

Transforms take the `sojourns` table and return counts and probabilities, of order 1 (where clients of a
broker go) and of order 2 (where those go who came from a certain broker). A move is two stays of a client
that follow each other at different brokers; coming back to the same broker after a disconnection is none.

Rules: probabilities are quotients of two counts, so they do not depend on partitioning. `learnt_graph`
collects the result into the small form that brokers load (`mobility.learnt_graph`).
Not here: the chain that these probabilities feed (`occupancy`), the capacity plan (`capacity`).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import Edge, LearntGraph, Pair, Stay

ORDERS = {1: ["at"], 2: ["before", "at"]}
"""The columns that a next broker depends on, by order."""


class ModelError(SojournError):
    """A trace does not hold what a model needs."""


def moves(sojourns: DataFrame) -> DataFrame:
    """Every move between two brokers: `before` (null at the start), `at`, `to`, and the times around it."""
    path = Window.partitionBy("run_id", "client").orderBy("from_s", "to_s")
    stays = _merged_stays(sojourns)
    return (
        stays.withColumn("before", sf.lag("broker").over(path))
        .withColumn("to", sf.lead("broker").over(path))
        .withColumn("away_s", sf.lead("from_s").over(path) - sf.col("to_s"))
        .where(sf.col("to").isNotNull())
        .withColumnsRenamed({"broker": "at", "from_s": "arrived_s", "to_s": "left_s"})
        .select("run_id", "client", "before", "at", "to", "arrived_s", "left_s", "away_s")
    )


def _merged_stays(sojourns: DataFrame) -> DataFrame:
    """Stays of a client with those at the same broker that follow each other made one."""
    path = Window.partitionBy("run_id", "client").orderBy("from_s", "to_s")
    changed = sf.coalesce((sf.col("broker") != sf.lag("broker").over(path)).cast("int"), sf.lit(1))
    # A live broker tells a stay when it begins and again when it ends; both rows have the same beginning.
    told_once = (
        sojourns.where(sf.col("broker").isNotNull() & sf.col("client").isNotNull())
        .groupBy("run_id", "client", "broker", "from_s")
        .agg(sf.max("to_s").alias("to_s"))
    )
    return (
        told_once.withColumn("changed", changed)
        .withColumn("nth", sf.sum("changed").over(path.rowsBetween(Window.unboundedPreceding, 0)))
        .groupBy("run_id", "client", "nth", "broker")
        .agg(sf.min("from_s").alias("from_s"), sf.max_by("to_s", "from_s").alias("to_s"))
    )


def next_brokers(sojourns: DataFrame, order: int = 1) -> DataFrame:
    """How often, and with what probability, clients went to each next broker."""
    if order not in ORDERS:
        raise ModelError(f"order may be 1 or 2, not {order}.")
    known = ORDERS[order]
    whole = Window.partitionBy(*known)
    return (
        moves(sojourns)
        .dropna(subset=known)
        .groupBy(*known, "to")
        .agg(sf.count("*").alias("crossings"), sf.max("left_s").alias("last_s"))
        .withColumn("probability", sf.col("crossings") / sf.sum("crossings").over(whole))
        .select(*known, "to", "crossings", "probability", "last_s")
    )


def mean_stays(sojourns: DataFrame) -> DataFrame:
    """How long clients stayed at each broker; stays that the run's end cut off take no part."""
    return (
        moves(sojourns)
        .groupBy(sf.col("at").alias("broker"))
        .agg(
            sf.count("*").alias("stays"), _steady_mean(sf.col("left_s") - sf.col("arrived_s")).alias("mean_s")
        )
    )


def mean_away(sojourns: DataFrame) -> DataFrame:
    """One row: the mean time between two brokers."""
    return moves(sojourns).agg(_steady_mean(sf.col("away_s")).alias("away_s"))


def _steady_mean(value: Column) -> Column:
    """A mean of whole microseconds, summed as integers: the same bits however rows are partitioned."""
    return sf.sum(sf.round(value * 1e6).cast("long")) / sf.count(value) / 1e6


def learnt_graph(sojourns: DataFrame) -> LearntGraph:
    """All that brokers load, collected; small, since it has one row an edge."""
    edges = next_brokers(sojourns, 1).orderBy("at", "to").collect()
    if not edges:
        raise ModelError("the trace holds no move between two brokers: measure a run in which clients move.")
    pairs = next_brokers(sojourns, 2).orderBy("before", "at", "to").collect()
    stays = mean_stays(sojourns).orderBy("broker").collect()
    away = mean_away(sojourns).head()
    return LearntGraph(
        edges=[Edge(**row.asDict()) for row in edges],
        pairs=[Pair(**row.asDict()) for row in pairs],
        stays=[Stay(**row.asDict()) for row in stays],
        away_s=float(away["away_s"]) if away else 0.0,
    )
