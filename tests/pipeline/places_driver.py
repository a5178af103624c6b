"""What Spark finds in two traces, as JSON: run with their addresses, in a process that has the keys."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.capacity import measure
from sojourn.pipeline.learning import learn
from sojourn.pipeline.session import spark_session
from sojourn.pipeline.tables import open_trace, read_table


def judged(spark: SparkSession, audited: str, measured: str) -> dict[str, Any]:
    """The audit of one trace; the plan, the graph and the rows of another."""
    report, trace = audit_trace(spark, audited), open_trace(measured)
    return {
        "audit": report.runs,
        "problems": [problem.sentence for problem in report.problems],
        "learnt": msgspec.to_builtins(learn(spark, trace)),
        "measured": msgspec.to_builtins(measure(spark, trace)[0]),
        "rows": {
            table: sorted(map(str, read_table(spark, trace, table).collect()))
            for table in ("runs", "sojourns")
        },
    }


if __name__ == "__main__":
    print(json.dumps(judged(spark_session("local[2]", memory_gib=1.0), *sys.argv[1:])))
