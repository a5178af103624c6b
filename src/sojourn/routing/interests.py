"""The numbered interests of a network and how they relate.

Brokers never compare filters while they handle a message. Each distinct advertisement and subscription gets a
number, and from then on a handler only follows numbers. One table serves all brokers of a simulation, or the
one broker of a process.

There are two relations. Which advertisements and subscriptions intersect is stored for each pair, when the
later of the two is entered. Which interests cover one another is not: one may cover all others, and what a
broker has to know of an interest is, for each neighbour, a single one that covers it. So an index is asked
when somebody wants to know what covers an interest (`Above`), and the answer is kept until a new interest is
entered. What an interest covers is never asked for.

`Interests` keeps the numbers and the relations; where they come from is a subclass's business: filters over
attributes in `filter_interests.py`, plain sets in a test.

A table that lives long forgets what nobody speaks of any more (`forget`). Whoever asks for that has looked
through everything that keeps numbers. A number is never given twice, so a stale one stands for nothing.

With `covering` off nothing covers anything, and every interest travels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from sojourn.interest.algebra import Looks
from sojourn.interest.events import Event

LOOKS_MAX = 2_000
"""Comparisons of conjunctions that finding one that covers an interest may take: some milliseconds."""

Covers = Callable[[int, int, Looks], bool]
"""Whether one interest covers another, answered within a number of looks; no, if that is not enough."""


class Above:
    """The other interests that cover one, among those that an index names.

    What was compared is remembered together with what that took. So every question is answered as if it were
    the first: a broker that was asked before and one that comes back from its state say the same.
    """

    __slots__ = ("_answers", "_covers", "_maybe", "_narrow")

    def __init__(self, narrow: int, maybe: list[int], covers: Covers) -> None:
        self._narrow = narrow
        self._maybe = maybe
        self._covers = covers
        self._answers: dict[int, tuple[bool, float]] = {}
        """By interest: whether it covers this one, and the looks that it took to find out."""

    def first(self, counts: Callable[[int], bool]) -> int | None:
        """Return one of them for which a condition holds; only where it holds is anything compared."""
        looks = Looks(LOOKS_MAX)
        for wide in self._maybe:
            if counts(wide) and self._is_covered_by(wide, looks):
                return wide
        return None

    def _is_covered_by(self, wide: int, looks: Looks) -> bool:
        answer = self._answers.get(wide)
        if answer is not None:
            is_covered, took = answer
            return looks.take(took) and is_covered
        before = looks.left
        is_covered = self._covers(wide, self._narrow, looks)
        if looks.left < 0:
            return False
        self._answers[wide] = is_covered, before - looks.left
        return is_covered

    def all(self) -> set[int]:
        """Return all of them."""
        found: set[int] = set()
        while (wide := self.first(lambda one: one not in found)) is not None:
            found.add(wide)
        return found


class AboveBook(dict[int, Above | None]):
    """What covers each interest, found when first asked for; None where nothing does, the fast way."""

    def __init__(self, find: Callable[[int], Iterable[int]], covers: Covers) -> None:
        super().__init__()
        self._find = find
        self._covers = covers

    def __missing__(self, interest: int) -> Above | None:
        """Find what may cover an interest."""
        maybe = list(self._find(interest))
        found = self[interest] = Above(interest, maybe, self._covers) if maybe else None
        return found


class Interests(ABC):
    """Advertisements and subscriptions by number, each kind counted from 0."""

    def __init__(self, *, covering: bool = True) -> None:
        self.covering = covering
        self.version = 0
        """Grows with every new subscription: what was matched before does not know of it."""
        self.by_topic: Mapping[str, tuple[int, ...]] = {}
        """What events of some topics match, whatever else they say: they need not be looked at."""
        self.subs_of: dict[int, dict[int, None]] = {}
        """By advertisement: the subscriptions that it intersects."""
        self.ads_of: dict[int, dict[int, None]] = {}
        """By subscription: the advertisements that intersect it."""
        self.ad_above = AboveBook(self._wider_ads, self.ad_covers)
        """By advertisement: what covers it."""
        self.sub_above = AboveBook(self._wider_subs, self.sub_covers)
        """By subscription: what covers it."""
        self._ads_entered = self._subs_entered = 0

    @abstractmethod
    def match(self, event: Event) -> tuple[int, ...]:
        """The subscriptions that an event matches, in ascending order."""

    def wider_ads(self, ad: int) -> Iterable[int]:  # noqa: ARG002  (for subclasses)
        """Other advertisements among which all that cover one are; some may not."""
        return ()

    def wider_subs(self, sub: int) -> Iterable[int]:  # noqa: ARG002  (for subclasses)
        """Other subscriptions among which all that cover one are; some may not."""
        return ()

    def ad_covers(self, wide: int, narrow: int, looks: Looks) -> bool:  # noqa: ARG002  (for subclasses)
        """Whether an advertisement announces all that another does."""
        return False

    def sub_covers(self, wide: int, narrow: int, looks: Looks) -> bool:  # noqa: ARG002  (for subclasses)
        """Whether a subscription wants all that another does."""
        return False

    def _wider_ads(self, ad: int) -> Iterable[int]:
        return self.wider_ads(ad) if self.covering else ()

    def _wider_subs(self, sub: int) -> Iterable[int]:
        return self.wider_subs(sub) if self.covering else ()

    def enter_ad(self, *, subs: Iterable[int]) -> int:
        """Number a new advertisement, given the subscriptions that it intersects."""
        ad = self._ads_entered
        self._ads_entered += 1
        self.subs_of[ad] = dict.fromkeys(sorted(subs))
        for sub in self.subs_of[ad]:
            self.ads_of[sub][ad] = None
        self.ad_above.clear()
        return ad

    def enter_sub(self, *, ads: Iterable[int]) -> int:
        """Number a new subscription, given the advertisements that intersect it."""
        sub = self._subs_entered
        self._subs_entered += 1
        self.ads_of[sub] = dict.fromkeys(sorted(ads))
        for ad in self.ads_of[sub]:
            self.subs_of[ad][sub] = None
        self.sub_above.clear()
        self.version += 1
        return sub

    def taken_up(self, sub: int) -> None:  # noqa: B027  (for subclasses)
        """Note that somebody has a subscription which nobody had before, where a table is one broker's."""

    def let_go(self, sub: int) -> None:  # noqa: B027  (for subclasses)
        """Note that nobody has a subscription any more; it may be taken up again."""

    def restore_relations(self, ads: Iterable[int], ads_of: Mapping[int, Iterable[int]]) -> None:
        """Be as another table was, given its advertisements and what intersects each subscription."""
        for book in (self.subs_of, self.ads_of, self.ad_above, self.sub_above):
            book.clear()
        for ad in ads:
            self.subs_of[ad] = {}
        for sub, related in ads_of.items():
            self.ads_of[sub] = dict.fromkeys(related)
            for ad in self.ads_of[sub]:
                self.subs_of[ad][sub] = None

    def forget(self, ads: AbstractSet[int], subs: AbstractSet[int]) -> None:
        """Forget advertisements and subscriptions that nobody speaks of, and how they relate to others."""
        for ad in ads:
            for sub in self.subs_of.pop(ad):
                del self.ads_of[sub][ad]
        for sub in subs:
            for ad in self.ads_of.pop(sub):
                del self.subs_of[ad][sub]
        self.ad_above.clear()
        self.sub_above.clear()
