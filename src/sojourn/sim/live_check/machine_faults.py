"""What happens to machines in worlds where copies are kept: they die, lose disks, and cannot see each other.

Drawn from streams of their own, so that all else of a seed stays what it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sojourn.sim.live_check.steps import Step

POINTS = ("idle", "before commit", "after commit", "effect")
WIPE, LOSE_STORE = "wipe", "lose store"
"""A machine loses its disk, or the journal of its own broker alone."""
KINDS = ("kill", WIPE, LOSE_STORE, "part machines", "silence machine", "break machines")


def machine_faults(seed: int, brokers: int, times: Callable[..., list[float]]) -> list[Step]:
    """Return the faults of a seed; wipes are always among them."""
    draw = random.Random(f"{seed}/machines")
    steps: list[Step] = []
    for how, every_s, down_s in (("kill", 20.0, (0.1, 0.5, 2.0, 8.0)), (WIPE, 12.0, (0.1, 0.5, 3.0, 10.0))):
        if how != WIPE and draw.random() < 0.4:
            continue
        for at in times(draw, every_s=every_s):
            detail = (draw.choice(POINTS), draw.randrange(8))
            steps.append(Step(at, how, draw.randrange(brokers), seconds=draw.choice(down_s), detail=detail))
    if draw.random() < 0.6:
        for at in times(draw, every_s=20.0):
            group = tuple(number for number in range(brokers) if draw.random() < 0.5)
            lasts_s = draw.choice((0.5, 2.0, 6.0, 15.0))
            steps.append(Step(at, "part machines", 0, seconds=lasts_s, detail=group))
    if draw.random() < 0.6:
        for at in times(draw, every_s=15.0):
            lasts_s = draw.choice((0.5, 2.0, 4.0, 9.0))
            steps.append(Step(at, "silence machine", draw.randrange(brokers), seconds=lasts_s))
    if draw.random() < 0.6:
        for at in times(draw, every_s=8.0):
            two = tuple(draw.sample(range(brokers), 2))
            steps.append(Step(at, "break machines", 0, seconds=draw.choice((0.0, 0.5, 3.0)), detail=two))
    stores = random.Random(f"{seed}/machines/stores")
    if stores.random() < 0.4:
        for at in times(stores, every_s=25.0):
            detail = (stores.choice(POINTS), stores.randrange(8))
            lasts_s = stores.choice((0.1, 0.5, 3.0))
            steps.append(Step(at, LOSE_STORE, stores.randrange(brokers), seconds=lasts_s, detail=detail))
    return steps
