"""Held-back entries and their witnesses, with covering as a table of pairs."""

from __future__ import annotations

from sojourn.interest.algebra import Looks
from sojourn.routing.covering import Covering
from sojourn.routing.interests import AboveBook

BIT, OTHER = 2, 4


class Table:
    """Interests of which it is written down what covers what, and where each has an entry."""

    def __init__(self, *pairs: tuple[int, int]) -> None:
        self.pairs = set(pairs)
        self.interests = sorted({interest for pair in pairs for interest in pair})
        self.out = dict.fromkeys(self.interests, 0)
        self.asked: list[tuple[int, int]] = []
        book = AboveBook(lambda one: [other for other in self.interests if other != one], self.covers)
        self.covering = Covering(book, self.covers, self.out.__getitem__)

    def covers(self, wide: int, narrow: int, _looks: Looks) -> bool:
        """Whether the pair is in the table."""
        self.asked.append((wide, narrow))
        return (wide, narrow) in self.pairs

    def enter(self, interest: int, mask: int) -> int:
        """Give an interest new entries; say where it is sent."""
        self.out[interest] |= mask
        return self.covering.enter(interest, mask)

    def leave(self, interest: int, mask: int) -> tuple[int, list[tuple[int, int]]]:
        """Take entries of an interest away."""
        self.out[interest] &= ~mask
        return self.covering.leave(interest, mask)


def test_what_is_held_back_lends_its_witness() -> None:
    """A covers B covers C: C is held back for the sake of A though B, which was found first, was not sent."""
    table = Table((0, 2), (2, 1), (0, 1))
    assert table.enter(0, BIT) == BIT
    assert table.enter(2, BIT | OTHER) == OTHER
    assert table.enter(1, BIT | OTHER) == 0
    assert table.covering.held == {BIT: {2: 0, 1: 0}, OTHER: {1: 2}}
    assert table.leave(2, BIT) == (0, [])
    assert table.leave(0, BIT) == (BIT, [(BIT, 1)])
    assert table.leave(2, OTHER) == (OTHER, [(OTHER, 1)])
    assert table.covering.held == {}


def test_another_witness_is_found_without_a_message() -> None:
    """When one of two that cover an entry leaves, the other takes its place."""
    table = Table((0, 2), (1, 2))
    assert [table.enter(interest, BIT) for interest in (0, 1, 2)] == [BIT, BIT, 0]
    assert table.leave(0, BIT) == (BIT, [])
    assert table.covering.held == {BIT: {2: 1}}
    assert table.leave(1, BIT) == (BIT, [(BIT, 2)])


def test_only_what_rested_on_the_one_that_leaves_is_looked_at() -> None:
    """Others that it covers keep their witness, and nobody asks about them."""
    table = Table((0, 2), (1, 2), (0, 3))
    for interest in (0, 2, 1, 3):
        table.enter(interest, BIT)
    table.leave(0, BIT)
    assert table.covering.held == {BIT: {2: 1}}
    table.enter(0, BIT)
    table.asked.clear()
    assert table.leave(0, BIT) == (BIT, [])
    assert table.asked == []


def test_of_several_at_once_only_the_widest_are_sent() -> None:
    """In whatever order they come, and of two that cover each other one."""
    table = Table((3, 0), (3, 1), (1, 0), (2, 4), (4, 2))
    table.out.update(dict.fromkeys(table.interests, BIT))
    assert table.covering.enter_all([0, 1, 2, 3, 4], BIT) == [2, 3]
    assert table.covering.held == {BIT: {0: 3, 1: 3, 4: 2}}


def test_a_circle_in_which_some_covering_is_overlooked_holds_not_all_back() -> None:
    """Three that are the same, of which that is not always seen: one of them is sent, so nothing is lost."""
    table = Table((1, 0), (2, 1), (0, 2))
    table.out.update(dict.fromkeys(table.interests, BIT))
    sent = table.covering.enter_all([0, 1, 2], BIT)
    assert len(sent) == 1
    assert table.covering.held == {BIT: {one: sent[0] for one in (0, 1, 2) if one != sent[0]}}


def test_what_has_no_entry_any_more_is_not_sent() -> None:
    """Of two entries that end with one advertisement, the covered one is not sent when the other leaves."""
    table = Table((0, 1))
    assert [table.enter(interest, BIT) for interest in (0, 1)] == [BIT, 0]
    table.out[1] = 0
    assert table.leave(0, BIT) == (BIT, [])
    assert table.leave(1, BIT) == (0, [])
    assert table.covering.held == {}
