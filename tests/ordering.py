"""Which tests begin first, so that two cores are busy until the end.

`pytest -n N --dist worksteal` gives every worker one contiguous part of all tests, and lets those that are
done take the later half of what another one has left; what a worker has begun, or is about to begin, it
keeps. So a test that takes long must not be among the last: every part begins with its share of them. Tests
that need Spark stand together at the front of the first part, so that most runs start one session and not
one for each worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

SPARK = (
    "tests/pipeline/",
    "tests/cli/test_plan.py",
    "tests/cli/test_reproduce.py",
    "tests/studies/test_handoff.py",
)
"""Where tests start Spark themselves; others ask for the fixture `spark`."""

LONG = (
    "tests/docs/test_pages.py",
    "tests/sim/test_manet_radio.py",
    "tests/live/test_adhoc.py",
    "tests/sim/test_live_check.py",
    "tests/docs/test_deploy.py",
    "tests/test_package.py",
    "tests/sim/test_handoff_check.py",
    "tests/live/test_page_in_browser.py",
    "tests/docs/test_site.py",
    "tests/docs/test_examples.py",
    "tests/live/test_join_and_leave.py",
    "tests/live/test_durability.py",
    "tests/live/test_copies.py",
    "tests/live/test_real_roaming.py",
    "tests/sim/test_manet_world.py",
    "tests/mobility/test_handoff_races.py",
    "tests/adhoc/test_node.py",
    "tests/report/test_in_browser.py",
)
"""The files, or tests in them, that take longest: they wait for processes, or compile kernels."""


def needs_spark(name: str, fixtures: Iterable[str]) -> bool:
    """Whether a test is one of those that share a session of Spark."""
    return "spark" in fixtures or name.startswith(SPARK)


def length_rank(name: str) -> int | None:
    """How early a test is to begin, 0 first of all; None for one that is short."""
    for rank, part in enumerate(LONG):
        if part in name:
            return rank
    return None


def dealt(
    items: Sequence[T], workers: int, *, name: Callable[[T], str], together: Callable[[T], bool]
) -> list[T]:
    """All items, so that the contiguous part of each worker begins with what takes long.

    What belongs together begins the first part; with more than one worker the others share the long ones.
    """
    joint = [item for item in items if together(item)]
    ranked = [(length_rank(name(item)), item) for item in items if not together(item)]
    long = [
        item for _, item in sorted(((rank, item) for rank, item in ranked if rank is not None), key=_rank)
    ]
    short = [item for rank, item in ranked if rank is None]
    hands: list[list[T]] = [[] for _ in range(workers)]
    hands[0].extend(joint)
    others = hands[1:] or hands
    for number, item in enumerate(long):
        others[number % len(others)].append(item)
    order: list[T] = []
    for number, hand in enumerate(hands):
        room = (len(items) - len(order)) // (workers - number) - len(hand)
        taken, short = short[: max(room, 0)], short[max(room, 0) :]
        order += [*hand, *taken]
    return [*order, *short]


def _rank(entry: tuple[int, T]) -> int:
    return entry[0]
