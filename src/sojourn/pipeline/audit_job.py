"""The audit as a job: read -> validate -> transform -> named columns, for all runs that can be read.

`audit_trace` never gives up half-way. A run with files that cannot be trusted is refused before Spark sees it
(`tables.py`). Should Spark still fail on the runs together, because a page inside a file is damaged, each run
is audited by itself, and the one that fails is refused with a sentence. What can be audited but looks wrong
(an unknown client, a clock that jumped, a filter that cannot be read) is audited and said.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships no types
from pyspark import StorageLevel
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  Spark's documentation calls it so
from pyspark.sql.utils import is_remote

from sojourn.pipeline.audit import (
    COSTS,
    chunks,
    compared,
    compiled_indexes,
    counted,
    expected_chunks_by_part,
    filter_faulty,
    filter_incidents,
    handoff_times,
    outcomes,
    told_last,
)
from sojourn.pipeline.audit_chunks import Hot
from sojourn.pipeline.audit_findings import (
    BY_BROKER,
    BY_CLIENT,
    BY_RUN,
    BY_WINDOW,
    INCIDENT,
    STRANGER,
    UNREADABLE_FILTER,
    faulty_filters,
)
from sojourn.pipeline.audit_interests import (
    INTEREST,
    IndexPlan,
    RunInterests,
    compile_texts,
    index_plan,
    run_interests,
    told_once,
)
from sojourn.pipeline.audit_losses import RunEnds
from sojourn.pipeline.audit_options import AuditOptions
from sojourn.pipeline.audit_sentences import cannot, said, unreadable_clients
from sojourn.pipeline.audit_sizes import sizes_of, some_interests
from sojourn.pipeline.audit_sums import COUNTS, PERCENTILES
from sojourn.pipeline.audit_sums import handoff_times as handoff_times_here
from sojourn.pipeline.progress import watch_tasks
from sojourn.pipeline.schemas import COUNTED, FAULTY_FILTERS, INDEX_TEXTS
from sojourn.pipeline.session import parallelism, shared
from sojourn.pipeline.tables import Problem, Trace, open_trace, read_splits, read_table, small_table
from sojourn.trace.lives import Missing, missing_of, said_of

if TYPE_CHECKING:
    from sojourn.interest.index import FilterIndex

TABLES = ("runs", "publications", "interests", "clients", "sojourns", "handoffs", "deliveries", "drops")
DETAILS = {"clients": BY_CLIENT, "brokers": BY_BROKER, "windows": BY_WINDOW}
"""What counts may be given by, besides by run, and the scope in which they're found."""

Rows = list[dict[str, Any]]
Progress = Callable[[str, float | None], None]
"""Is told what is being done, and which share of it is."""

JOB_FAILURES = (PySparkException, Py4JJavaError)
"""How a job that fails while it runs comes to us."""

_CLIENT = ("run_id", "client", "attributes_json")
_FEW_FILTERS = 500
"""So few are read sooner than a job is started."""
CARRIED_FILTERS_MAX = 10_000
"""By Spark Connect nothing is broadcast: so many filters travel with each task, more are dealt into parts."""
_HANDOFF = ("run_id", "client", "left_s", "arrived_s", "ready_s")
_FEW_HANDOFFS = 200_000
"""So few are summed up sooner than a job is started."""
AMPLE = 1 << 62
_NOT_TOLD = ("scope", "key", "unreadable")
_LIVE_ONLY = ("late_", "handoff")
"""What the findings of a batch never hold: late is nothing here, and hand-offs are counted exactly."""


HANDOFF_TIMES = ("away", "ready", "wait")
"""From leaving to arriving, from leaving to having everything, from arriving to having everything."""


@dataclass(slots=True)
class Audit:
    """DataFrames of an audit in the making."""

    findings: DataFrame
    counts: DataFrame
    """The findings summed up, of all scopes that were asked for."""
    incidents: DataFrame
    """Every loss, duplicate, disorder and leak; empty if they were not asked for."""
    handoffs: DataFrame
    unreadable: DataFrame | None
    """Filters and policies that cannot be read: run_id, filter, error, what; None when all can."""
    interests: DataFrame
    known: DataFrame
    """The clients that interests or clients name: run_id, client."""
    tasks: int
    """How many tasks `counts` takes, about."""


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
    incidents: str | Path | None = None,
    progress: Progress = lambda _what, _share: None,
) -> AuditReport:
    """Audit every run of a trace.

    `details` may name clients, brokers and windows. Every single incident is written as Parquet into the
    directory `incidents`, if it is named.
    """
    job = _Job(
        spark, options or AuditOptions(), details, None if incidents is None else Path(incidents), progress
    )
    trace = open_trace(root, TABLES, lambda done, of: progress("looking at files", done / of))
    report = AuditReport(problems=list(trace.problems))
    if not trace.runs:
        return report
    try:
        job.add(report, trace)
    except JOB_FAILURES as failure:
        _reraise_ours(failure)
        for run_id in trace.runs:
            progress(f"auditing {run_id} by itself", None)
            try:
                job.add(report, trace.only([run_id]))
            except JOB_FAILURES as error:
                report.problems.append(Problem(run_id, cannot(error), refused=True))
    return report


def build_audit(
    spark: SparkSession, trace: Trace, options: AuditOptions, scopes: tuple[str, ...] = (BY_RUN, STRANGER)
) -> Audit:
    """Set up an audit of some scopes; nothing but the interests is read yet."""
    table = {name: read_table(spark, trace, name) for name in ("interests", "clients", "handoffs")}
    packed = _packed(spark, trace, options, table["interests"], table["clients"])
    found = packed.rows.transform(compared(packed.buckets, options.window_s, scopes, packed.ends))
    names = [table[name].select("run_id", "client") for name in ("interests", "clients")]
    return Audit(
        findings=found,
        counts=found.transform(counted),
        incidents=found.transform(filter_incidents),
        handoffs=table["handoffs"].transform(handoff_times),
        unreadable=_unreadable(spark, trace, table["interests"], packed.faulty),
        interests=table["interests"],
        known=names[0].unionByName(names[1]).distinct(),
        tasks=packed.tasks + packed.buckets,
    )


def build_outcomes(spark: SparkSession, trace: Trace, options: AuditOptions | None = None) -> DataFrame:
    """Return what became of every event for every client, as rows (`derived_rows.Outcome`)."""
    interests, clients = (read_table(spark, trace, name) for name in ("interests", "clients"))
    packed = _packed(spark, trace, options or AuditOptions(), interests, clients)
    return packed.rows.transform(outcomes(packed.buckets, packed.ends))


class _Packed(NamedTuple):
    """What is to be compared."""

    rows: DataFrame
    """CHUNKS."""
    buckets: int
    ends: RunEnds
    faulty: dict[str, str]
    """Filters that are known already to be unreadable, and why."""
    tasks: int


def _packed(
    spark: SparkSession, trace: Trace, options: AuditOptions, told: DataFrame, clients: DataFrame
) -> _Packed:
    """Pack what was expected and what was delivered by bucket, in as many as that takes."""
    ends = _ends(trace, options)
    splits, task_count = read_splits(spark, trace, COSTS)
    most = min(options.broadcast_filters_max, CARRIED_FILTERS_MAX if is_remote() else AMPLE)
    if trace.rows.get("interests", 0) <= most:
        compiled, faulty = _compiled(spark, trace)
        wrong = faulty
        sizes = sizes_of(trace, compiled, ends.duration_s)
        buckets = sizes.buckets(parallelism(spark))
        packed_rows = splits.transform(chunks(shared(spark, compiled), buckets, sizes.hot, ends.missing))
    else:
        interests = told.transform(told_last)
        some, scale = some_interests(small_table(trace, "interests", INTEREST))
        sizes = sizes_of(trace, some, ends.duration_s, scale)
        buckets = sizes.buckets(parallelism(spark))
        dealt = _dealt(spark, trace, interests, clients, options, buckets, sizes.hot)
        packed_rows = splits.transform(chunks(None, buckets, sizes.hot, ends.missing)).unionByName(dealt)
        wrong = {}  # told by those who compile the parts
    return _Packed(packed_rows, buckets, ends, wrong, task_count)


# -------------------------------------------------------------------------- parts of it


def _compiled(spark: SparkSession, trace: Trace) -> tuple[dict[str, RunInterests], dict[str, str]]:
    """Return the interests compiled by run, and the filters that cannot be read."""
    interests = told_once(small_table(trace, "interests", INTEREST))
    plan = index_plan(interests, parallelism(spark))
    if len(interests) <= _FEW_FILTERS:
        made = [compile_texts(first, texts) for first, texts in zip(plan.first, plan.texts, strict=True)]
    else:
        made = _made_by_tasks(spark, plan)
    faulty = {text: error for _, wrong in made for text, error in wrong.items()}
    clients = small_table(trace, "clients", _CLIENT) if trace.has_policies else _NO_CLIENTS
    compiled = run_interests(plan, [index for index, _ in made], clients)
    return compiled, faulty


_NO_CLIENTS = pa.table({name: pa.array([], pa.string()) for name in _CLIENT})


def _made_by_tasks(spark: SparkSession, plan: IndexPlan) -> list[tuple[FilterIndex, dict[str, str]]]:
    """Let tasks read the filters: it is most of an audit's preparation, and all Python's."""
    cores = parallelism(spark)
    columns = {
        "place": pa.array(range(len(plan.first)), pa.int32()),
        "first": pa.array(plan.first, pa.int64()),
        "texts": pa.array(plan.texts, pa.list_(pa.string())),
    }
    parts = spark.createDataFrame(pa.table(columns), INDEX_TEXTS)
    tasks = min(cores, len(plan.first))
    rows = parts.repartitionById(tasks, F.pmod("place", F.lit(tasks))).transform(compiled_indexes)
    made = sorted(rows.toArrow().to_pylist(), key=lambda row: int(row["place"]))
    return [
        (
            pickle.loads(row["index"]),  # noqa: S301  made by `compiled_indexes` in this very job
            {fault["filter"]: fault["error"] for fault in row["faulty"]},
        )
        for row in made
    ]


def _dealt(
    spark: SparkSession,
    trace: Trace,
    interests: DataFrame,
    clients: DataFrame,
    options: AuditOptions,
    buckets: int,
    hot: Hot,
) -> DataFrame:
    """Return chunks of expected deliveries by filters too many to send to everyone."""
    dealt = expected_chunks_by_part(
        interests,
        clients,
        parts=-(-trace.rows.get("interests", 0) // options.part_filters),
        slices=-(-trace.rows.get("publications", 1) // options.slice_events),
        buckets=buckets,
        hot=hot,
    )
    return read_table(spark, trace, "publications").transform(dealt)


def _ends(trace: Trace, options: AuditOptions) -> RunEnds:
    durations = run_durations(trace)
    return RunEnds(durations, options.in_flight_s, missing_rows(trace, durations))


def run_durations(trace: Trace) -> dict[str, float]:
    """Return by run how long it was, of those that have ended."""
    runs = small_table(trace, "runs", ("run_id", "duration_s")).drop_null()
    longest: dict[str, float] = {}
    for row in runs.to_pylist():
        longest[row["run_id"]] = max(row["duration_s"], longest.get(row["run_id"], 0.0))
    return longest


def missing_rows(trace: Trace, durations: Mapping[str, float]) -> dict[str, tuple[Missing, ...]]:
    """Return by run when rows of which brokers are missing, of those where any are."""
    found = {run_id: missing_of(lives, durations.get(run_id)) for run_id, lives in trace.lives.items()}
    return {run_id: missing for run_id, missing in found.items() if missing}


def told_missing(trace: Trace) -> list[Problem]:
    """Return a sentence for each broker that ended without sealing what it had noted."""
    durations = run_durations(trace)
    return [
        Problem(run_id, sentence, refused=False)
        for run_id, missing in missing_rows(trace, durations).items()
        for sentence in said_of(missing, durations.get(run_id))
    ]


def _unreadable(
    spark: SparkSession, trace: Trace, interests: DataFrame, faulty: dict[str, str]
) -> DataFrame | None:
    found = [_wanting(spark, interests, faulty)] if faulty else []
    if trace.has_policies:
        publications = read_table(spark, trace, "publications")
        policies = publications.select("run_id", F.col("policy").alias("filter")).dropna().distinct()
        wrong = policies.select("filter").distinct().transform(filter_faulty)
        found.append(policies.join(F.broadcast(wrong), "filter").withColumn("what", F.lit("policy")))
    return reduce(DataFrame.unionByName, found).distinct() if found else None


def _wanting(spark: SparkSession, interests: DataFrame, faulty: dict[str, str]) -> DataFrame:
    """Return which runs have filters that cannot be read."""
    wrong = F.broadcast(spark.createDataFrame(list(faulty.items()), FAULTY_FILTERS))
    filters = interests.select("run_id", "filter").distinct().join(wrong, "filter")
    return filters.withColumn("what", F.lit("filter"))


@dataclass(frozen=True, slots=True)
class _Job:
    """An audit as asked for."""

    spark: SparkSession
    options: AuditOptions
    details: tuple[str, ...]
    incidents: Path | None
    progress: Progress

    def add(self, report: AuditReport, trace: Trace) -> None:
        """Audit a trace and add what was found to a report; nothing of it if it fails."""
        self.progress("reading filters", None)
        scopes = (BY_RUN, STRANGER, *(DETAILS[name] for name in self.details))
        audit = build_audit(
            self.spark, trace, self.options, scopes if self.incidents is None else (*scopes, INCIDENT)
        )
        if self.incidents is not None:
            audit.findings.persist(StorageLevel.DISK_ONLY)
        try:
            self._collect(report, trace, audit)
        finally:
            audit.findings.unpersist()

    def _collect(self, report: AuditReport, trace: Trace, audit: Audit) -> None:
        with watch_tasks(self.spark, audit.tasks, lambda share: self.progress("comparing deliveries", share)):
            counts = audit.counts.toArrow()
        self.progress("summing up", None)
        if self.incidents is not None:
            audit.incidents.write.mode("append").parquet(str(self.incidents))
        runs = _summary(trace, _of_scope(counts, BY_RUN), _handoffs(trace, audit))
        unreadable = [] if audit.unreadable is None else _rows(audit.unreadable)
        dealt = faulty_filters(row["key"] for row in _of_scope(counts, UNREADABLE_FILTER))
        unreadable += _rows(_wanting(self.spark, audit.interests, dealt)) if dealt else []
        problems = said(
            runs,
            {row["run_id"]: row["unreadable"] for row in _of_scope(counts, BY_RUN)},
            unreadable,
            self._unknown(counts, audit.known),
        )
        problems += unreadable_clients(trace) if trace.has_policies else []
        problems += told_missing(trace)
        report.runs += runs
        for name in self.details:
            getattr(report, name).extend(_in_order(_of_scope(counts, DETAILS[name]), name.removesuffix("s")))
        report.problems += sorted(problems, key=lambda problem: (problem.run_id, problem.sentence))

    def _unknown(self, counts: pa.Table, known: DataFrame) -> Rows:
        """Return the clients that got something and that no other table knows."""
        # A client that nobody knows has no interest, so what it got is unauthorised.
        strangers = _of_scope(counts, STRANGER)
        if not strangers:
            return []
        names = [(row["run_id"], row["key"]) for row in strangers]
        return _rows(
            self.spark.createDataFrame(names, "run_id string, client string").join(
                known, ["run_id", "client"], "left_anti"
            )
        )


def _handoffs(trace: Trace, audit: Audit) -> Rows:
    """Return the times of hand-offs by run."""
    if trace.rows.get("handoffs", 0) > _FEW_HANDOFFS:
        return _rows(audit.handoffs)
    return handoff_times_here(small_table(trace, "handoffs", _HANDOFF))


def _of_scope(counts: pa.Table, scope: str) -> Rows:
    rows: Rows = counts.filter(pc.equal(counts.column("scope"), scope)).to_pylist()
    return rows


def _in_order(rows: Rows, key: str) -> Rows:
    """Return rows of counts by run and by what they are counted by, whichever task was done first."""
    named = [_named(row, key) for row in rows]
    column = "window_s" if key == "window" else key
    return sorted(named, key=lambda row: (row["run_id"], row[column] is not None, row[column]))


def _named(row: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a row of counts under the name of what it is counted by."""
    left_out = (*_NOT_TOLD, "published", "clock_jumps")
    told = {n: value for n, value in row.items() if n not in left_out and not n.startswith(_LIVE_ONLY)}
    name, value = ("window_s", float(row["key"])) if key == "window" else (key, row["key"])
    return {"run_id": told.pop("run_id"), name: value, **told}


def _summary(trace: Trace, counts: Rows, handoffs: Rows) -> Rows:
    """Return one row a run, in the order of their names: what was told of it, counts, and times."""
    runs: dict[str, dict[str, Any]] = {}
    for told in small_table(trace, "runs", ("run_id", "world", "duration_s", "error")).to_pylist():
        row = runs.setdefault(told["run_id"], dict.fromkeys(told))
        row |= {name: value for name, value in told.items() if value is not None}
    found = {row["run_id"]: row for row in counts}
    moved = {row["run_id"]: row for row in handoffs}
    return [
        {
            "run_id": run_id,
            **{name: runs.get(run_id, {}).get(name) for name in ("world", "duration_s", "error")},
            **{name: found.get(run_id, {}).get(name, missing) for name, missing in _COUNT_OR_NONE.items()},
            "handoffs": moved.get(run_id, {}).get("handoffs", 0),
            **{
                name: moved.get(run_id, {}).get(name)
                for name in (f"handoff_{what}_{part}_s" for what in HANDOFF_TIMES for part in PERCENTILES)
            },
        }
        for run_id in sorted({*runs, *found, *moved})
    ]


_COUNT_OR_NONE: dict[str, int | None] = {
    name: 0 if name in COUNTS else None
    for name in COUNTED.names
    if name not in ("run_id", *_NOT_TOLD) and not name.startswith(_LIVE_ONLY)
}


def _rows(frame: DataFrame) -> Rows:
    rows: Rows = frame.toArrow().to_pylist()
    return rows


def _reraise_ours(error: Exception) -> None:
    """A plan that Spark cannot analyse is our fault, not the data's."""
    if isinstance(error, AnalysisException):
        raise error
