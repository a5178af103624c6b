"""Checks of the hand-off from seeds: run one, and cut a failing one down to what makes it fail.

    found = check(CheckSpec(seed=7, scheme="proactive", routing="content"))
    found.failure          # None, or a sentence

The same specification always gives the same run. `shorten` tries ever smaller parts of a failing script
(delta debugging): whatever fails with fewer steps is kept, though it may fail in another way.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace

from sojourn.mobility.broker import Broker
from sojourn.sim.handoff_check.script import CheckSpec, Script, Step, write_script
from sojourn.sim.handoff_check.world import CheckWorld, FailedCheckError, MakeBroker
from sojourn.sim.shortening import shorten as shorten_steps

SHORTEN_RUNS_MAX = 400
"""How often a failing script is run again to make it shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a check came to."""

    spec: CheckSpec
    handoffs: int
    """Moves between two brokers that both took the client in."""
    deliveries: int
    failure: str | None
    script: Script

    def command(self) -> str:
        """The command that repeats this check."""
        spec = self.spec
        return (
            f"sojourn check handoff --first-seed {spec.seed} --seeds 1 "
            f"--scheme {spec.scheme} --routing {spec.routing} --seconds {spec.duration_s:g}"
        )


def check(spec: CheckSpec, make_broker: MakeBroker = Broker) -> Found:
    """Run the check of a specification."""
    return run(write_script(spec), make_broker)


def run(script: Script, make_broker: MakeBroker = Broker) -> Found:
    """Run a script. A broken invariant inside a broker is a failure like any other."""
    world = CheckWorld(script, make_broker)
    failure = None
    was_enabled = gc.isenabled()
    gc.disable()  # a check makes few cycles and is over soon
    try:
        world.run()
    except FailedCheckError as error:
        failure = str(error)
    except Exception as error:  # noqa: BLE001  (whatever a broker trips over is what we look for)
        failure = f"{type(error).__name__}: {error}"
    finally:
        if was_enabled:
            gc.enable()
    seen = sum(len(numbers) for client in world.clients for numbers in client.witness.seen.values())
    return Found(spec=script.spec, handoffs=world.handoffs, deliveries=seen, failure=failure, script=script)


def shorten(
    found: Found, make_broker: MakeBroker = Broker, progress: Callable[[int], None] | None = None
) -> Found:
    """A failing check with as few steps as could be found in a limited number of runs."""
    best = found

    def still_fails(steps: list[Step]) -> Found | None:
        nonlocal best
        if progress is not None:
            progress(len(best.script.steps))
        tried = run(replace(found.script, steps=steps), make_broker)
        if tried.failure is None:
            return None
        best = tried
        return tried

    shorten_steps(found.script.steps, still_fails, SHORTEN_RUNS_MAX)
    return best
