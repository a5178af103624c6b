"""Who hears whom: the connectivity graph of section 2, and the layouts on which nothing can be built.

Two nodes are neighbours if their distance is less than the radio range (section 4.1). Node 0 is the root; the
paper calls it node 1. Not here: how a layout is drawn (`sim/adhoc/layout.py`).
"""

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError

ROOT = 0


def neighbours(positions: NDArray[np.float64], range_m: float) -> NDArray[np.bool_]:
    """Which pairs of nodes hear each other."""
    if positions.ndim != 2 or positions.shape[1] != 2 or not len(positions):
        raise AdhocError("positions needs one x and one y for each of at least one node.")
    if not np.isfinite(positions).all():
        raise AdhocError("positions may hold finite numbers only; look for a missing coordinate.")
    if not range_m > 0:
        raise AdhocError(f"range_m must be above 0 for nodes to hear each other, not {range_m:g}.")
    apart = positions[:, None, :] - positions[None, :, :]
    graph: NDArray[np.bool_] = (apart**2).sum(axis=2) < range_m**2
    np.fill_diagonal(graph, val=False)
    return graph


def reached(graph: NDArray[np.bool_], start: int = ROOT) -> NDArray[np.bool_]:
    """Which nodes a message can get to from one node, over any number of hops."""
    seen = np.zeros(len(graph), dtype=bool)
    seen[start] = True
    edge = seen.copy()
    while edge.any():
        edge = graph[edge].any(axis=0) & ~seen
        seen |= edge
    return seen


def require_connected(graph: NDArray[np.bool_]) -> None:
    """Refuse a layout in which some node has no route to the root."""
    lost = np.flatnonzero(~reached(graph))
    if len(lost):
        raise AdhocError(
            f"the layout is not connected: {len(lost)} of {len(graph)} nodes, node {lost[0]} first, have no "
            "route to the root; raise range_m or move them nearer."
        )


def require_tree(parents: NDArray[np.int64], graph: NDArray[np.bool_]) -> None:
    """Refuse parents that are no spanning tree of a graph rooted at node 0."""
    for node, parent in enumerate(parents):
        if node == ROOT:
            continue
        if parent < 0 or not graph[node, parent]:
            raise AdhocError(f"parents names {parent} for node {node}, which is no neighbour of it.")
        above, steps = int(parent), 0
        while above != ROOT:
            above, steps = int(parents[above]), steps + 1
            if above < 0 or steps > len(parents):
                raise AdhocError(f"parents leads node {node} round in a circle, never to the root.")
