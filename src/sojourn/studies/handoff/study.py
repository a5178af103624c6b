"""The whole study: the check of each claim, and all parts put together."""

from functools import partial

from sojourn.studies import means
from sojourn.studies.base import Check
from sojourn.studies.handoff import checks, checks_beyond, checks_model, checks_tables
from sojourn.studies.handoff.grid import grid
from sojourn.studies.handoff.measures import simulate
from sojourn.studies.handoff.parameters import SCALES, Scale
from sojourn.studies.handoff.presentation import FIGURES, TITLE, constants, finding
from sojourn.studies.handoff.table import MEASURES
from sojourn.studies.means import Table
from sojourn.studies.study import Study

CHECKS: dict[str, Check[Table]] = {
    "B-ctmc-random": checks_model.ctmc_random,
    "B-ctmc-neighbour": checks_model.ctmc_neighbour,
    "B-polynomial": checks_model.polynomial,
    "B-table2": checks_tables.table2,
    "B-table3": checks_tables.table3,
    "B-table4": checks_tables.table4,
    "B-fig5-latency": checks.fig5,
    "B-fig6-handoff": checks.fig6,
    "B-fig7-frequency": checks.fig7,
    "B-fig8-brokers": checks.fig8,
    "B-neighbour-graph": checks_model.neighbour_graph,
    "B-races": checks_beyond.races,
    "B-future-load": checks_beyond.future_load,
}

STUDY = Study(
    "handoff",
    TITLE,
    "handoff",
    scales=SCALES,
    what_is_run=Scale.what_is_run,
    grid=grid,
    simulate=simulate,
    tabulate=partial(means.tabulate, measures=MEASURES),
    checks=CHECKS,
    needs_no_runs=frozenset({"B-ctmc-random", "B-races"}),
    figures=FIGURES,
    finding=finding,
    constants=constants,
)
