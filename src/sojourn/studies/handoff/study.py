"""The whole study: from a scale to measures, verdicts and files."""

from functools import partial

from sojourn.studies import base, means
from sojourn.studies.handoff import judging
from sojourn.studies.handoff.grid import grid
from sojourn.studies.handoff.parameters import Scale
from sojourn.studies.handoff.table import MEASURES

NAME = judging.NAME

Outcome = base.Outcome[Scale, means.Table]


def run(scale: Scale, seeds: int | None, sweep: base.Sweep, average: base.Average | None = None) -> Outcome:
    """Simulate the grid at a scale and judge every claim."""
    return base.run(
        scale,
        seeds,
        sweep,
        grid=grid,
        tabulate=partial(means.tabulate, measures=MEASURES, average=average),
        judge=lambda table: judging.judge_all(table, scale),
    )
