"""The whole study: the check of each claim, and all parts put together."""

from functools import partial

from sojourn.studies import means
from sojourn.studies.base import Check
from sojourn.studies.means import Table
from sojourn.studies.publisher_mobility import checks, checks_load, checks_locality, checks_tables
from sojourn.studies.publisher_mobility.figures import FIGURES
from sojourn.studies.publisher_mobility.grid import grid
from sojourn.studies.publisher_mobility.measures import simulate
from sojourn.studies.publisher_mobility.parameters import SCALES, Scale
from sojourn.studies.publisher_mobility.presentation import TITLE, constants, finding
from sojourn.studies.publisher_mobility.table import MEASURES
from sojourn.studies.study import Study

CHECKS: dict[str, Check[Table]] = {
    "A-table1": checks_tables.table1,
    "A-table2": checks_tables.table2,
    "A-fig4a-linear": checks.fig4a_linear,
    "A-fig4a-tenfold": checks.fig4a_tenfold,
    "A-fig4a-prefetching": checks.fig4a_prefetching,
    "A-fig4a-order": checks.fig4a_order,
    "A-fig4b-order": checks.fig4b_order,
    "A-fig4b-flat": checks.fig4b_flat,
    "A-fig5a-order-of-magnitude": checks_load.fig5a,
    "A-fig5b-collapse": checks_load.fig5b,
    "A-fig5c-even-the-best": checks.fig5c,
    "A-fig6a-speed-cost": checks.fig6a,
    "A-fig6b-speed-time-flat": checks.fig6b_flat,
    "A-fig7-speed-complex": checks.fig7,
    "A-fig8-overshoot": checks_locality.fig8,
    "A-fig9-overshoot-computed": checks_locality.fig9,
    "A-fig10-locality": checks_locality.fig10,
    "A-fig11-delivery": checks_locality.fig11,
    "A-delay-too-short": checks.delay_too_short,
    "A-combination": checks.combination,
}

STUDY = Study(
    "publisher-mobility",
    TITLE,
    "publisher_mobility",
    scales=SCALES,
    what_is_run=Scale.what_is_run,
    grid=grid,
    simulate=simulate,
    tabulate=partial(means.tabulate, measures=MEASURES),
    checks=CHECKS,
    needs_no_runs=frozenset({"A-table1", "A-table2"}),
    figures=FIGURES,
    finding=finding,
    constants=constants,
)
