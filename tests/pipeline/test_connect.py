"""By Spark Connect an audit, a plan and what is learnt are those of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.capacity import measure
from sojourn.pipeline.tables import open_trace
from sojourn.sim.recorder import Recorder
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.trace import write_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]  # three minutes alone

CLIENT = """
import json, sys
import msgspec
from sojourn.pipeline import audit_job
from sojourn.pipeline.audit_job import AuditOptions, audit_trace
from sojourn.pipeline.capacity import measure
from sojourn.pipeline.session import spark_session
from sojourn.pipeline.tables import open_trace

spark = spark_session()
folder = sys.argv[1]
found = [audit_trace(spark, folder, details=("brokers",))]
audit_job.CARRIED_FILTERS_MAX = 1  # too many to travel with tasks
found.append(audit_trace(spark, folder, AuditOptions(part_filters=7), details=("brokers",)))
measured = measure(spark, open_trace(folder))
print(json.dumps({
    "audits": [[one.runs, one.brokers, [p.sentence for p in one.problems]] for one in found],
    "plan": msgspec.to_builtins(measured),
}))
"""


def test_connect_gives_what_this_machine_gives(spark: SparkSession, tmp_path: Path) -> None:
    """Filters travel with the tasks, or are dealt into parts; there are no broadcasts there."""
    recorder = Recorder("roaming")
    changes = {"subscribers": 20, "warmup_s": 10.0, "duration_s": 60.0, "connect_s": 8.0, "sleep_s": 0.2}
    RoamingWorld(
        RoamingScenario(**changes, message_cost_ms=1.0),  # type: ignore[arg-type]  # whatever a case names
        recorder=recorder,
    ).run()
    write_run(tmp_path, "roaming", recorder.tables)
    here = audit_trace(spark, tmp_path, details=("brokers",))
    assert here.runs[0]["deliveries"] > 0
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(tmp_path)],
        # With SPARK_TESTING its server takes any port that is free, and not one that somebody may have.
        env={**os.environ, "SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected = json.loads(
        json.dumps([here.runs, here.brokers, [problem.sentence for problem in here.problems]])
    )
    assert found["audits"] == [expected, expected]
    assert found["plan"][0]["clients"] == measure(spark, open_trace(tmp_path))[0].clients == 20
