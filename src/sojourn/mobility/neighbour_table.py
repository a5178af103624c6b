"""Which brokers subscribers come from and go to, as one broker learns it (paper 001, section 4.2).

The graph is distributed: a broker knows its own edges and nothing else. It learns an edge in two ways: a
subscriber that arrives names the broker it comes from, and a broker that asks for a subscriber's events shows
where it went. Both ends so learn of each crossing, and the graph is undirected.

Edges go stale by least recent use: the table keeps the edges crossed last, up to a number, and drops those
that nobody crossed for a time. A table may start from what the pipeline learnt of earlier runs.
"""

from collections.abc import Mapping

from sojourn.mobility.learnt_graph import LearntGraph


class NeighbourTable:
    """One broker's edges and when each was last crossed."""

    __slots__ = ("_crossed_s", "_places_max", "_timeout_s")

    def __init__(self, places_max: int, timeout_s: float) -> None:
        self._places_max = places_max
        self._timeout_s = timeout_s
        self._crossed_s: dict[int, float] = {}
        """By neighbour, the least recently crossed first."""

    def cross(self, neighbour: int, now: float) -> bool:
        """A subscriber went from or to that broker; say whether the edge is new."""
        is_new = self._crossed_s.pop(neighbour, None) is None
        self._crossed_s[neighbour] = now
        if len(self._crossed_s) > self._places_max:
            del self._crossed_s[next(iter(self._crossed_s))]
        return is_new

    def neighbours(self, now: float) -> tuple[int, ...]:
        """The brokers at the other ends of the edges that are not stale, in ascending order."""
        crossed = self._crossed_s
        while crossed:
            oldest = next(iter(crossed))
            if crossed[oldest] + self._timeout_s >= now:
                break
            del crossed[oldest]
        return tuple(sorted(crossed))

    def load(self, graph: LearntGraph, own: str, numbers: Mapping[str, int], now: float) -> None:
        """Start from a learnt graph: its edges count as crossed now, the likeliest most recently."""
        for name in reversed(graph.neighbours(own)):
            if name in numbers:
                self.cross(numbers[name], now)
        for edge in graph.edges:
            if edge.to == own and edge.at in numbers:
                self.cross(numbers[edge.at], now)
