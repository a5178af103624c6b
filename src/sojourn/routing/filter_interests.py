"""Interests that are filters and advertisements over attributes.

Candidates for a relation come from `shelves.py`. Whatever covers or intersects must agree with the other on
some attribute, so each interest stands on two sets of shelves: under every attribute it constrains, and
under one of them alone, its lead (one that allows a single value if there is any, never one that may be
missing). One of two related interests can always be found by its lead among the other's attributes. Of the
candidates, those that speak of the wrong attributes are dropped by comparing sets of names, which is far
cheaper than comparing sets of values. A covering that only a union of alternatives brings about may be
overlooked, which costs a message and loses nothing.

Events are matched by the index of `interest.index`, under the subscriptions' numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.algebra import covers
from sojourn.interest.events import Event
from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.index import FilterIndex
from sojourn.interest.values import ValueSet
from sojourn.routing.interests import Interests
from sojourn.routing.shelves import Shelves

Constraint = tuple[str, ValueSet]
Names = frozenset[str]


class _Tops:
    """The top-level attributes a filter speaks of: enough to see that most candidates are no relatives."""

    __slots__ = ("_needed", "_of_all", "_of_one")

    def __init__(self, wanted: Filter) -> None:
        each = [_tops(conjunction.constraints) for conjunction in wanted.conjunctions]
        self._of_one = each[0] if len(each) == 1 else None
        """The attributes of a single conjunction; a union may cover in ways that names do not show."""
        self._of_all = frozenset.intersection(*each) if each else frozenset()
        """The attributes that every conjunction constrains."""
        self._needed = [
            _tops((path, allowed) for path, allowed in conjunction.constraints if not allowed.missing)
            for conjunction in wanted.conjunctions
        ]
        """By conjunction: the attributes that must occur."""

    def can_cover(self, narrow: _Tops) -> bool:
        """Whether the names leave it open that this filter covers the other."""
        return self._of_one is None or self._of_one <= narrow._of_all

    def can_meet(self, announced: Names) -> bool:
        """Whether the names leave it open that events with these attributes match."""
        return any(needed <= announced for needed in self._needed)


def _tops(constraints: Iterable[Constraint]) -> Names:
    return frozenset(path.partition(".")[0] for path, _ in constraints)


class FilterInterests(Interests):
    """The numbered advertisements and filters of one network."""

    def __init__(self, *, covering: bool = True) -> None:
        super().__init__(covering=covering)
        self.ads: dict[int, Advertisement] = {}
        self.subs: dict[int, Filter] = {}
        self._ad_numbers: dict[Advertisement, int] = {}
        self._sub_numbers: dict[Filter, int] = {}
        self._ads_by_all, self._ads_by_lead = Shelves(), Shelves()
        self._subs_by_all, self._subs_by_lead = Shelves(), Shelves()
        self._subs_without_lead: list[int] = []
        self._ad_tops: dict[int, Names] = {}
        self._sub_tops: dict[int, _Tops] = {}
        self._index = FilterIndex()

    def advertisement(self, ad: Advertisement) -> int:
        """The number of an advertisement, entered if it is new."""
        number = self._ad_numbers.get(ad)
        if number is not None:
            return number
        candidates = set(self._subs_without_lead)
        for path, allowed in ad.allowed:
            candidates.update(self._subs_by_lead.find(path, allowed))
        tops = _tops(ad.allowed)
        subs = [sub for sub in candidates if self._sub_tops[sub].can_meet(tops)]
        above, below = self._ad_relatives(ad) if self.covering else ([], [])
        number = self.enter_ad(
            above=above, below=below, subs=[sub for sub in subs if ad.intersects(self.subs[sub])]
        )
        self._file_ad(number, ad, tops)
        return number

    def _file_ad(self, number: int, ad: Advertisement, tops: Names) -> None:
        self._ad_numbers[ad] = number
        self.ads[number] = ad
        self._ad_tops[number] = tops
        for path, allowed in ad.allowed:
            self._ads_by_all.file(number, path, allowed)
        lead = _lead(ad.allowed)
        if lead is not None:
            self._ads_by_lead.file(number, *lead)

    def subscription(self, wanted: Filter) -> int:
        """The number of a subscription, entered if it is new."""
        number = self._sub_numbers.get(wanted)
        if number is not None:
            return number
        candidates: set[int] = set()
        for conjunction in wanted.conjunctions:
            lead = _lead(conjunction.constraints)
            candidates.update(self.ads if lead is None else self._ads_by_all.find(*lead))
        tops = _Tops(wanted)
        ads = [ad for ad in candidates if tops.can_meet(self._ad_tops[ad])]
        above, below = self._sub_relatives(wanted, tops) if self.covering else ([], [])
        number = self.enter_sub(
            above=above, below=below, ads=[ad for ad in ads if self.ads[ad].intersects(wanted)]
        )
        self._file_sub(number, wanted, tops)
        self._index.add(number, wanted)
        return number

    def _file_sub(self, number: int, wanted: Filter, tops: _Tops) -> None:
        self._sub_numbers[wanted] = number
        self.subs[number] = wanted
        self._sub_tops[number] = tops
        for conjunction in wanted.conjunctions:
            self._file(number, conjunction)

    def restore(
        self,
        ads: Mapping[int, Advertisement],
        subs: Mapping[int, Filter],
        ads_of: Mapping[int, Iterable[int]],
        ad_above: Mapping[int, Iterable[int]],
        sub_above: Mapping[int, Iterable[int]],
    ) -> None:
        """Be as another table was, given its interests by number and how they relate."""
        self.restore_relations(ads, ads_of, ad_above, sub_above)
        for book in (self.ads, self.subs, self._ad_numbers, self._sub_numbers, self._ad_tops, self._sub_tops):
            book.clear()
        self._ads_by_all, self._ads_by_lead = Shelves(), Shelves()
        self._subs_by_all, self._subs_by_lead = Shelves(), Shelves()
        self._subs_without_lead = []
        for number, ad in ads.items():
            self._file_ad(number, ad, _tops(ad.allowed))
        for number, wanted in subs.items():
            self._file_sub(number, wanted, _Tops(wanted))
        self._index = FilterIndex()
        self._index.add_many(subs.keys(), subs.values())

    def forget(self, ads: AbstractSet[int], subs: AbstractSet[int]) -> None:
        """Forget interests that nobody speaks of; the index is made anew if more goes than stays."""
        super().forget(ads, subs)
        offered = [self.ads.pop(number) for number in ads]
        self._ads_by_all.clear_out(ads, [filed for ad in offered for filed in ad.allowed])
        self._ads_by_lead.clear_out(ads, _leads(ad.allowed for ad in offered))
        for ad in offered:
            del self._ad_numbers[ad]
        for number in ads:
            del self._ad_tops[number]
        if not subs:
            return
        wanted = [self.subs.pop(number) for number in subs]
        constraints = [conjunction.constraints for one in wanted for conjunction in one.conjunctions]
        self._subs_by_all.clear_out(subs, [filed for each in constraints for filed in each])
        self._subs_by_lead.clear_out(subs, _leads(constraints))
        self._subs_without_lead = [number for number in self._subs_without_lead if number not in subs]
        for one in wanted:
            del self._sub_numbers[one]
        for number in subs:
            del self._sub_tops[number]
        if len(subs) > len(self.subs):
            self._index = FilterIndex()
            self._index.add_many(self.subs.keys(), self.subs.values())
        else:
            self._index.remove_many(subs)

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

    def _sub_relatives(self, wanted: Filter, tops: _Tops) -> tuple[list[int], list[int]]:
        wider = set(self._subs_without_lead)
        narrower: set[int] = set()
        for conjunction in wanted.conjunctions:
            for path, allowed in conjunction.constraints:
                wider.update(self._subs_by_lead.find(path, allowed))
            lead = _lead(conjunction.constraints)
            narrower.update(self.subs if lead is None else self._subs_by_all.find(*lead))
        subs, all_tops = self.subs, self._sub_tops
        wider_fit = sorted(other for other in wider if all_tops[other].can_cover(tops))
        narrower_fit = sorted(other for other in narrower if tops.can_cover(all_tops[other]))
        above = [other for other in wider_fit if covers(subs[other], wanted)]
        return above, [other for other in narrower_fit if covers(wanted, subs[other])]


def _leads(filed: Iterable[Iterable[Constraint]]) -> list[Constraint]:
    return [lead for lead in map(_lead, filed) if lead is not None]


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
