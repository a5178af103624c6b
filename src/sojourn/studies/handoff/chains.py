"""Section 6 of paper 001: where subscribers are by its Markov chains, and the curve fitted over that."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sojourn.pipeline.occupancy import (
    BUILDING,
    State,
    at_brokers,
    neighbour_rates,
    occupancy,
    random_formula,
    random_rates,
)
from sojourn.studies.handoff import paper
from sojourn.studies.handoff.table import BROKERS
from sojourn.studies.means import Table

DEGREE = 3
POPULATION = 200


def random_chain() -> dict[str, tuple[float, float]]:
    """By kind of state: the share of time by formula and by the general solver, six brokers."""
    solved = occupancy(random_rates(6))
    formula = dict(zip(("connected", "handoff", "disconnected"), random_formula(6), strict=True))
    found = {
        "connected": at_brokers(solved)["1"],
        "handoff": solved[State("handoff")],
        "disconnected": solved[State("disconnected")],
    }
    return {kind: (formula[kind], found[kind]) for kind in formula}


def neighbour_chain() -> tuple[dict[str, float], float]:
    """By the general solver: the share of time connected to each broker of the building, and elsewhere."""
    shares = at_brokers(occupancy(neighbour_rates(BUILDING)))
    connected = {f"B{broker}": share for broker, share in sorted(shares.items())}
    return connected, 1 - sum(connected.values())


def printed(value: float, like: float) -> float:
    """A value to as many decimals as a printed one has."""
    return round(value, len(f"{like:.10g}".partition(".")[2]))


class Curve(NamedTuple):
    """A polynomial through throughput over subscribers."""

    coefficients: tuple[float, ...]
    """Highest power first."""
    r2: float
    points: list[tuple[float, float]]
    """Connected subscribers and messages a second: a broker at a population."""

    def at(self, subscribers: float) -> float:
        """The throughput of a broker with so many subscribers."""
        return float(np.polyval(self.coefficients, subscribers))


def fit_curve(table: Table) -> Curve:
    """Our own version of Figure 11: every broker at every population, random mobility, pro-active."""
    points = []
    for broker in BROKERS:
        present = table.points("tables", "proactive", "RND", f"present {broker}")
        routed = table.points("tables", "proactive", "RND", f"routed {broker}")
        points += [(present[x], routed[x]) for x in present]
    xs, ys = (np.array(column) for column in zip(*sorted(points), strict=True))
    if len(set(points)) <= DEGREE:
        raise ValueError("too few different points for a cubic")
    coefficients = np.polyfit(xs, ys, DEGREE)
    left = float(((ys - np.polyval(coefficients, xs)) ** 2).sum())
    r2 = 1 - left / float(((ys - ys.mean()) ** 2).sum())
    return Curve(tuple(coefficients.tolist()), r2, sorted(points))


def expected_at(mobility: str, population: int = POPULATION) -> dict[str, float]:
    """By broker: the subscribers that the chain expects there."""
    if mobility == "RND":
        share, _, _ = random_formula(6)
        return dict.fromkeys(BROKERS, population * share)
    return {broker: population * share for broker, share in neighbour_chain()[0].items()}


def predicted(curve: Curve, mobility: str) -> dict[str, float]:
    """By broker: the throughput that the curve gives for the subscribers that the chain expects."""
    return {broker: curve.at(count) for broker, count in expected_at(mobility).items()}


def measured(table: Table, mobility: str, what: str = "routed") -> tuple[dict[str, float], dict[str, float]]:
    """By broker: what was measured at 200 subscribers, pro-active, and half its 95% interval."""
    key = "tables", "proactive", mobility
    means = {broker: table.points(*key, f"{what} {broker}")[POPULATION] for broker in BROKERS}
    halves = {broker: table.intervals(*key, f"{what} {broker}")[POPULATION] for broker in BROKERS}
    return means, halves


def within(means: Mapping[str, float], halves: Mapping[str, float], said: Mapping[str, float]) -> list[str]:
    """The brokers at which a stated value lies outside the measured interval."""
    return [broker for broker in means if not abs(means[broker] - said[broker]) <= halves[broker]]


PAPER_CURVE = Curve(paper.CUBIC, paper.CUBIC_R2, [])
