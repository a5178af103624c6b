"""Holds every run of a trace to the three properties: read -> audit -> transform -> rows."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sojourn.pipeline.audit_findings import INCIDENT
from sojourn.pipeline.audit_job import TABLES, build_audit
from sojourn.pipeline.audit_options import AuditOptions
from sojourn.pipeline.properties import properties_by_client, properties_by_run
from sojourn.pipeline.tables import Problem, open_trace, read_table

Rows = list[dict[str, Any]]


def judge_trace(
    spark: SparkSession, root: str | Path, *, by_client: bool = False
) -> tuple[Rows, list[Problem]]:
    """One row per run (or client), ascending, and what could not be read."""
    trace = open_trace(root, TABLES)
    if not trace.runs:
        return [], list(trace.problems)
    audit = build_audit(spark, trace, AuditOptions(), (INCIDENT,))
    deliveries, publications = (read_table(spark, trace, name) for name in ("deliveries", "publications"))
    judged = audit.incidents.transform(properties_by_client(audit.known, deliveries, publications))
    found = judged if by_client else judged.transform(properties_by_run)
    rows: Rows = found.toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["run_id"], row.get("client", ""))), list(trace.problems)
