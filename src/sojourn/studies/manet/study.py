"""The whole study: the check of each claim, and all parts put together."""

from sojourn.studies.base import Check
from sojourn.studies.manet import checks, checks_cost
from sojourn.studies.manet.grid import grid
from sojourn.studies.manet.parameters import SCALES
from sojourn.studies.manet.presentation import FIGURES, TITLE, constants, finding, what_is_run
from sojourn.studies.manet.runs import simulate
from sojourn.studies.manet.table import Table, tabulate
from sojourn.studies.study import Study

CHECKS: dict[str, Check[Table]] = {
    "E-void": checks.void,
    "E-map": checks.best_delivery,
    "E-rendezvous-sensitive": checks.rendezvous_sensitive,
    "E-delay": checks_cost.delay,
    "E-load": checks_cost.load,
    "E-policy": checks.policy,
    "E-proximity": checks.proximity,
}

STUDY = Study(
    "manet",
    TITLE,
    "manet",
    scales=SCALES,
    what_is_run=what_is_run,
    grid=grid,
    simulate=simulate,
    tabulate=tabulate,
    checks=CHECKS,
    figures=FIGURES,
    finding=finding,
    constants=constants,
)
