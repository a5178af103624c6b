"""The study's means by point, and the runs behind them for what must hold in every single one."""

from typing import Any

import pandas as pd

from sojourn.studies import base, means
from sojourn.studies.base import Average
from sojourn.studies.manet.runs import MEASURES
from sojourn.studies.runner import Row, RunSpec

Points = means.Points


class Table(means.Table):
    """Means with intervals over seeds, and every run."""

    def __init__(self, averaged: pd.DataFrame, runs: pd.DataFrame) -> None:
        super().__init__(averaged)
        self.runs = runs

    def line(self, experiment: str, scheme: str, measure: str) -> Points:
        """One line of a figure; raises KeyError where it has no points."""
        points = self.points(experiment, scheme, "none", measure)
        if not points:
            raise KeyError(f"{experiment}, {scheme}, {measure}")
        return points

    def mean(self, experiment: str, scheme: str, measure: str) -> float:
        """The mean of a line over its speeds."""
        points = self.line(experiment, scheme, measure)
        return sum(points.values()) / len(points)

    def column(self, name: str, like: str = "") -> "pd.Series[Any]":
        """A number of every run whose experiment's name contains a text."""
        chosen = self.runs[self.runs["experiment"].str.contains(like, regex=False)]
        found: pd.Series[Any] = chosen[name].dropna().astype(float)
        if found.empty:
            raise KeyError(f"{name} of {like or 'any experiment'}")
        return found


def tabulate(specs: list[RunSpec], rows: list[Row], average: Average | None = None) -> Table:
    """The study's table; runs that failed take no part."""
    runs = base.runs_table(specs, rows)
    return Table(means.tabulate(specs, rows, MEASURES, average).means, runs[runs["error"].isna()])
