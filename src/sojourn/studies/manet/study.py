"""The whole study: from a scale to measures, verdicts and files."""

from functools import partial

from sojourn.studies import base
from sojourn.studies.manet import judging
from sojourn.studies.manet.grid import grid
from sojourn.studies.manet.parameters import Scale
from sojourn.studies.manet.table import Table, tabulate

NAME = judging.NAME

Outcome = base.Outcome[Scale, Table]


def run(scale: Scale, seeds: int | None, sweep: base.Sweep, average: base.Average | None = None) -> Outcome:
    """Carry out the grid at a scale and judge every claim."""
    return base.run(
        scale,
        seeds,
        sweep,
        grid=grid,
        tabulate=partial(tabulate, average=average),
        judge=lambda table: base.judge_all(NAME, judging.CHECKS, table, scale),
    )
