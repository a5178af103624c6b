"""Judges every claim of the study from one table."""

from sojourn.studies.adhoc_tree import checks, checks_beyond
from sojourn.studies.adhoc_tree.checks import Check
from sojourn.studies.adhoc_tree.parameters import Scale
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.claims import Claim, Verdict, claims_of, judge

NAME = "adhoc-tree"

CHECKS: dict[str, Check] = {
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
    return [_judge_one(claim, table, scale) for claim in claims_of(NAME).values()]


def _judge_one(claim: Claim, table: Table, scale: Scale) -> Verdict:
    try:
        verdict = CHECKS[claim.id](claim, table)
    except (KeyError, ValueError, ZeroDivisionError) as error:
        # Failed runs leave holes in the table; a claim that needs them is open, the others are not.
        return judge(
            claim, holds=None, measured={}, evidence=f"Runs are missing that this claim needs ({error!r})."
        )
    if scale.judges or claim.id in NEEDS_NO_RUNS:
        return verdict
    note = f"Measured at the {scale.name} scale, which judges nothing. "
    return judge(claim, holds=None, measured=verdict.measured, evidence=note + verdict.evidence)
