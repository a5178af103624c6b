"""Subscriptions: filters over events, in one normal form.

A `Filter` is an OR of conjunctions; a `Conjunction` gives for each attribute it speaks of the set of values
it allows. `Filter.parse` reads the SQL text, pushes NOT down to the tests, distributes OR over AND within
limits and simplifies, so that filters of equal meaning are mostly equal objects; `str` writes the normal
form back as SQL. How filters relate to each other is `algebra.py`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import and_, or_

from sojourn.errors import SojournError
from sojourn.interest import syntax
from sojourn.interest.comparisons import anything, complement
from sojourn.interest.events import TOPIC, Event
from sojourn.interest.render import constraint_text, join_texts, spark_text
from sojourn.interest.topics import TopicPattern
from sojourn.interest.topicsets import TopicSet
from sojourn.interest.values import ValueSet
from sojourn.interest.work import TopicsTooComplexError, reading

CONJUNCTIONS_MAX = 64


class FilterTooComplexError(SojournError):
    """A filter needs more room in normal form than is allowed."""


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """Constraints that an event must meet all; none of them allows everything, none is empty."""

    constraints: tuple[tuple[str, ValueSet], ...]
    """For each attribute the values it may have, ordered by path."""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.constraints))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conjunction):
            return NotImplemented
        return self is other or (self._hash == other._hash and self.constraints == other.constraints)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Conjunction], tuple[tuple[tuple[str, ValueSet], ...]]]:
        return Conjunction, (self.constraints,)

    def __str__(self) -> str:
        return join_texts([constraint_text(path, allowed) for path, allowed in self.constraints]) or "TRUE"

    def spark_sql(self) -> str:
        """Write the conjunction for Spark SQL."""
        return join_texts([spark_text(path, allowed) for path, allowed in self.constraints]) or "TRUE"

    def matches(self, event: Event) -> bool:
        """Whether an event meets every constraint."""
        flat = event.flat
        for path, allowed in self.constraints:
            value = flat.get(path)
            if value is not None:
                if value not in allowed:
                    return False
            elif not (allowed.objects if path in event.objects else allowed.missing):
                return False
        return True

    def get(self, path: str) -> ValueSet:
        """Return the values an attribute may have."""
        for name, allowed in self.constraints:
            if name == path:
                return allowed
        return anything(path)

    def covers(self, other: Conjunction) -> bool:
        """Whether every event that meets the other meets this one, judged attribute by attribute."""
        return covers_box(self, dict(other.constraints))


def covers_box(wide: Conjunction, narrow: dict[str, ValueSet]) -> bool:
    """Whether constraints, given by attribute, lie inside those of a conjunction."""
    if len(wide.constraints) > len(narrow):
        return False
    for path, allowed in wide.constraints:
        narrower = narrow.get(path)
        if narrower is None or not (narrower is allowed or narrower.issubset(allowed)):
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A subscription's condition: an OR of conjunctions; none at all matches nothing."""

    conjunctions: tuple[Conjunction, ...]
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.conjunctions))

    @classmethod
    def parse(cls, text: str, *, limited: bool = True) -> Filter:
        """Read SQL such as `product = 'computer' AND price <= 1600`, or refuse it with its position.

        What `str` wrote of a filter is read without limits on its length.
        """
        try:
            with reading(text, limited=limited):
                return cls.union(_distribute(syntax.read(text, limited=limited), negated=False))
        except TopicsTooComplexError as error:
            raise FilterTooComplexError(str(error)) from None

    @classmethod
    def of_topic(cls, pattern: TopicPattern) -> Filter:
        """Make the filter `topic LIKE` a pattern, without the way through a text."""
        return cls((Conjunction(((TOPIC, ValueSet(strings=TopicSet.of(pattern))),)),))

    def on_topics(self, pattern: TopicPattern) -> Filter:
        """Make what `topic LIKE` a pattern `AND` this one is, which says nothing of topics itself."""
        topics = (TOPIC, ValueSet(strings=TopicSet.of(pattern)))
        joined = (tuple(sorted((*each.constraints, topics), key=_path)) for each in self.conjunctions)
        return Filter(tuple(Conjunction(constraints) for constraints in joined))

    @classmethod
    def union(cls, conjunctions: Iterable[Conjunction]) -> Filter:
        """Make the filter that any of the conjunctions satisfies, simplified."""
        return cls(simplify(conjunctions))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        return self is other or (self._hash == other._hash and self.conjunctions == other.conjunctions)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Filter], tuple[tuple[Conjunction, ...]]]:
        return Filter, (self.conjunctions,)

    def __str__(self) -> str:
        return " OR ".join(str(conjunction) for conjunction in self.conjunctions) or "FALSE"

    def spark_sql(self) -> str:
        """Write the filter for Spark SQL, which differs where topics have wildcards."""
        return " OR ".join(f"({part.spark_sql()})" for part in self.conjunctions) or "FALSE"

    def matches(self, event: Event) -> bool:
        """Whether an event satisfies the filter."""
        return any(conjunction.matches(event) for conjunction in self.conjunctions)


def _path(constraint: tuple[str, ValueSet]) -> str:
    return constraint[0]


def conjunction_of(constraints: dict[str, ValueSet]) -> Conjunction | None:
    """Make a conjunction in normal form, or None when no event can meet it."""
    kept: list[tuple[str, ValueSet]] = []
    for path in sorted(constraints):
        allowed = constraints[path]
        if not allowed:
            return None
        if not allowed.missing or complement(path, allowed):  # what may be missing is all that can be all
            kept.append((path, allowed))
    if not is_consistent(dict(kept)):
        return None
    return Conjunction(tuple(kept))


def is_consistent(constraints: dict[str, ValueSet]) -> bool:
    """Whether paths that lie below each other leave room for an event.

    Where `p.q` is present, `p` is an object: it is then neither missing nor a plain value.
    """
    for path, allowed in constraints.items():
        if "." in path and not allowed.missing:
            names = path.split(".")
            for depth in range(1, len(names)):
                above = constraints.get(".".join(names[:depth]))
                if above is not None and not above.objects:
                    return False
    return True


def _distribute(expression: syntax.Expression, *, negated: bool) -> list[Conjunction]:
    """Turn an expression, or its negation, into conjunctions of which one must hold."""
    if isinstance(expression, syntax.Not):
        return _distribute(expression.operand, negated=not negated)
    if isinstance(expression, syntax.Constant):
        return [Conjunction(())] if expression.value != negated else []
    if isinstance(expression, syntax.Test):
        meaning = expression.meaning
        allowed = meaning.negation() if negated else meaning.true_for
        conjunction = conjunction_of({expression.path: allowed})
        return [conjunction] if conjunction is not None else []
    parts = [_distribute(operand, negated=negated) for operand in expression.operands]
    if isinstance(expression, syntax.Any) != negated:
        return _any_of(parts)
    return _all_of(parts)


def _any_of(parts: list[list[Conjunction]]) -> list[Conjunction]:
    """Join alternatives; those about one and the same attribute become one set."""
    about_one: dict[str, list[ValueSet]] = {}
    several: dict[Conjunction, None] = {}
    for part in parts:
        for conjunction in part:
            if len(conjunction.constraints) == 1:
                path, allowed = conjunction.constraints[0]
                about_one.setdefault(path, []).append(allowed)
            else:
                several[conjunction] = None
    for path, sets in about_one.items():
        united = conjunction_of({path: balanced(or_, sets)})
        assert united is not None, "a union of sets that are not empty is not empty"
        several[united] = None
    _check_count(len(several))
    return list(several)


def _all_of(parts: list[list[Conjunction]]) -> list[Conjunction]:
    """Distribute AND over the alternatives of each part."""
    # What has one alternative multiplies nothing, so it goes first and narrows the rest early.
    certain: dict[str, list[ValueSet]] = {}
    for part in parts:
        if len(part) == 1:
            for path, allowed in part[0].constraints:
                certain.setdefault(path, []).append(allowed)
    product: list[dict[str, ValueSet]] = [{path: balanced(and_, sets) for path, sets in certain.items()}]
    if not all(product[0].values()):
        return []
    for part in sorted((part for part in parts if len(part) != 1), key=len):
        _check_count(len(product) * len(part))
        longer: list[dict[str, ValueSet]] = []
        for left in product:
            for right in part:
                both = dict(left)
                for path, allowed in right.constraints:
                    both[path] = both[path] & allowed if path in both else allowed
                if all(both[path] for path, _ in right.constraints):
                    longer.append(both)
        product = longer
    # What is met by both sides is still no constraint that allows everything, so these are in normal form.
    distinct = {Conjunction(tuple(sorted(both.items()))): None for both in product if is_consistent(both)}
    return list(distinct)


def balanced(join: Callable[[ValueSet, ValueSet], ValueSet], sets: list[ValueSet]) -> ValueSet:
    """Join sets in pairs, so that no large one is walked again for each small one."""
    while len(sets) > 1:
        pairs = zip(sets[::2], sets[1::2], strict=False)
        sets = [join(one, other) for one, other in pairs] + sets[len(sets) & ~1 :]
    return sets[0]


def _check_count(count: int) -> None:
    if count > CONJUNCTIONS_MAX:
        raise FilterTooComplexError(
            f"With OR distributed over AND the filter has {count} alternatives; {CONJUNCTIONS_MAX} is the "
            "most: subscribe several times with simpler filters."
        )


def simplify(conjunctions: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    """Drop what another conjunction covers, and join two that differ in one attribute.

    Where topics are too entangled, what could be dropped or joined stays as it is.
    """
    distinct = list(set(conjunctions))
    if len(distinct) <= 1:
        return tuple(distinct)
    texts = _Texts()
    # Those with few constraints cover most: looking at them first leaves less to compare.
    waiting = sorted(distinct, key=lambda c: (len(c.constraints), texts.of(c)), reverse=True)
    kept: list[tuple[Conjunction, dict[str, ValueSet]]] = []
    while waiting:
        new = waiting.pop()
        box = dict(new.constraints)
        if any(covers_box(old, box) for old, _ in kept):
            continue
        kept = [(old, old_box) for old, old_box in kept if not covers_box(new, old_box)]
        for i, (old, _) in enumerate(kept):
            joined = _join(old, new)
            if joined is not None:
                del kept[i]
                waiting.append(joined)
                break
        else:
            kept.append((new, box))
    return tuple(sorted((conjunction for conjunction, _ in kept), key=texts.of))


class _Texts:
    """Writes conjunctions that share most of their constraints, each constraint once."""

    def __init__(self) -> None:
        self.written: dict[tuple[str, int], tuple[ValueSet, tuple[str, bool]]] = {}

    def of(self, conjunction: Conjunction) -> str:
        texts = []
        for path, allowed in conjunction.constraints:
            known = self.written.get((path, id(allowed)))
            if known is None:  # the set is kept beside its text, so that its id stays its own
                known = self.written[path, id(allowed)] = allowed, constraint_text(path, allowed)
            texts.append(known[1])
        return join_texts(texts)


def _join(one: Conjunction, other: Conjunction) -> Conjunction | None:
    """Return one conjunction for two that differ in a single attribute's values, or None."""
    if len(one.constraints) != len(other.constraints):
        return None
    different: str | None = None
    for (path, allowed), (other_path, other_allowed) in zip(one.constraints, other.constraints, strict=True):
        if path != other_path:
            return None
        if allowed is not other_allowed and allowed != other_allowed:
            if different is not None:
                return None
            different = path
    assert different is not None, "equal conjunctions cover each other"
    constraints = dict(one.constraints)
    try:
        constraints[different] = constraints[different] | other.get(different)
        return conjunction_of(constraints)
    except TopicsTooComplexError:
        return None
