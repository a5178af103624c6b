"""Interests that are filters and advertisements over attributes.

Candidates for a relation come from `shelves.py`. Whatever covers or intersects must agree with the other on
some attribute, so each interest stands on two sets of shelves: under every attribute it constrains, and
under one of them alone, its lead (one that allows a single value if there is any, never one that may be
missing). One of two related interests can always be found by its lead among the other's attributes. A
covering that only a union of alternatives brings about may be overlooked, which costs a message and loses
nothing.

Events are matched by the index of `interest.index`, under the subscriptions' numbers.
"""

from collections.abc import Iterable

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.algebra import covers
from sojourn.interest.events import Event
from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.index import FilterIndex
from sojourn.interest.values import ValueSet
from sojourn.routing.interests import Interests
from sojourn.routing.shelves import Shelves

Constraint = tuple[str, ValueSet]


class FilterInterests(Interests):
    """The numbered advertisements and filters of one network."""

    def __init__(self, *, covering: bool = True) -> None:
        super().__init__(covering=covering)
        self.ads: list[Advertisement] = []
        self.subs: list[Filter] = []
        self._ad_numbers: dict[Advertisement, int] = {}
        self._sub_numbers: dict[Filter, int] = {}
        self._ads_by_all, self._ads_by_lead = Shelves(), Shelves()
        self._subs_by_all, self._subs_by_lead = Shelves(), Shelves()
        self._subs_without_lead: list[int] = []
        self._index = FilterIndex()

    def advertisement(self, ad: Advertisement) -> int:
        """The number of an advertisement, entered if it is new."""
        number = self._ad_numbers.get(ad)
        if number is not None:
            return number
        subs = set(self._subs_without_lead)
        for path, allowed in ad.allowed:
            subs.update(self._subs_by_lead.find(path, allowed))
        above, below = self._ad_relatives(ad) if self.covering else ([], [])
        number = self.enter_ad(
            above=above, below=below, subs=[sub for sub in subs if ad.intersects(self.subs[sub])]
        )
        self._ad_numbers[ad] = number
        self.ads.append(ad)
        for path, allowed in ad.allowed:
            self._ads_by_all.file(number, path, allowed)
        lead = _lead(ad.allowed)
        if lead is not None:
            self._ads_by_lead.file(number, *lead)
        return number

    def subscription(self, wanted: Filter) -> int:
        """The number of a subscription, entered if it is new."""
        number = self._sub_numbers.get(wanted)
        if number is not None:
            return number
        ads: set[int] = set()
        for conjunction in wanted.conjunctions:
            lead = _lead(conjunction.constraints)
            ads.update(range(len(self.ads)) if lead is None else self._ads_by_all.find(*lead))
        above, below = self._sub_relatives(wanted) if self.covering else ([], [])
        number = self.enter_sub(
            above=above, below=below, ads=[ad for ad in ads if self.ads[ad].intersects(wanted)]
        )
        self._sub_numbers[wanted] = number
        self.subs.append(wanted)
        self._index.add(number, wanted)
        for conjunction in wanted.conjunctions:
            self._file(number, conjunction)
        return number

    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that an event matches, in ascending order."""
        return tuple(self._index.match(event))

    def _file(self, number: int, conjunction: Conjunction) -> None:
        for path, allowed in conjunction.constraints:
            self._subs_by_all.file(number, path, allowed)
        lead = _lead(conjunction.constraints)
        if lead is None:
            self._subs_without_lead.append(number)
        else:
            self._subs_by_lead.file(number, *lead)

    def _ad_relatives(self, ad: Advertisement) -> tuple[list[int], list[int]]:
        lead = _lead(ad.allowed)
        wider = set(self._ads_by_all.find(*lead)) if lead is not None else set()
        narrower: set[int] = set()
        for path, allowed in ad.allowed:
            narrower.update(self._ads_by_lead.find(path, allowed))
        above = [other for other in sorted(wider) if self.ads[other].covers(ad)]
        return above, [other for other in sorted(narrower) if ad.covers(self.ads[other])]

    def _sub_relatives(self, wanted: Filter) -> tuple[list[int], list[int]]:
        wider = set(self._subs_without_lead)
        narrower: set[int] = set()
        for conjunction in wanted.conjunctions:
            for path, allowed in conjunction.constraints:
                wider.update(self._subs_by_lead.find(path, allowed))
            lead = _lead(conjunction.constraints)
            narrower.update(range(len(self.subs)) if lead is None else self._subs_by_all.find(*lead))
        above = [other for other in sorted(wider) if covers(self.subs[other], wanted)]
        return above, [other for other in sorted(narrower) if covers(wanted, self.subs[other])]


def _lead(constraints: Iterable[Constraint]) -> Constraint | None:
    """The constraint to file by: one that allows a single value, or else the first that must be met."""
    first = None
    for path, allowed in constraints:
        if allowed.missing:
            continue
        if allowed.only_value is not None:
            return path, allowed
        if first is None:
            first = path, allowed
    return first
