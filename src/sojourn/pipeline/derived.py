"""From what was recorded to what follows from it and what is concluded: transforms, DataFrame to DataFrame.

Outcomes come from the audit's own kernel; everything else is column functions. What each column means is
declared in `derived_rows.py`; who reads, writes and decides what is new is `derived_job.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so

from sojourn.pipeline.audit import of_clocks
from sojourn.pipeline.measuring import AWAY_S, REBUILD_S, WAIT_S
from sojourn.pipeline.metrics import with_intervals
from sojourn.pipeline.models import crossings, moves

_RUN = "run_id"


def handoff_phases(handoffs: DataFrame, message_counts: DataFrame) -> DataFrame:
    """Add to hand-offs how long their phases took, and the messages that each of them set off."""
    costs = (
        message_counts.where("cause <> ''")
        .groupBy(_RUN, "cause")
        .agg(F.sum("hops").alias("hops"), F.sum("bytes").alias("hop_bytes"))
    )
    return handoffs.join(costs, [_RUN, "cause"], "left").select(
        _RUN,
        "client",
        "from_broker",
        "to_broker",
        "cause",
        "left_s",
        of_clocks(F.expr(AWAY_S)).alias("away_s"),
        of_clocks(F.expr(WAIT_S)).alias("wait_s"),
        of_clocks(F.expr(REBUILD_S)).alias("rebuild_s"),
        "hops",
        "hop_bytes",
    )


def neighbours(sojourns: DataFrame) -> DataFrame:
    """The neighbour graph of each run."""
    found = sojourns.transform(moves).transform(lambda moved: crossings(moved, _RUN, "at"))
    return found.select(_RUN, "at", "to", "crossings", "probability", "last_s")


def occupancy(sojourns: DataFrame, load: DataFrame, deliveries: DataFrame, runs: DataFrame) -> DataFrame:
    """How crowded and how busy every broker was."""
    ends = runs.groupBy(_RUN).agg(F.max("duration_s").alias("duration_s"))
    told_once = sojourns.groupBy(_RUN, "client", "broker", "from_s").agg(F.max("to_s").alias("to_s"))
    end = F.least(F.coalesce("to_s", "duration_s"), F.col("duration_s"))
    stays = (
        told_once.where("broker is not null")
        .join(F.broadcast(ends), _RUN)
        .groupBy(_RUN, "broker")
        .agg((F.sum(end - F.col("from_s")) / F.max("duration_s")).alias("clients_mean"))
    )
    worked = (
        load.join(F.broadcast(ends), _RUN)
        .groupBy(_RUN, "broker")
        .agg(
            F.sum("handled").alias("handled"),
            (F.sum("busy_s") / F.max("duration_s")).alias("busy_share"),
        )
    )
    given = (
        deliveries.where("broker is not null").groupBy(_RUN, "broker").agg(F.count("*").alias("deliveries"))
    )
    return (
        stays.join(worked, [_RUN, "broker"], "full")
        .join(given, [_RUN, "broker"], "full")
        .select(_RUN, "broker", "clients_mean", "handled", "busy_share", "deliveries")
    )


def measures(outcomes: DataFrame, phases: DataFrame, occupied: DataFrame, runs: DataFrame) -> DataFrame:
    """Every number of a run, one a row; runs with nothing to count have nulls."""
    parts = [(outcomes, _of_outcomes()), (phases, _of_phases()), (occupied, _of_brokers())]
    wide = runs.select(_RUN).distinct()
    for rows, numbers in parts:
        wide = wide.join(rows.groupBy(_RUN).agg(*_named(numbers)), _RUN, "left")
    wide = wide.withColumn("delivered_share", F.col("delivered") / F.nullif("expected", F.lit(0)))
    names = [*(name for _, numbers in parts for name in numbers), "delivered_share"]
    told = F.array(
        *(F.struct(F.lit(name).alias("measure"), F.col(name).cast("double").alias("value")) for name in names)
    )
    return wide.select(_RUN, F.explode(told).alias("told")).select(_RUN, "told.measure", "told.value")


def means(measured: DataFrame, runs: DataFrame) -> DataFrame:
    """Measures over all runs that differ in their seed alone, with intervals."""
    seedless = F.regexp_replace("spec_json", r'"seed":-?\d+,?', "")
    about = runs.groupBy(_RUN).agg(
        F.max("study").alias("study"),
        F.max("seed").alias("seed"),
        F.max(seedless).alias("configuration"),
    )
    values = measured.join(about, _RUN)
    return with_intervals(values, ["study", "configuration"]).select(
        "study", "configuration", "measure", "mean", "interval", F.col("runs").cast("long").alias("runs")
    )


def _is(outcome: str) -> Column:
    return F.col("outcome") == outcome


def _percentile(column: str, share: float) -> Column:
    return F.percentile(F.col(column), F.lit(share))


def _times(column: str, name: str) -> dict[str, Column]:
    return {
        f"{name}_{part}_s": _percentile(column, share)
        for part, share in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}.items()
    }


def _of_outcomes() -> dict[str, Column]:
    unseen = _is("unrecorded") & (F.col("copies") == 0)
    return {
        "expected": F.count_if(_is("delivered") | _is("lost") | unseen),
        "delivered": F.count_if(_is("delivered")),
        "lost": F.count_if(_is("lost")),
        "allowed": F.count_if(_is("allowed")),
        "unauthorised": F.count_if(_is("unauthorised")),
        "unrecorded_deliveries": F.count_if(unseen),
        "unrecorded_publications": F.count_if(_is("unrecorded") & (F.col("copies") > 0)),
        "duplicated": F.sum(F.greatest(F.col("copies") - 1, F.lit(0))),
        "out_of_order": F.count_if(F.col("out_of_order")),
        "latency_mean_s": F.avg("latency_s"),
        **_times("latency_s", "latency"),
    }


def _of_phases() -> dict[str, Column]:
    return {
        "handoffs": F.count("*"),
        "hops_per_handoff": F.sum("hops") / F.count("hops"),
        **_times("away_s", "handoff_away"),
        **_times("wait_s", "handoff_wait"),
        **_times("rebuild_s", "handoff_rebuild"),
    }


def _of_brokers() -> dict[str, Column]:
    return {
        "brokers": F.count("*"),
        "clients_at_the_most_crowded": F.max("clients_mean"),
        "busy_share_max": F.max("busy_share"),
    }


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]
