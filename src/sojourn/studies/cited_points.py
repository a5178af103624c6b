"""Numbers that checks make of whole lines, with the queries that give them: fits, ranks, crossings.

A line is points whose values carry queries (`cited.py`); where one does not, what is made of the line is a
plain number. Not here: how such numbers are computed (`statistics.py` and the studies).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sojourn.studies.cited import Cited, said, select


def fit_of(xs: Sequence[float], ys: Sequence[float], r2: float) -> float:
    """How well a line explains some numbers."""
    return asked("regr_r2(y, x)", points(xs, ys), r2, ys)


def rank_of(xs: Sequence[float], ys: Sequence[float], value: float) -> float:
    """Spearman's rank correlation; numbers that are equal share their rank."""
    ranks = ", ".join(
        f"rank() OVER (ORDER BY {name}) + (count(*) OVER (PARTITION BY {name}) - 1) / 2D AS {name}"
        for name in ("x", "y")
    )
    return asked("corr(x, y)", select(ranks, points(xs, ys)), value, ys)


def crossing_of(xs: Sequence[float], ys: Sequence[float], level: float, value: float) -> float:
    """The first x, by straight lines between points, where a line reaches a level; or infinity."""
    before = "lag(x) OVER (ORDER BY x) AS before_x, lag(y) OVER (ORDER BY x) AS before_y"
    between = f"before_x + ({said(level)} - before_y) / (y - before_y) * (x - before_x)"
    reached = f"{select(f'*, {before}', points(xs, ys))} WHERE y >= {said(level)} AND NOT isnan(y)"
    met = select(f"x, CASE WHEN before_x IS NULL THEN x ELSE {between} END AS met", reached)
    return asked("coalesce(min_by(met, x), double('infinity'))", met, value, ys)


def widest_of(line: Mapping[float, float], value: float) -> float:
    """The x at which a line is highest."""
    ys = list(line.values())
    return asked("max_by(x, y)", points(list(line), ys), value, ys)


def points(xs: Sequence[float], ys: Sequence[float]) -> str:
    """A table of points."""
    return table([{"x": x, "y": y} for x, y in zip(xs, ys, strict=True)])


def table(rows: Sequence[Mapping[str, float]]) -> str:
    """A table of numbers by name."""
    each = ["SELECT " + ", ".join(f"{said(value)} AS {name}" for name, value in row.items()) for row in rows]
    return f"({' UNION ALL '.join(each)})"


def asked(what: str, of: str, value: float, used: Sequence[float]) -> float:
    """A number over a table, with a query where all numbers have one that the table is made of."""
    return Cited(value, select(what, of)) if all(isinstance(each, Cited) for each in used) else value
