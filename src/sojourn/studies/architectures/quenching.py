"""Quenching set against not quenching: ratios, and the unwanted share at which both cost the same."""

import math
from itertools import pairwise

from sojourn.studies.architectures.grid import PLAIN
from sojourn.studies.architectures.table import Table
from sojourn.studies.cited import select
from sojourn.studies.cited_points import asked
from sojourn.studies.cited_points import points as table_of


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
    shares, costs = [share for share, _ in points], [ratio for _, ratio in points]
    next_x, next_y = (f"lead({name}) OVER (ORDER BY x) AS next_{name}" for name in "xy")
    slope = "(next_y - y) / (next_x - x)"
    met = f"CASE WHEN {slope} < 0 THEN greatest(0D, x + (1 - y) / ({slope})) ELSE 0D END AS met"
    steps = select(f"*, {next_x}, {next_y}", table_of(shares, costs))
    return asked(
        "coalesce(min_by(met, x), double('infinity'))",
        select(f"x, {met}", f"{steps} WHERE next_y <= 1"),
        float(_break_even(points)),
        [*shares, *costs],
    )


def _break_even(points: list[tuple[float, float]]) -> float:
    for (share, ratio), (next_share, next_ratio) in pairwise(points):
        if next_ratio <= 1:
            slope = (next_ratio - ratio) / (next_share - share)
            return max(0.0, share + (1 - ratio) / slope) if slope < 0 else 0.0
    return math.inf
