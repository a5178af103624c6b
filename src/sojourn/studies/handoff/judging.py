"""Judges every claim of the study from one table of means."""

from sojourn.studies import base
from sojourn.studies.base import Check
from sojourn.studies.claims import Verdict
from sojourn.studies.handoff import checks, checks_beyond, checks_model, checks_tables
from sojourn.studies.handoff.parameters import Scale
from sojourn.studies.means import Table

NAME = "handoff"

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
"""One check a claim, in the ledger's order."""

NEEDS_NO_RUNS = frozenset({"B-ctmc-random", "B-races"})


def judge_all(table: Table, scale: Scale) -> list[Verdict]:
    """A verdict on every claim of the study, in the ledger's order."""
    return base.judge_all(NAME, CHECKS, table, scale, NEEDS_NO_RUNS)
