"""Advertisements: what a publisher is going to publish.

An advertisement is disjunctive (paper 000, section 2.2.1): it determines an event when each of the event's
attributes satisfies one of its predicates. So it names every attribute that may occur and the values it may
have; an attribute it does not name does not occur, one it names may be absent.

The text reads as a subscription does. Comparisons of one attribute combine as in SQL, so that
`price >= 10 AND price < 20` is a range and `brand = 'IBM' OR brand = 'Dell'` a choice; between different
attributes AND and OR are the same, because no attribute has to occur.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import and_, or_

from sojourn.errors import SojournError
from sojourn.interest import syntax
from sojourn.interest.comparisons import nothing, present
from sojourn.interest.events import Event
from sojourn.interest.filters import Conjunction, Filter, balanced
from sojourn.interest.render import constraint_text, join_texts
from sojourn.interest.values import ValueSet
from sojourn.interest.work import reading


class AdvertisementError(SojournError):
    """A text is a filter but not an advertisement."""


@dataclass(frozen=True, slots=True, eq=False)
class Advertisement:
    """The attributes that events may have and, for each, the values."""

    allowed: tuple[tuple[str, ValueSet], ...]
    """For each attribute that may occur its possible values, ordered by path; never a missing one."""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.allowed))

    @classmethod
    def parse(cls, text: str, *, limited: bool = True) -> Advertisement:
        """Read SQL such as `product = 'computer' AND price <= 1500`, or refuse it.

        What `str` wrote of an advertisement is read without limits on its length.
        """
        with reading(text, limited=limited):
            expression = syntax.read(text, limited=limited)
            if expression == syntax.Constant(value=False):  # how an advertisement of nothing is written
                return cls(())
            return cls.of(_sets(expression).items())

    @classmethod
    def of(cls, predicates: Iterable[tuple[str, ValueSet]]) -> Advertisement:
        """Make the advertisement of a list of predicates, several of one attribute being alternatives."""
        united: dict[str, ValueSet] = {}
        for path, allowed in predicates:
            united[path] = united[path] | allowed if path in united else allowed
        stripped = ((path, replace(united[path], missing=False)) for path in sorted(united))
        return cls(tuple((path, allowed) for path, allowed in stripped if allowed))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Advertisement):
            return NotImplemented
        return self is other or (self._hash == other._hash and self.allowed == other.allowed)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Advertisement], tuple[tuple[tuple[str, ValueSet], ...]]]:
        return Advertisement, (self.allowed,)

    def __str__(self) -> str:
        return join_texts([constraint_text(path, allowed) for path, allowed in self.allowed]) or "FALSE"

    def get(self, path: str) -> ValueSet:
        """Return the values that an attribute may have when it occurs."""
        names = path.split(".")
        for depth in range(len(names), 0, -1):
            above = ".".join(names[:depth])
            for name, allowed in self.allowed:
                if name == above:
                    if depth == len(names):
                        return allowed
                    if allowed.objects:  # `p IS NOT NULL` announces whatever lies below p
                        return present(path)
        return nothing(path)

    def determines(self, event: Event) -> bool:
        """Whether the event is one of those announced."""
        return all(value in self.get(path) for path, value in event.flat.items())

    def covers(self, other: Advertisement) -> bool:
        """Whether every event that the other announces is announced here too; no, if it cannot be told."""
        return all(allowed.issubset(self.get(path)) for path, allowed in other.allowed)

    def intersects(self, subscription: Filter) -> bool:
        """Whether some event is announced and matches the subscription; yes, if it cannot be told."""
        return any(self._meets(conjunction) for conjunction in subscription.conjunctions)

    def _meets(self, conjunction: Conjunction) -> bool:
        return all(
            wanted.missing
            or wanted.overlaps(self.get(path))
            or (wanted.objects and self._fills(path, conjunction))
            for path, wanted in conjunction.constraints
        )

    def _fills(self, path: str, conjunction: Conjunction) -> bool:
        """Whether an announced attribute below `path` can occur, so that `path` is an object."""
        return any(
            name.startswith(path + ".") and allowed.overlaps(conjunction.get(name))
            for name, allowed in self.allowed
        )


def _sets(expression: syntax.Expression) -> dict[str, ValueSet]:
    """Return the values that an expression gives each attribute."""
    if isinstance(expression, syntax.Test):
        return {expression.path: expression.meaning.true_for}
    if isinstance(expression, syntax.Not) and isinstance(expression.operand, syntax.Test):
        return {expression.operand.path: expression.operand.meaning.negation()}
    if isinstance(expression, (syntax.Not, syntax.Constant)):
        raise AdvertisementError(
            "An advertisement lists the values of attributes: leave out TRUE and FALSE, and put NOT before a "
            "single comparison."
        )
    sets: dict[str, list[ValueSet]] = {}
    for operand in expression.operands:
        for path, allowed in _sets(operand).items():
            sets.setdefault(path, []).append(allowed)
    join = and_ if isinstance(expression, syntax.All) else or_
    return {path: balanced(join, several) for path, several in sets.items()}
