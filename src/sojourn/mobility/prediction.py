"""Where a client is likely to go next: where copies of a subscriber wait, where a publisher's tree is built.

The pipeline learns from sojourns where those go who came from a certain broker (order 2), where anybody goes
(order 1), and both by the hour of the day (`learnt_graph.py`). `foreseen` reduces that to what a broker keeps
in mind: for each path the fewest brokers that together got at least `share` of the crossings, the likeliest
first. A predictor looks up what it knows of the same path at the same hour, then of the path, then of the
broker at the hour, then of the broker, and says None where it knows nothing: then the neighbour table
decides. What was seen too seldom (`evidence_min`) is not relied on.

A wrong prediction costs a reactive hand-off and no event: a copy is a hint. Where to keep one is asked again
when the client leaves, and a broker that has none by then is given one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import Edge, LearntGraph

SHARE = 0.9
ORDERS = (1, 2)
HOUR_S = 3600.0
HOURS = 24


class PredictionError(SojournError):
    """A predictor's parameter has no meaning."""


class Foreseen(msgspec.Struct, frozen=True, array_like=True):
    """Where clients of one broker are likely to go next, the likeliest first."""

    at: str
    to: tuple[str, ...]
    before: str | None = None
    """Only those who came from there; None for all."""
    hour: int | None = None
    """Only in this hour of the day, by UTC; None for the whole day."""


class Foresight(Protocol):
    """Whoever can say where a client may go."""

    def next_brokers(self, client: int, at: int, before: int | None, now: float) -> tuple[int, ...] | None:
        """The brokers that a client, here from another broker, may be at next; None where nobody knows."""


class Predictor:
    """The likely next brokers by (broker before, broker now, hour), all by number."""

    __slots__ = ("_after",)

    def __init__(self, rows: Iterable[Foreseen], names: Sequence[str]) -> None:
        numbers = {name: number for number, name in enumerate(names)}
        self._after: dict[tuple[int | None, int, int | None], tuple[int, ...]] = {}
        for row in rows:
            to = tuple(numbers[name] for name in row.to if name in numbers)
            if row.at in numbers and to and (row.before is None or row.before in numbers):
                before = None if row.before is None else numbers[row.before]
                self._after[before, numbers[row.at], row.hour] = to

    def next_brokers(self, client: int, at: int, before: int | None, now: float) -> tuple[int, ...] | None:  # noqa: ARG002 - all clients are alike here
        """The likely next brokers of a client at one broker that came from another, if any are known."""
        return self.likely(at, before, hour_of(now))

    def likely(self, at: int, before: int | None, hour: int | None = None) -> tuple[int, ...] | None:
        """The same for an hour of the day."""
        after = self._after
        for path in ((before, at, hour), (before, at, None), (None, at, hour), (None, at, None)):
            found = after.get(path)
            if found is not None:
                return found
        return None


def hour_of(now: float) -> int:
    """The hour of the day, of seconds since the midnight that began 1970."""
    return int(now // HOUR_S) % HOURS


def foreseen(
    graph: LearntGraph,
    *,
    share: float = SHARE,
    order: int = 2,
    by_hour: bool = True,
    evidence_min: int = 1,
    at: str | None = None,
) -> tuple[Foreseen, ...]:
    """What brokers, or the one that is named, keep in mind of a learnt graph."""
    if not 0 < share <= 1:
        raise PredictionError(f"share must be more than 0 and at most 1, not {share:g}.")
    if order not in ORDERS:
        raise PredictionError(f"order may be 1 or 2, not {order}.")
    grouped: dict[tuple[str, str | None, int | None], list[Edge]] = {}
    for (before, hour), edge in _all(graph):
        is_wanted = (order == 2 or before is None) and (by_hour or hour is None)
        if is_wanted and (at is None or edge.at == at):
            grouped.setdefault((edge.at, before, hour), []).append(edge)
    return tuple(
        Foreseen(here, tuple(edge.to for edge in _fewest(edges, share)), before, hour)
        for (here, before, hour), edges in grouped.items()
        if (before is None and hour is None) or sum(edge.crossings for edge in edges) >= evidence_min
    )


def _all(graph: LearntGraph) -> Iterator[tuple[tuple[str | None, int | None], Edge]]:
    """Every edge with what it depends on."""
    for edge in graph.edges:
        yield (None, None), edge
    for pair in graph.pairs:
        yield (pair.before, None), pair
    for one in graph.by_hour:
        yield (one.before, one.hour), one


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
