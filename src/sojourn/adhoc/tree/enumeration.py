"""Algorithm OPT of section 3.1: try every spanning tree and keep the one with the least overhead.

A spanning tree rooted at node 0 is one parent for each other node such that following parents never goes
round in a circle; all such choices are tried one after the other. Exact and hopeless beyond a dozen nodes,
which is what it is for: to be compared with the solver of `optimum.py`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.connectivity import ROOT
from sojourn.adhoc.tree.whole_graph import System, node_overhead_of, spread
from sojourn.interest.index.compiling import compiled

CHOICES_MAX = 20_000_000
"""More parents' choices than this are refused; about twenty seconds of work."""


class Enumerated(NamedTuple):
    """The best of all spanning trees."""

    overhead: float
    parents: NDArray[np.int64]
    trees: int
    """How many spanning trees there were."""


def best_of_all(given: System) -> Enumerated:
    """Look at every spanning tree."""
    degrees = np.diff(given.starts)[1:]
    choices = float(np.prod(degrees.astype(float)))
    if choices > CHOICES_MAX:
        raise AdhocError(
            f"{choices:.3g} choices of parents are too many to enumerate (at most {CHOICES_MAX:,}): use the "
            "exact solver, or a smaller system."
        )
    overhead, parents, trees = _search(given)
    if trees == 0:
        raise AdhocError("the layout is not connected, so it has no spanning tree; raise range_m.")
    return Enumerated(float(overhead), parents, int(trees))


@compiled
def _is_tree(parents: NDArray[np.int64]) -> bool:
    for node in range(1, len(parents)):
        above, steps = parents[node], 0
        while above != 0:
            above = parents[above]
            steps += 1
            if steps > len(parents):
                return False
    return True


@compiled
def _search(given: System) -> tuple[float, NDArray[np.int64], int]:
    """Count through all choices like an odometer."""
    nodes = len(given.starts) - 1
    at = given.starts[:-1].copy()
    parents = np.full(nodes, -1, dtype=np.int64)
    best, best_parents, trees = np.inf, parents.copy(), 0
    for node in range(1, nodes):
        if given.starts[node] == given.starts[node + 1]:
            return best, best_parents, trees
        parents[node] = given.others[at[node]]
    proxied = np.zeros_like(given.words)
    while True:
        if _is_tree(parents):
            trees += 1
            proxied[:] = 0
            for node in range(1, nodes):
                spread(given.words, proxied, parents, node)
            total = 0.0
            for node in range(nodes):
                total += node_overhead_of(given, node, proxied)
            if total < best:
                best, best_parents = total, parents.copy()
        node = 1
        while node < nodes:
            at[node] += 1
            if at[node] < given.starts[node + 1]:
                parents[node] = given.others[at[node]]
                break
            at[node] = given.starts[node]
            parents[node] = given.others[at[node]]
            node += 1
        if node == nodes:
            return best, best_parents, trees


assert ROOT == 0, "the compiled code knows the root as 0"
