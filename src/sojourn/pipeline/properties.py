"""Ordered, consistent, complete (paper 003, section 5) as transforms over the trace of any run.

The definitions are those of `edge/properties.py`, said of tables:

- *ordered*: no delivery to a client comes after a newer event of its source; what came at one instant came
  together;
- *consistent*: no event comes twice, and none that was not published or does not match;
- *complete*: every matching event that some broker received was delivered. A publication that reached no
  broker has no `broker` in its row; that it is missing is nobody's fault here.

What matches is the audit's business: its incidents (`audit.py`) say what was lost, doubled and unauthorised.
Functions take and return DataFrames; reading is `properties_job.py`'s.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so

from sojourn.pipeline.audit_findings import DUPLICATED, LOST, UNAUTHORISED

Transform = Callable[[DataFrame], DataFrame]

CLIENT = ["run_id", "client"]


def filter_late(deliveries: DataFrame) -> DataFrame:
    """Deliveries after a newer one of the same source: run_id, client, source, sequence, time_s, newer."""
    instants = deliveries.groupBy(*CLIENT, "source", "time_s").agg(
        F.min("sequence").alias("sequence"), F.max("sequence").alias("newest")
    )
    before = (
        Window.partitionBy(*CLIENT, "source").orderBy("time_s").rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        instants.withColumn("newer", F.max("newest").over(before))
        .where(F.col("sequence") < F.col("newer"))
        .drop("newest")
    )


def filter_missing(publications: DataFrame) -> Transform:
    """Of an audit's incidents, the losses of events that some broker received."""
    reached = (
        publications.where(F.col("broker").isNotNull()).select("run_id", "source", "sequence").distinct()
    )

    def transform(incidents: DataFrame) -> DataFrame:
        lost = incidents.where(F.col("incident") == LOST)
        return lost.join(reached, ["run_id", "source", "sequence"], "left_semi")

    return transform


def properties_by_client(known: DataFrame, deliveries: DataFrame, publications: DataFrame) -> Transform:
    """Turn an audit's incidents into one row per run and client: the three properties, and why not.

    `known` holds `run_id` and `client` of everybody who is to be judged.
    """
    late = (
        filter_late(deliveries)
        .groupBy(*CLIENT)
        .agg(
            F.count("*").alias("late"),
            F.min_by(_told("comes after", with_newer=True), "time_s").alias("not_ordered"),
        )
    )

    def transform(incidents: DataFrame) -> DataFrame:
        wrong = incidents.where(F.col("incident").isin(DUPLICATED, UNAUTHORISED))
        reason = F.when(F.col("incident") == DUPLICATED, F.lit("is shown twice"))
        doubled = wrong.groupBy(*CLIENT).agg(
            F.count("*").alias("inconsistent"),
            F.min(F.concat(_event(), F.lit(" "), reason.otherwise(F.lit("was not to be shown")))).alias(
                "not_consistent"
            ),
        )
        missing = (
            incidents.transform(filter_missing(publications))
            .groupBy(*CLIENT)
            .agg(
                F.count("*").alias("missing"),
                F.min_by(_told("is missing"), F.struct("published_s", "source", "sequence")).alias(
                    "not_complete"
                ),
            )
        )
        joined = known.select(*CLIENT).distinct()
        for part in (late, doubled, missing):
            joined = joined.join(part, CLIENT, "left")
        return joined.withColumns(
            {
                "ordered": F.col("not_ordered").isNull(),
                "consistent": F.col("not_consistent").isNull(),
                "complete": F.col("not_complete").isNull(),
            }
        ).fillna(0, ["late", "inconsistent", "missing"])

    return transform


def properties_by_run(judged: DataFrame) -> DataFrame:
    """One row per run: a property holds if it holds for every client."""
    return judged.groupBy("run_id").agg(
        F.count("*").alias("clients"),
        *(F.bool_and(name).alias(name) for name in ("ordered", "consistent", "complete")),
        *(F.sum(name).alias(name) for name in ("late", "inconsistent", "missing")),
        *(
            F.min(F.concat(F.col("client"), F.lit(": "), name)).alias(name)
            for name in ("not_ordered", "not_consistent", "not_complete")
        ),
    )


def _event() -> Column:
    return F.concat(F.col("source"), F.lit("#"), F.col("sequence").cast("string"))


def _told(what: str, *, with_newer: bool = False) -> Column:
    parts = [_event(), F.lit(f" {what}")]
    if with_newer:
        parts += [F.lit(" "), F.col("source"), F.lit("#"), F.col("newer").cast("string")]
    return F.concat(*parts)
