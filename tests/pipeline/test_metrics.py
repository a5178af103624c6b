"""Means and intervals are Student's, whoever computes them, and the same bits on any partitioning."""

import math
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from scipy import stats

from sojourn.pipeline import schemas
from sojourn.pipeline.metrics import TABLE_MAX, MetricsError, long_measures, student_quantile, with_intervals
from sojourn.studies.statistics import interval95

SCHEMA = "protocol string, seed long, measure string, value double"


def test_mean_and_interval_over_seeds(spark: SparkSession) -> None:
    """Five seeds give the textbook interval; nulls and not-a-numbers take no part; one seed has none."""
    draw = random.Random(4)
    values = [draw.gauss(10, 3) for _ in range(5)]
    rows: list[Any] = [("standard", seed, "cost", value) for seed, value in enumerate(values)]
    rows += [("standard", 9, "cost", None), ("standard", 10, "cost", math.nan), ("delayed", 1, "cost", 7.0)]
    found = {
        row.protocol: row
        for row in with_intervals(spark.createDataFrame(rows, SCHEMA), ["protocol"]).collect()
    }
    assert found["standard"].mean == pytest.approx(sum(values) / 5, rel=1e-15)
    assert found["standard"].interval == pytest.approx(interval95(values), rel=1e-12)
    assert found["standard"].runs == 5
    assert (found["delayed"].mean, found["delayed"].interval, found["delayed"].runs) == (7.0, None, 1)


def test_bits_do_not_depend_on_partitions(spark: SparkSession) -> None:
    """Values of very different sizes, whose sum depends on the order, give one answer."""
    draw = random.Random(5)
    rows = [("p", seed, "m", draw.uniform(-1, 1) * 10 ** draw.randint(-8, 8)) for seed in range(200)]
    answers: set[tuple[float, float]] = set()
    for partitions in (1, 3, 7):
        shuffled = rows[:]
        draw.shuffle(shuffled)
        frame = spark.createDataFrame(shuffled, SCHEMA).repartition(partitions)
        answers.update((row.mean, row.interval) for row in with_intervals(frame, ["protocol"]).collect())
    assert len(answers) == 1


def test_quantile_is_students_for_any_number_of_seeds(spark: SparkSession) -> None:
    """Looked up or expanded, it is SciPy's."""
    degrees = [1, 2, 4, TABLE_MAX, TABLE_MAX + 1, 500, 10_000]
    frame = spark.createDataFrame([(nu,) for nu in degrees], "nu int")
    found = [row[0] for row in frame.select(student_quantile(sf.col("nu"))).collect()]
    assert found == pytest.approx([stats.t.ppf(0.975, nu) for nu in degrees], rel=1e-9)


def test_results_become_one_row_a_measure(spark: SparkSession) -> None:
    """Failed runs are left out; a selection of measures is kept."""
    rows: list[Any] = [
        ("a", "k1", 1, "{}", "c", None, 0.1, {"cost": 2.0, "time": None}, {}),
        ("b", "k2", 2, "{}", "c", "ValueError: no", 0.1, {}, {}),
    ]
    long = long_measures(spark.createDataFrame(rows, schemas.RESULTS), ["cost"]).collect()
    assert [(row.run_id, row.seed, row.measure, row.value) for row in long] == [("a", 1, "cost", 2.0)]


def test_a_missing_column_is_named(spark: SparkSession) -> None:
    """The sentence says which."""
    with pytest.raises(MetricsError, match="speed"):
        with_intervals(spark.createDataFrame([], SCHEMA), ["speed"])
