"""What was forgotten is freed in parts, and what others refer to is not."""

from __future__ import annotations

from sojourn.interest import Filter
from sojourn.routing.filter_interests import FilterInterests
from sojourn.routing.leftovers import Leftovers

DEPTH, WIDTH = 5, 4


class Node:
    """A node of a tree that says when it is freed."""

    freed = 0

    def __init__(self, depth: int) -> None:
        self.children = {number: Node(depth - 1) for number in range(WIDTH)} if depth else {}

    def __del__(self) -> None:
        Node.freed += 1


def test_a_tree_is_freed_node_by_node() -> None:
    """No part frees more than it looks at, and in the end nothing is left."""
    Node.freed = 0
    leftovers = Leftovers()
    leftovers.leave(Node(DEPTH))
    parts = []
    while leftovers:
        before = Node.freed
        leftovers.go_on(20)
        parts.append(Node.freed - before)
    assert max(parts) <= 20
    assert sum(parts) == sum(WIDTH**depth for depth in range(DEPTH + 1))


def test_what_is_in_use_stays_whole() -> None:
    """A part of a tree that somebody holds keeps all that is below it."""
    Node.freed = 0
    tree = Node(DEPTH)
    held = tree.children[2]
    leftovers = Leftovers()
    leftovers.leave(tree)
    del tree
    while leftovers:
        leftovers.go_on(7)
    assert Node.freed == sum(WIDTH**depth for depth in range(DEPTH + 1)) - sum(
        WIDTH**depth for depth in range(DEPTH)
    )
    assert len(held.children) == WIDTH


def test_what_was_filed_is_freed_in_parts_after_it_was_filed_anew() -> None:
    """The last part of filing anew does not free all that stood there before; what stays is found."""
    interests = FilterInterests()
    wanted = [Filter.parse(f"topic LIKE 'd/{number}/#' AND v > {number}") for number in range(400)]
    numbers = [interests.subscription(one) for one in wanted]
    interests.forget(set(), set(numbers[:300]))
    while interests.is_refiling:
        interests.refile(10)
    parts = 0
    while interests.leftovers:
        interests.leftovers.go_on(100)
        parts += 1
    assert parts > 20
    wide = interests.subscription(Filter.parse("topic LIKE 'd/399/#'"))
    assert list(interests.wider_subs(numbers[399])) == [wide]
    assert interests.subscription(wanted[350]) == numbers[350]
