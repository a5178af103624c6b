"""A failing world with as few steps as could be found: clients and kinds of faults are left out, then steps.

What is left out whole goes first: it makes all further tries cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sojourn.sim.live_check.check import Found, run
from sojourn.sim.live_check.script import CLIENT_STEPS
from sojourn.sim.live_check.steps import Step
from sojourn.sim.shortening import shorten

RUNS_MAX = 90


def shrink(found: Found, runs_max: int = RUNS_MAX, run_script: Callable[..., Found] = run) -> Found:
    """Return a failing check with fewer steps, in which the same promise is broken."""
    best = found

    def still_fails(steps: list[Step]) -> Found | None:
        nonlocal best
        tried = run_script(replace(found.script, steps=sorted(steps, key=lambda step: step.time_s)))
        if tried.failure is None or tried.kind != found.kind:
            return None
        best = tried
        return tried

    still_fails([step for step in found.script.steps if step.time_s <= found.ended_s])
    for part in sorted({_part(step) for step in best.script.steps}):
        still_fails([step for step in best.script.steps if _part(step) != part])
    lives = [step for step in best.script.steps if step.what in CLIENT_STEPS]
    faults = [step for step in best.script.steps if step.what not in CLIENT_STEPS]
    faults, _ = shorten(faults, lambda some: still_fails([*lives, *some]), runs_max // 3)
    shorten(lives, lambda some: still_fails([*some, *faults]), runs_max // 3)
    return best


def _part(step: Step) -> str:
    """What a step belongs to: the life of a client, or a kind of fault."""
    return f"client {step.who}" if step.what in CLIENT_STEPS else step.what
