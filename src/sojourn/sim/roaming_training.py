"""Learns the neighbour graph from simulated movement, as the pipeline learns it from a trace's sojourns.

`pipeline/models.py` counts moves with Spark; a run inside a Spark task cannot, so this counts the moves of a
simulated past by hand. A test holds the two to the same graph. A move is two stays that follow each other at
different brokers; stays of which a broken link made several at one broker are one.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from sojourn.mobility.learnt_graph import Edge, LearntGraph, Pair, Stay
from sojourn.sim.roaming import Paths, Sojourn

CLIENTS = 50
"""How many other clients the past is observed on."""
STREAM = "training"


def learn(paths: Paths, names: Sequence[str], for_s: float) -> LearntGraph:
    """The graph that the movement of some other clients teaches, from their start and for so long."""
    observed = []
    for client in range(CLIENTS):
        path = paths.sojourns(client, STREAM)
        first = next(path)
        end_s = first.from_s + for_s
        observed.append([first, *takewhile(lambda stay, end_s=end_s: stay.to_s <= end_s, path)])  # type: ignore[misc]
    return graph_of(observed, names)


def graph_of(observed: Sequence[Sequence[Sojourn]], names: Sequence[str]) -> LearntGraph:
    """The graph that these clients' sojourns teach."""
    edges: dict[tuple[str, str], list[float]] = defaultdict(list)
    pairs: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    stays: dict[str, list[float]] = defaultdict(list)
    away_s: list[float] = []
    for path in observed:
        merged = _merged(path)
        for at in range(len(merged) - 1):
            here, there = merged[at], merged[at + 1]
            ends = names[here.broker], names[there.broker]
            edges[ends].append(here.to_s)
            stays[ends[0]].append(here.to_s - here.from_s)
            away_s.append(there.from_s - here.to_s)
            if at:
                pairs[(names[merged[at - 1].broker], *ends)].append(here.to_s)
    leaving: dict[str, int] = defaultdict(int)
    passing: dict[tuple[str, str], int] = defaultdict(int)
    for (at_name, _), times in edges.items():
        leaving[at_name] += len(times)
    for (before, at_name, _), times in pairs.items():
        passing[before, at_name] += len(times)
    return LearntGraph(
        edges=[
            Edge(at=at, to=to, crossings=len(times), probability=len(times) / leaving[at], last_s=max(times))
            for (at, to), times in sorted(edges.items())
        ],
        pairs=[
            Pair(
                before=before,
                at=at,
                to=to,
                crossings=len(times),
                probability=len(times) / passing[before, at],
                last_s=max(times),
            )
            for (before, at, to), times in sorted(pairs.items())
        ],
        stays=[Stay(broker=at, stays=len(times), mean_s=_mean(times)) for at, times in sorted(stays.items())],
        away_s=_mean(away_s),
    )


def _merged(path: Sequence[Sojourn]) -> list[Sojourn]:
    merged: list[Sojourn] = []
    for stay in path:
        if merged and merged[-1].broker == stay.broker:
            merged[-1] = Sojourn(stay.broker, merged[-1].from_s, stay.to_s)
        else:
            merged.append(stay)
    return merged


def _mean(times: Sequence[float]) -> float:
    """A mean of whole microseconds, as the pipeline takes it."""
    return sum(round(time * 1e6) for time in times) / len(times) / 1e6 if times else 0.0
