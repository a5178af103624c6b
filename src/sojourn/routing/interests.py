"""The numbered interests of a network and how they relate.

Brokers never compare filters while they handle a message. Each distinct advertisement and subscription gets
a number once, and with it the numbers of all it covers, is covered by, or intersects; from then on a handler
only follows numbers. One table serves all brokers of a simulation, or the one broker of a process.

`Interests` keeps the numbers and the relations; where they come from is a subclass's business: filters over
attributes in `filter_interests.py`, plain sets in a test. Relations are found when an interest is entered,
among the few candidates an index names, so that the n-th interest does not look at n others.

With `covering` off nothing covers anything, and every interest travels.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

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
        self.subs_of: list[dict[int, None]] = []
        """By advertisement: the subscriptions that it intersects."""
        self.ads_of: list[dict[int, None]] = []
        """By subscription: the advertisements that intersect it."""
        self.ad_kin: list[Kin | None] = []
        """By advertisement: its relatives, or None where it has none, which is the fast way."""
        self.sub_kin: list[Kin | None] = []
        """By subscription: its relatives, or None."""

    @abstractmethod
    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that an event matches, in ascending order."""

    def enter_ad(self, *, above: Iterable[int], below: Iterable[int], subs: Iterable[int]) -> int:
        """Number a new advertisement, given its relations to those that have a number."""
        ad = len(self.subs_of)
        self.subs_of.append(dict.fromkeys(sorted(subs)))
        for sub in self.subs_of[ad]:
            self.ads_of[sub][ad] = None
        self.ad_kin.append(None)
        if self.covering:
            _introduce(self.ad_kin, ad, above, below)
        return ad

    def enter_sub(self, *, above: Iterable[int], below: Iterable[int], ads: Iterable[int]) -> int:
        """Number a new subscription, given its relations to those that have a number."""
        sub = len(self.ads_of)
        self.ads_of.append(dict.fromkeys(sorted(ads)))
        for ad in self.ads_of[sub]:
            self.subs_of[ad][sub] = None
        self.sub_kin.append(None)
        if self.covering:
            _introduce(self.sub_kin, sub, above, below)
        self.version += 1
        return sub


def _introduce(families: list[Kin | None], new: int, above: Iterable[int], below: Iterable[int]) -> None:
    for wide in above:
        _kin(families, new).above.append(wide)
        _kin(families, wide).below.append(new)
    for narrow in below:
        _kin(families, new).below.append(narrow)
        _kin(families, narrow).above.append(new)


def _kin(families: list[Kin | None], interest: int) -> Kin:
    kin = families[interest]
    if kin is None:
        kin = families[interest] = Kin()
    return kin
