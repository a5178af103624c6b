"""Numbers that carry the query which gives them, over the table `runs` that a study leaves behind.

A mean over seeds is cited where a table of means is asked for it; what checks make of such numbers by adding,
subtracting, multiplying and dividing, and how well a line fits them, is cited too. Whatever else happens to a
number leaves a plain one, which has no query. `sojourn sql QUERY --from RESULTS` gives the number again, from
the measures of every single run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self


class Cited(float):
    """A number, and an expression of SQL whose value it is."""

    __slots__ = ("query",)

    query: str

    def __new__(cls, value: float, query: str) -> Self:
        """Make a number that says where it comes from."""
        made = super().__new__(cls, value)
        made.query = query
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Cited, (float(self), self.query)

    def __add__(self, other: float) -> float:
        return _combined(float(self) + float(other), self, "+", other)

    def __radd__(self, other: float) -> float:
        return _combined(float(other) + float(self), other, "+", self)

    def __sub__(self, other: float) -> float:
        return _combined(float(self) - float(other), self, "-", other)

    def __rsub__(self, other: float) -> float:
        return _combined(float(other) - float(self), other, "-", self)

    def __mul__(self, other: float) -> float:
        return _combined(float(self) * float(other), self, "*", other)

    def __rmul__(self, other: float) -> float:
        return _combined(float(other) * float(self), other, "*", self)

    def __truediv__(self, other: float) -> float:
        return _combined(float(self) / float(other), self, "/", other)

    def __rtruediv__(self, other: float) -> float:
        return _combined(float(other) / float(self), other, "/", self)

    def __neg__(self) -> float:
        return Cited(-float(self), f"(-{self.query})")

    def __abs__(self) -> float:
        return Cited(abs(float(self)), f"abs({self.query})")


def _combined(value: float, left: float, sign: str, right: float) -> Cited:
    return Cited(value, f"({_said(left)} {sign} {_said(right)})")


def _said(number: float) -> str:
    # A float in plain words is a decimal to Spark, and decimals are rounded.
    return number.query if isinstance(number, Cited) else f"{float(number)!r}D"


def mean_of(measure: str, where: Mapping[str, str | float], value: float) -> Cited:
    """A mean over the runs that have some labels, and the query for it."""
    return Cited(value, f"(SELECT avg({name(measure)}) FROM runs WHERE {labelled(where)})")  # noqa: S608  quoted


def mean_of_listed(column: str, path: str, where: Mapping[str, str | float], value: float) -> Cited:
    """A mean over lists that stand as JSON in a column, joined over the runs that have some labels."""
    found = f"explode(from_json(get_json_object({name(column)}, {text(path)}), 'array<double>'))"
    inner = f"SELECT {found} AS value FROM runs WHERE {labelled(where)}"  # noqa: S608  likewise
    return Cited(value, f"(SELECT avg(value) FROM ({inner}))")  # noqa: S608  likewise


def total_of(measures: Sequence[str], where: Mapping[str, str | float], value: float) -> Cited:
    """A sum of some measures over the runs that have some labels, and the query for it."""
    each = " + ".join(f"coalesce({name(measure)}, 0)" for measure in measures) or "0"
    return Cited(value, f"(SELECT sum({each}) FROM runs WHERE {labelled(where)})")  # noqa: S608  likewise


def fit_of(xs: Sequence[float], ys: Sequence[float], r2: float) -> float:
    """How well a line explains some numbers; with a query for it where all of them have one."""
    if not all(isinstance(y, Cited) for y in ys):
        return r2
    points = " UNION ALL ".join(
        f"SELECT {_said(x)} AS x, {_said(y)} AS y" for x, y in zip(xs, ys, strict=True)
    )
    return Cited(r2, f"(SELECT regr_r2(y, x) FROM ({points}))")  # noqa: S608  likewise


def labelled(where: Mapping[str, str | float]) -> str:
    """The condition that rows have some labels and are of runs that did not fail."""
    told = [
        f"{key} = {text(value) if isinstance(value, str) else repr(float(value)) + 'D'}"
        for key, value in where.items()
    ]
    return " AND ".join([*told, "error IS NULL"])


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name(column: str) -> str:
    """A column's name as SQL writes it."""
    return "`" + column.replace("`", "``") + "`"


def queries(measured: Mapping[str, object]) -> dict[str, str]:
    """By the names of numbers, the queries that give them; of those that have one."""
    return {
        what: f"SELECT {value.query} AS value" for what, value in measured.items() if isinstance(value, Cited)
    }
