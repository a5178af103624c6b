"""The whole study: from a scale to measures, verdicts and files.

`run` carries out the grid and judges; `write_results` puts the tables and verdicts into a directory. How the
grid is executed is an argument, so that the study does not care who runs it.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from sojourn.studies.adhoc_tree import judging
from sojourn.studies.adhoc_tree.grid import grid
from sojourn.studies.adhoc_tree.parameters import Scale
from sojourn.studies.adhoc_tree.table import Table, runs_table
from sojourn.studies.claims import Verdict, write_verdicts
from sojourn.studies.runner import Row, RunSpec

NAME = judging.NAME

Sweep = Callable[[list[RunSpec]], list[Row]]
"""Whatever turns run specifications into rows of measures."""


class Outcome(NamedTuple):
    """What the study found."""

    scale: Scale
    seeds: int
    specs: list[RunSpec]
    runs: pd.DataFrame
    table: Table
    verdicts: list[Verdict]
    seconds: float

    @property
    def failed(self) -> int:
        """How many distinct tasks ended in an error."""
        return int(self.runs[self.runs["error"].notna()]["run_id"].nunique())

    @property
    def distinct_runs(self) -> int:
        """How many tasks were carried out."""
        return int(self.runs["run_id"].nunique())


def run(scale: Scale, *, sweep: Sweep, seeds: int | None = None) -> Outcome:
    """Carry out the grid at a scale and judge every claim."""
    started = time.perf_counter()
    specs = grid(scale, seeds)
    rows = sweep(specs)
    table = Table(specs, rows)
    verdicts = judging.judge_all(table, scale)
    return Outcome(
        scale,
        seeds or scale.seeds,
        specs,
        runs_table(specs, rows),
        table,
        verdicts,
        time.perf_counter() - started,
    )


def write_results(outcome: Outcome, out: Path) -> list[Path]:
    """Write runs, means and verdicts into a directory and name the files."""
    out.mkdir(parents=True, exist_ok=True)
    runs, metrics, claims = out / "runs.parquet", out / "metrics.parquet", out / "claims.json"
    outcome.runs.to_parquet(runs, index=False)
    outcome.table.means.to_parquet(metrics, index=False)
    write_verdicts(outcome.verdicts, claims)
    return [runs, metrics, claims]
