"""The whole study: from a scale to measures, verdicts and files."""

from sojourn.studies import base
from sojourn.studies.adhoc_tree import judging
from sojourn.studies.adhoc_tree.grid import grid
from sojourn.studies.adhoc_tree.parameters import Scale
from sojourn.studies.adhoc_tree.table import Table

NAME = judging.NAME

Outcome = base.Outcome[Scale, Table]


def run(
    scale: Scale,
    seeds: int | None,
    sweep: base.Sweep,
    average: base.Average | None = None,  # noqa: ARG001  a task returns a block of layouts; the table joins them
) -> Outcome:
    """Carry out the grid at a scale and judge every claim."""
    return base.run(
        scale,
        seeds,
        sweep,
        grid=grid,
        tabulate=Table,
        judge=lambda table: judging.judge_all(table, scale),
    )
