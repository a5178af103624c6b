"""Where moving clients are in the long run: a continuous-time Markov chain and its stationary solution.

Paper 001 (section 6) gives two chains, one for clients that may turn up at any broker and one for clients
that move to neighbours only, and solves each in its own way. Here a chain is any set of rates between named
states, and one sparse solver finds its occupancy; the paper's two chains are two ways to list rates, a chain
learnt from a trace is a third.

Rules: rates are per second and positive; the chain must be one piece (every state reachable from every
other), or its long run would depend on where it starts. Not here: learning from traces (`models`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from sojourn.errors import SojournError

BUILDING = ((1, 2), (1, 6), (2, 3), (2, 6), (3, 4), (3, 5), (3, 6), (4, 6))
"""Which of the six brokers of paper 001's building are neighbours (Figure 3)."""


class OccupancyError(SojournError):
    """A chain has no single long run."""


class State(NamedTuple):
    """Where a client can be: connected at a broker, disconnected, or between two brokers."""

    kind: str
    broker: str = ""
    """Empty where the paper's chain has one such state for all brokers."""


class Rate(NamedTuple):
    """How often a client in one state leaves for another, per second."""

    source: State
    target: State
    per_s: float


class Times(NamedTuple):
    """Mean stays, in seconds; the defaults are paper 001's Table 1."""

    connect_s: float = 60.0
    disconnect_s: float = 12.0
    handoff_s: float = 3.0


def occupancy(rates: Iterable[Rate]) -> dict[State, float]:
    """The share of time a client spends in each state, by ascending state."""
    listed = list(rates)
    states = sorted({state for rate in listed for state in (rate.source, rate.target)})
    number = {state: index for index, state in enumerate(states)}
    _refuse_bad_rates(listed)
    flows = coo_array(
        (
            [rate.per_s for rate in listed],
            ([number[rate.source] for rate in listed], [number[rate.target] for rate in listed]),
        ),
        shape=(len(states), len(states)),
    ).tocsr()
    pieces, _ = connected_components(flows, connection="strong")
    if pieces > 1:
        raise OccupancyError(
            f"rates must join all states in one piece, not {pieces}: add the moves that lead back, or leave"
            " the states out that nobody returns to."
        )
    return dict(zip(states, stationary(flows).tolist(), strict=True))


def stationary(flows: csr_array) -> np.ndarray:
    """Solve pi M = 0 with the sum of pi 1, for the off-diagonal rates of M."""
    size = flows.shape[0]
    if size == 1:
        return np.ones(1)
    leaving = np.asarray(flows.sum(axis=1)).ravel()
    balance = (flows.T - diags_array(leaving)).tocsc()
    # One balance equation follows from the others. Fixing the last state at 1 instead of replacing that
    # equation by a full row of ones keeps the system sparse; dividing by the sum makes it a distribution.
    inner, last = balance[: size - 1, : size - 1], balance[: size - 1, [size - 1]]
    others = splu(inner).solve(-last.toarray().ravel())
    weights = np.append(others, 1.0)
    return np.asarray(weights / weights.sum())


def random_rates(brokers: int, times: Times = Times()) -> list[Rate]:  # noqa: B008  a constant tuple
    """Section 6.1: from anywhere to any broker; one state of hand-off and one of disconnection for all.

    Each mean stay is shared among the destinations a state has (equations 1 to 3): hand-off leads to the
    N brokers, disconnection to them and to hand-off, a broker to both.
    """
    handoff, off = State("handoff"), State("disconnected")
    alpha = 1 / (brokers * times.handoff_s)
    delta = 1 / ((brokers + 1) * times.disconnect_s)
    beta = 1 / (2 * times.connect_s)
    rates = [Rate(off, handoff, delta)]
    for broker in _numbered(brokers):
        here = State("connected", broker)
        rates += [
            Rate(handoff, here, alpha),
            Rate(off, here, delta),
            Rate(here, handoff, beta),
            Rate(here, off, beta),
        ]
    return rates


def random_formula(brokers: int, times: Times = Times()) -> tuple[float, float, float]:  # noqa: B008  a constant
    """Equations 6 to 8: the shares connected at one broker, in hand-off, and disconnected."""
    alpha = 1 / (brokers * times.handoff_s)
    delta = 1 / ((brokers + 1) * times.disconnect_s)
    beta = 1 / (2 * times.connect_s)
    at_broker = ((brokers + 1) * alpha * delta) / (
        brokers * beta * alpha + (brokers + 2) * beta * delta + brokers * (brokers + 1) * alpha * delta
    )
    handoff = (brokers + 2) * beta / ((brokers + 1) * alpha) * at_broker
    return at_broker, handoff, brokers * beta / ((brokers + 1) * delta) * at_broker


def neighbour_rates(edges: Sequence[tuple[object, object]], times: Times = Times()) -> list[Rate]:  # noqa: B008 - immutable
    """Section 6.2: to neighbours only, so that each broker has its own hand-off and disconnection.

    A broker's client disconnects or leaves for good with equal rate; a disconnected one comes back or leaves;
    one that left arrives at each of the old broker's neighbours with equal rate (equations 12 to 14).
    """
    near: dict[str, set[str]] = {}
    for one, other in edges:
        near.setdefault(str(one), set()).add(str(other))
        near.setdefault(str(other), set()).add(str(one))
    rates = []
    for broker, neighbours in sorted(near.items()):
        here, off, moving = (State(kind, broker) for kind in ("connected", "disconnected", "handoff"))
        beta, delta = 1 / (2 * times.connect_s), 1 / (2 * times.disconnect_s)
        rates += [
            Rate(here, off, beta),
            Rate(here, moving, beta),
            Rate(off, here, delta),
            Rate(off, moving, delta),
        ]
        alpha = 1 / (len(neighbours) * times.handoff_s)
        rates += [Rate(moving, State("connected", other), alpha) for other in sorted(neighbours)]
    return rates


def learnt_rates(
    stay_s: Mapping[str, float], away_s: float, moves: Mapping[tuple[str, str], float]
) -> list[Rate]:
    """A chain from measured means: stay at each broker, time between two stays, and where clients go next."""
    rates = []
    for (broker, target), probability in sorted(moves.items()):
        moving = State("handoff", broker)
        rates.append(Rate(moving, State("connected", target), probability / away_s))
    rates += [
        Rate(State("connected", broker), State("handoff", broker), 1 / stay_s[broker])
        for broker in sorted({source for source, _ in moves})
    ]
    return rates


def at_brokers(shares: Mapping[State, float]) -> dict[str, float]:
    """The share of clients connected at each broker."""
    return {state.broker: share for state, share in shares.items() if state.kind == "connected"}


def _refuse_bad_rates(rates: Sequence[Rate]) -> None:
    if not rates:
        raise OccupancyError("rates must name at least one move between two states.")
    for rate in rates:
        if not rate.per_s > 0 or rate.per_s == float("inf"):
            raise OccupancyError(
                f"the rate from {rate.source} to {rate.target} must be positive, not {rate.per_s}."
            )


def _numbered(brokers: int) -> list[str]:
    if brokers < 1:
        raise OccupancyError(f"brokers must be at least 1, not {brokers}.")
    width = len(str(brokers))
    return [f"{number:0{width}d}" for number in range(1, brokers + 1)]
