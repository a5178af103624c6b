"""A driver for the cluster's tests, run as a process of its own: one sweep or audit, its rows as JSON lines.

Usage: cluster_driver.py MASTER STORE toy LOG | cluster_driver.py MASTER STORE study |
       cluster_driver.py MASTER TRACE audit
"""

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sojourn.pipeline import schemas
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.metrics import long_measures, with_intervals
from sojourn.pipeline.session import spark_session
from sojourn.pipeline.sweep import Measures, RunFunction, sweep
from sojourn.studies.publisher_mobility.grid import grid
from sojourn.studies.publisher_mobility.measures import simulate
from sojourn.studies.publisher_mobility.parameters import SCALES

TOY_RUNS = 12
TOY_RUN_S = 1.0


def toy(spec: str, *, log: str) -> Measures:
    """A run that takes its time and notes when it starts, and in which executor."""
    seed = json.loads(spec)["seed"]
    daemon = os.getppid()  # the executor is the parent of the process that forks Python workers
    executor = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1]
    with Path(log).open("a") as file:
        file.write(f"{seed} {executor}\n")
    time.sleep(TOY_RUN_S)
    return {"root": seed**0.5}


def toy_specs() -> list[tuple[Any, ...]]:
    """A dozen runs of equal cost."""
    return [(f"run-{seed:02d}", seed, 1.0, json.dumps({"seed": seed})) for seed in range(TOY_RUNS)]


def study_specs() -> list[tuple[Any, ...]]:
    """Some runs of the publisher-mobility study: every protocol at its smallest size."""
    chosen = [
        spec for spec in grid(SCALES["smoke"], seeds=2) if spec.experiment == "publishers" and spec.x == 10
    ]
    return [
        (spec.run_id, spec.seed, spec.cost, spec.spec_json) for spec in chosen if spec.computations == "fast"
    ]


def main(master: str, store: str, what: str, log: str = "") -> None:
    """Sweep, and print every row and every mean without what depends on the clock."""
    if what == "audit":
        spark = spark_session(master, memory_gib=1.0, settings={"spark.sql.shuffle.partitions": "3"})
        for audited in audit_trace(spark, url2pathname(urlsplit(store).path)).runs:
            print(json.dumps(audited, sort_keys=True))
        spark.stop()
        return
    run: RunFunction = partial(toy, log=log) if what == "toy" else simulate
    spark = spark_session(master, memory_gib=1.0, settings={"spark.sql.shuffle.partitions": "3"})
    specs = spark.createDataFrame(toy_specs() if what == "toy" else study_specs(), schemas.GRID)
    results = sweep(spark, specs, run, store)
    for row in results.select("run_id", "seed", "error", "numbers").collect():
        print(json.dumps(row.asDict(), sort_keys=True))
    for row in with_intervals(long_measures(results), []).orderBy("measure").collect():
        print(json.dumps(row.asDict(), sort_keys=True))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
