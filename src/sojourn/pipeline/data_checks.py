"""Whether the rows of a trace can be what happened: nothing missing, nothing before its time, no loose ends.

What may be null, what names a row and which table a column refers to is declared in `trace/rows.py`; here it
is asked of the data itself, in one job a table. A run that fails is named with what is wrong and how often.
Where brokers ended without sealing what they had noted, rows may refer to what those had: to clients, and to
events of sources at such a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so

from sojourn.pipeline.audit_gaps import SOURCE_AT, Gaps
from sojourn.pipeline.audit_kernel import CLOCKS_S
from sojourn.trace.rows import EVENT, TABLES, columns_of


class Fault(NamedTuple):
    """Something that cannot be."""

    run_id: str
    sentence: str


ORDERED = {
    "interests": (("asked_s", "from_s", 0.0), ("from_s", "to_s", 0.0)),
    "sojourns": (("from_s", "to_s", 0.0),),
    "handoffs": (("left_s", "arrived_s", CLOCKS_S), ("arrived_s", "ready_s", 0.0)),
}
"""By table, columns of which the first is never after the second, but by what two clocks may differ."""


def faults(read: Callable[[str], DataFrame], gaps: Gaps) -> list[Fault]:
    """Look at all tables; `read` gives the rows of one, `gaps` tells of which brokers rows are missing."""
    found = [fault for table in TABLES for fault in _within(table, read(table))]
    for table, about in TABLES.items():
        for column, other in about.refers_to.items():
            found += _loose(table, read(table).where(~_in_gaps(column, gaps)), column, other, read(other))
    return sorted(found)


def _within(table: str, rows: DataFrame) -> Iterator[Fault]:
    """What is wrong with single rows of a table, by run."""
    asked: dict[str, Column] = {}
    for column in columns_of(TABLES[table].row):
        if not column.may_lack:
            asked[f"rows of {table} have no {column.name}"] = F.col(column.name).isNull()
        if column.kind is float:
            asked[f"rows of {table} have a {column.name} that is no number"] = F.isnan(column.name)
    for first, second, clocks_s in ORDERED.get(table, ()):
        asked[f"rows of {table} have {first} after {second}"] = F.col(first) > F.col(second) + clocks_s
    if not asked:
        return
    counts = rows.groupBy("run_id").agg(*(F.count_if(wrong).alias(what) for what, wrong in asked.items()))
    for row in counts.collect():
        for what in asked:
            if row[what]:
                yield Fault(row["run_id"], f"{row[what]} {what}")


def _in_gaps(column: str, gaps: Gaps) -> Column:
    """Whether a row may refer to one that a broker had noted and not sealed."""
    found = F.lit(False)  # noqa: FBT003 - a column of that value
    at = F.regexp_extract("source", SOURCE_AT, 1) if column == EVENT else None
    for run_id, missing in gaps.items():
        brokers = sorted({gap.broker for gap in missing})
        here = F.lit(True) if at is None else at.isin(brokers)  # noqa: FBT003 - likewise
        found |= (F.col("run_id") == run_id) & F.coalesce(here, F.lit(False))  # noqa: FBT003 - likewise
    return found


def _loose(table: str, rows: DataFrame, column: str, other: str, others: DataFrame) -> Iterator[Fault]:
    """Rows that refer to what is not there, by run; nothing is asked of runs without the other table."""
    names = column.split(", ") if column == EVENT else [column]
    known = others.select("run_id", *names).distinct()
    whole = known.select("run_id").distinct()
    loose = (
        rows.join(F.broadcast(whole), "run_id", "left_semi")
        .join(known, ["run_id", *names], "left_anti")
        .groupBy("run_id")
        .count()
    )
    for row in loose.collect():
        yield Fault(
            row["run_id"], f"{row['count']} rows of {table} refer to rows of {other} that are missing"
        )
