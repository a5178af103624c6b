"""Numbers that carry the query which gives them, over the table `runs` that a study leaves behind.

A mean over seeds is cited where a table of means is asked for it; what checks make of such numbers by adding,
subtracting, multiplying and dividing is cited too. What else is made of them has a function here, or in
`cited_points.py` (of lines) and `cited_lists.py` (of single layouts and histories); whatever happens to a
number beside that leaves a plain one, which has no query. `sojourn sql QUERY --from RESULTS` gives the number
again, from the measures of every single run.

A number that no table gives, since the paper prints it or it comes from a formula or an enumeration, is
`stated` to be one, with the reason, and the claim's evidence says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self


class Cited(float):
    """A number, and an expression of SQL whose value it is."""

    __slots__ = ("query",)

    query: str

    def __new__(cls, value: float, query: str) -> Self:
        """Make a number that says where it comes from."""
        made = super().__new__(cls, value)
        made.query = query
        return made

    def __reduce__(self) -> tuple[object, ...]:
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


class Told(NamedTuple):
    """A number of a verdict's record that cannot be `Cited`: a count, or one that no table gives."""

    value: float | int | str
    query: str = ""
    """An expression of SQL whose value it is."""
    why: str = ""
    """Where it is from, if from no table."""


PRINTED = "printed in the paper"
BY_FORMULA = "computed from formulas"
WORKED_OUT = "worked out by the code that ships, without runs"
ENUMERATED = "every case enumerated, without runs"
FITTED = "fitted by least squares to numbers beside them"
"""Where numbers are from that no table gives."""
NAMED_MAX = 2
"""So many of them are named in a sentence; more are counted."""


def stated(value: float | str, why: str) -> Told:
    """A number that no table gives."""
    return Told(value, why=why)


def whole(value: float) -> Told:
    """A count as a whole number, with its query if it has one."""
    return Told(int(value), value.query if isinstance(value, Cited) else "")


def cited_as(value: float, same: float) -> float:
    """A number that was computed another way, with the query of one that is the same but for rounding."""
    return Cited(value, same.query) if isinstance(same, Cited) else value


def in_words(value: float) -> Told:
    """A count that stands as text."""
    return Told(f"{value:.0f}", value.query if isinstance(value, Cited) else "")


def _combined(value: float, left: float, sign: str, right: float) -> Cited:
    return Cited(value, f"({said(left)} {sign} {said(right)})")


def said(number: float) -> str:
    """A number in SQL: its query, or itself."""
    if isinstance(number, Cited):
        return number.query
    # A float in plain words is a decimal to Spark, and decimals are rounded.
    return f"{float(number)!r}D" if math.isfinite(number) else f"double('{float(number)}')"


def mean_of(measure: str, where: Mapping[str, str | float], value: float) -> Cited:
    """A mean over the runs that have some labels, and the query for it."""
    return Cited(value, of_runs(f"avg({name(measure)})", where))


def total_of(measures: Sequence[str], where: Mapping[str, str | float], value: float) -> Cited:
    """A sum of some measures over the runs that have some labels, and the query for it."""
    each = " + ".join(f"coalesce({name(measure)}, 0)" for measure in measures) or "0"
    return Cited(value, of_runs(f"sum({each})", where))


def half_of(measure: str, where: Mapping[str, str | float], factor: float, value: float) -> float:
    """Half the interval of a mean over the runs that have some labels; a plain number where there is none."""
    known = math.isfinite(value) and math.isfinite(factor)
    return Cited(value, of_runs(half(name(measure), factor), where)) if known else value


def half(value: str, factor: float) -> str:
    """Half the interval of the mean of values, in SQL, which knows no t-distribution but a factor from it."""
    return f"{factor!r}D * stddev_samp({value}) / sqrt(count({value}))"


def of_runs(what: str, where: Mapping[str, str | float]) -> str:
    """A number over the runs that have some labels."""
    return select(what, f"runs WHERE {labelled(where)}")


def select(what: str, of: str) -> str:
    """A query in brackets, which gives a number or stands for a table."""
    return f"(SELECT {what} FROM {of})"  # noqa: S608  names and texts are quoted, numbers are ours


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
    found = {what: value.query for what, value in measured.items() if isinstance(value, Cited | Told)}
    return {what: f"SELECT {query} AS value" for what, query in found.items() if query}


def unmeasured(measured: Mapping[str, object]) -> dict[str, str]:
    """By the names of numbers that no table gives, where they are from."""
    return {what: value.why for what, value in measured.items() if isinstance(value, Told) and value.why}


def where_from(reasons: Mapping[str, str]) -> str:
    """The sentence that says which numbers no table gives; empty where there are none."""
    by_reason: dict[str, list[str]] = {}
    for what, why in reasons.items():
        by_reason.setdefault(why, []).append(what)
    parts = [
        f"{', '.join(names) if len(names) <= NAMED_MAX else f'{len(names)} numbers'} ({why})"
        for why, names in by_reason.items()
    ]
    return f" Not from tables: {'; '.join(parts)}." if parts else ""
