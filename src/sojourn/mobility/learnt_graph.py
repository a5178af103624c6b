"""The neighbour graph as brokers load it: which broker clients go to next, and how surely.

One JSON object, written by the pipeline from measured sojourns (`sojourn plan --graph FILE`) and read by a
broker at its start, so that it need not learn every edge from a first, reactive hand-off (paper 001):

    {"format": "sojourn-neighbour-graph", "version": 1,
     "edges": [{"at": "B1", "to": "B2", "crossings": 9, "probability": 0.4, "last_s": 118.5}, …],
     "pairs": [{"at": "B1", "to": "B2", "crossings": 5, "probability": 0.8, "last_s": 97, "before": "B3"}, …],
     "stays": [{"broker": "B1", "stays": 31, "mean_s": 58.2}, …],
     "away_s": 3.1}

Rules: the probabilities out of one broker sum to 1, and so do those out of one (before, at) pair. Lists are
sorted, so that equal measurements are equal bytes. No file is touched here: bytes in, bytes out.
"""

from typing import Literal

import msgspec

from sojourn.errors import SojournError


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


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """How long clients stayed at a broker."""

    broker: str
    stays: int
    mean_s: float


class LearntGraph(msgspec.Struct, frozen=True, kw_only=True):
    """What the pipeline learnt about where clients go."""

    format: Literal["sojourn-neighbour-graph"] = "sojourn-neighbour-graph"
    version: Literal[1] = 1
    edges: list[Edge]
    pairs: list[Pair]
    stays: list[Stay]
    away_s: float
    """Mean time between leaving one broker and arriving at the next."""

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
    """The graph that such JSON holds."""
    try:
        return msgspec.json.decode(data, type=LearntGraph)
    except msgspec.MsgspecError as error:
        raise LearntGraphError(
            f"the neighbour graph does not read ({error}): write it anew with `sojourn plan --graph`."
        ) from error
