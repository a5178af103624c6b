"""The numbered interests of a network and how they relate.

Brokers never compare filters while they handle a message. Each distinct advertisement and subscription gets
a number once, and with it the numbers of all it covers, is covered by, or intersects; from then on a handler
only follows numbers. One table serves all brokers of a simulation, or the one broker of a process.

`Interests` keeps the numbers and the relations; where they come from is a subclass's business: filters over
attributes in `filter_interests.py`, plain sets in a test. Relations are found when an interest is entered,
among the few candidates an index names, so that the n-th interest does not look at n others.

A table that lives long forgets what nobody speaks of any more (`forget`). Whoever asks for that has looked
through everything that keeps numbers. A number is never given twice, so a stale one stands for nothing.

With `covering` off nothing covers anything, and every interest travels.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from sojourn.interest.events import Event


class Kin:
    """The other interests that cover one (`above`) and those that it covers (`below`)."""

    __slots__ = ("above", "below")

    def __init__(self) -> None:
        self.above: list[int] = []
        self.below: list[int] = []


class Interests(ABC):
    """Advertisements and subscriptions by number, each kind counted from 0."""

    def __init__(self, *, covering: bool = True) -> None:
        self.covering = covering
        self.version = 0
        """Grows with every new subscription: what was matched before does not know of it."""
        self.subs_of: dict[int, dict[int, None]] = {}
        """By advertisement: the subscriptions that it intersects."""
        self.ads_of: dict[int, dict[int, None]] = {}
        """By subscription: the advertisements that intersect it."""
        self.ad_kin: dict[int, Kin | None] = {}
        """By advertisement: its relatives, or None where it has none, which is the fast way."""
        self.sub_kin: dict[int, Kin | None] = {}
        """By subscription: its relatives, or None."""
        self._ads_entered = self._subs_entered = 0

    @abstractmethod
    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that an event matches, in ascending order."""

    def enter_ad(self, *, above: Iterable[int], below: Iterable[int], subs: Iterable[int]) -> int:
        """Number a new advertisement, given its relations to those that have a number."""
        ad = self._ads_entered
        self._ads_entered += 1
        self.subs_of[ad] = dict.fromkeys(sorted(subs))
        for sub in self.subs_of[ad]:
            self.ads_of[sub][ad] = None
        self.ad_kin[ad] = None
        if self.covering:
            _introduce(self.ad_kin, ad, above, below)
        return ad

    def enter_sub(self, *, above: Iterable[int], below: Iterable[int], ads: Iterable[int]) -> int:
        """Number a new subscription, given its relations to those that have a number."""
        sub = self._subs_entered
        self._subs_entered += 1
        self.ads_of[sub] = dict.fromkeys(sorted(ads))
        for ad in self.ads_of[sub]:
            self.subs_of[ad][sub] = None
        self.sub_kin[sub] = None
        if self.covering:
            _introduce(self.sub_kin, sub, above, below)
        self.version += 1
        return sub

    def restore_relations(
        self,
        ads: Iterable[int],
        ads_of: Mapping[int, Iterable[int]],
        ad_above: Mapping[int, Iterable[int]],
        sub_above: Mapping[int, Iterable[int]],
    ) -> None:
        """Be as another table was, given what intersects each subscription, and what covers what.

        These are not found again: what is held back from neighbours rests on the relations that were known.
        """
        for book in (self.subs_of, self.ads_of, self.ad_kin, self.sub_kin):
            book.clear()
        for ad in ads:
            self.subs_of[ad] = {}
            self.ad_kin[ad] = None
        for sub, related in ads_of.items():
            self.ads_of[sub] = dict.fromkeys(related)
            self.sub_kin[sub] = None
            for ad in self.ads_of[sub]:
                self.subs_of[ad][sub] = None
        for families, given in ((self.ad_kin, ad_above), (self.sub_kin, sub_above)):
            for one, above in given.items():
                _introduce(families, one, above, ())

    def forget(self, ads: AbstractSet[int], subs: AbstractSet[int]) -> None:
        """Forget advertisements and subscriptions that nobody speaks of, and how they relate to others."""
        for ad in ads:
            for sub in self.subs_of.pop(ad):
                del self.ads_of[sub][ad]
        for sub in subs:
            for ad in self.ads_of.pop(sub):
                del self.subs_of[ad][sub]
        _part(self.ad_kin, ads)
        _part(self.sub_kin, subs)


Families = dict[int, Kin | None]


def _introduce(families: Families, new: int, above: Iterable[int], below: Iterable[int]) -> None:
    for wide in above:
        _kin(families, new).above.append(wide)
        _kin(families, wide).below.append(new)
    for narrow in below:
        _kin(families, new).below.append(narrow)
        _kin(families, narrow).above.append(new)


def _part(families: Families, gone: AbstractSet[int]) -> None:
    """Forget interests; each relative that stays is looked at once, however many of its own go."""
    bereft: set[int] = set()
    for one in gone:
        kin = families.pop(one)
        if kin is not None:
            bereft.update(kin.above, kin.below)
    for one in bereft - gone:
        kin = _kin(families, one)
        kin.above = [other for other in kin.above if other not in gone]
        kin.below = [other for other in kin.below if other not in gone]
        if not kin.above and not kin.below:
            families[one] = None


def _kin(families: Families, interest: int) -> Kin:
    kin = families[interest]
    if kin is None:
        kin = families[interest] = Kin()
    return kin
