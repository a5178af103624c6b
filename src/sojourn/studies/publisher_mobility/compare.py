"""Comparing lines of the study, point by point and seed by seed, as conditions of a claim."""

from typing import NamedTuple

from sojourn.studies.conditions import Condition
from sojourn.studies.means import Points, Table, ratio


class Where(NamedTuple):
    """One line: an experiment, a protocol and a class of computations."""

    experiment: str
    protocol: str
    computations: str

    def points(self, table: Table, measure: str) -> Points:
        """The line's means."""
        return table.points(*self, measure)

    def at(self, table: Table, measure: str, x: float) -> dict[int, float]:
        """One point of the line, seed by seed."""
        return table.seeds(*self, measure, x)


def divided(over: dict[int, float], under: dict[int, float]) -> list[float]:
    """One number over another, seed by seed."""
    return [ratio(over[seed], under[seed]) for seed in sorted(over.keys() & under.keys())]


class Asked(NamedTuple):
    """What is asked of a ratio."""

    limit: float
    above: bool = True
    equal: bool = False


ABOVE_ONE = Asked(1.0)


def everywhere(table: Table, over: Where, under: Where, measure: str, asked: Asked) -> list[Condition]:
    """That one line over another keeps to a limit at every point both have."""
    tops, bottoms = over.points(table, measure), under.points(table, measure)
    found = []
    for x in sorted(tops.keys() & bottoms.keys()):
        value = ratio(tops[x], bottoms[x])
        seeds = divided(over.at(table, measure, x), under.at(table, measure, x))
        what = f"{over.protocol} over {under.protocol} at {x:g}, {value:.2f}"
        if over.computations != under.computations:
            what = f"{over.computations} over {under.computations} at {x:g}, {value:.2f}"
        found.append(Condition(what, value, asked.limit, seeds, above=asked.above, equal=asked.equal))
    return found


def grown(table: Table, line: Where, measure: str, asked: Asked, start: float | None = None) -> Condition:
    """That a line's last point over its first (or another) keeps to a limit."""
    points = line.points(table, measure)
    low, high = min(points) if start is None else start, max(points)
    value = ratio(points[high], points[low])
    seeds = divided(line.at(table, measure, high), line.at(table, measure, low))
    what = f"{line.protocol} with {line.computations} from {low:g} to {high:g}, {value:.2f} times"
    return Condition(what, value, asked.limit, seeds, above=asked.above, equal=asked.equal)


def about(condition: Condition, share: float) -> list[Condition]:
    """That a ratio lies within a share of 1, from below and from above."""
    return [
        condition._replace(limit=1 - share, above=True, equal=True),
        condition._replace(limit=1 + share, above=False, equal=True),
    ]
