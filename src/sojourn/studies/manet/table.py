"""The study's means by point, and the runs behind them for what must hold in every single one."""

from collections.abc import Iterable

import pandas as pd

from sojourn.studies import base, means
from sojourn.studies.base import Average
from sojourn.studies.cited import Cited, select, text, total_of
from sojourn.studies.manet.runs import MEASURES
from sojourn.studies.runner import Row, RunSpec

Points = means.Points


class Table(means.Table):
    """Means with intervals over seeds, and every run."""

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

    def by_seed(self, experiment: str, scheme: str, measure: str, x: float) -> dict[int, float]:
        """One point of a line, seed by seed."""
        return self.seeds(experiment, scheme, "none", measure, x)

    def total(self, experiment: str, scheme: str, columns: Iterable[str]) -> float:
        """The sum of some numbers over all runs of an experiment with a scheme; a run without one has 0."""
        chosen = self.runs[(self.runs["experiment"] == experiment) & (self.runs["series"] == scheme)]
        if chosen.empty:
            raise KeyError(f"{experiment}, {scheme}")
        present = [name for name in columns if name in chosen.columns]
        added = float(chosen[present].fillna(0.0).astype(float).to_numpy().sum())
        return total_of(present, {"experiment": experiment, "series": scheme}, added)

    def rate(self, experiment: str, scheme: str, kinds: Iterable[str]) -> float:
        """Bytes a node and second in packets of some kinds, as a mean over runs."""
        runs = ((self.runs["experiment"] == experiment) & (self.runs["series"] == scheme)).sum()
        return self.total(experiment, scheme, [f"bytes_s {kind}" for kind in kinds]) / max(int(runs), 1)

    def share(self, experiment: str, scheme: str, part: Iterable[str], whole: Iterable[str]) -> float:
        """One sum over another, over all runs; not a number where the second is nothing."""
        below = self.total(experiment, scheme, whole)
        return self.total(experiment, scheme, part) / below if below else float("nan")

    def column(self, name: str, like: str = "") -> "pd.Series[float]":
        """A number of every run whose experiment's name contains a text."""
        chosen = self.runs[self.runs["experiment"].str.contains(like, regex=False)]
        found: pd.Series[float] = chosen[name].dropna().astype(float)
        if found.empty:
            raise KeyError(f"{name} of {like or 'any experiment'}")
        return found

    def over_all(self, how: str, value: float, like: str = "") -> Cited:
        """A number over the runs whose experiment's name contains a text, with the query for it."""
        return Cited(value, select(how, f"runs WHERE contains(experiment, {text(like)}) AND error IS NULL"))

    def sum_of(self, name: str, like: str = "") -> float:
        """The sum of a number over those runs."""
        return self.over_all(f"sum({name})", float(self.column(name, like).sum()), like)


def tabulate(specs: list[RunSpec], rows: list[Row], average: Average | None = None) -> Table:
    """The study's table; runs that failed take no part."""
    runs = base.runs_table(specs, rows)
    return Table(means.tabulate(specs, rows, average, measures=MEASURES).means, runs[runs["error"].isna()])
