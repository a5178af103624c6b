"""Judges every claim of the study from one table of means."""

from sojourn.studies import base
from sojourn.studies.base import Check
from sojourn.studies.claims import Verdict
from sojourn.studies.means import Table
from sojourn.studies.publisher_mobility import checks, checks_load, checks_locality, checks_tables
from sojourn.studies.publisher_mobility.parameters import Scale

NAME = "publisher-mobility"

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
"""One check a claim, in the ledger's order."""

NEEDS_NO_RUNS = frozenset({"A-table1", "A-table2"})


def judge_all(table: Table, scale: Scale) -> list[Verdict]:
    """A verdict on every claim of the study, in the ledger's order."""
    return base.judge_all(NAME, CHECKS, table, scale, NEEDS_NO_RUNS)
