"""The study's measures by configuration, in the form that checks and figures ask for them."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.statistics import with_intervals

MEASURES = [
    "messages_per_min",
    "tree_messages_per_min",
    "moves_per_min",
    "messages_per_move",
    "rebuild_ms",
    "rebuild_if_any_ms",
    "rebuilding_share",
    "teardown_ms",
    "visible_wait_ms",
    "delivery_ratio",
    "delivered_in_time_ratio",
    "utilisation_max",
    "utilisation_mean",
    "queue_max",
    "worked_off_ratio",
]
"""What is averaged over seeds; each is one number a run."""

KEYS = ["experiment", "series", "computations", "axis", "x"]

Points = dict[float, float]
"""Means by the axis's value, in ascending order."""


class Table:
    """Means with 95% intervals over seeds for every configuration of the study."""

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


def runs_table(specs: list[RunSpec], rows: list[Row]) -> pd.DataFrame:
    """One row a run and experiment: the labels of the grid beside the run's measures."""
    labels = pd.DataFrame(
        [
            {"run_id": spec.run_id, **{key: getattr(spec, key) for key in KEYS}, "seed": spec.seed}
            for spec in specs
        ]
    )
    measured = pd.DataFrame(rows).drop(columns="seed")
    return labels.merge(measured, on="run_id", how="left", validate="many_to_one")


def summarise(runs: pd.DataFrame) -> Table:
    """The table of means; runs that failed take no part."""
    whole = runs[runs["error"].isna()]
    measures = [measure for measure in MEASURES if measure in whole.columns]
    return Table(with_intervals(whole, KEYS, measures))


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
