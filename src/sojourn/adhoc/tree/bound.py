"""A lower bound on the overhead of any tree, for systems too large for the solver of `optimum.py`.

Every cell alone asks for a set of forwarding nodes that joins the root to all who want it: a directed Steiner
tree with costs on nodes. One tree for all cells can be no cheaper than the best tree for each, so the sum
over cells of a bound on each is a bound on all. Each is bounded by dual ascent (R. T. Wong, Mathematical
Programming 28, 1984): take a wanting node that the root does not reach over saturated arcs, raise the price
of the cut around all that reach it until an arc saturates, and add the price to the bound; stop when the
root reaches everybody.

A node is split in two, `hears` and `says`, joined by an arc that costs what forwarding the cell costs; what
one node says its neighbours hear for nothing. The root says everything at no extra charge: its overhead is
the same in every tree and is added at the end. The bound is loose where interests differ widely, since it
lets every cell have a tree of its own.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT, require_connected
from sojourn.adhoc.tree.overhead import Costs
from sojourn.interest.index.compiling import compiled

Ints: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]


def lower_bound(graph: NDArray[np.bool_], interests: Subscriptions, costs: Costs) -> float:
    """No spanning tree of the graph has less overhead than this."""
    require_connected(graph)
    starts = np.concatenate(([0], np.cumsum(graph.sum(axis=1)))).astype(np.int64)
    others = np.nonzero(graph)[1].astype(np.int64)
    member, weights = interests.member, interests.weights
    each = weights * (costs.forward + costs.receive * ~member)
    total = float(each[ROOT][member[1:].any(axis=0)].sum())
    for cell in range(member.shape[1]):
        total += float(_ascend(starts, others, np.ascontiguousarray(each[:, cell]), member[:, cell].copy()))
    return total


@compiled
def _reaching(
    starts: Ints, others: Ints, free: Marks, target: int, hears: Marks, says: Marks, stack: Ints
) -> None:
    """Mark all halves of nodes from which the target hears without a price left to pay."""
    hears[:] = False
    says[:] = False
    hears[target] = True
    stack[0] = target
    size = 1
    while size:
        size -= 1
        node = stack[size]
        for at in range(starts[node], starts[node + 1]):
            other = others[at]
            if not says[other]:
                says[other] = True
                if free[other] and not hears[other]:
                    hears[other] = True
                    stack[size] = other
                    size += 1


@compiled
def _ascend(starts: Ints, others: Ints, price: NDArray[np.float64], wants: Marks) -> float:
    """The bound for one cell; `price` is what forwarding costs a node, and is used up."""
    nodes = len(price)
    hears, says = np.zeros(nodes, dtype=np.bool_), np.zeros(nodes, dtype=np.bool_)
    stack = np.zeros(nodes + 1, dtype=np.int64)
    free = price <= 0.0
    open_targets = wants.copy()
    open_targets[0] = False
    total = 0.0
    while True:
        # The target with the smallest cut first: its price is shared with the fewest others.
        best, best_size = -1, nodes + 1
        for target in range(1, nodes):
            if open_targets[target]:
                _reaching(starts, others, free, target, hears, says, stack)
                if says[0]:
                    open_targets[target] = False
                    continue
                size = hears.sum()
                if size < best_size:
                    best, best_size = target, size
        if best < 0:
            return total
        _reaching(starts, others, free, best, hears, says, stack)
        raised = np.inf
        for node in range(1, nodes):
            if says[node] and not hears[node]:
                raised = min(raised, price[node])
        total += raised
        for node in range(1, nodes):
            if says[node] and not hears[node]:
                price[node] -= raised
                if price[node] <= 1e-12:
                    free[node] = True
