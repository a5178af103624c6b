"""Every number of every claim is given by its query, or its claim says that no table gives it."""

import math
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline.views import views
from sojourn.studies.claims import Number, read_verdicts
from sojourn.studies.registry import STUDIES
from sojourn.studies.runner import run_grid

AT_ONCE = 40
"""Queries that are asked in one."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("study", STUDIES)
def test_every_number_is_given_by_its_query(study: str, spark: SparkSession, tmp_path: Path) -> None:
    """At the smoke scale with two seeds, so that there are intervals."""
    about = STUDIES[study]
    scale = about.scale_named("smoke")
    outcome = about.run(scale, 2, lambda specs: run_grid(specs, about.simulate, workers=2), None)
    assert outcome.failed == 0
    about.write_results(outcome, tmp_path, study)
    for name, frame in views(spark, str(tmp_path)).items():
        frame.createOrReplaceTempView(name)
    asked = 0
    for verdict in read_verdicts(tmp_path / "claims.json"):
        lacking = [
            name
            for name, value in verdict.measured.items()
            if not isinstance(value, str | bool)
            and name not in verdict.queries.keys() | verdict.unmeasured.keys()
        ]
        assert not lacking, (verdict.id, lacking)
        names = list(verdict.queries)
        for at in range(0, len(names), AT_ONCE):
            some = names[at : at + AT_ONCE]
            columns = ", ".join(f"({verdict.queries[name]}) AS c{n}" for n, name in enumerate(some))
            (row,) = spark.sql(f"SELECT {columns}").collect()
            for name, answer in zip(some, row, strict=True):
                assert _same(verdict.measured[name], answer), (verdict.id, name, answer)
        asked += len(names)
    assert asked > 50


def _same(told: Number, answer: float | None) -> bool:
    """A record has four digits, and words where there is no number."""
    if told == "infinite":
        return answer == math.inf
    if isinstance(told, str) and not told.isdigit():
        return answer is None or math.isnan(answer)
    return answer is not None and answer == pytest.approx(float(str(told)), rel=1e-3, abs=1e-9)
