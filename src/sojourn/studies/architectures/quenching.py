"""Quenching set against not quenching: ratios, and the unwanted share at which both cost the same."""

import math
from itertools import pairwise

from sojourn.studies.architectures.grid import PLAIN
from sojourn.studies.architectures.table import Table


def ratios(table: Table, churn: float, mode: str, price: float = 0.0) -> list[tuple[float, float]]:
    """Unwanted share and what quenching costs over what it replaces, point by point, ascending.

    `price` is what one comparison at a source costs, in bytes.
    """
    experiment = f"quench {churn:g}"
    plain = table.line(experiment, PLAIN, "bytes_per_event")
    bytes_ = table.line(experiment, mode, "bytes_per_event")
    work = table.line(experiment, mode, "comparisons_per_event")
    share = table.line(experiment, mode, "unmatched_share")
    return sorted((share[x], (bytes_[x] + price * work[x]) / plain[x]) for x in plain if x in bytes_)


def break_even(points: list[tuple[float, float]]) -> float:
    """The unwanted share from which on quenching costs less; 0 if it always does, infinity if it never does.

    Between two points, and before the first, by a straight line: what quenching saves is proportional to
    the share.
    """
    for (share, ratio), (next_share, next_ratio) in pairwise(points):
        if next_ratio <= 1:
            slope = (next_ratio - ratio) / (next_share - share)
            return max(0.0, share + (1 - ratio) / slope) if slope < 0 else 0.0
    return math.inf
