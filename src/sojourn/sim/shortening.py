"""Cutting a failing script down to the few steps that it needs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")
Found = TypeVar("Found")


def shorten(
    steps: Sequence[Step], fails: Callable[[list[Step]], Found | None], runs_max: int
) -> tuple[list[Step], Found | None]:
    """Leave out parts of a script as long as it still fails, in a limited number of runs.

    Return the steps that are left, and what the last failing run found; None if no shorter one failed.
    """
    best, found = list(steps), None
    runs, parts = 0, 2
    while runs < runs_max:
        for without in _complements(best, parts):
            runs += 1
            tried = fails(without)
            if tried is not None:
                best, found, parts = without, tried, max(2, parts - 1)
                break
            if runs >= runs_max:
                break
        else:
            if parts >= len(best):
                break
            parts = min(len(best), parts * 2)
    return best, found


def _complements(steps: Sequence[Step], parts: int) -> list[list[Step]]:
    """The steps without each of so many equal parts of them."""
    bounds = [len(steps) * part // parts for part in range(parts + 1)]
    return [[*steps[:low], *steps[high:]] for low, high in itertools.pairwise(bounds) if high > low]
