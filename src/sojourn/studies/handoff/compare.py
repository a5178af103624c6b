"""Comparing cells of the study, mean by mean and seed by seed, as conditions of a claim.

A *cell* is what the paper's tables have: a scheme, a mobility and a number of subscribers; the experiment
says under which reading it was run. Ratios compare what is never 0, differences what may be.
"""

from collections.abc import Callable
from typing import NamedTuple

from sojourn.studies.conditions import Condition
from sojourn.studies.means import Table, ratio


class Cell(NamedTuple):
    """One point of one line."""

    scheme: str
    mobility: str
    x: float
    experiment: str = "tables"

    def mean(self, table: Table, measure: str) -> float:
        """The mean over seeds; KeyError where it was not run."""
        return table.points(self.experiment, self.scheme, self.mobility, measure)[self.x]

    def seeds(self, table: Table, measure: str) -> dict[int, float]:
        """The same, seed by seed."""
        return table.seeds(self.experiment, self.scheme, self.mobility, measure, self.x)


class Asked(NamedTuple):
    """What is asked of a number."""

    limit: float
    above: bool = True
    equal: bool = False


MORE_THAN = Asked(1.0)
LESS_THAN = Asked(1.0, above=False)


def quotient(
    table: Table, over: tuple[Cell, str], under: tuple[Cell, str], what: str, asked: Asked
) -> Condition:
    """That one measure of a cell over one of another keeps to a limit."""
    return _compared(table, over, under, what, asked, ratio)


def difference(
    table: Table, one: tuple[Cell, str], other: tuple[Cell, str], what: str, asked: Asked
) -> Condition:
    """That one measure of a cell less one of another keeps to a limit."""
    return _compared(table, one, other, what, asked, lambda left, right: left - right)


def alone(table: Table, one: tuple[Cell, str], what: str, asked: Asked) -> Condition:
    """That a measure of a cell keeps to a limit."""
    cell, measure = one
    value = cell.mean(table, measure)
    seeds = list(cell.seeds(table, measure).values())
    return Condition(f"{what}, {value:.3g}", value, asked.limit, seeds, asked.above, asked.equal)


def _compared(
    table: Table,
    one: tuple[Cell, str],
    other: tuple[Cell, str],
    what: str,
    asked: Asked,
    by: Callable[[float, float], float],
) -> Condition:
    left, right = (cell.seeds(table, measure) for cell, measure in (one, other))
    value = by(*(cell.mean(table, measure) for cell, measure in (one, other)))
    seeds = [by(left[seed], right[seed]) for seed in sorted(left.keys() & right.keys())]
    return Condition(f"{what}, {value:.3g}", value, asked.limit, seeds, asked.above, asked.equal)


def explained(conditions: list[Condition], why: Callable[[], str]) -> str:
    """Why something is not so; nothing where all is, or where the runs that would tell are missing."""
    if all(condition.holds for condition in conditions):
        return ""
    try:
        return why()
    except KeyError:
        return ""  # the verdict stands without them
