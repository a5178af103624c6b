"""Where all interests of a table stand, so that those are found that may be related to one.

What a search names first depends on the order of filing. That must not be history, or a broker that comes
back from its state would decide otherwise than it would have done: interests are filed in ascending order.
"""

from __future__ import annotations

from collections.abc import Mapping

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.filters import Filter
from sojourn.routing.box_tree import BoxTree
from sojourn.routing.shelves import Shelf


class Filing:
    """Numbered advertisements and subscriptions by the values they speak of."""

    __slots__ = ("ads_by_path", "boxes", "unions")

    def __init__(self) -> None:
        self.ads_by_path: dict[str, Shelf] = {}
        """By attribute: the advertisements that name it."""
        self.boxes = BoxTree()
        """All subscriptions."""
        self.unions = BoxTree()
        """The subscriptions of several conjunctions."""

    @classmethod
    def of(cls, ads: Mapping[int, Advertisement], subs: Mapping[int, Filter]) -> Filing:
        """File all of them."""
        filing = cls()
        for number in sorted(ads):
            filing.file_ad(number, ads[number])
        for number in sorted(subs):
            filing.file_sub(number, subs[number])
        return filing

    def file_ad(self, number: int, ad: Advertisement) -> None:
        """File an advertisement, later than all of lower numbers."""
        for path, allowed in ad.allowed:
            shelf = self.ads_by_path.get(path)
            if shelf is None:
                shelf = self.ads_by_path[path] = Shelf()
            shelf.make(allowed).interests[number] = None

    def file_sub(self, number: int, wanted: Filter) -> None:
        """File a subscription, later than all of lower numbers."""
        self.boxes.file(number, wanted)
        if len(wanted.conjunctions) > 1:
            self.unions.file(number, wanted)
