"""In some worlds a broker joins the others while clients are there, and whatever breaks."""

from __future__ import annotations

import random

SHARE = 0.4
"""Of the worlds with enough brokers."""
FOUNDERS_MIN = 2


def joining(seed: int, brokers: int, first_s: float, seconds: float) -> float | None:
    """Return when the last broker joins, in the first half of a world, with clients there; None for never.

    Brokers that copies need besides those that are there are not counted.
    """
    draw = random.Random(f"{seed}/joining")
    joins = draw.random() < SHARE and brokers > FOUNDERS_MIN
    return draw.uniform(first_s, max(first_s, seconds / 2)) if joins else None
