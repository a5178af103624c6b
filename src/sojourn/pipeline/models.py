"""What sojourns teach: the neighbour graph and where a client goes next.

Transforms take the `sojourns` table and return counts and probabilities, of order 1 (where clients of a
broker go) and of order 2 (where those go who came from a certain broker). A move is two stays of a client
that follow each other at different brokers; coming back to the same broker after a disconnection is none.
Both also by the hour of the day in which the client left (`with_hour`), by UTC, and stays by their lengths.

Rules: probabilities are quotients of two counts, so they do not depend on partitioning. `learnt_graph`
collects the result into the small form that brokers load (`mobility.learnt_graph`).
Not here: the chain that these probabilities feed (`occupancy`), the capacity plan (`capacity`).
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import Edge, HourEdge, LearntGraph, Pair, Stay
from sojourn.mobility.prediction import HOUR_S, HOURS

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


def with_hour(moved: DataFrame, began_s: Mapping[str, float]) -> DataFrame:
    """Add in which hour of the day a client left, given when runs began; others began at midnight."""
    began = sf.lit(0.0)
    if began_s:
        pairs = [sf.lit(part) for run in sorted(began_s) for part in (run, float(began_s[run]))]
        began = sf.coalesce(sf.create_map(*pairs)[sf.col("run_id")], began)
    return moved.withColumn(
        "hour", sf.pmod(sf.floor((began + sf.col("left_s")) / HOUR_S), sf.lit(HOURS)).cast("int")
    )


def crossings(moved: DataFrame, *known: str) -> DataFrame:
    """How often, and with what probability, clients went to each next broker, given what is known of them."""
    whole = Window.partitionBy(*known)
    return (
        moved.dropna(subset=list(known))
        .groupBy(*known, "to")
        .agg(sf.count("*").alias("crossings"), sf.max("left_s").alias("last_s"))
        .withColumn("probability", sf.col("crossings") / sf.sum("crossings").over(whole))
        .select(*known, "to", "crossings", "probability", "last_s")
    )


def next_brokers(sojourns: DataFrame, order: int = 1) -> DataFrame:
    """How often, and with what probability, clients went to each next broker."""
    if order not in ORDERS:
        raise ModelError(f"order may be 1 or 2, not {order}.")
    return crossings(moves(sojourns), *ORDERS[order])


def mean_stays(sojourns: DataFrame) -> DataFrame:
    """How long clients stayed at each broker; stays that the run's end cut off take no part."""
    return stay_lengths(moves(sojourns))


def stay_lengths(moved: DataFrame) -> DataFrame:
    """The same from moves: the mean, the median, and what nine of ten stays do not exceed."""
    micros = sf.round((sf.col("left_s") - sf.col("arrived_s")) * 1e6).cast("long")
    shares = {"median_s": 0.5, "long_s": 0.9}
    return (
        moved.withColumn("stay_us", micros)
        .groupBy(sf.col("at").alias("broker"))
        .agg(
            sf.count("*").alias("stays"),
            (sf.sum("stay_us") / sf.count("stay_us") / 1e6).alias("mean_s"),
            *(
                (sf.expr(f"percentile_disc({share}) within group (order by stay_us)") / 1e6).alias(name)
                for name, share in shares.items()
            ),
        )
    )


def mean_away(sojourns: DataFrame) -> DataFrame:
    """One row: the mean time between two brokers."""
    return moves(sojourns).agg(_steady_mean(sf.col("away_s")).alias("away_s"))


def _steady_mean(value: Column) -> Column:
    """A mean of whole microseconds, summed as integers: the same bits however rows are partitioned."""
    return sf.sum(sf.round(value * 1e6).cast("long")) / sf.count(value) / 1e6


def learnt_graph(sojourns: DataFrame, began_s: Mapping[str, float] | None = None) -> LearntGraph:
    """All that brokers load, collected; small, since it has one row per edge and hour."""
    return graph_of_moves(moves(sojourns), began_s or {})


def graph_of_moves(moved: DataFrame, began_s: Mapping[str, float]) -> LearntGraph:
    """The same from moves."""
    told = with_hour(moved, began_s).cache()
    try:
        edges = crossings(told, "at").orderBy("at", "to").collect()
        if not edges:
            raise ModelError(
                "the trace holds no move between two brokers: measure a run in which clients move."
            )
        pairs = crossings(told, "before", "at").orderBy("before", "at", "to").collect()
        hours = crossings(told, "hour", "at").withColumn("before", sf.lit(None).cast("string"))
        by_hour = hours.unionByName(crossings(told, "hour", "before", "at"))
        in_order = by_hour.orderBy("hour", sf.coalesce("before", sf.lit("")), "at", "to").collect()
        stays = stay_lengths(told).orderBy("broker").collect()
        away = told.agg(_steady_mean(sf.col("away_s")).alias("away_s")).head()
    finally:
        told.unpersist()
    return LearntGraph(
        edges=[Edge(**row.asDict()) for row in edges],
        pairs=[Pair(**row.asDict()) for row in pairs],
        by_hour=[HourEdge(**row.asDict()) for row in in_order],
        stays=[Stay(**row.asDict()) for row in stays],
        away_s=float(away["away_s"]) if away else 0.0,
    )
