"""Means over seeds by configuration, in the form that checks and figures ask for them.

For studies whose runs return one number per measure; a study that returns whole samples has its own table.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pandas as pd

from sojourn.studies.base import KEYS, Average, runs_table
from sojourn.studies.cited import half_of, mean_of
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.statistics import student, with_intervals

ValueT = TypeVar("ValueT")

Points = dict[float, float]
"""Means by the axis's value, in ascending order."""


class Table:
    """Means with 95% intervals over seeds for every configuration of a study."""

    def __init__(self, means: pd.DataFrame, runs: pd.DataFrame | None = None) -> None:
        self.means = means
        self.runs = pd.DataFrame() if runs is None else runs
        """One row per run that did not fail."""
        self._by_seed: dict[str, dict[tuple[object, ...], dict[int, float]]] = {}
        self._lines: dict[tuple[str, str, str, str], list[float]] = {}
        self._index: dict[tuple[str, str, str, str, float], tuple[float, float, int]] = {
            (row["experiment"], row["series"], row["computations"], row["measure"], row["x"]): (
                float(row["mean"]),
                float(row["interval"]),
                int(row.get("runs", 0)),
            )
            for row in means.to_dict("records")
        }

    def points(self, experiment: str, series: str, computations: str, measure: str) -> Points:
        """One line of a figure."""
        wanted = (experiment, series, computations, measure)
        return {x: mean_of(measure, _labels(wanted, x), self._index[*wanted, x][0]) for x in self._xs(wanted)}

    def intervals(self, experiment: str, series: str, computations: str, measure: str) -> Points:
        """Half the width of each point's 95% interval."""
        wanted = (experiment, series, computations, measure)
        found = {}
        for x in self._xs(wanted):
            _, half, runs = self._index[*wanted, x]
            found[x] = half_of(measure, _labels(wanted, x), student(runs), half)
        return found

    def _xs(self, line: tuple[str, str, str, str]) -> list[float]:
        """Where a line has points, in ascending order."""
        if not self._lines:
            for key in sorted(self._index):
                self._lines.setdefault(key[:4], []).append(key[4])
        return self._lines.get(line, [])

    def seeds(
        self, experiment: str, series: str, computations: str, measure: str, x: float
    ) -> dict[int, float]:
        """One point of a line, seed by seed; nothing where only means are known."""
        if measure not in self._by_seed:
            self._by_seed[measure] = self._gathered(measure)
        return self._by_seed[measure].get((experiment, series, computations, x), {})

    def _gathered(self, measure: str) -> dict[tuple[object, ...], dict[int, float]]:
        """All points of a measure by their labels, seed by seed."""
        if self.runs.empty or measure not in self.runs.columns:
            return {}
        found: dict[tuple[object, ...], dict[int, float]] = {}
        names = ["experiment", "series", "computations", "x", "seed", measure]
        for *labels, seed, value in self.runs[names].dropna(subset=[measure]).itertuples(index=False):
            found.setdefault(tuple(labels), {})[int(seed)] = float(value)
        return {key: dict(sorted(row.items())) for key, row in found.items()}


def _labels(line: tuple[str, str, str, str], x: float) -> dict[str, str | float]:
    """What the runs of a point are told by."""
    return {"experiment": line[0], "series": line[1], "computations": line[2], "x": x}


def tabulate(
    specs: list[RunSpec], rows: list[Row], average: Average | None = None, *, measures: list[str]
) -> Table:
    """The table of means over seeds; runs that failed take no part."""
    runs = runs_table(specs, rows)
    whole = runs[runs["error"].isna()]
    known = [measure for measure in measures if measure in whole.columns]
    return Table((average or with_intervals)(whole, KEYS, known), whole)


def ratios(above: Mapping[float, float], below: Mapping[float, float]) -> Points:
    """One line divided by another, point by point."""
    return {x: ratio(above[x], below[x]) for x in sorted(above.keys() & below.keys())}


def flat(name: str, points: Mapping[float, ValueT]) -> dict[str, ValueT]:
    """A line as named numbers, for a verdict's record."""
    return {f"{name} @ {x:g}": value for x, value in points.items()}


def falls(points: Points) -> bool:
    """Whether no point lies above the one before it."""
    values = list(points.values())
    return len(values) > 1 and all(later <= earlier for earlier, later in pairwise(values))


def rises(points: Points) -> bool:
    """Whether no point lies below the one before it, and the last lies above the first."""
    values = list(points.values())
    steps = all(later >= earlier for earlier, later in pairwise(values))
    return len(values) > 1 and steps and values[-1] > values[0]


def first(points: Points) -> float:
    """The value at the smallest x."""
    return points[min(points)]


def last(points: Points) -> float:
    """The value at the largest x."""
    return points[max(points)]


def ratio(above: float, below: float) -> float:
    """One number divided by another; infinite over nothing, undefined for nothing over nothing."""
    if below == 0:
        return float(np.nan if above == 0 else np.inf)
    return above / below
