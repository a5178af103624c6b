"""Numbers that checks make of single layouts or histories, with the queries that give them.

A task that looks at many has a list of numbers as JSON in a column of `runs`, in the order of their seeds,
the first of which is the task's own. A sample is such a list, joined over the tasks of a point of a figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sojourn.studies.cited import Cited, half, labelled, name, select, text
from sojourn.studies.statistics import interval95, student

Array = NDArray[np.float64]
WHOLE = "$"
"""The path of a list that is all of its column."""


class Sample(NamedTuple):
    """One number of each layout or history."""

    given: Array
    table: str
    """A query for them: their numbers, `layout`, and `value`."""

    def cited(self, how: str, value: float) -> Cited:
        """A number of all of them, by an aggregate over `value`."""
        return Cited(float(value), select(how, self.table))

    def mean(self) -> Cited:
        """Their mean."""
        return self.cited("avg(value)", self.given.mean())

    def size(self) -> Cited:
        """How many there are."""
        return self.cited("count(value)", len(self.given))

    def most(self) -> Cited:
        """The greatest."""
        return self.cited("max(value)", self.given.max())

    def spread(self) -> Cited:
        """Their standard deviation."""
        return self.cited("stddev_pop(value)", self.given.std())

    def quantile(self, share: float) -> Cited:
        """The value below which a share of them lies, by straight lines between values."""
        return self.cited(f"percentile(value, {share!r}D)", np.quantile(self.given, share))

    def half(self) -> float:
        """Half the 95% interval of their mean; not a number where one cannot tell."""
        value = interval95(self.given.tolist())
        return self.cited(half("value", student(len(self.given))), value) if math.isfinite(value) else value


def sample(column: str, path: str, where: Mapping[str, str | float], values: Array) -> Sample:
    """The lists of a column, or of one of its parts, over the runs that have some labels."""
    part = name(column) if path == WHOLE else f"get_json_object({name(column)}, {text(path)})"
    listed = f"from_json({part}, 'array<double>')"
    rows = f"runs LATERAL VIEW posexplode({listed}) AS place, value WHERE {labelled(where)}"
    return Sample(values, select("seed + place AS layout, value", rows))


def of_samples(how: str, value: float, **samples: Sample) -> Cited:
    """A number of several samples of the same layouts; `how` calls their values by the names given here."""
    first, *others = samples
    table = select(f"layout, value AS {first}", f"{samples[first].table}")
    for other in others:
        table += f" JOIN {select(f'layout, value AS {other}', samples[other].table)} USING (layout)"
    return Cited(float(value), select(how, table))
