"""What a node compares when it shops for a parent: the metrics of sections 3.2 and 5.5, one function each.

The less the better. A metric sees one candidate as it would be without the shopper, and what the shopper asks
for. `path` goes beyond the paper: it is the exact growth of the whole tree's overhead, which a shopper can
work out because a PARENT-ADVERTISE carries the interests along its route.
"""

from collections.abc import Callable
from typing import NamedTuple

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Interest
from sojourn.adhoc.tree.overhead import Costs, node_overhead


class Station(NamedTuple):
    """A node on a route, as it would be without the shopper."""

    inherent: Interest
    proxied: Interest


class Candidate(NamedTuple):
    """A neighbour that could be the shopper's parent."""

    node: int
    route: tuple[Station, ...]
    """The candidate itself, its parent, and so on to the root."""
    draw: float
    """A number between 0 and 1 that belongs to this pair: what RANDOM goes by."""
    errors: tuple[float, float] = (0.0, 0.0)
    """Relative errors in O with the shopper and in O without it."""

    @property
    def hops(self) -> int:
        """H of section 3.2: the candidate's distance to the root."""
        return len(self.route) - 1


Metric = Callable[[Candidate, Interest, Costs], float]
"""From a candidate, what the shopper asks for, and the costs."""


def nhop(candidate: Candidate, asked: Interest, costs: Costs) -> float:  # noqa: ARG001  hops are all that counts
    """The candidate's distance to the root."""
    return float(candidate.hops)


def ovhd(candidate: Candidate, asked: Interest, costs: Costs) -> float:
    """How much the candidate's own overhead grows."""
    return _increase(candidate.route[0], asked, costs)


def combo(candidate: Candidate, asked: Interest, costs: Costs) -> float:
    """The same, as if every node on the route were burdened alike."""
    return ovhd(candidate, asked, costs) * candidate.hops


def random(candidate: Candidate, asked: Interest, costs: Costs) -> float:  # noqa: ARG001  luck is all that counts
    """A draw."""
    return candidate.draw


def comboerr(candidate: Candidate, asked: Interest, costs: Costs) -> float:
    """The product of `combo` with both of its overheads estimated wrongly (section 5.5)."""
    station = candidate.route[0]
    without = float(node_overhead(station.inherent, station.proxied, costs))
    united = without + _increase(station, asked, costs)
    return (united * (1 + candidate.errors[0]) - without * (1 + candidate.errors[1])) * candidate.hops


def comboerr_floor(candidate: Candidate, asked: Interest, costs: Costs) -> float:
    """`comboerr` by a node that knows that overhead cannot shrink; beyond the paper.

    Errors can make the difference of two large overheads negative, and then more hops make it more so.
    """
    return max(0.0, comboerr(candidate, asked, costs))


def path(candidate: Candidate, asked: Interest, costs: Costs) -> float:
    """How much the whole tree's overhead grows: the sum over every node on the route."""
    total = 0.0
    for station in candidate.route:
        if not asked:
            break
        total += _increase(station, asked, costs)
        asked = asked - (station.inherent | station.proxied)
    return total


def _increase(station: Station, asked: Interest, costs: Costs) -> float:
    """O with `asked` among the proxied interests, minus O without: what is new is all that counts."""
    return float(node_overhead(station.inherent, asked - station.proxied, costs))


METRICS: dict[str, Metric] = {
    "nhop": nhop,
    "ovhd": ovhd,
    "combo": combo,
    "random": random,
    "comboerr": comboerr,
    "comboerr-floor": comboerr_floor,
    "path": path,
}

CHOOSES_ONCE = frozenset({"random"})
"""Metrics by which a node joins and then stays where it is."""


def metric_named(name: str) -> Metric:
    """The metric of that name."""
    if name not in METRICS:
        raise AdhocError(f"metric may be {', '.join(METRICS)}, not {name!r}.")
    return METRICS[name]
