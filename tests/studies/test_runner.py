import time

import pytest

from sojourn.pipeline.progress import Progress
from sojourn.studies.runner import Row, RunSpec, run_grid


def _spec(run_id: str, cost: float = 1.0) -> RunSpec:
    return RunSpec(
        run_id=run_id,
        experiment="e",
        series="s",
        computations="none",
        axis="x",
        x=0.0,
        seed=1,
        cost=cost,
        spec_json=run_id,
    )


def _simulate(text: str) -> Row:
    if text == "bad":
        raise ValueError("no such world")
    return {"length": len(text)}


def test_failed_run_is_a_row() -> None:
    """A run that raises becomes a row with its error and seed; the others are measured."""
    rows = run_grid([_spec("ok"), _spec("bad")], _simulate, workers=1)
    assert [row["run_id"] for row in rows] == ["bad", "ok"]
    assert rows[0]["error"] == "ValueError: no such world"
    assert rows[0]["seed"] == 1
    assert rows[1]["error"] is None
    assert rows[1]["length"] == 2


def test_equal_runs_are_made_once_and_longest_first() -> None:
    """Two experiments that want the same run share it, and the costliest run starts first."""
    order: list[str] = []

    def simulate(text: str) -> Row:
        order.append(text)
        return {}

    rows = run_grid([_spec("a", 1), _spec("b", 9), _spec("a", 1), _spec("c", 5)], simulate, workers=1)
    assert order == ["b", "c", "a"]
    assert [row["run_id"] for row in rows] == ["a", "b", "c"]


def test_progress_counts() -> None:
    """The listener hears of every run, and of the time left once one is done."""
    heard: list[Progress] = []
    run_grid([_spec("a"), _spec("bad"), _spec("c")], _simulate, workers=1, progress=heard.append)
    assert heard[0].left_s is None
    assert (heard[-1].done, heard[-1].failed, heard[-1].running) == (3, 1, 0)
    assert heard[-1].share == pytest.approx(1)
    assert heard[-1].left_s == pytest.approx(0)


def sleepy(text: str) -> Row:
    """A run that outlasts the pool's patience for news."""
    time.sleep(float(text))
    return {"text": text}


def test_pool_runs_no_more_than_its_slots() -> None:
    """However long runs take, no more of them are under way than there are slots; rows come back in order."""
    heard: list[Progress] = []
    specs = [_spec(text) for text in ("1.5", "0.1", "0.0", "0.2", "0.3")]
    rows = run_grid(specs, sleepy, workers=2, progress=heard.append)
    assert [row["text"] for row in rows] == sorted(spec.run_id for spec in specs)
    assert max(progress.running for progress in heard) == 2
    assert heard[-1].done == 5
