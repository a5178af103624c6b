"""How filters relate: covering, intersection, examples, and the merge of many into one.

`intersects` and `merge` are exact and cheap, unless topic patterns are so entangled that it takes too long
to tell: then two filters may intersect, and are not merged. `covers` asks whether a union of boxes contains
a box, which no known method answers quickly in every case (it is co-NP-complete); it cuts what is not yet
covered into smaller boxes, and is exact as long as the cutting stays within `PIECES_MAX`, and all of it
within the `Looks` that it is given. Beyond that it answers no, the safe side: a broker that overlooks a
covering sends a subscription too many and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from sojourn.interest.comparisons import anything, complement
from sojourn.interest.events import TOPIC, Event
from sojourn.interest.filters import Conjunction, Filter, is_consistent
from sojourn.interest.topicsets import TopicSet
from sojourn.interest.values import Scalar, ValueSet
from sojourn.interest.work import TopicsTooComplexError, Work, within

PIECES_MAX = 20_000
STEPS_PER_LOOK = 16
"""Steps with topics (`work.py`) that take about as long as comparing two conjunctions."""
STEPS_MAX = 400_000
"""What a question may take where nobody said less."""

Box = dict[str, ValueSet]


class Looks:
    """How many comparisons of two conjunctions, or work with topics as long, questions may still take."""

    __slots__ = ("left",)

    def __init__(self, left: float) -> None:
        self.left = left

    def take(self, count: float) -> bool:
        """Whether there are so many left, which are then fewer."""
        self.left -= count
        return self.left >= 0


def covers(wide: Filter, narrow: Filter, looks: Looks | None = None) -> bool:
    """Whether every event that matches `narrow` matches `wide`; no, if there are not enough looks to tell."""
    looks = looks or Looks(inf)
    steps = min(STEPS_MAX, max(0, looks.left) * STEPS_PER_LOOK)
    with within(Work(steps)) as work:
        try:
            is_covered = _covers(wide, narrow, looks)
        except TopicsTooComplexError:
            is_covered = False
    return looks.take((steps - work.left) / STEPS_PER_LOOK) and is_covered


def _covers(wide: Filter, narrow: Filter, looks: Looks) -> bool:
    for conjunction in narrow.conjunctions:
        if not looks.take(len(wide.conjunctions)):
            return False
        if any(other.covers(conjunction) for other in wide.conjunctions):
            continue
        if not wide.conjunctions:
            return False
        if len(wide.conjunctions) == 1 and not _has_nested(wide, conjunction):
            return False  # one box contains another only attribute by attribute
        paths = {path for other in wide.conjunctions for path, _ in other.constraints}
        search = _CoverSearch(paths.union(path for path, _ in conjunction.constraints), looks)
        if not search.is_covered(_box(conjunction), list(wide.conjunctions)):
            return False
    return True


def intersects(one: Filter, other: Filter) -> bool:
    """Whether some event matches both; yes, if topics are too entangled to tell."""
    with within(Work(STEPS_MAX)):
        try:
            return any(_meet(a, b) is not None for a in one.conjunctions for b in other.conjunctions)
        except TopicsTooComplexError:
            return True


def common_example(one: Filter, other: Filter) -> Event | None:
    """Return an event that matches both, or None when there is none."""
    for a in one.conjunctions:
        for b in other.conjunctions:
            both = _meet(a, b)
            if both is not None:
                return _example(both)
    return None


def example(one: Filter) -> Event | None:
    """Return an event that matches, or None when none does."""
    return common_example(one, EVERYTHING)


def merge(filters: Iterable[Filter]) -> Filter:
    """Return the one filter that matches what any of them matches: what a quenched source knows."""
    return Filter.union(conjunction for each in filters for conjunction in each.conjunctions)


EVERYTHING = Filter((Conjunction(()),))
NOTHING = Filter(())


def _meet(one: Conjunction, other: Conjunction) -> Box | None:
    """Return the constraints of both together, or None when no event meets them."""
    both = _box(one)
    for path, allowed in other.constraints:
        mine = both.get(path)
        if mine is not None:
            allowed = mine & allowed  # noqa: PLW2901 - narrowed on the way
            if not allowed:
                return None
        both[path] = allowed
    return both if is_consistent(both) else None


def _box(conjunction: Conjunction) -> Box:
    """Return the constraints of a conjunction by attribute; no combination of them will be written."""
    box = dict(conjunction.constraints)
    topics = box.get(TOPIC)
    if topics is not None and isinstance(topics.strings, TopicSet):
        box[TOPIC] = replace(topics, strings=topics.strings.unwritten())
    return box


def _has_nested(wide: Filter, narrow: Conjunction) -> bool:
    return any("." in path for part in (*wide.conjunctions, narrow) for path, _ in part.constraints)


class _CoverSearch:
    """Decides whether a box lies inside a union of conjunctions, by cutting it along their constraints."""

    def __init__(self, paths: set[str], looks: Looks) -> None:
        self.pieces_left = PIECES_MAX
        self.looks = looks
        # Pairs of paths of which one lies below the other: only these make attributes depend on each other.
        self.nested = [(above, path) for path in paths for above in paths if path.startswith(above + ".")]

    def is_covered(self, box: Box, parts: list[Conjunction]) -> bool:
        self.pieces_left -= 1
        if self.pieces_left < 0 or not self.looks.take(len(parts)):
            return False
        tight = self.tighten(box)
        if tight is None:
            return True  # nothing is left of the box
        best: tuple[list[str], Conjunction] | None = None
        relevant: list[Conjunction] = []
        for part in parts:
            cut = _cut_by(tight, part)
            if cut is None:
                continue
            if not cut:
                return True
            relevant.append(part)
            if best is None or len(cut) < len(best[0]):
                best = cut, part
        if best is None:
            return False
        cut, part = best
        rest = [other for other in relevant if other is not part]
        inside = dict(tight)
        for path in cut:
            whole, allowed = inside.get(path) or anything(path), part.get(path)
            outside = dict(inside)
            outside[path] = whole & complement(path, allowed)
            if not self.is_covered(outside, rest):
                return False
            inside[path] = whole & allowed
        return True

    def tighten(self, box: Box) -> Box | None:
        """Draw the conclusions for paths below each other; None when the box turns out empty."""
        if not all(box.values()):
            return None
        changed = bool(self.nested)
        while changed:
            changed = False
            for above, below in self.nested:
                upper = box.get(above) or anything(above)
                lower = box.get(below) or anything(below)
                if not lower.missing and upper != ValueSet(objects=True):
                    upper = upper & ValueSet(objects=True)
                    box, changed = {**box, above: upper}, True
                if not upper.objects and lower != ValueSet(missing=True):
                    lower = lower & ValueSet(missing=True)
                    box, changed = {**box, below: lower}, True
                if not upper or not lower:
                    return None
        return box


def _cut_by(box: Box, part: Conjunction) -> list[str] | None:
    """Return the attributes in which the box sticks out of a conjunction; None when they do not even meet."""
    cut: list[str] = []
    for path, allowed in part.constraints:
        whole = box.get(path)
        if whole is None:
            cut.append(path)  # a constraint never allows everything
        elif not whole.overlaps(allowed):
            return None
        elif not whole.issubset(allowed):
            cut.append(path)
    return cut


def _example(box: Box) -> Event:
    attributes: dict[str, object] = {}
    # Deeper paths first: they make the objects above them.
    for path in sorted(box, key=lambda p: -p.count(".")):
        allowed = box[path]
        if allowed.missing:
            continue
        holder, name = _holder_of(attributes, path)
        if name in holder:
            continue
        value: Scalar | None = allowed.witness()
        # Where only an object will do, it gets an attribute that no filter here speaks of.
        holder[name] = {_unused_name(path, box): True} if value is None else value
    topic = attributes.pop(TOPIC, None)
    return Event(attributes, topic=topic if isinstance(topic, str) else None)  # type: ignore[arg-type]  # values of attributes


def _holder_of(attributes: dict[str, object], path: str) -> tuple[dict[str, object], str]:
    *above, name = path.split(".")
    holder = attributes
    for step in above:
        below = holder.setdefault(step, {})
        assert isinstance(below, dict), "a consistent box has objects above its paths"
        holder = below
    return holder, name


def _unused_name(path: str, box: Box) -> str:
    name = "any"
    while f"{path}.{name}" in box:
        name += "_"
    return name
