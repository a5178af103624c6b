"""Means over seeds by configuration, in the form that checks and figures ask for them.

For studies whose runs each return one number a measure; a study that returns whole samples has its own table.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sojourn.studies.base import KEYS, Average, runs_table
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.statistics import with_intervals

Points = dict[float, float]
"""Means by the axis's value, in ascending order."""


class Table:
    """Means with 95% intervals over seeds for every configuration of a study."""

    def __init__(self, means: pd.DataFrame) -> None:
        self.means = means
        self._index: dict[tuple[str, str, str, str, float], tuple[float, float]] = {
            (row["experiment"], row["series"], row["computations"], row["measure"], row["x"]): (
                float(row["mean"]),
                float(row["interval"]),
            )
            for row in means.to_dict("records")
        }

    def points(self, experiment: str, series: str, computations: str, measure: str) -> Points:
        """One line of a figure."""
        wanted = (experiment, series, computations, measure)
        return {key[4]: self._index[key][0] for key in sorted(self._index) if key[:4] == wanted}

    def intervals(self, experiment: str, series: str, computations: str, measure: str) -> Points:
        """Half the width of each point's 95% interval."""
        wanted = (experiment, series, computations, measure)
        return {key[4]: self._index[key][1] for key in sorted(self._index) if key[:4] == wanted}


def tabulate(
    specs: list[RunSpec], rows: list[Row], measures: list[str], average: Average | None = None
) -> Table:
    """The table of means over seeds; runs that failed take no part."""
    runs = runs_table(specs, rows)
    whole = runs[runs["error"].isna()]
    known = [measure for measure in measures if measure in whole.columns]
    return Table((average or with_intervals)(whole, KEYS, known))


def ratios(above: Mapping[float, float], below: Mapping[float, float]) -> Points:
    """One line divided by another, point by point."""
    return {x: ratio(above[x], below[x]) for x in sorted(above.keys() & below.keys())}


def flat(name: str, points: Mapping[float, Any]) -> dict[str, Any]:
    """A line as named numbers, for a verdict's record."""
    return {f"{name} @ {x:g}": float(value) for x, value in points.items()}


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
