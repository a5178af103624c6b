"""A failing world with as few steps as could be found: first faults are left out, then what clients do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sojourn.sim.live_check.check import Found, run
from sojourn.sim.live_check.script import CLIENT_STEPS, Step
from sojourn.sim.shortening import shorten

RUNS_MAX = 60


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

    lives = [step for step in found.script.steps if step.what in CLIENT_STEPS]
    faults = [step for step in found.script.steps if step.what not in CLIENT_STEPS]
    faults, _ = shorten(faults, lambda some: still_fails([*lives, *some]), runs_max // 2)
    shorten(lives, lambda some: still_fails([*some, *faults]), runs_max // 2)
    return best
