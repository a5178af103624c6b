"""Run the world of one specification, and say what came of it."""

from __future__ import annotations

import gc
import traceback
from collections import Counter
from dataclasses import dataclass

from sojourn.sim.live_check.copied_world import CopiedWorld
from sojourn.sim.live_check.ending import end
from sojourn.sim.live_check.oracle import FailedCheckError
from sojourn.sim.live_check.script import Script, Spec, write_script
from sojourn.sim.live_check.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a check came to."""

    spec: Spec
    script: Script
    failure: str | None
    """A sentence, or None."""
    kind: str
    """Which promise was broken, in a word."""
    trace: str
    """Where a broker failed by itself, if it did."""
    digest: str
    ended_s: float
    """When the world came to its end, or to its failure."""
    counts: Counter[str]
    excused: Counter[str]


def check(spec: Spec) -> Found:
    """Run the check of a specification."""
    return run(write_script(spec))


def run(script: Script) -> Found:
    """Run a script. A broken invariant inside a broker is a failure like any other."""
    world = CopiedWorld(script) if script.spec.copies else World(script)
    failure, kind, trace = None, "", ""
    was_enabled = gc.isenabled()
    gc.disable()  # a world makes few cycles and is over soon
    try:
        world.run()
        end(world)
    except FailedCheckError as error:
        failure, kind = str(error), error.kind
    except Exception as error:  # noqa: BLE001  (whatever a broker trips over is what we look for)
        failure = f"{type(error).__name__} at {world.now:.3f} s: {error}"
        kind, trace = type(error).__name__, traceback.format_exc()
    finally:
        if was_enabled:
            gc.enable()
    world.counts["deliveries"] = world.oracle.deliveries
    world.counts["promises kept"] = world.oracle.promises
    return Found(
        spec=script.spec,
        script=script,
        failure=failure,
        kind=kind,
        trace=trace,
        digest=world.digest.hexdigest(),
        ended_s=world.now,
        counts=world.counts,
        excused=world.oracle.excused,
    )
