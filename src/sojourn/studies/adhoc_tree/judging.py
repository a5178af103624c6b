"""Judges every claim of the study from one table."""

from sojourn.studies import base
from sojourn.studies.adhoc_tree import checks, checks_beyond
from sojourn.studies.adhoc_tree.parameters import Scale
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.base import Check
from sojourn.studies.claims import Verdict

NAME = "adhoc-tree"

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
"""One check a claim, in the ledger's order."""

NEEDS_NO_RUNS = frozenset({"C-examples"})


def judge_all(table: Table, scale: Scale) -> list[Verdict]:
    """A verdict on every claim of the study, in the ledger's order."""
    return base.judge_all(NAME, CHECKS, table, scale, NEEDS_NO_RUNS)
