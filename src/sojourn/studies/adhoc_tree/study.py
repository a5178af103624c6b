"""The whole study: the check of each claim, and all parts put together."""

from sojourn.studies.adhoc_tree import checks, checks_beyond
from sojourn.studies.adhoc_tree.grid import grid
from sojourn.studies.adhoc_tree.parameters import SCALES
from sojourn.studies.adhoc_tree.presentation import FIGURES, TITLE, constants, finding, what_is_run
from sojourn.studies.adhoc_tree.runs import simulate
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.base import Check
from sojourn.studies.study import Study

CHECKS: dict[str, Check[Table]] = {
    "C-examples": checks.worked_examples,
    "C-layout": checks.layout,
    "C-fig8": checks.fig8,
    "C-fig9": checks.fig9,
    "C-fig10": checks_beyond.fig10,
    "C-fig11": checks.fig11,
    "C-fig12": checks.fig12,
    "C-mobility": checks_beyond.mobility,
    "C-fig13": checks.fig13,
}

STUDY = Study(
    "adhoc-tree",
    TITLE,
    "adhoc_tree",
    scales=SCALES,
    what_is_run=what_is_run,
    grid=grid,
    simulate=simulate,
    # A task returns a block of layouts, which the table joins; there is nothing to average.
    tabulate=lambda specs, rows, _average: Table(specs, rows),
    checks=CHECKS,
    needs_no_runs=frozenset({"C-examples"}),
    figures=FIGURES,
    finding=finding,
    constants=constants,
    keeps_traces=False,
    counted="tasks",
    over="layouts",
)
