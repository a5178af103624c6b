"""The study's name and the check of each of its claims."""

from sojourn.studies.base import Check
from sojourn.studies.manet import checks, checks_cost
from sojourn.studies.manet.table import Table

NAME = "manet"

CHECKS: dict[str, Check[Table]] = {
    "E-void": checks.void,
    "E-map": checks.best_delivery,
    "E-rendezvous-sensitive": checks.rendezvous_sensitive,
    "E-delay": checks_cost.delay,
    "E-load": checks_cost.load,
    "E-policy": checks.policy,
    "E-proximity": checks.proximity,
}
"""One check a claim, in the ledger's order."""
