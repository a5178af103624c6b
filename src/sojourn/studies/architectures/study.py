"""The whole study: the check of each claim, and all parts put together."""

from sojourn.studies.architectures import checks
from sojourn.studies.architectures.grid import grid
from sojourn.studies.architectures.parameters import SCALES
from sojourn.studies.architectures.presentation import FIGURES, TITLE, constants, finding, tables, what_is_run
from sojourn.studies.architectures.runs import simulate
from sojourn.studies.architectures.table import Table, tabulate
from sojourn.studies.base import Check
from sojourn.studies.study import Study

CHECKS: dict[str, Check[Table]] = {
    "D-table1": checks.table1,
    "D-quench-tradeoff": checks.quench_tradeoff,
    "D-quench-offline": checks.quench_offline,
    "D-scaling": checks.scaling,
    "D-exactly-once": checks.exactly_once,
    "D-queues": checks.queues,
    "D-adhoc-broker": checks.adhoc_broker,
}

STUDY = Study(
    "architectures",
    TITLE,
    "architectures",
    scales=SCALES,
    what_is_run=what_is_run,
    grid=grid,
    simulate=simulate,
    tabulate=tabulate,
    checks=CHECKS,
    figures=FIGURES,
    finding=finding,
    constants=constants,
    tables=tables,
    counted="tasks",
)
