"""All trials in which one node moved, as columns, and the query that gives them as a table."""

from __future__ import annotations

import numpy as np

from sojourn.studies.adhoc_tree.table import Array, Table
from sojourn.studies.cited import Cited, labelled, select
from sojourn.studies.statistics import Fit, straight_line

LISTS = ("stable", "seconds", "hops", "hops_after", "cost")


class Trials:
    """Trials at all timeouts; news told at once, or carried by beacons."""

    def __init__(self, columns: dict[str, Array], series: str) -> None:
        self._columns = columns
        lists = [f"from_json({name}, 'array<double>') AS {name}" for name in LISTS]
        of = f"runs WHERE {labelled({'experiment': 'move', 'series': series})}"
        each = f"explode(arrays_zip({', '.join(LISTS)})) AS trial"
        trials = select(f"timeout, {each}", select(", ".join(("x AS timeout", *lists)), of))
        self._table = select("timeout, trial.*", trials)

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def number(self, how: str, value: float, where: str = "true") -> Cited:
        """A number of all of them, or of some, by an aggregate over their columns."""
        return Cited(float(value), select(how, f"{self._table} WHERE {where}"))

    def line(self, over: str, xs: Array) -> Fit:
        """How much a straight line explains of the time to stabilise, trial by trial."""
        fit = straight_line(xs.tolist(), self["seconds"].tolist())
        return fit if fit.missing else fit._replace(r2=self.number(f"regr_r2(seconds, {over})", fit.r2))


def moves(table: Table, series: str = "") -> Trials | None:
    """All trials of that series; None if there were none."""
    columns: dict[str, list[Array]] = {}
    for timeout in table.xs("move", series):
        for name in LISTS:
            columns.setdefault(name, []).append(table.list_of(name, "move", series, timeout))
        columns.setdefault("timeout", []).append(np.full(len(columns["stable"][-1]), timeout))
    return (
        Trials({name: np.concatenate(parts) for name, parts in columns.items()}, series) if columns else None
    )
