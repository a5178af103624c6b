"""Interests by all the values they ask for, attribute after attribute.

A conjunction is filed under the set of values of its most telling constraint, there under that of the next,
and so on (`shelves.py`): single values first, then the topic, then other sets that must be met. What covers a
conjunction then stands where every set on the way contains the conjunction's, and a search leaves out whole
parts of the tree at the first that does not. After `CONSTRAINTS_MAX` constraints the rest is left to whoever
compares.

Where `p.q` occurs `p` is an object, and where `p` is a plain value `p.q` is missing: a search draws these
conclusions first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sojourn.interest.comparisons import missing
from sojourn.interest.events import TOPIC
from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.values import ValueSet
from sojourn.routing.meter import Meter
from sojourn.routing.shelves import Place

CONSTRAINTS_MAX = 4

Look = Callable[[str], ValueSet | None]
"""What is said of an attribute; None for nothing."""


class BoxTree:
    """Numbered interests by the constraints of their conjunctions."""

    def __init__(self) -> None:
        self._root = Place()
        self._nested: dict[str, dict[str, None]] = {}
        """By top-level attribute: the attributes below it that some conjunction speaks of."""

    def __bool__(self) -> bool:
        return not self._root.is_bare()

    def file(self, interest: int, wanted: Filter) -> None:
        """Put an interest where a search for any of its conjunctions finds it."""
        for constraints in _filings(wanted):
            place = self._root
            for path, allowed in constraints:
                place = place.shelf(path).make(allowed)
                if "." in path:
                    self._nested.setdefault(path.partition(".")[0], {})[path] = None
            place.interests[interest] = None

    def covering(self, narrow: Conjunction, meter: Meter) -> Iterator[int]:
        """The interests with a conjunction that may contain this one, wide ones mostly first."""
        return self._covering(self._root, self._tightened(narrow), meter)

    def _covering(self, place: Place, box: dict[str, ValueSet], meter: Meter) -> Iterator[int]:
        yield from place.interests
        shelves = place.shelves
        if not shelves:
            return
        for path in box if len(box) < len(shelves) else shelves:
            shelf, allowed = shelves.get(path), box.get(path)
            if shelf is None or allowed is None:
                continue
            for inside in shelf.containing(allowed, meter):
                if not meter.step():
                    return
                yield from self._covering(inside, box, meter)

    def _tightened(self, narrow: Conjunction) -> dict[str, ValueSet]:
        """The constraints of a conjunction, and what follows from them for attributes above and below."""
        box = dict(narrow.constraints)
        for path, allowed in narrow.constraints:
            if "." in path and not allowed.missing:
                names = path.split(".")
                for depth in range(1, len(names)):
                    box[".".join(names[:depth])] = ValueSet(objects=True)
        if not self._nested:
            return box
        for path, allowed in list(box.items()):
            if not allowed.objects:
                below = self._nested.get(path.partition(".")[0], ())
                box.update((name, missing(name)) for name in below if name.startswith(path + "."))
        return box

    def meeting(self, look: Look, meter: Meter) -> Iterator[int]:
        """The interests with a conjunction that may be met by what is said of each attribute."""
        return self._meeting(self._root, look, meter)

    def _meeting(self, place: Place, look: Look, meter: Meter) -> Iterator[int]:
        yield from place.interests
        for path, shelf in (place.shelves or {}).items():
            said = look(path)
            for inside in shelf.every() if said is None else shelf.overlapping(said, meter):
                if not meter.step():
                    return
                yield from self._meeting(inside, look, meter)


def _filings(wanted: Filter) -> Iterable[tuple[tuple[str, ValueSet], ...]]:
    """The constraints that each conjunction is filed by, the most telling first."""
    return dict.fromkeys(
        tuple(sorted(conjunction.constraints, key=_rank)[:CONSTRAINTS_MAX])
        for conjunction in wanted.conjunctions
    )


def _rank(constraint: tuple[str, ValueSet]) -> tuple[int, str]:
    path, allowed = constraint
    if allowed.only_value is not None:
        return 0, path
    if allowed.missing:
        return 3, path
    return (1 if path == TOPIC else 2), path
