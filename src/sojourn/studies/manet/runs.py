"""One run of the study: its specification, its measures, and, of a few, what is drawn of single events.

The measures here are for plain processes. On Spark runs record facts (`recording.py`) and measures are
computed from those (`measuring.py`); `tests/studies/test_facts.py` holds the two to the same numbers.
"""

import json
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from sojourn.adhoc.packets import DATA, DELIVERY, EVENT, KINDS
from sojourn.sim.manet import state
from sojourn.sim.manet.maps import void_share
from sojourn.sim.manet.movement import TICK_S
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.world import CONTROL_KINDS, Measured, World
from sojourn.studies.runner import Row

MS = 1000.0
HOPS_LOGGED = 1 << 21
PATHS_S = 10.0
FRAMES_DRAWN = 4
"""Events of which the way is drawn."""

MEASURES = [
    "delivery_ratio", "delay_ms", "delay_median_ms", "load_bytes_s", "control_bytes_s", "data_bytes_s",
    "duplicates", "copies", "unauthorised", "stale_sent", "stale_s", "age_s", "hops", "frames", "retried",
    "collisions", "paths", "void",
]  # fmt: skip
"""Numbers of a run that are averaged over seeds."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All it takes to repeat one run."""

    manet: Manet
    drawn: bool = False
    """Whether single events are drawn."""


def simulate(spec_json: str) -> Row:
    """Carry out one run and return its numbers."""
    return carry_out(msgspec.json.decode(spec_json, type=Run))[1]


def carry_out(run: Run) -> tuple[World, Row]:
    """Carry out one run; the world after it, and its numbers."""
    world = World(run.manet, hops_logged=HOPS_LOGGED if run.drawn else 0)
    row = measure(world.run())
    row["paths"] = paths(world)
    row["void"] = void_share(world.map, run.manet.proximity_m)
    return world, row | drawn(run, world)


def drawn(run: Run, world: World) -> Row:
    """What is drawn of single events, if anything is."""
    return {"picture": picture(world)} if run.drawn else {}


def measure(measured: Measured) -> Row:
    """One run as named numbers."""
    delays = measured.delays_s
    control = sum(measured.bytes_by_kind.get(kind, 0.0) for kind in CONTROL_KINDS)
    row: Row = {
        "expected": measured.expected,
        "delivered": measured.delivered,
        "delivery_ratio": measured.delivered / measured.expected if measured.expected else None,
        "delay_ms": float(delays.mean()) * MS if len(delays) else None,
        "delay_median_ms": float(np.median(delays)) * MS if len(delays) else None,
        "load_bytes_s": measured.bytes_per_node_s,
        "control_bytes_s": control,
        "data_bytes_s": measured.bytes_per_node_s - control,
        "duplicates": measured.duplicates,
        "copies": measured.copies,
        "unauthorised": measured.unauthorised,
        "stale_sent": measured.stale_sent,
        "stale_s": measured.stale_s,
        "age_s": None if np.isnan(measured.age_s) else measured.age_s,
        "hops": None if np.isnan(measured.hops) else measured.hops,
        "due_attended": int(measured.due[measured.attended].sum()),
        "got_attended": int(measured.got[measured.attended].sum()),
        "due_alone": int(measured.due[~measured.attended].sum()),
        "got_alone": int(measured.got[~measured.attended].sum()),
        "frames": measured.frames,
        "retried": measured.retried,
        "broken": measured.broken,
        "collisions": measured.collisions,
    }
    row |= {f"bytes_s {kind}": rate for kind, rate in measured.bytes_by_kind.items()}
    return row | {f"lost {why}": count for why, count in measured.lost.items()}


def path_shares(world: World) -> list[float]:
    """Every ten seconds: the share of pairs of nodes that had a path between them."""
    shares = []
    for places in world.track[:: round(PATHS_S / TICK_S)]:
        part = connected_components(cdist(places, places) <= state.RECEPTION_M)[1]
        sizes = np.bincount(part)
        shares.append(float((sizes * (sizes - 1)).sum()) / (len(places) * (len(places) - 1)))
    return shares


def paths(world: World) -> float:
    """The share of pairs of nodes that had a path between them, on average over a run."""
    return float(np.mean(path_shares(world)))


Point = tuple[float, float]


class DrawnHop(NamedTuple):
    """One hop of an event that is drawn."""

    sender: int
    to: int
    mode: int
    what: int


class Frame(msgspec.Struct, frozen=True):
    """One event on its way, and where everybody was when it was published."""

    time_s: float
    topic: int
    publisher: int
    due: list[int]
    """Nodes that it is for."""
    places: list[Point]
    """By node."""
    hops: list[DrawnHop]


class Picture(msgspec.Struct, frozen=True):
    """What it takes to draw a few events of a run."""

    roads: list[list[Point]]
    homes: list[Point]
    """By topic."""
    area: list[float]
    frames: list[Frame]


def picture(world: World) -> str:
    """Where everybody was when a few events went their way, and each hop of that way: a `Picture` as JSON."""
    net = world.net
    count = min(world.number(state.HOPS_LOGGED), len(net.hops))
    hops = net.hops[:count]
    of_event = hops[(hops["kind"] == DATA) & np.isin(hops["what"], (EVENT, DELIVERY))]
    frames = []
    for event in np.linspace(0, len(world.publications) - 1, FRAMES_DRAWN + 2).astype(int)[1:-1]:
        made_s = float(world.publications[event]["made_s"])
        places = world.track[round(made_s * 10)]
        mine = of_event[of_event["event"] == event]
        frames.append(
            Frame(
                time_s=made_s,
                topic=int(world.publications[event]["topic"]),
                publisher=int(world.publications[event]["node"]),
                due=[int(world.subscriptions[at]["node"]) for at in np.flatnonzero(world.expected()[event])],
                places=np.round(places, 1).tolist(),
                hops=[DrawnHop(int(h["sender"]), int(h["to"]), int(h["mode"]), int(h["what"])) for h in mine],
            )
        )
    drawn = Picture(
        roads=[list(road.points) for road in world.map.road],
        homes=[(float(x), float(y)) for x, y in world.homes],
        area=list(world.map.area_m),
        frames=frames,
    )
    return json.dumps(msgspec.to_builtins(drawn), separators=(",", ":"))


assert KINDS[DATA] == "data"
