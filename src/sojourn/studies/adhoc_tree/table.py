"""The study's measures by point, put together from the blocks that tasks returned."""

import json
import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sojourn.studies.cited import Cited, of_runs, total_of
from sojourn.studies.cited import name as column
from sojourn.studies.cited_lists import Sample, of_samples, sample
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.statistics import interval95, student

Array = NDArray[np.float64]
Points = dict[float, float]

LISTS = {
    "fig10": ("excess", "worst"),
    "exact": ("optima", "gaps", "bounds"),
    "sixty": ("optima", "gaps", "bounds"),
    "move": ("seconds", "hops", "hops_after", "cost"),
}
"""By experiment: the plain lists of its tasks that are averaged; the graph-level figures have others."""


class Table:
    """Everything measured, by experiment, series and x; blocks joined in the order of their seeds."""

    def __init__(self, specs: list[RunSpec], rows: list[Row]) -> None:
        found = {row["run_id"]: row for row in rows}
        self.blocks: dict[tuple[str, str, float], list[Row]] = {}
        for spec in sorted(specs, key=lambda spec: (spec.experiment, spec.series, spec.x, spec.seed)):
            row = found.get(spec.run_id)
            if row is not None and row.get("error") is None:
                self.blocks.setdefault((spec.experiment, spec.series, spec.x), []).append(row)
        self.means = self._means()

    def xs(self, experiment: str, series: str = "") -> list[float]:
        """The points of a line."""
        return sorted(key[2] for key in self.blocks if key[:2] == (experiment, series))

    def series(self, experiment: str) -> list[str]:
        """The lines of an experiment."""
        return sorted({key[1] for key in self.blocks if key[0] == experiment})

    def list_of(self, name: str, experiment: str, series: str, x: float) -> Array:
        """A list that every task of a point returned, joined."""
        blocks = self.blocks[experiment, series, x]
        return np.array([value for row in blocks for value in json.loads(str(row[name]))], dtype=float)

    def by_algorithm(self, experiment: str, series: str, x: float, name: str = "values") -> dict[str, Array]:
        """By algorithm: one number per layout."""
        joined: dict[str, list[float]] = {}
        for row in self.blocks[experiment, series, x]:
            for algorithm, values in json.loads(str(row[name])).items():
                joined.setdefault(algorithm, []).extend(values)
        return {algorithm: np.array(values, dtype=float) for algorithm, values in joined.items()}

    def sample(self, name: str, experiment: str, series: str, x: float, part: str = "") -> Sample:
        """A list that every task of a point returned, or the part of it for an algorithm; to be cited."""
        values = (
            self.by_algorithm(experiment, series, x, name)[part]
            if part
            else self.list_of(name, experiment, series, x)
        )
        return sample(name, f"$.{part}" if part else "$", _labels(experiment, series, x), values)

    def algorithms(self, experiment: str, series: str, x: float) -> dict[str, Sample]:
        """By algorithm: its numbers per layout, to be cited."""
        return {
            name: self.sample("values", experiment, series, x, name)
            for name in self.by_algorithm(experiment, series, x)
        }

    def total(self, name: str, experiment: str, series: str, x: float) -> float:
        """A count of every task of a point, summed up."""
        return total_of(
            [name],
            _labels(experiment, series, x),
            float(self.numbers(name, experiment, series, x).sum()),
        )

    def most(self, name: str, experiment: str, series: str, x: float) -> float:
        """The greatest of a plain number that every task of a point returned."""
        value = float(self.numbers(name, experiment, series, x).max())
        return Cited(value, of_runs(f"max({column(name)})", _labels(experiment, series, x)))

    def numbers(self, name: str, experiment: str, series: str, x: float) -> Array:
        """A plain number that every task of a point returned."""
        return np.array([_number(row[name]) for row in self.blocks[experiment, series, x]])

    def mean_line(self, experiment: str, series: str, algorithm: str) -> Points:
        """Mean overhead of an algorithm over the points of a line."""
        return {
            x: self.sample("values", experiment, series, x, algorithm).mean()
            for x in self.xs(experiment, series)
        }

    def ratio_line(self, experiment: str, series: str, above: str, below: str = "combo") -> Points:
        """One algorithm's mean overhead over another's."""
        over, under = (self.mean_line(experiment, series, name) for name in (above, below))
        return {x: over[x] / under[x] for x in over}

    def half_width(self, experiment: str, series: str, x: float, above: str, below: str | None) -> float:
        """Half the 95% interval of a mean, or of a ratio of means over the same layouts."""
        over = self.sample("values", experiment, series, x, above)
        if below is None:
            return over.half()
        under = self.sample("values", experiment, series, x, below)
        ratio = over.given.mean() / under.given.mean()
        value = interval95(((over.given - ratio * under.given) / under.given.mean()).tolist())
        if not math.isfinite(value):
            return value
        apart = "var_samp(o) - 2 * avg(o) / avg(u) * covar_samp(o, u) + pow(avg(o) / avg(u), 2) * var_samp(u)"
        error = f"{student(len(over.given))!r}D * sqrt(({apart}) / count(o)) / avg(u)"
        return of_samples(error, value, o=over, u=under)

    def _means(self) -> pd.DataFrame:
        rows = []
        for (experiment, series, x), blocks in sorted(self.blocks.items()):
            if "values" in blocks[0]:
                for algorithm, values in self.by_algorithm(experiment, series, x).items():
                    rows.append((experiment, series, x, algorithm, *_summary(values)))
            for name in blocks[0]:
                if name in LISTS.get(experiment, ("degrees", "overlaps", "variations")):
                    found = self.list_of(name, experiment, series, x)
                elif name.endswith(("_ratio", "_overhead", "_per_delivery", "_per_s")):
                    found = self.numbers(name, experiment, series, x)
                else:
                    continue
                rows.append((experiment, series, x, name, *_summary(found)))
        return pd.DataFrame(
            rows, columns=["experiment", "series", "x", "measure", "mean", "interval", "count"]
        )


def _labels(experiment: str, series: str, x: float) -> dict[str, str | float]:
    """What the runs of a point are told by."""
    return {"experiment": experiment, "series": series, "x": x}


def _summary(values: Array) -> tuple[float, float, int]:
    known = values[np.isfinite(values)]
    return (float(known.mean()) if len(known) else math.nan, interval95(known.tolist()), len(known))


def _number(value: object) -> float:
    return float(str(value))
