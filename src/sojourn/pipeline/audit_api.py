"""`sojourn.audit`: the audit of a trace as one call, for programs and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from sojourn.pipeline.audit_job import AuditReport, audit_trace
from sojourn.pipeline.audit_options import AuditOptions
from sojourn.pipeline.session import spark_session

Detail = Literal["clients", "brokers", "windows"]


def audit(
    trace: str | Path,
    *,
    by: Sequence[Detail] = (),
    window_s: float = AuditOptions.window_s,
    in_flight_s: float = AuditOptions.in_flight_s,
    incidents: str | Path | None = None,
    master: str | None = None,
    spark: SparkSession | None = None,
) -> AuditReport:
    """Compare what was delivered with what should have been, for every run in a directory of traces.

    `runs` of the report has a row for each run, with what was published, expected, delivered, lost,
    duplicated, out of order and unrecorded; with `by` there are such rows by client, broker or window of
    `window_s` seconds too. What was published in the last `in_flight_s` seconds of a run and not delivered
    was in flight, and is not lost. Every single incident is written as Parquet into the directory
    `incidents`, if one is named.

    It runs on the Spark session that is given, on the cluster `master`, or on this machine. That takes a
    while and blocks: in an asyncio program call it by `asyncio.to_thread`.
    """
    session = spark if spark is not None else spark_session(master)
    options = AuditOptions(window_s=window_s, in_flight_s=in_flight_s)
    return audit_trace(session, trace, options, details=tuple(by), incidents=incidents)
