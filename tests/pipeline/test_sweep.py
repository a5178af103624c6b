"""A sweep does every run once, whatever fails, and gives the same rows wherever it runs."""

import json
import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from sojourn.pipeline import schemas
from sojourn.pipeline.progress import Progress
from sojourn.pipeline.sweep import (
    ERROR_CHARS_MAX,
    Measures,
    Outcome,
    SweepError,
    _with_imports,
    code_version,
    read_store,
    recorded_rows,
    run_one,
    sweep,
    with_key,
    with_rank,
    write_traces,
)
from sojourn.pipeline.tables import open_trace
from sojourn.studies.publisher_mobility import measures


def simulate(spec: str, *, log: str = "") -> Measures:
    """A toy run: the specification says what it returns or raises."""
    wish = json.loads(spec)
    if log:
        with Path(log).open("a") as file:
            file.write(f"{wish['seed']}\n")
    if wish.get("fails"):
        raise ValueError(f"seed {wish['seed']} was told to fail")
    return {"third": wish["seed"] / 3, "count": wish["seed"], "nothing": None, "note": f"run {wish['seed']}"}


def crash(spec: str) -> Measures:
    """A toy run that takes its process with it."""
    if json.loads(spec)["seed"] == 2:
        os._exit(7)
    return simulate(spec)


def simulate_traced(spec: str) -> Outcome:
    """A toy run with two deliveries."""
    seed = json.loads(spec)["seed"]
    run_id = f"run-{seed}"
    rows = [
        {
            "run_id": run_id,
            "client": "c",
            "source": "p",
            "sequence": at,
            "time_s": seed + at / 10,
            "broker": "b",
        }
        for at in range(2)
    ]
    return Outcome({"deliveries": 2}, {"deliveries": pa.Table.from_pylist(rows)})


def record_some(spec: str) -> Outcome:
    """A toy run that records what it was, and deliveries of odd seeds alone."""
    seed = json.loads(spec)["seed"]
    about: dict[str, object] = dict.fromkeys(schemas.TRACE["runs"].fieldNames())
    runs = pa.Table.from_pylist([about | {"run_id": f"run-{seed}", "seed": seed}])
    return Outcome({}, {"runs": runs, **(simulate_traced(spec).tables if seed % 2 else {})})


def grid_of(spark: SparkSession, seeds: range, **wishes: bool) -> DataFrame:
    """A grid with one run a seed; the wishes hold for seed 3 only."""
    rows = [
        (f"run-{seed}", seed, float(seed % 4), json.dumps({"seed": seed, **(wishes if seed == 3 else {})}))
        for seed in seeds
    ]
    return spark.createDataFrame(rows, schemas.GRID)


def test_every_run_is_a_row_with_its_measures(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers come back bit for bit, ordered by run."""
    rows = sweep(spark, grid_of(spark, range(1, 6)), simulate, str(tmp_path / "store")).collect()
    assert [row.run_id for row in rows] == [f"run-{seed}" for seed in range(1, 6)]
    assert [row.numbers["third"] for row in rows] == [seed / 3 for seed in range(1, 6)]
    assert rows[0].numbers["nothing"] is None
    assert rows[1].texts == {"note": "run 2"}
    assert all(row.error is None and row.wall_s >= 0 for row in rows)


def test_a_second_sweep_runs_only_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    """What the store holds is not simulated again; what the grid gained is."""
    log, store = tmp_path / "log", str(tmp_path / "store")
    run = partial(simulate, log=str(log))
    first = sweep(spark, grid_of(spark, range(1, 4)), run, store).collect()
    assert sorted(log.read_text().split()) == ["1", "2", "3"]
    again = sweep(spark, grid_of(spark, range(1, 6)), run, store).collect()
    assert sorted(log.read_text().split()) == ["1", "2", "3", "4", "5"]
    assert again[:3] == first
    sweep(spark, grid_of(spark, range(1, 6)), run, store).collect()
    assert len(log.read_text().split()) == 5


def test_a_failing_run_is_a_row_and_is_tried_again_later(spark: SparkSession, tmp_path: Path) -> None:
    """The others finish; its row has its seed and its error; the next sweep runs it alone."""
    log, store = tmp_path / "log", str(tmp_path / "store")
    run = partial(simulate, log=str(log))
    grid = grid_of(spark, range(1, 5), fails=True)
    for sweeps in (1, 2):
        rows = sweep(spark, grid, run, store).collect()
        failed = [row for row in rows if row.error is not None]
        assert [(row.run_id, row.seed) for row in failed] == [("run-3", 3)]
        assert failed[0].error == "ValueError: seed 3 was told to fail"
        assert len(rows) == 4
        assert len(log.read_text().split()) == 3 + sweeps


def test_a_run_that_ends_its_process_becomes_a_row(spark: SparkSession, tmp_path: Path) -> None:
    """Spark tries it again a few times, then the sweep says so and goes on."""
    rows = sweep(spark, grid_of(spark, range(1, 5)), crash, str(tmp_path / "store")).collect()
    assert [row.error is None for row in rows] == [True, False, True, True]
    assert rows[1].error.startswith("Crash: ")
    assert "seed 2" in rows[1].error


def test_half_written_results_are_not_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A truncated file and an unfinished one stand for no run: theirs are simulated again."""
    log, store = tmp_path / "log", tmp_path / "store"
    run = partial(simulate, log=str(log))
    grid = grid_of(spark, range(1, 4))
    before = sweep(spark, grid, run, str(store)).select("run_id", "numbers").collect()
    files = sorted(store.rglob("*.parquet"))
    assert len(files) == 3
    files[0].write_bytes(files[0].read_bytes()[:100])
    files[0].with_name(f".{files[0].name}.crc").unlink()
    unfinished = files[1].parent / "_temporary" / "0" / files[1].name
    unfinished.parent.mkdir(parents=True)
    files[1].rename(unfinished)
    assert sweep(spark, grid, run, str(store)).select("run_id", "numbers").collect() == before
    assert len(log.read_text().split()) == 5


def test_one_row_a_task_and_the_dearest_first(spark: SparkSession, tmp_path: Path) -> None:
    """Ranks fall with the cost, and every run has a file of its own."""
    ranked = with_rank(with_key(grid_of(spark, range(1, 9)), "code")).orderBy("rank").collect()
    assert [row.cost for row in ranked] == sorted((float(seed % 4) for seed in range(1, 9)), reverse=True)
    assert [row.rank for row in ranked] == list(range(8))
    results = sweep(spark, grid_of(spark, range(1, 9)), simulate, str(tmp_path / "store"))
    assert results.select("file").distinct().count() == 8


def test_the_trace_of_a_run_comes_back_as_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of a trace are in the columns of their table, and only those of the wanted runs."""
    store = str(tmp_path / "store")
    results = sweep(spark, grid_of(spark, range(1, 4)), simulate_traced, store, tables=schemas.TRACE)
    chosen = results.where(sf.col("run_id") != "run-2")
    rows = recorded_rows(read_store(spark, store), chosen, "deliveries").orderBy("run_id", "sequence")
    assert rows.columns == schemas.TRACE["deliveries"].fieldNames()
    assert [(row.run_id, row.sequence, row.time_s) for row in rows.collect()] == [
        ("run-1", 0, 1.0),
        ("run-1", 1, 1.1),
        ("run-3", 0, 3.0),
        ("run-3", 1, 3.1),
    ]
    write_traces(spark, store, chosen, str(tmp_path / "trace"))
    assert open_trace(tmp_path / "trace").runs == ["run-1", "run-3"]


def test_a_run_that_recorded_facts_alone_has_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    """What a run is stands beside its facts too, and makes no run of a trace by itself."""
    store = str(tmp_path / "store")
    results = sweep(spark, grid_of(spark, range(1, 4)), record_some, store, tables=schemas.TRACE)
    write_traces(spark, store, results, str(tmp_path / "trace"))
    assert open_trace(tmp_path / "trace").runs == ["run-1", "run-3"]


def test_progress_ends_with_everything_counted(spark: SparkSession, tmp_path: Path) -> None:
    """The last word names all runs, the failed ones, and nothing running."""
    heard: list[Progress] = []
    grid = grid_of(spark, range(1, 5), fails=True)
    sweep(spark, grid, simulate, str(tmp_path / "store"), listener=heard.append).count()
    last = heard[-1]
    assert (last.total, last.done, last.running, last.failed) == (4, 4, 0, 1)
    assert last.share == pytest.approx(1.0)
    assert last.left_s == pytest.approx(0.0)


def test_a_grid_without_a_column_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """The sentence names what is lacking."""
    with pytest.raises(SweepError, match="seed, cost"):
        sweep(spark, grid_of(spark, range(1, 3)).drop("seed", "cost"), simulate, str(tmp_path))


def test_an_error_is_one_bounded_text() -> None:
    """Even an error with an endless message fits a row, and leaving the interpreter is an error too."""

    def rant(spec: str) -> Measures:
        raise RuntimeError(spec * 10_000)

    def leave(_: str) -> Measures:
        raise SystemExit(3)

    assert len(run_one(rant, "no")[1] or "") == ERROR_CHARS_MAX
    assert run_one(leave, "")[1] == "SystemExit: 3"


def test_the_code_version_depends_on_the_run_function() -> None:
    """Arguments bound to it do not matter; another function is another version."""
    assert code_version(simulate) == code_version(partial(simulate, log="x")) != code_version(crash)


def test_the_code_version_follows_imports() -> None:
    """A run of the study depends on the router and on the filters it never names, and not on the report."""
    reached = [file.as_posix() for file in _with_imports([Path(measures.__file__)])]
    assert any(path.endswith("routing/router.py") for path in reached)
    assert any(path.endswith("interest/filters.py") for path in reached)
    assert not any("report/" in path or "figures" in path for path in reached)
