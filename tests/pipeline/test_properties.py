"""Ordered, consistent and complete over traces: the pipeline says what the predicates over lists say."""

from pathlib import Path

import msgspec
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from sojourn.edge.properties import violations
from sojourn.pipeline.properties import filter_late, properties_by_run
from sojourn.pipeline.properties_job import judge_trace
from sojourn.sim.edge.workload import Workload
from sojourn.studies.architectures.replicas import Replicated
from sojourn.studies.architectures.spec import Run
from sojourn.studies.architectures.traced import trace_of
from sojourn.studies.runner import run_id_of
from sojourn.trace import write_run


def _run(seed: int, brokers: int) -> Run:
    return Run(
        kind="replicas",
        seed=seed,
        brokers=brokers,
        sources=3,
        events=60,
        loss=0.2,
        workload=Workload(areas=2, width=700),
    )


def test_pipeline_and_predicates_agree(spark: SparkSession, tmp_path: Path) -> None:
    """Replicated runs with losses and late copies: every client, every property, the same answer."""
    expected = {}
    for seed, brokers in ((1, 2), (2, 3), (3, 1)):
        run = _run(seed, brokers)
        text = msgspec.json.encode(run, order="sorted").decode()
        run_id = run_id_of(text)
        tables = {
            name: {column: rows.column(column) for column in rows.column_names}
            for name, rows in trace_of(run, text).items()
        }
        write_run(tmp_path, run_id, tables)
        played = Replicated(run)
        for client, name in enumerate(played.filters):
            shown, matching = played.shown(client), played.matching(client)
            found = violations(shown, matching, played.received() & matching)
            expected[run_id, f"c{client} {name}"] = tuple(each is None for each in found.values())
    rows, problems = judge_trace(spark, tmp_path, by_client=True)
    answers = {
        (row["run_id"], row["client"]): (row["ordered"], row["consistent"], row["complete"]) for row in rows
    }
    assert answers == expected
    assert problems == []
    assert {row["not_consistent"] is None for row in rows} == {True, False}
    assert any("comes after" in str(row["not_ordered"]) for row in rows)
    frame = spark.createDataFrame([Row(**row) for row in rows])
    by_run = [row.asDict() for row in frame.transform(properties_by_run).collect()]
    assert len(by_run) == 3
    for row in by_run:
        own = [answer for (run_id, _), answer in answers.items() if run_id == row["run_id"]]
        assert row["clients"] == len(own) == 9
        assert (row["ordered"], row["consistent"], row["complete"]) == tuple(map(all, zip(*own, strict=True)))


def test_late_is_after_a_newer_one_of_the_same_source(spark: SparkSession) -> None:
    """Duplicates in order and events of one instant are not late; other clients and sources do not matter."""
    rows = [
        ("r", "c", "s", 1, 1.0), ("r", "c", "s", 3, 2.0), ("r", "c", "s", 2, 3.0), ("r", "c", "s", 3, 4.0),
        ("r", "c", "t", 2, 1.0), ("r", "c", "t", 1, 1.0), ("r", "d", "s", 1, 5.0), ("r", "c", "u", 1, 1.0),
        ("r", "c", "u", 1, 2.0),
    ]  # fmt: skip
    frame = spark.createDataFrame(
        rows, "run_id string, client string, source string, sequence long, time_s double"
    )
    late = frame.transform(filter_late).select("client", "source", "sequence", sf.col("newer")).collect()
    assert [tuple(row) for row in late] == [("c", "s", 2, 3)]
