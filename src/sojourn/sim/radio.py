"""A broadcast radio: whatever one node says, every node within range hears a moment later.

Who hears is settled when a message is said, by the places at that moment; two nodes hear each other or
neither does (section 2 of paper 002). Every reception takes the same delay, so a neighbour hears one sender's
messages in order. `loss` drops each reception on its own. There is no contention: the paper leaves it out.
"""

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.connectivity import neighbours, reached

DELAY_S = 0.002
"""From saying to hearing: a kilobyte at 4 Mb/s."""


class Radio:
    """Places of nodes and who hears whom."""

    def __init__(
        self,
        places: NDArray[np.float64],
        range_m: float,
        *,
        delay_s: float = DELAY_S,
        loss: float = 0.0,
        stream: np.random.Generator | None = None,
    ) -> None:
        if not 0 <= loss < 1:
            raise AdhocError(f"loss must be at least 0 and below 1, not {loss:g}.")
        if loss and stream is None:
            raise AdhocError("loss needs a random stream to draw from.")
        if not delay_s > 0:
            raise AdhocError(f"delay_s must be above 0, not {delay_s:g}.")
        self.places = np.array(places, dtype=np.float64)
        self.range_m = range_m
        self.delay_s = delay_s
        self._loss = loss
        self._stream = stream
        self.silent: set[int] = set()
        """Nodes that are switched off."""
        self.settle()

    def settle(self) -> None:
        """Work out anew who hears whom, after places changed."""
        self.graph = neighbours(self.places, self.range_m)
        self._hearers = [[int(other) for other in np.flatnonzero(row)] for row in self.graph]

    def move(self, node: int, place: NDArray[np.float64]) -> None:
        """Put one node elsewhere."""
        self.places[node] = place
        self.settle()

    def hearers(self, sender: int) -> list[int]:
        """Who hears what a node says now."""
        if sender in self.silent:
            return []
        heard = self._hearers[sender]
        if self.silent:
            heard = [node for node in heard if node not in self.silent]
        if self._loss and self._stream is not None:
            kept = self._stream.random(len(heard)) >= self._loss
            heard = [node for node, keep in zip(heard, kept, strict=True) if keep]
        return heard

    def reached_from(self, node: int) -> NDArray[np.bool_]:
        """Which nodes have any route to a node now."""
        graph = self.graph
        if self.silent:
            graph = graph.copy()
            off = sorted(self.silent)
            graph[off, :] = False
            graph[:, off] = False
        return reached(graph, node)
