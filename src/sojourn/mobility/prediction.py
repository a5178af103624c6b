"""Where a subscriber is likely to go next, to keep fewer copies than one at every neighbour.

The pipeline learns from sojourns where those go who came from a certain broker (`learnt_graph.Pair`, order 2)
and where anybody goes (`Edge`, order 1). A predictor names the fewest brokers that together got at least
`share` of the crossings, from the pair where it was ever seen, from the broker otherwise, and says None where
neither was: then the neighbour table decides. A wrong prediction costs a reactive hand-off and no event.
"""

from collections.abc import Iterable, Sequence

from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import Edge, LearntGraph

SHARE = 0.9


class PredictionError(SojournError):
    """A predictor's parameter has no meaning."""


class Predictor:
    """The likely next brokers by (broker before, broker now), all by number."""

    __slots__ = ("_after",)

    def __init__(self, graph: LearntGraph, names: Sequence[str], share: float = SHARE) -> None:
        if not 0 < share <= 1:
            raise PredictionError(f"share must be more than 0 and at most 1, not {share:g}.")
        numbers = {name: number for number, name in enumerate(names)}
        grouped: dict[tuple[int | None, int], list[Edge]] = {}
        for edge in graph.edges:
            if edge.at in numbers and edge.to in numbers:
                grouped.setdefault((None, numbers[edge.at]), []).append(edge)
        for pair in graph.pairs:
            if pair.before in numbers and pair.at in numbers and pair.to in numbers:
                grouped.setdefault((numbers[pair.before], numbers[pair.at]), []).append(pair)
        self._after = {
            path: tuple(sorted(numbers[edge.to] for edge in _fewest(edges, share)))
            for path, edges in grouped.items()
        }

    def likely(self, at: int, before: int | None) -> tuple[int, ...] | None:
        """The likely next brokers of a subscriber at one broker that came from another, if any are known."""
        found = self._after.get((before, at))
        return found if found is not None else self._after.get((None, at))


def _fewest(edges: Iterable[Edge], share: float) -> list[Edge]:
    """The likeliest edges that together reach the share."""
    chosen: list[Edge] = []
    total = 0.0
    for edge in sorted(edges, key=lambda edge: (-edge.probability, edge.to)):
        if total >= share - 1e-9:
            break
        chosen.append(edge)
        total += edge.probability
    return chosen
