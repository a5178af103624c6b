"""Means over seeds with 95% Student-t intervals, and the two small fits that claims ask for.

Every function takes plain numbers or one pandas table of runs (one row per run) and returns new ones.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from sojourn.studies.cited_points import crossing_of, fit_of, rank_of

CONFIDENCE = 0.95


def interval95(values: Sequence[float]) -> float:
    """Half the width of the 95% interval of the mean; not a number when one value cannot tell."""
    count = len(values)
    if count < 2:
        return math.nan
    spread = float(np.std(np.asarray(values, dtype=float), ddof=1))
    return student(count) * spread / math.sqrt(count)


def student(count: int) -> float:
    """Half a 95% interval over the standard error of the mean of so many values."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) if count > 1 else math.nan


def give_or_take(half: float, form: str) -> str:
    """Half an interval as it stands behind its mean; nothing where one value has none."""
    return f" ± {half:{form}}" if math.isfinite(half) else ""


def figure(value: float, form: str, without: str) -> str:
    """A number as it stands in a sentence; where there is none, the words that say so."""
    return f"{value:{form}}" if math.isfinite(value) else without


def with_intervals(runs: pd.DataFrame, by: list[str], measures: list[str]) -> pd.DataFrame:
    """One row per configuration and measure: mean, half-width of the interval, number of runs."""
    long = runs.melt(id_vars=by, value_vars=measures, var_name="measure", value_name="value").dropna(
        subset=["value"]
    )
    grouped = long.groupby([*by, "measure"], sort=True, dropna=False)["value"]
    return grouped.agg(
        mean="mean", interval=lambda values: interval95(values.to_list()), runs="count"
    ).reset_index()


class Fit(NamedTuple):
    """How much of the variation of some values a straight line explains, or why nobody can say."""

    r2: float
    """Not a number where the points do not tell."""
    missing: str = ""
    """Why they do not; empty where they do."""

    def said(self, form: str = ".2f") -> str:
        """The fit as it stands in a sentence."""
        return f"no R2 ({self.missing})" if self.missing else f"R2 = {self.r2:{form}}"

    def bare(self, form: str = ".2f") -> str:
        """The number alone, where the sentence has named it before."""
        return f"none ({self.missing})" if self.missing else f"{self.r2:{form}}"

    @property
    def recorded(self) -> float | str:
        """The fit as it stands in a verdict's record."""
        return self.said() if self.missing else self.r2


FIT_POINTS_MIN = 3
"""Through two points there always is a straight line."""


def straight_line(xs: Sequence[float], ys: Sequence[float]) -> Fit:
    """How much of the variation of ys a straight line over xs explains."""
    if len(xs) < FIT_POINTS_MIN:
        return Fit(math.nan, f"too few points: {len(xs)}")
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return Fit(math.nan, "no variance: all points are alike")
    return Fit(fit_of(xs, ys, float(stats.linregress(xs, ys).rvalue ** 2)))


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Spearman's rank correlation; 1 when ys rise strictly with xs, undefined when they do not change."""
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return math.nan
    return rank_of(xs, ys, float(stats.spearmanr(xs, ys).statistic))


def crossing(xs: Sequence[float], ratios: Sequence[float], level: float = 1.0) -> float:
    """The first x, by straight lines between points, where the ratio reaches the level; or infinity."""
    return crossing_of(xs, ratios, level, float(_crossing(xs, ratios, level)))


def _crossing(xs: Sequence[float], ratios: Sequence[float], level: float) -> float:
    for at, (x, ratio) in enumerate(zip(xs, ratios, strict=True)):
        if ratio >= level:
            if at == 0:
                return float(x)
            before_x, before = xs[at - 1], ratios[at - 1]
            return before_x + (level - before) / (ratio - before) * (x - before_x)
    return math.inf


def recorded_crossing(x: float) -> float | str:
    """A crossing as it stands in a verdict's record."""
    return x if math.isfinite(x) else "nowhere in the range"
