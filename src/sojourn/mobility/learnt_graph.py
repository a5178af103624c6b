"""The neighbour graph as brokers load it: which broker clients go to next, and how surely.

One JSON object, written by the pipeline from measured sojourns (`sojourn learn TRACE --into NETWORK`, or
`sojourn plan --graph FILE`) and read by brokers at their start and whenever their configuration is read anew,
so that they need not learn every edge from a first, reactive hand-off (paper 001):

    {"format": "sojourn-neighbour-graph", "version": 1,
     "edges": [{"at": "B1", "to": "B2", "crossings": 9, "probability": 0.4, "last_s": 118.5}, …],
     "pairs": [{"at": "B1", "to": "B2", "crossings": 5, "probability": 0.8, "last_s": 97, "before": "B3"}, …],
     "by_hour": [{"at": "B1", "to": "B2", …, "hour": 8, "before": null}, …],
     "stays": [{"broker": "B1", "stays": 31, "mean_s": 58.2, "median_s": 50.1, "long_s": 120.4}, …],
     "away_s": 3.1}

Rules: the probabilities out of one broker sum to 1, and so do those out of one (before, at) pair, and those
of an hour of the day. Lists are sorted, so that equal measurements are equal bytes. Who reads a file believes
nothing of it: what breaks a rule, or is larger than any network needs, is refused in one sentence. No file is
touched here: bytes in, bytes out.
"""

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from sojourn.errors import SojournError

BYTES_MAX = 64 << 20
"""Of a file: a thousand brokers with eight neighbours each, by the hour, take a third of it."""
NAME_MAX = 256
"""Characters of a broker's name."""


class LearntGraphError(SojournError):
    """Bytes that should hold a neighbour graph do not."""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """How often a client at one broker went to another next."""

    at: str
    to: str
    crossings: int
    probability: float
    last_s: float
    """When it was last crossed, in seconds since the run's start: edges go stale by least recent use."""


class Pair(Edge, frozen=True, kw_only=True):
    """The same, for clients that had come from a certain broker."""

    before: str


class HourEdge(Edge, frozen=True, kw_only=True):
    """The same for one hour of the day, of all clients or of those that had come from a certain broker."""

    hour: int
    """0 to 23, by UTC; in a simulated run, from its start."""
    before: str | None = None


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """How long clients stayed at a broker."""

    broker: str
    stays: int
    mean_s: float
    median_s: float = 0.0
    long_s: float = 0.0
    """Nine of ten stays were no longer."""


class LearntGraph(msgspec.Struct, frozen=True, kw_only=True):
    """What the pipeline learnt about where clients go."""

    format: Literal["sojourn-neighbour-graph"] = "sojourn-neighbour-graph"
    version: Literal[1] = 1
    edges: list[Edge]
    pairs: list[Pair]
    stays: list[Stay]
    away_s: float
    """Mean time between leaving one broker and arriving at the next."""
    by_hour: list[HourEdge] = []

    def neighbours(self, broker: str) -> list[str]:
        """Brokers that clients of this one have gone to, the likeliest first."""
        out = [edge for edge in self.edges if edge.at == broker]
        return [edge.to for edge in sorted(out, key=lambda edge: (-edge.probability, edge.to))]

    def next_broker(self, at: str, before: str | None = None) -> str | None:
        """The likeliest next broker; None where nobody was ever seen to leave.

        What is known of clients on the same path is used first, and what is known of the broker otherwise.
        """
        paths: list[Edge] = [pair for pair in self.pairs if pair.at == at and pair.before == before]
        known = paths or [edge for edge in self.edges if edge.at == at]
        return min(known, key=lambda edge: (-edge.probability, edge.to)).to if known else None


def encode_graph(graph: LearntGraph) -> bytes:
    """The graph as JSON that a person can read, too."""
    return msgspec.json.format(msgspec.json.encode(graph), indent=1) + b"\n"


def decode_graph(data: bytes) -> LearntGraph:
    """The graph that such JSON holds; what could not be one is refused."""
    if len(data) > BYTES_MAX:
        raise LearntGraphError(
            f"the neighbour graph has {len(data):,} bytes and may have {BYTES_MAX:,}: learn it anew."
        )
    try:
        graph = msgspec.json.decode(data, type=LearntGraph)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LearntGraphError(
            f"the neighbour graph does not read ({error}): write it anew with `sojourn learn`."
        ) from error
    for fault in _faults(graph):
        raise LearntGraphError(f"the neighbour graph {fault}: write it anew with `sojourn learn`.")
    return graph


def _faults(graph: LearntGraph) -> Iterator[str]:
    """What no measurement can have given, the first of it first."""
    totals: dict[tuple[str, str | None, int | None], float] = {}
    seen: set[tuple[str, str, str | None, int | None]] = set()
    for edge in (*graph.edges, *graph.pairs, *graph.by_hour):
        before = edge.before if isinstance(edge, Pair | HourEdge) else None
        hour = edge.hour if isinstance(edge, HourEdge) else None
        for name in (edge.at, edge.to, before):
            if name is not None and not 0 < len(name) <= NAME_MAX:
                yield f"has a broker whose name has {len(name)} characters"
        where = f"from {_short(edge.at)} to {_short(edge.to)}"
        if edge.at == edge.to or edge.crossings < 1 or not math.isfinite(edge.last_s):
            yield f"has an edge {where} that nobody can have crossed"
        if not 0 < edge.probability <= 1:
            yield f"gives the edge {where} a probability of {edge.probability:g}"
        if hour is not None and not 0 <= hour < 24:
            yield f"gives the edge {where} the hour {hour}"
        if (edge.at, edge.to, before, hour) in seen:
            yield f"has the edge {where} twice"
        seen.add((edge.at, edge.to, before, hour))
        totals[edge.at, before, hour] = totals.get((edge.at, before, hour), 0.0) + edge.probability
    for (at, *_), total in totals.items():
        if abs(total - 1) > 1e-6:
            yield f"has probabilities out of {_short(at)} that sum to {total:g}"
    times = [
        graph.away_s,
        *(time for stay in graph.stays for time in (stay.mean_s, stay.median_s, stay.long_s)),
    ]
    if not all(math.isfinite(time) and time >= 0 for time in times):
        yield "has times that are none"


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")
