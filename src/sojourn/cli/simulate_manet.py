"""The part of `sojourn simulate` that runs mobile ad-hoc networks (paper 004)."""

from collections.abc import Callable

import msgspec

from sojourn.cli.watch_manet import HOPS_LOGGED, watch_manet
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.trace import record
from sojourn.sim.manet.world import World
from sojourn.sim.recorder import Recorder
from sojourn.studies.manet.runs import measure

STEP_S = 10.0


def run_manet(
    manet: Manet, recorder: Recorder | None, tell: Callable[[float], None] | None, pace: float
) -> dict[str, object]:
    """The measures of one run; watched at a pace if nobody is to be told how far it is."""
    world = World(manet, hops_logged=0 if tell else HOPS_LOGGED)
    if tell is None:
        watch_manet(world, pace=pace)
    else:
        for time_s in world.steps(STEP_S):
            tell(time_s / manet.duration_s)
    if recorder is not None:
        record(world, recorder, msgspec.json.encode(manet, order="sorted").decode())
    return dict(measure(world.measured()))
