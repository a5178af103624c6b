"""From facts that runs recorded to their measures: one row a run and measure.

A study declares its measures as SQL, in two steps:

    Measuring(
        sums={"rebuildings": {"moves": "count(*)", "tree_hops": "sum(advertise + unadvertise)"}},
        measures={"messages_per_move": "coalesce(tree_hops / moves, 0)"},
    )

`sums` are aggregates over a table's rows of one run; `measures` are what is made of them, of the columns of
the table `runs`, and of `measured_s`, the time of a run without its warm-up. A sum over no rows is null, and
a measure that is null has no row; a run that failed recorded nothing and has no measures.

`each` is the same for things of which a run looks at many, such as layouts: sums are over the rows of a run
that have the same `at`, and there is a measure for each of those.

Rules: a run's rows stand in one file, in the order in which the run wrote them, and are added up in that
order, so the same runs give the same bits on any number of partitions and machines. Not here: which measures
a study has (`studies/*/measuring.py`), and means over seeds (`metrics.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sojourn.errors import SojournError
from sojourn.pipeline.schemas import MEASURES, MEASURES_EACH, PARTITION

RUNS = "runs"
RECORDED_RUNS = "recorded_runs"
"""What that table of facts is called where a study's results are asked, whose `runs` are something else."""
AWAY_S, WAIT_S, REBUILD_S = "arrived_s - left_s", "ready_s - arrived_s", "ready_s - left_s"
"""The phases of a hand-off, of live runs (`handoffs`) and of the hand-off study's (`arrivals`) alike."""

AT = "at"
_ABOUT = ("seed", "spec_json", "warmup_s", "duration_s")


class MeasuringError(SojournError):
    """Measures are declared that cannot be computed."""


class Each(NamedTuple):
    """How measures of single things follow from the rows of a table that number them in its column `at`."""

    table: str
    sums: Mapping[str, str]
    """What is added up over the rows of a run and thing, as SQL aggregates by name."""
    measures: Mapping[str, str]
    """Measures by name, as SQL over sums and the run's own columns."""

    def query(self, measure: str) -> str:
        """Return the question whose answer is that measure, run by run and thing by thing."""
        given = self.measures[measure]
        used = [f"{how} AS {name}" for name, how in self.sums.items() if name in given]
        added = f"SELECT {', '.join((PARTITION, AT, *used))} FROM {self.table} GROUP BY {PARTITION}, {AT}"  # noqa: S608  ours
        runs = f"{RECORDED_RUNS} JOIN ({added}) USING ({PARTITION})"
        asked = f"SELECT {PARTITION}, {AT}, {given} AS value FROM {runs}"  # noqa: S608  likewise
        return f"SELECT * FROM ({asked}) WHERE value IS NOT NULL"  # noqa: S608  likewise


class Measuring(NamedTuple):
    """How a study's measures follow from the facts of its runs."""

    sums: Mapping[str, Mapping[str, str]]
    """By table: what is added up over its rows, as SQL aggregates by name."""
    measures: Mapping[str, str]
    """Measures by name, as SQL over sums and the run's own columns."""
    each: Each | None = None
    """Measures of single layouts or histories, if there are any."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that runs must record."""
        single = (self.each.table,) if self.each else ()
        return tuple(dict.fromkeys((*self.sums, *single, RUNS)))

    def query(self, measure: str) -> str:
        """Return the question whose answer is that measure, run by run, from the facts alone."""
        if measure not in self.measures:
            assert self.each is not None
            return self.each.query(measure)
        given = self.measures[measure]
        parts = [f"(SELECT *, duration_s - warmup_s AS measured_s FROM {RECORDED_RUNS})"]  # noqa: S608  ours
        for table, sums in self.sums.items():
            used = [f"{how} AS {name}" for name, how in sums.items() if name in given]
            if used:
                added = f"SELECT {PARTITION}, {', '.join(used)} FROM {table}"  # noqa: S608  likewise
                added += f" GROUP BY {PARTITION}"
                parts.append(f"LEFT JOIN ({added}) USING ({PARTITION})")
        return f"SELECT {PARTITION}, {given} AS value FROM {' '.join(parts)}"  # noqa: S608  likewise


def measures(table: Callable[[str], DataFrame], how: Measuring) -> DataFrame:
    """Compute every measure of every run: `run_id`, `measure`, `value`."""
    twice = [name for sums in how.sums.values() for name in sums if name in _ABOUT]
    if twice:
        raise MeasuringError(f"a sum has the name of a column of {RUNS}: {', '.join(twice)}.")
    wide = (
        table(RUNS)
        .select(PARTITION, *_ABOUT)
        .withColumn("measured_s", sf.col("duration_s") - sf.col("warmup_s"))
    )
    for name, sums in how.sums.items():
        added = (
            table(name).groupBy(PARTITION).agg(*(sf.expr(sql).alias(total) for total, sql in sums.items()))
        )
        wide = wide.join(added, PARTITION, "left")
    return _told(wide, how.measures, MEASURES.names)


def measures_each(table: Callable[[str], DataFrame], how: Each) -> DataFrame:
    """Compute every measure of everything that runs looked at: `run_id`, `measure`, `at`, `value`."""
    added = (
        table(how.table)
        .groupBy(PARTITION, AT)
        .agg(*(sf.expr(sql).alias(total) for total, sql in how.sums.items()))
    )
    wide = table(RUNS).select(PARTITION, *_ABOUT).join(added, PARTITION)
    return _told(wide, how.measures, MEASURES_EACH.names)


def _told(wide: DataFrame, how: Mapping[str, str], columns: Sequence[str]) -> DataFrame:
    """One row a measure, of those that there are."""
    told = [
        sf.struct(sf.lit(name).alias("measure"), sf.expr(sql).cast("double").alias("value"))
        for name, sql in how.items()
    ]
    kept = [name for name in columns if name not in ("measure", "value")]
    return (
        wide.select(*kept, sf.explode(sf.array(*told)).alias("told"))
        .select(*kept, "told.measure", "told.value")
        .where("value IS NOT NULL")
        .select(*columns)
    )
