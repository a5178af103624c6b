"""Measures that Spark computes from the facts of runs are those that the runs compute themselves."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sojourn.pipeline import schemas
from sojourn.pipeline.measuring import Measuring, MeasuringError, measures
from sojourn.pipeline.views import views
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.scenario import scenario_from
from sojourn.studies.handoff import recording as roaming
from sojourn.studies.publisher_mobility import recording as publishers
from sojourn.studies.registry import STUDIES
from sojourn.studies.runner import RunSpec, run_grid
from sojourn.studies.spark_runner import Places, measuring_of, run_grid_on_spark, write_definitions

ROUNDING = 1e-12
"""How far apart, relatively, two sums of the same numbers in another order may be."""

RUNS_MAX = 12
"""Runs per study that are compared."""


def _named(where: str) -> Any:
    module, name = where.split(":")
    return getattr(import_module(module), name)


@cache
def _some_specs(study: str) -> tuple[RunSpec, ...]:
    """Of the smoke scale, the cheapest runs of kinds, of experiments and of all that lines stand for."""
    grid = import_module(f"sojourn.studies.{study.replace('-', '_')}.grid").grid
    specs: list[RunSpec] = grid(STUDIES[study].scale_named("smoke"), None)
    chosen: dict[tuple[str, str], RunSpec] = {}
    cheapest = sorted(specs, key=lambda spec: (spec.cost, spec.run_id))
    for spec in cheapest:
        chosen.setdefault(("kind", json.loads(spec.spec_json).get("kind", "")), spec)
    for spec in cheapest:
        for label in (("experiment", spec.experiment), ("series", spec.series), ("by", spec.computations)):
            chosen.setdefault(label, spec)
    return tuple(dict.fromkeys(chosen.values()))[:RUNS_MAX]


@pytest.mark.parametrize("study", STUDIES)
def test_measures_of_facts_are_those_of_the_runs(study: str, spark: SparkSession, tmp_path: Path) -> None:
    """At the smoke scale: what a run computes of itself, Spark computes from its facts."""
    about, specs = STUDIES[study], _some_specs(study)
    plain = run_grid(specs, about.simulate, workers=1)
    places = Places((tmp_path / "store").as_uri(), (tmp_path / "measures").as_uri())
    how = measuring_of(about.measuring)
    found = run_grid_on_spark(spark, specs, _named(about.record), how, places)
    assert [row["run_id"] for row in found.rows] == [row["run_id"] for row in plain]
    compared = 0
    for before, after in zip(plain, found.rows, strict=True):
        assert before["error"] is after["error"] is None
        for name in before.keys() - {"wall_s"}:
            told = (before["run_id"], name, before[name], after.get(name))
            assert _same(before[name], after.get(name)), told
            compared += name not in ("run_id", "seed", "error")
    assert compared >= len(specs) * 5


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return _same(json.loads(one), json.loads(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, str) or one is None or other is None:
        return bool(one == other)
    return math.isclose(one, other, rel_tol=ROUNDING) or (math.isnan(one) and math.isnan(other))


def test_definitions_give_the_measures_again(spark: SparkSession, tmp_path: Path) -> None:
    """The question that stands beside a measure, asked of a study's results, gives it again."""
    about, specs = STUDIES["publisher-mobility"], _some_specs("publisher-mobility")[:3]
    how = measuring_of(about.measuring)
    places = Places((tmp_path / "store").as_uri(), (tmp_path / "measures").as_uri())
    found = run_grid_on_spark(spark, specs, _named(about.record), how, places)
    pd.DataFrame(found.rows).to_parquet(tmp_path / "runs.parquet")
    write_definitions(how, tmp_path / "definitions.json")
    known = views(spark, str(tmp_path))
    for name, rows in known.items():
        rows.createOrReplaceTempView(name)
    for measure in ("rebuild_ms", "messages_per_min", "utilisation_mean", "worked_off_ratio"):
        (told,) = known["definitions"].where(known["definitions"]["measure"] == measure).collect()
        again = {row.run_id: row.value for row in spark.sql(told.query).collect()}
        assert again == {str(row["run_id"]): row[measure] for row in found.rows}
        assert len(again) == len({spec.run_id for spec in specs})


def test_a_failed_run_has_an_error_and_no_measures(spark: SparkSession, tmp_path: Path) -> None:
    """What fails records nothing: it has no measure, and the others have theirs."""
    about, specs = STUDIES["publisher-mobility"], list(_some_specs("publisher-mobility")[:2])
    specs[1] = msgspec.structs.replace(specs[1], spec_json="{}x", run_id="broken")
    places = Places((tmp_path / "store").as_uri(), (tmp_path / "measures").as_uri())
    found = run_grid_on_spark(spark, specs, _named(about.record), measuring_of(about.measuring), places)
    by_run = {row["run_id"]: row for row in found.rows}
    assert by_run["broken"]["error"] is not None
    assert "moves" not in by_run["broken"]
    assert by_run[specs[0].run_id]["error"] is None
    assert {row.run_id for row in found.measures.collect()} == {specs[0].run_id}


def test_a_sum_must_not_hide_a_column_of_runs(spark: SparkSession) -> None:
    """A sum with the name of a run's own column is refused by name."""
    runs = spark.createDataFrame([], schemas.TRACE["runs"])
    with pytest.raises(MeasuringError, match="seed"):
        measures(lambda _table: runs, Measuring({"windows": {"seed": "count(*)"}}, {}))


def test_windows_of_publishers_are_what_the_rows_of_a_trace_add_up_to() -> None:
    """Events of the measured time: published, delivered and doubled, counted in windows and row by row."""
    scenario = scenario_from(
        {"seed": 4, "publishers": 12, "subscribers": 60, "warmup_s": 10.0, "duration_s": 30.0,
         "protocol": "delayed", "publish_interval_s": 2.0}
    )  # fmt: skip
    tables = publishers.record_traced(msgspec.json.encode(scenario).decode()).tables
    windows = _windows(tables)
    sent = {
        (row["source"], row["sequence"])
        for row in tables["publications"].to_pylist()
        if 10.0 <= row["time_s"] < 40.0
    }
    got = [
        (row["client"], row["source"], row["sequence"])
        for row in tables["deliveries"].to_pylist()
        if (row["source"], row["sequence"]) in sent
    ]
    assert windows["published"] == len(sent) > 100
    assert windows["delivered"] == len(set(got)) > 100
    assert windows["duplicate"] == len(got) - len(set(got))
    moves = [row for row in tables["handoffs"].to_pylist() if 10.0 <= row["left_s"] < 40.0]
    assert sorted(row["cause"] for row in tables["rebuildings"].to_pylist()) == sorted(
        row["cause"] for row in moves
    )
    assert moves
    hops = {row["cause"]: 0 for row in moves}
    for row in tables["message_counts"].to_pylist():
        if row["cause"] in hops and row["kind"] not in ("publish", "release"):
            hops[row["cause"]] += row["hops"]
    kinds = ("advertise", "unadvertise", "subscribe", "unsubscribe", "prefetch")
    assert hops == {
        row["cause"]: sum(row[kind] for kind in kinds) for row in tables["rebuildings"].to_pylist()
    }


def test_windows_of_roaming_are_what_the_rows_of_a_trace_add_up_to() -> None:
    """What subscribers received, and their hand-offs, in windows and arrivals and row by row."""
    scenario = RoamingScenario(seed=3, subscribers=20, warmup_s=10.0, duration_s=30.0, connect_s=5.0)
    tables = roaming.record_traced(msgspec.json.encode(scenario).decode()).tables
    windows = _windows(tables)
    measured = range(10, 40)
    sent = [row for row in tables["publications"].to_pylist() if int(row["time_s"]) in measured]
    got = [row for row in tables["deliveries"].to_pylist() if int(row["time_s"]) in measured]
    assert windows["published"] == len(sent) > 100
    assert windows["received"] == windows["routed"] == len(got) > 100
    moves = [row for row in tables["handoffs"].to_pylist() if int(row["arrived_s"]) in measured]
    arrivals = [row for row in tables["arrivals"].to_pylist() if row["from_broker"] is not None]
    key = itemgetter("client", "from_broker", "to_broker", "left_s", "arrived_s", "cause")
    assert sorted(map(key, arrivals)) == sorted(map(key, moves))
    assert len(moves) > 10
    ready = {key(row): row["ready_s"] for row in moves}
    assert all(ready[key(row)] == row["ready_s"] for row in arrivals if row["ready_s"] is not None)


def _windows(tables: Mapping[str, pa.Table]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in tables["windows"].to_pylist():
        found[row["what"]] += row["times"]
    return found
