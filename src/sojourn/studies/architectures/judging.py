"""Judges every claim of the study from one table."""

from sojourn.studies import base
from sojourn.studies.architectures import checks
from sojourn.studies.architectures.parameters import Scale
from sojourn.studies.architectures.table import Table
from sojourn.studies.base import Check
from sojourn.studies.claims import Verdict

NAME = "architectures"

CHECKS: dict[str, Check[Table]] = {
    "D-table1": checks.table1,
    "D-quench-tradeoff": checks.quench_tradeoff,
    "D-quench-offline": checks.quench_offline,
    "D-scaling": checks.scaling,
    "D-exactly-once": checks.exactly_once,
    "D-queues": checks.queues,
    "D-adhoc-broker": checks.adhoc_broker,
}
"""One check a claim, in the ledger's order."""


def judge_all(table: Table, scale: Scale) -> list[Verdict]:
    """A verdict on every claim of the study, in the ledger's order."""
    return base.judge_all(NAME, CHECKS, table, scale)
