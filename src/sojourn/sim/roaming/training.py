"""Learns the neighbour graph from simulated movement, as the pipeline learns it from a trace's sojourns.

`pipeline/models.py` counts moves with Spark; a run inside a Spark task cannot, so this counts the moves of a
simulated past by hand. A test holds the two to the same graph. A move is two stays that follow each other at
different brokers; stays of which a broken link made several at one broker are one.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product, takewhile

from msgspec import convert

from sojourn.mobility.learnt_graph import Edge, HourEdge, LearntGraph, Pair, Stay
from sojourn.mobility.prediction import hour_of
from sojourn.sim.roaming.run import Paths, Sojourn

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
        observed.append([first, *takewhile(lambda stay, end_s=end_s: stay.to_s <= end_s, path)])  # type: ignore[misc]  # mypy infers no default of a lambda
    return graph_of(observed, names)


def graph_of(observed: Sequence[Sequence[Sojourn]], names: Sequence[str]) -> LearntGraph:
    """The graph that these clients' sojourns teach."""
    crossed: dict[tuple[str | None, int | None, str, str], list[float]] = defaultdict(list)
    """By what the next broker may depend on (before, hour), by broker and the next: when it was crossed."""
    stays: dict[str, list[float]] = defaultdict(list)
    away_s: list[float] = []
    for path in observed:
        merged = _merged(path)
        for at in range(len(merged) - 1):
            here, there = merged[at], merged[at + 1]
            ends = names[here.broker], names[there.broker]
            stays[ends[0]].append(here.to_s - here.from_s)
            away_s.append(there.from_s - here.to_s)
            befores = (None, names[merged[at - 1].broker]) if at else (None,)
            for before, hour in product(befores, (None, hour_of(here.to_s))):
                crossed[before, hour, *ends].append(here.to_s)
    leaving: Counter[tuple[str | None, int | None, str]] = Counter()
    for (before, hour, at_name, _), times in crossed.items():
        leaving[before, hour, at_name] += len(times)
    rows = [
        ((before, hour), at, to, len(times), len(times) / leaving[before, hour, at], max(times))
        for (before, hour, at, to), times in sorted(crossed.items(), key=lambda one: _in_order(one[0]))
    ]
    parts = ("at", "to", "crossings", "probability", "last_s")
    told = [(path, dict(zip(parts, row, strict=True))) for path, *row in rows]
    return LearntGraph(
        edges=[convert(row, Edge) for (before, hour), row in told if before is None and hour is None],
        pairs=[
            convert(row | {"before": before}, Pair)
            for (before, hour), row in told
            if before is not None and hour is None
        ],
        by_hour=[
            convert(row | {"before": before, "hour": hour}, HourEdge)
            for (before, hour), row in told
            if hour is not None
        ],
        stays=[_stay(at, sorted(times)) for at, times in sorted(stays.items())],
        away_s=_mean(away_s),
    )


def _in_order(path: tuple[str | None, int | None, str, str]) -> tuple[int, str, str, str]:
    """By hour, broker before, broker and next one; what depends on none of the first two before the rest."""
    before, hour, at, to = path
    return -1 if hour is None else hour, before or "", at, to


def _stay(broker: str, times: Sequence[float]) -> Stay:
    """The lengths of stays at a broker, given in order; a quantile is one of them."""
    median, long = (round(times[math.ceil(share * len(times)) - 1] * 1e6) / 1e6 for share in (0.5, 0.9))
    return Stay(broker=broker, stays=len(times), mean_s=_mean(times), median_s=median, long_s=long)


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
