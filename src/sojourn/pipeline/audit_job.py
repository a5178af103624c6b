"""The audit as a job: read -> validate -> transform -> named columns, for all runs that can be read.

`audit_trace` never gives up half-way. A run with files that cannot be trusted is refused before Spark sees it
(`tables.py`). Should Spark still fail on the runs together, because a page inside a file is damaged, each run
is audited by itself, and the one that fails is refused with a sentence. What can be audited but looks wrong
(an unknown client, a clock that jumped, a filter that cannot be read) is audited and said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships no types
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so

from sojourn.pipeline.audit import (
    compared,
    counts_by,
    delivered_chunks,
    expected_chunks,
    expected_chunks_by_part,
    filter_incidents,
    run_summary,
    told_last,
    with_loss_reason,
    with_losses_by_broker,
    with_parsed,
)
from sojourn.pipeline.audit_findings import BY_BROKER, BY_CLIENT, BY_WINDOW
from sojourn.pipeline.audit_interests import compile_interests, filters_by_text
from sojourn.pipeline.tables import Problem, Trace, open_trace, read_splits, read_table

TABLES = ("runs", "publications", "interests", "clients", "sojourns", "handoffs", "deliveries", "drops")
Rows = list[dict[str, Any]]
Progress = Callable[[str, float | None], None]
"""Is told what is being done, and which share of it is."""

JOB_FAILURES = (PySparkException, Py4JJavaError)
"""How a job that fails while it runs comes to us."""

_BUCKET_ROWS = 1_000_000
_BUCKETS_MAX = 4_096
_NAMED_MAX = 3


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """How to audit."""

    window_s: float = 60.0
    """Length of the windows that counts are given for."""
    in_flight_s: float = 1.0
    """What was published so shortly before the end of its run and not delivered was in flight."""
    broadcast_filters_max: int = 200_000
    """With more filters than this the interests are dealt into parts instead of broadcast."""
    part_filters: int = 50_000
    """Filters in such a part, about."""
    slice_events: int = 200_000
    """Publications that a task matches with one part, about."""


@dataclass(slots=True)
class Audit:
    """DataFrames of an audit in the making; `findings` is kept by Spark until `close`."""

    findings: DataFrame
    incidents: DataFrame
    summary: DataFrame
    clients: DataFrame
    brokers: DataFrame
    windows: DataFrame
    unreadable: DataFrame | None
    """Filters and policies that cannot be read: run_id, filter, error, what; None when all can."""
    unknown: DataFrame
    """Deliveries to clients that no other table knows: run_id, client."""

    def close(self) -> None:
        """Let Spark forget what it kept."""
        self.findings.unpersist()


@dataclass(slots=True)
class AuditReport:
    """What an audit found."""

    runs: Rows = field(default_factory=list)
    clients: Rows = field(default_factory=list)
    brokers: Rows = field(default_factory=list)
    windows: Rows = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def audit_trace(
    spark: SparkSession,
    root: str | Path,
    options: AuditOptions | None = None,
    *,
    details: tuple[str, ...] = (),
    progress: Progress = lambda _what, _share: None,
) -> AuditReport:
    """Audit every run of a trace; `details` may name clients, brokers and windows."""
    chosen = options or AuditOptions()
    trace = open_trace(root, TABLES, lambda done, of: progress("looking at files", done / of))
    report = AuditReport(problems=list(trace.problems))
    if not trace.runs:
        return report
    try:
        _add(report, spark, trace, chosen, details, progress)
    except JOB_FAILURES as failure:
        _reraise_ours(failure)
        for run_id in trace.runs:
            progress(f"auditing {run_id} by itself", None)
            try:
                _add(report, spark, trace.only([run_id]), chosen, details, progress)
            except JOB_FAILURES as error:
                report.problems.append(Problem(run_id, _cannot(error), refused=True))
    return report


def build_audit(
    spark: SparkSession, trace: Trace, options: AuditOptions, progress: Progress = lambda _what, _share: None
) -> Audit:
    """Set up an audit; nothing but the interests is read yet."""
    table = {name: read_table(spark, trace, name) for name in TABLES}
    interests = table["interests"].transform(told_last("client", "interest", "filter", "from_s"))
    sojourns = table["sojourns"].transform(told_last("client", "broker", "from_s"))
    buckets = bucket_count(spark, trace)
    progress("reading filters", None)
    chunks, faulty = _expected(spark, trace, interests, table["clients"], options, buckets)
    deliveries = read_splits(spark, trace, "deliveries").transform(delivered_chunks(buckets))
    found = chunks.unionByName(deliveries).transform(compared(buckets, options.window_s))
    found = found.persist(StorageLevel.DISK_ONLY)
    incidents = found.transform(filter_incidents).transform(
        with_loss_reason(table["runs"], table["drops"], sojourns, options.in_flight_s)
    )
    by_client = found.transform(counts_by(BY_CLIENT, "client"))
    return Audit(
        findings=found,
        incidents=incidents,
        summary=found.transform(
            run_summary(table["runs"], table["publications"], table["handoffs"], incidents)
        ),
        clients=by_client,
        brokers=found.transform(counts_by(BY_BROKER, "broker")).transform(with_losses_by_broker(incidents)),
        windows=found.transform(counts_by(BY_WINDOW, "window"))
        .withColumn("window_s", F.col("window").cast("double"))
        .drop("window"),
        unreadable=_unreadable(interests, table["publications"] if trace.has_policies else None, faulty),
        unknown=_unknown(by_client, interests, table["clients"]),
    )


def bucket_count(spark: SparkSession, trace: Trace) -> int:
    """Return into how many buckets clients go: enough for every core, each small enough for its memory."""
    by_size = 2 * trace.rows.get("deliveries", 0) // _BUCKET_ROWS
    return min(_BUCKETS_MAX, max(1, by_size, spark.sparkContext.defaultParallelism))


# -------------------------------------------------------------------------- parts of it


def _expected(
    spark: SparkSession,
    trace: Trace,
    interests: DataFrame,
    clients: DataFrame,
    options: AuditOptions,
    buckets: int,
) -> tuple[DataFrame, DataFrame | None]:
    """Return chunks of expected deliveries, and the filters that cannot be read, if any."""
    filters = trace.rows.get("interests", 0)
    if filters <= options.broadcast_filters_max:
        told = interests.toArrow()
        texts = pa.table({"filter": told.column("filter").unique()})
        cores = spark.sparkContext.defaultParallelism
        parsed = spark.createDataFrame(texts).repartition(cores).transform(with_parsed).toArrow()
        compiled = compile_interests(told, clients.toArrow(), filters_by_text(parsed))
        matched = expected_chunks(spark.sparkContext.broadcast(compiled), buckets)
        faulty = parsed.filter(pc.is_valid(parsed.column("error"))).select(["filter", "error"])
        chunks = read_splits(spark, trace, "publications").transform(matched)
        return chunks, spark.createDataFrame(faulty) if len(faulty) else None
    dealt = expected_chunks_by_part(
        interests,
        clients,
        parts=-(-filters // options.part_filters),
        slices=-(-trace.rows.get("publications", 1) // options.slice_events),
        buckets=buckets,
    )
    everything = interests.select("filter").distinct().transform(with_parsed)
    chunks = read_table(spark, trace, "publications").transform(dealt)
    return chunks, everything.dropna(subset="error").select("filter", "error")


def _unreadable(
    interests: DataFrame, publications: DataFrame | None, faulty: DataFrame | None
) -> DataFrame | None:
    found = []
    if faulty is not None:
        filters = interests.select("run_id", "filter").join(F.broadcast(faulty), "filter")
        found.append(filters.withColumn("what", F.lit("filter")))
    if publications is not None:
        policies = publications.select("run_id", F.col("policy").alias("filter")).dropna().distinct()
        texts = policies.select("filter").distinct().transform(with_parsed)
        wrong = texts.dropna(subset="error").select("filter", "error")
        found.append(policies.join(F.broadcast(wrong), "filter").withColumn("what", F.lit("policy")))
    return reduce(DataFrame.unionByName, found).distinct() if found else None


def _unknown(by_client: DataFrame, interests: DataFrame, clients: DataFrame) -> DataFrame:
    known = interests.select("run_id", "client").unionByName(clients.select("run_id", "client")).distinct()
    return by_client.select("run_id", "client", "deliveries").join(known, ["run_id", "client"], "left_anti")


def _add(
    report: AuditReport,
    spark: SparkSession,
    trace: Trace,
    options: AuditOptions,
    details: tuple[str, ...],
    progress: Progress,
) -> None:
    audit = build_audit(spark, trace, options, progress)
    try:
        progress("comparing deliveries", None)
        runs = sorted(_rows(audit.summary), key=lambda run: str(run["run_id"]))
        progress("summing up", None)
        more = {name: _rows(getattr(audit, name)) for name in details}
        # A client that nobody knows has no interest, so what it got is unauthorised.
        strangers = any(run["unauthorised"] for run in runs)
        unreadable = [] if audit.unreadable is None else _rows(audit.unreadable)
        problems = _said(runs, unreadable, _rows(audit.unknown) if strangers else [])
    finally:
        audit.close()
    report.runs += runs
    for name, rows in more.items():
        getattr(report, name).extend(rows)
    report.problems += problems


def _rows(frame: DataFrame) -> Rows:
    rows: Rows = frame.toArrow().to_pylist()
    return rows


def _said(runs: Rows, unreadable: Rows, unknown: Rows) -> list[Problem]:
    """Return the sentences for what was audited and yet looks wrong."""
    problems = []
    for run in runs:
        if run["error"]:
            problems.append(Problem(run["run_id"], f"the run itself failed: {run['error']}", refused=False))
        jumps, before = run["clock_jumps"], run["before_published"]
        if jumps or before:
            problems.append(
                Problem(
                    run["run_id"],
                    f"a clock jumped back: {jumps} publications are older than the one before them and "
                    f"{before} deliveries older than their publication; latencies leave those out.",
                    refused=False,
                )
            )
    for run_id, names in _by_run(unknown, "client").items():
        problems.append(
            Problem(
                run_id,
                f"deliveries name {_some(names, 'client')} that neither clients nor interests have; they "
                "count as unauthorised.",
                refused=False,
            )
        )
    problems += [
        Problem(
            row["run_id"],
            f"the {row['what']} {row['filter']!r} cannot be read and "
            f"{'matches nothing' if row['what'] == 'filter' else 'permits nobody'}: {row['error']}",
            refused=False,
        )
        for row in unreadable
    ]
    return sorted(problems, key=lambda problem: (problem.run_id, problem.sentence))


def _by_run(rows: Rows, column: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["run_id"], []).append(row[column])
    return found


def _some(names: list[str], what: str) -> str:
    shown = ", ".join(repr(name) for name in sorted(names)[:_NAMED_MAX])
    more = len(names) - _NAMED_MAX
    return f"the {what}{'s'[: len(names) > 1]} {shown}" + (f" and {more} more" if more > 0 else "")


def _reraise_ours(error: Exception) -> None:
    """A plan that Spark cannot analyse is our fault, not the data's."""
    if isinstance(error, AnalysisException):
        raise error


def _cannot(error: Exception) -> str:
    told = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"Spark cannot read it ({told[0][:160] if told else type(error).__name__}); restore its files."
