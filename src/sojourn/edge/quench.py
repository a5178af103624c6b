"""Quenching: a source knows the OR of all subscriptions and keeps back what none of them wants (section 3.2).

The broker's half is `CombinedInterest`, the source's `QuenchFilter`; between them go `QuenchUpdate`s, plain
data that any link can carry. The combined expression is kept small by `merge`: what another alternative
covers is left out, and two that differ in one attribute become one.

Rules:
- A version names one state of the expression. An update leads from one version to another, by the numbers of
  alternatives dropped and the texts of those added; from -1 it is the whole expression. A source that
  cannot use an update asks for a whole one, so updates may be lost or repeated.
- Wider is safe: an expression that lets too much through costs bytes and loses nothing. So a new
  subscription is told at once, and one that left only after `narrow_after` of them did.
- At most `alternatives_max` alternatives are told; beyond it, neighbours are joined into wider ones.
- A source that knows no expression keeps nothing back.
- Combining may be given a limit, in steps (`interest/work.py`). Where that is not enough, a
  `TopicsTooComplexError` is raised, and the combined interest is of no further use: whoever keeps it tells
  sources to send everything.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from math import inf
from typing import NamedTuple

from sojourn.errors import SojournError
from sojourn.interest.algebra import STEPS_PER_LOOK, Looks, covers, merge
from sojourn.interest.events import Event
from sojourn.interest.filters import Conjunction, Filter, conjunction_of
from sojourn.interest.topicsets import TopicSet
from sojourn.interest.values import ValueSet
from sojourn.interest.work import TopicsTooComplexError, Work, current, sharing, within

UNKNOWN = -1
"""The version of a source that knows no expression."""

ALTERNATIVES_MAX = 64
HISTORY_MAX = 256
"""Versions back to which differences are told; a source further behind gets the whole expression."""
PARSED_MAX = 1024
NARROW_STEPS_MAX = 2_000_000
"""Work with topics for which what is left is found one by one; beyond it, all is put together anew."""
GATHER_STEPS = 200_000
GATHER_STEPS_PER_PAIR = 8
"""Work with topics that joining alternatives may take; beyond it they stay apart."""
GROUP_STEPS, PAIR_STEPS, SIZES_A_STEP = 4, 4, 2
"""What it takes to look at a constraint when alternatives are grouped, and to compare two alternatives; and
how many ranges of values are looked at in a step."""
RANGES_A_STEP = 4
"""How many pairs of ranges, of two alternatives, are compared in a step."""
HEADER_BYTES = 12
NUMBER_BYTES = 2


class QuenchError(SojournError):
    """Quenching cannot be set up as asked."""


class QuenchUpdate(NamedTuple):
    """From one version of the combined expression to another."""

    version: int
    base: int
    """The version it starts from; UNKNOWN where it is the whole expression."""
    dropped: tuple[int, ...]
    added: tuple[tuple[int, str], ...]
    """Alternatives by number, each as the text of a filter."""

    @property
    def size_bytes(self) -> int:
        """What it takes on a link: numbers, and texts with a length before each."""
        texts = sum(2 * NUMBER_BYTES + len(text.encode()) for _, text in self.added)
        return HEADER_BYTES + NUMBER_BYTES * len(self.dropped) + texts


class CombinedInterest:
    """The OR of all active subscriptions of a broker, in versions."""

    def __init__(
        self, *, narrow_after: int = 1, alternatives_max: int = ALTERNATIVES_MAX, steps_max: float = inf
    ) -> None:
        if narrow_after < 1:
            raise QuenchError(f"narrow_after must be at least 1, not {narrow_after}.")
        if alternatives_max < 1:
            raise QuenchError(f"alternatives_max must be at least 1, not {alternatives_max}.")
        self._narrow_after = narrow_after
        self._alternatives_max = alternatives_max
        self._steps_max = steps_max
        """What a change may take."""
        self._active: Counter[Filter] = Counter()
        self._left = 0
        """Subscriptions that have gone and may still be in the expression."""
        self._gone: list[Conjunction] = []
        """What they said."""
        self._loose: set[Filter] = set()
        """Active subscriptions that perhaps only several alternatives together cover."""
        self._is_widened = False
        """Whether there were too many alternatives for what is told to be exact."""
        self._numbers: dict[Conjunction, int] = {}
        self._next_number = 0
        self._texts: dict[int, str] = {}
        self.version = 0
        self._history: OrderedDict[int, frozenset[int]] = OrderedDict({0: frozenset()})

    @property
    def expression(self) -> Filter:
        """What sources are told."""
        return Filter(tuple(self._numbers))

    def add(self, wanted: Filter) -> bool:
        """Take in a subscription; says whether sources must be told."""
        self._active[wanted] += 1
        if self._active[wanted] > 1:
            return False
        with self._limited() as work:
            if _covers(self.expression, wanted, work):
                self._loose.add(wanted)
                return False
            parts = gathered((*self._numbers, *wanted.conjunctions))
            new = [part for part in parts if part not in self._numbers]
            _spend_on_pairs(parts, len(new))
            return self._become(
                part for part in parts if part in new or not any(wide.covers(part) for wide in new)
            )

    def add_all(self, every: Iterable[Filter]) -> bool:
        """Take in many subscriptions at once; says whether sources must be told."""
        self._active.update(every)
        with self._limited():
            return self._rebuild()

    def remove(self, wanted: Filter) -> bool:
        """Let one subscription go; says whether sources are told now."""
        if self._active[wanted] < 1:
            raise QuenchError(f"The subscription {str(wanted)[:80]!r} is not active; remove it once.")
        self._active[wanted] -= 1
        if self._active[wanted]:
            return False
        del self._active[wanted]
        self._loose.discard(wanted)
        self._gone += wanted.conjunctions
        self._left += 1
        return self._left >= self._narrow_after and self.narrow()

    def narrow(self) -> bool:
        """Leave out what nobody wants any more; says whether sources must be told."""
        with self._limited():
            return self._narrow()

    def _narrow(self) -> bool:
        if self._is_widened:
            return self._rebuild()
        gone, self._gone, self._left = self._gone, [], 0
        # An alternative is made of whole conjunctions, so one that left is only in those that cover it. What
        # is active and in none of the others is put together anew.
        around = current(inf)
        around.spend(PAIR_STEPS * len(self._numbers) * (len(gone) + len(self._active)))
        given = min(NARROW_STEPS_MAX, around.left)
        with within(Work(given)) as work:
            touched = [part for part in self._numbers if any(part.covers(each) for each in gone)]
            rest = [part for part in self._numbers if part not in touched]
            again = [
                conjunction
                for wanted in self._active
                for conjunction in wanted.conjunctions
                if (wanted in self._loose or any(part.covers(conjunction) for part in touched))
                and not any(part.covers(conjunction) for part in rest)
            ]
        around.left -= given - work.left
        around.spend(0)
        if work.left < 0:  # some covering was overlooked, and what is wanted must not be lost
            return self._rebuild()
        self._loose.clear()
        return self._become(gathered((*rest, *again)))

    def _rebuild(self) -> bool:
        self._gone, self._left = [], 0
        self._loose.clear()
        every = (conjunction for wanted in self._active for conjunction in wanted.conjunctions)
        return self._become(_merged(gathered(every)))

    @contextmanager
    def _limited(self) -> Iterator[Work]:
        """Let what is done inside take no more than a change may, and refuse a result that took more.

        Several changes may share what they take (`within`): then there is what is left of that.
        """
        around = current(inf)
        given = min(self._steps_max, around.left)
        if given == inf:
            yield Work(inf)
            return
        work = Work(given)
        try:
            with within(work):
                yield work
        finally:
            around.left -= given - work.left
        work.spend(0)

    def update_from(self, version: int) -> QuenchUpdate:
        """What brings a source from the version it knows to the present one."""
        known = self._history.get(version, frozenset())
        now = self._history[self.version]
        base = version if version in self._history else UNKNOWN
        added = tuple((number, self._texts[number]) for number in sorted(now - known))
        whole = tuple((number, self._texts[number]) for number in sorted(now))
        step = QuenchUpdate(self.version, base, tuple(sorted(known - now)), added)
        everything = QuenchUpdate(self.version, UNKNOWN, (), whole)
        return step if step.size_bytes <= everything.size_bytes else everything

    def _become(self, alternatives: Iterable[Conjunction]) -> bool:
        exact = tuple(alternatives)
        current(inf).spend(sum(map(_size, exact)))  # to write them
        kept = widened(exact, self._alternatives_max)
        self._is_widened = len(kept) < len(exact)
        numbers = {}
        for conjunction in kept:
            number = self._numbers.get(conjunction)
            if number is None:
                number = self._next_number
                self._next_number += 1
                self._texts[number] = str(conjunction)
            numbers[conjunction] = number
        if numbers.keys() == self._numbers.keys():
            return False
        for gone in set(self._numbers.values()).difference(numbers.values()):
            del self._texts[gone]
        self._numbers = numbers
        self.version += 1
        self._history[self.version] = frozenset(numbers.values())
        if len(self._history) > HISTORY_MAX:
            self._history.popitem(last=False)
        return True


class QuenchFilter:
    """What a source knows of the combined expression."""

    __slots__ = ("_parts", "comparisons", "version")

    def __init__(self) -> None:
        self.version = UNKNOWN
        self._parts: dict[int, Filter] = {}
        self.comparisons = 0
        """Single attributes compared so far: the work that quenching costs a source."""

    @property
    def size(self) -> int:
        """How many alternatives it holds."""
        return len(self._parts)

    def apply(self, update: QuenchUpdate) -> bool:
        """Take an update; False means that it starts elsewhere, and a whole one is to be asked for."""
        if update.base not in (UNKNOWN, self.version):
            # An update that was already taken, or is overtaken, changes nothing.
            return update.version <= self.version
        if update.base == UNKNOWN:
            self._parts.clear()
        for number in update.dropped:
            self._parts.pop(number, None)
        for number, text in update.added:
            self._parts[number] = _parsed(text)
        self.version = update.version
        return True

    def wants(self, event: Event) -> bool:
        """Whether some subscription may want an event."""
        if self.version == UNKNOWN:
            return True
        flat, objects = event.flat, event.objects
        for part in self._parts.values():
            for conjunction in part.conjunctions:
                for path, allowed in conjunction.constraints:
                    self.comparisons += 1
                    value = flat.get(path)
                    if value is not None:
                        if value not in allowed:
                            break
                    elif not (allowed.objects if path in objects else allowed.missing):
                        break
                else:
                    return True
        return False


@lru_cache(maxsize=PARSED_MAX)
def _parsed(text: str) -> Filter:
    """A filter's text, read; sources beside one broker are told the same texts."""
    return Filter.parse(text)


def gathered(alternatives: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    """The same in fewer alternatives: those that differ in one attribute only, joined all at once.

    `merge` does this too, pair by pair; gathering first spares it comparing all with all.
    """
    kept = list(dict.fromkeys(alternatives))
    paths = sorted({path for conjunction in kept for path, _ in conjunction.constraints})
    while paths:
        # First the attribute that joins most: joining by another one first could keep these apart.
        looked = (
            GROUP_STEPS * sum(len(each.constraints) for each in kept) + sum(map(_size, kept)) // SIZES_A_STEP
        )
        current(inf).spend(len(paths) * looked)
        path, groups = min(((path, _grouped(kept, path)) for path in paths), key=lambda found: len(found[1]))
        paths.remove(path)
        kept = []
        for (_, rest), group in groups.items():
            if len(group) == 1:
                kept.append(group[0])
                continue
            with sharing(GATHER_STEPS + GATHER_STEPS_PER_PAIR * len(group) ** 2):
                for either in _joined([each.get(path) for each in group]):
                    joined = conjunction_of({**dict(rest), path: either})
                    assert joined is not None, "a union of alternatives that can be met can be met"
                    kept.append(joined)
    return tuple(kept)


def _joined(sets: list[ValueSet]) -> list[ValueSet]:
    """Unite sets in pairs, and pairs of pairs; those that are too entangled together stay apart."""
    apart: list[ValueSet] = []
    while len(sets) > 1:
        longer = sets[len(sets) & ~1 :]
        for one, other in zip(sets[::2], sets[1::2], strict=False):
            try:
                current(inf).spend(_set_size(one) + _set_size(other))
                longer.append(one | other)
            except TopicsTooComplexError:
                apart += (one, other)
        sets = longer
    return apart + sets


def _grouped(
    alternatives: Iterable[Conjunction], path: str
) -> dict[tuple[bool, tuple[tuple[str, ValueSet], ...]], list[Conjunction]]:
    """Alternatives that are equal but for one attribute, together; those without it by themselves."""
    groups: dict[tuple[bool, tuple[tuple[str, ValueSet], ...]], list[Conjunction]] = {}
    for conjunction in alternatives:
        rest = tuple(each for each in conjunction.constraints if each[0] != path)
        constrained = len(rest) < len(conjunction.constraints)
        groups.setdefault((constrained, rest), []).append(conjunction)
    return groups


def _set_size(allowed: ValueSet) -> int:
    """About how much there is to look at in a set."""
    strings = allowed.strings
    topics = strings.writing_steps if isinstance(strings, TopicSet) else len(strings.ranges)
    return len(allowed.numbers.ranges) + topics


def _size(conjunction: Conjunction) -> int:
    return sum(_set_size(allowed) for _, allowed in conjunction.constraints)


def _ranges(conjunction: Conjunction) -> int:
    """How many ranges it has: those of one are compared with each of another's."""
    sets = [allowed for _, allowed in conjunction.constraints]
    strings = [each.strings for each in sets]
    return sum(len(each.numbers.ranges) for each in sets) + sum(
        len(each.ranges) for each in strings if not isinstance(each, TopicSet)
    )


def _spend_on_pairs(alternatives: Collection[Conjunction], others: int) -> None:
    """Count what it takes to compare alternatives with so many others of their kind."""
    sizes = sum(map(_size, alternatives)) // SIZES_A_STEP
    steps = others * (PAIR_STEPS * len(alternatives) + sizes)
    if len(alternatives) > 1:
        steps += sum(map(_ranges, alternatives)) ** 2 // RANGES_A_STEP
    current(inf).spend(steps)


def _merged(alternatives: Collection[Conjunction]) -> tuple[Conjunction, ...]:
    _spend_on_pairs(alternatives, len(alternatives))
    return merge([Filter(tuple(alternatives))]).conjunctions


def _covers(wide: Filter, narrow: Filter, work: Work) -> bool:
    """Whether a filter covers another, as far as that can be told with the work that is left."""
    if work.left == inf:
        return covers(wide, narrow)
    widest = max(map(_size, wide.conjunctions), default=0)
    price = STEPS_PER_LOOK + widest * max(map(_size, narrow.conjunctions), default=0) // RANGES_A_STEP
    # Half of it: what is not covered is to be joined with the rest.
    looks = Looks(given := max(0, work.left) / 2 / price)
    is_covered = covers(wide, narrow, looks)
    work.spend(int((given - max(0, looks.left)) * price))
    return is_covered


def widened(alternatives: Iterable[Conjunction], most: int) -> tuple[Conjunction, ...]:
    """At most so many alternatives that let through all that these do, and perhaps more."""
    kept = list(alternatives)
    while len(kept) > most:
        kept.sort(key=str)
        # Neighbours in the order of their texts speak of the same values first: joining them adds least.
        pairs = min(len(kept) - most, len(kept) // 2)
        joined = [_hull(kept[2 * at], kept[2 * at + 1]) for at in range(pairs)]
        kept = list(_merged([*joined, *kept[2 * pairs :]]))
    return tuple(kept)


def _hull(one: Conjunction, other: Conjunction) -> Conjunction:
    """The narrowest single conjunction above two: what both constrain, allowing what either allows."""
    mine, theirs = dict(one.constraints), dict(other.constraints)
    either: dict[str, ValueSet] = {}
    for path in mine.keys() & theirs.keys():
        with suppress(TopicsTooComplexError):  # else any topic will do
            either[path] = mine[path] | theirs[path]
    found = conjunction_of(either)
    assert found is not None, "what two conjunctions allow together is not nothing"
    return found
