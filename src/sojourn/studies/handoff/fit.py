"""Fits the costs of a broker's work on one column of Table 2.

`python -m sojourn.studies.handoff.fit` repeats it. The column is the pro-active scheme under random mobility:
three throughputs. Unknown are the costs of a message, of a match and of a stored event; none may be negative.
The residuals are relative errors of the simulated throughput, means over some seeds, and the search is a
bounded Gauss-Newton one that starts near the straight line through the column (16.5 ms + 0.088 ms a
subscriber, over three brokers in a row).
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.studies.handoff import paper, parameters

START = (5.54, 0.22, 0.02)
SEEDS = (1, 2)
WARMUP_S, DURATION_S = 40.0, 120.0


def column(costs: Sequence[float]) -> list[float]:
    """The simulated column of Table 2 for costs of a message, a match and a stored event, in ms."""
    message, match, store = costs
    values: dict[str, Any] = {
        **parameters.TESTBED,
        "message_cost_ms": message,
        "transfer_cost_ms": message,
        "match_cost_ms": match,
        "store_cost_ms": store,
        "known_graph": "complete",
        "warmup_s": WARMUP_S,
        "duration_s": DURATION_S,
    }
    return [
        float(
            np.mean(
                [
                    RoamingWorld(RoamingScenario(**values, subscribers=count, seed=seed)).run().received
                    / DURATION_S
                    for seed in SEEDS
                ]
            )
        )
        for count in paper.POPULATIONS
    ]


def fit() -> tuple[list[float], list[float]]:
    """The costs that fit best, and the relative errors of the three throughputs."""
    wanted = np.array([paper.THROUGHPUT[(*parameters.FIT_COLUMN, count)] for count in paper.POPULATIONS])

    def errors(costs: Sequence[float]) -> np.ndarray:
        return np.asarray(np.array(column(costs)) / wanted - 1)

    found = least_squares(
        errors, START, bounds=(0, np.inf), diff_step=0.1, x_scale=START, xtol=0.01, ftol=0.01, max_nfev=4
    )
    return found.x.tolist(), found.fun.tolist()


if __name__ == "__main__":
    costs, off = fit()
    sys.stdout.write(
        "message {:.3f} ms, match {:.3f} ms, store {:.3f} ms; ".format(*costs)
        + "relative errors "
        + ", ".join(f"{error:+.3f}" for error in off)
        + "\n"
    )
