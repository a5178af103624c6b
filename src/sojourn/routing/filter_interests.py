"""Interests that are filters and advertisements over attributes.

What could be related is found by the values asked for, and only that is compared. Subscriptions stand in a
`BoxTree` by the constraints of their conjunctions: it names those that may cover a subscription, and those
that an advertisement may meet. Subscriptions of several conjunctions stand in a second tree as well, since a
union may cover what none of its parts does; whatever it covers it also meets. Advertisements stand on a shelf
for each attribute they name.

What is named is compared exactly, by `covers` and `intersects`. How much is named for covering, and how long
it is compared, has limits: beyond them a covering is overlooked, which costs a message and loses nothing. No
intersection is ever overlooked.

Events are matched by a `Matcher`, under the subscriptions' numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from math import inf

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.algebra import STEPS_PER_LOOK, Looks, covers
from sojourn.interest.events import TOPIC, Event
from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.matcher import Matcher
from sojourn.interest.values import ValueSet
from sojourn.interest.work import Work, within
from sojourn.routing.box_tree import Look
from sojourn.routing.filing import Filing
from sojourn.routing.interests import Interests
from sojourn.routing.leftovers import Leftovers
from sojourn.routing.meter import Meter
from sojourn.routing.shelves import Place

STEPS_MAX = 1_000
"""Places that a search for what covers a subscription looks at."""
WIDER_MAX = 64
"""Interests that such a search names: any one of them will do."""
UNIONS_MAX, UNION_STEPS_MAX = 16, 100
"""Interests of several conjunctions that it names because they have something in common, and places that it
looks at for their sake: each takes some microseconds, and a session that moves may bring hundreds."""
REFILED_MAX = 200
"""Interests that are filed anew at once: some ten milliseconds."""

Constraint = tuple[str, ValueSet]


class FilterInterests(Interests):
    """The numbered advertisements and filters of one network."""

    def __init__(self, *, covering: bool = True) -> None:
        super().__init__(covering=covering)
        self.ads: dict[int, Advertisement] = {}
        self.subs: dict[int, Filter] = {}
        self._ad_numbers: dict[Advertisement, int] = {}
        self._sub_numbers: dict[Filter, int] = {}
        self.tried: dict[int, Filter] = {}
        """What events are compared with: all subscriptions, unless it is known which of them nobody has."""
        self.matcher = Matcher(self.tried)
        self._filing = Filing()
        self._fresh: Filing | None = None
        """What takes its place once everything stands there: it is without what was forgotten."""
        self._ads_waiting: deque[int] = deque()
        self._subs_waiting: deque[int] = deque()
        """What is still to be filed there."""
        self._gone_ads: dict[int, Advertisement] = {}
        self._gone_subs: dict[int, Filter] = {}
        """What was forgotten and still stands in the filing."""
        self.leftovers = Leftovers()
        """What was in the way, and is not freed yet."""

    def advertisement(self, ad: Advertisement) -> int:
        """The number of an advertisement, entered if it is new."""
        number = self._ad_numbers.get(ad)
        if number is not None:
            return number
        number = self.enter_ad(subs=self.subs_meeting(ad))
        self._ad_numbers[ad] = number
        self.ads[number] = ad
        self._filing.file_ad(number, ad)
        if self._fresh is not None:
            self._ads_waiting.append(number)
        return number

    def subscription(self, wanted: Filter) -> int:
        """The number of a subscription, entered if it is new."""
        number = self._sub_numbers.get(wanted)
        if number is not None:
            return number
        number = self.enter_sub(ads=self.ads_meeting(wanted))
        self._sub_numbers[wanted] = number
        self.subs[number] = wanted
        self._begin(number, wanted)
        self._filing.file_sub(number, wanted)
        if self._fresh is not None:
            self._subs_waiting.append(number)
        return number

    def number_of(self, wanted: Filter) -> int | None:
        """The number of a subscription; None if it was never entered, or is forgotten."""
        return self._sub_numbers.get(wanted)

    def _begin(self, number: int, wanted: Filter) -> None:
        """Compare events with a new subscription."""
        self._try(number, wanted)

    def _try(self, number: int, wanted: Filter) -> None:
        self.tried[number] = wanted
        self.matcher.added(number)

    def restore(
        self,
        ads: Mapping[int, Advertisement],
        subs: Mapping[int, Filter],
        ads_of: Mapping[int, Iterable[int]],
    ) -> None:
        """Be as another table was, given its interests by number and which of them intersect."""
        self.restore_relations(ads, ads_of)
        self.ads, self.subs = dict(ads), dict(subs)
        self._ad_numbers = {ad: number for number, ad in ads.items()}
        self._sub_numbers = {wanted: number for number, wanted in subs.items()}
        self.tried = dict(subs)
        self.matcher.begin_anew(self.tried)
        self._filing = Filing.of(self.ads, self.subs)

    # Forgetting ------------------------------------------------------------------------------------------

    @property
    def is_refiling(self) -> bool:
        """Whether what was forgotten still stands in the way of searches (`refile`)."""
        return self._fresh is not None

    def forget(self, ads: AbstractSet[int], subs: AbstractSet[int]) -> None:
        """Forget interests that nobody speaks of.

        To take them out would leave traces of them in the order of the others. So what stays is filed anew,
        a part here and the rest in as many calls of `refile` as it takes; until then searches pass over them.
        """
        assert not self.is_refiling, "what was forgotten before is out of the way"
        super().forget(ads, subs)
        for number in ads:
            ad = self._gone_ads[number] = self.ads.pop(number)
            self._ad_numbers.pop(ad, None)
        for number in subs:
            wanted = self._gone_subs[number] = self.subs.pop(number)
            del self._sub_numbers[wanted]
        self._leave([number for number in subs if number in self.tried])
        self._fresh = Filing()
        self._ads_waiting.extend(self.ads)
        self._subs_waiting.extend(self.subs)
        self.refile()

    def _leave(self, numbers: Sequence[int]) -> None:
        """Compare events with some subscriptions no more."""
        for number in numbers:
            del self.tried[number]
        if len(numbers) > len(self.tried):
            self.matcher.begin_anew(self.tried)
        elif numbers:
            self.matcher.removed(numbers)

    def refile(self, most: int = REFILED_MAX) -> None:
        """File some more of what stays anew; once all of it is, search there."""
        fresh, ads, subs = self._fresh, self._ads_waiting, self._subs_waiting
        if fresh is None:
            return
        for _ in range(most):
            if ads:
                number = ads.popleft()
                fresh.file_ad(number, self.ads[number])
            elif subs:
                number = subs.popleft()
                fresh.file_sub(number, self.subs[number])
        if not ads and not subs:
            self.leftovers.leave(self._filing, self._gone_ads, self._gone_subs)
            self._filing, self._fresh, self._gone_ads, self._gone_subs = fresh, None, {}, {}
            self.ad_above.clear()  # of what was found in another order
            self.sub_above.clear()

    def refiling(self) -> tuple[dict[int, Advertisement], dict[int, Filter], int, int]:
        """What was forgotten and is not out of the way, and how many are still to be filed anew."""
        return self._gone_ads, self._gone_subs, len(self._ads_waiting), len(self._subs_waiting)

    def restore_refiling(
        self, ads: Mapping[int, Advertisement], subs: Mapping[int, Filter], ads_left: int, subs_left: int
    ) -> None:
        """Be as another table was that had not finished; all else was restored."""
        self._gone_ads, self._gone_subs = dict(ads), dict(subs)
        self._filing = Filing.of({**self.ads, **ads}, {**self.subs, **subs})
        self._fresh = Filing()
        self._ads_waiting.extend(self.ads)
        self._subs_waiting.extend(self.subs)
        self.refile(len(self.ads) - ads_left + len(self.subs) - subs_left)

    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that an event matches, in ascending order."""
        return tuple(self.matcher.match(event))

    # What may cover one ----------------------------------------------------------------------------------

    def sub_covers(self, wide: int, narrow: int, looks: Looks) -> bool:
        """Whether a subscription wants all that another does."""
        return covers(self.subs[wide], self.subs[narrow], looks)

    def ad_covers(self, wide: int, narrow: int, looks: Looks) -> bool:
        """Whether an advertisement announces all that another does; no, if that takes too long."""
        steps = max(0.0, looks.left) * STEPS_PER_LOOK
        with within(Work(steps)) as work:
            is_covered = self.ads[wide].covers(self.ads[narrow])
        return looks.take(1 + (steps - work.left) / STEPS_PER_LOOK) and is_covered

    def wider_subs(self, sub: int) -> Iterable[int]:
        """Subscriptions that may cover one: as many as will do."""
        wanted = self.subs[sub]
        if not wanted.conjunctions:
            return _others(sub, iter(self.subs), self.subs, WIDER_MAX)
        # What covers all of it covers any part of it.
        part = wanted.conjunctions[0]
        wider = self._filing.boxes.covering(part, Meter(STEPS_MAX))
        found = dict.fromkeys(_others(sub, wider, self.subs, WIDER_MAX))
        if self._filing.unions:
            unions = self._filing.unions.meeting(_said_in(part), Meter(UNION_STEPS_MAX))
            found.update(dict.fromkeys(_others(sub, unions, self.subs, UNIONS_MAX)))
        return found

    def wider_ads(self, ad: int) -> Iterable[int]:
        """Advertisements that may cover one: as many as will do."""
        lead = _lead(self.ads[ad].allowed)
        if lead is None:
            return _others(ad, iter(self.ads), self.ads, WIDER_MAX)
        path, allowed = lead
        shelf = self._filing.ads_by_path[path]
        places = chain(shelf.containing(allowed, Meter(STEPS_MAX)), self._objects_above(path))
        found = (number for place in places for number in place.interests)
        return _others(ad, found, self.ads, WIDER_MAX)

    # What may intersect ----------------------------------------------------------------------------------

    def subs_meeting(self, ad: Advertisement) -> Iterable[int]:
        """The subscriptions that an advertisement intersects."""
        found = dict.fromkeys(self._filing.boxes.meeting(_said_by(ad), Meter(inf)))
        return [sub for sub in found if sub in self.subs and ad.intersects(self.subs[sub])]

    def ads_meeting(self, wanted: Filter) -> Iterable[int]:
        """The advertisements that a subscription intersects."""
        found = {ad for conjunction in wanted.conjunctions for ad in self._ads_meeting(conjunction)}
        return [ad for ad in found if ad in self.ads and self.ads[ad].intersects(wanted)]

    def _ads_meeting(self, conjunction: Conjunction) -> Iterable[int]:
        """Advertisements among which all are that a conjunction meets."""
        lead = _lead(conjunction.constraints)
        if lead is None:
            return self.ads
        path, allowed = lead
        shelf = self._filing.ads_by_path.get(path)
        places = [] if shelf is None else list(shelf.overlapping(allowed, Meter(inf)))
        places += self._objects_above(path)
        if allowed.objects:
            for name, below in self._filing.ads_by_path.items():
                if name.startswith(path + "."):
                    places += below.every()
        return (number for place in places for number in place.interests)

    def _objects_above(self, path: str) -> Iterator[Place]:
        """Where advertisements stand that announce whatever lies below an attribute, and so this one."""
        names = path.split(".")
        for depth in range(1, len(names)):
            shelf = self._filing.ads_by_path.get(".".join(names[:depth]))
            if shelf is not None:
                yield from shelf.overlapping(ValueSet(objects=True), Meter(inf))


def _others(one: int, interests: Iterator[int], known: Container[int], most: int) -> list[int]:
    """The first interests besides one that are not forgotten, each once."""
    found: dict[int, None] = {}
    for interest in interests:
        if interest != one and interest in known:
            found[interest] = None
            if len(found) == most:
                break
    return list(found)


def _said_by(ad: Advertisement) -> Look:
    """What an advertisement says of an attribute; it may always be missing."""
    paths = [path for path, _ in ad.allowed]

    def look(path: str) -> ValueSet:
        said = ad.get(path)
        fills = any(name.startswith(path + ".") for name in paths)
        return replace(said, missing=True, objects=said.objects or fills)

    return look


def _said_in(conjunction: Conjunction) -> Look:
    """What a conjunction says of an attribute; nothing where it speaks of one above or below it."""
    box = dict(conjunction.constraints)

    def look(path: str) -> ValueSet | None:
        if any(name.startswith(path + ".") or path.startswith(name + ".") for name in box):
            return None
        return box.get(path)

    return look


def _lead(constraints: Iterable[Constraint]) -> Constraint | None:
    """The constraint to search by: one that allows a single value, else the topic, else the first."""
    best = None
    for path, allowed in constraints:
        if allowed.missing:
            continue
        if allowed.only_value is not None:
            return path, allowed
        if best is None or path == TOPIC:
            best = path, allowed
    return best
