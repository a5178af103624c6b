"""`sojourn bench predictions`: what copies cost where they wait, against hand-offs that found none.

Simulated subscribers move between brokers, in the building of six and in SUMO's city, whose crossings have a
broker each. Copies wait at all neighbours that were ever crossed, at the likely next brokers (order 1: by
where a client is; order 2: also by where it came from), at the one broker that is next (a perfect oracle),
or nowhere (reactive). Predictions are learnt from other clients: of other random numbers in the building, of
another morning's traffic in the city. `sojourn learn` finds the same numbers with Spark in a trace; a test
holds the two to each other (`sim/roaming/training.py`).

A hand-off is late when its broker had to fetch what was stored: it had no copy, or the client was there
before the old broker knew that it had left, which no prediction mends. The city needs SUMO, which `make sumo`
adds; without it only the building is measured, and that is said.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import util
from pathlib import Path
from typing import Any

from sojourn.cli.benchmarks import Progress, Row
from sojourn.live.learning import write_graph
from sojourn.routing.messages import Kind
from sojourn.sim.manet.fcd import make_fcd
from sojourn.sim.roaming.files import Nearest, load_movement, load_points
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.tally import RoamingResult
from sojourn.sim.roaming.training import graph_of
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.sim.topology import load_topology

Given = Mapping[str, Any]

SEEDS = (1, 2, 3)
LEARNT_SEED = 101
"""The traffic that the city's predictions are learnt from: none of those that they are tried on."""
CROSSINGS, STREET_M = 4, 350.0
CITY_S = 600.0
HANDOFF_S = 1.0
SHARES = (0.7, 0.9)
COMMON: Given = {"routing": "content", "sleep_s": 0.5, "warmup_s": 60.0, "selectivity": 0.2}
BUILDING: Given = {"movement": "commute", "subscribers": 100, "duration_s": 600.0, "training_s": 3600.0}
HAND_OFFS = [kind.name.lower() for kind in Kind if kind >= Kind.COPY]
COPIES = ("copy", "activate")
"""Messages that make a copy or have one store."""


def run(progress: Progress = lambda _: None, seeds: tuple[int, ...] = SEEDS) -> list[Row]:
    """Measure every place and way of predicting; one row each, means over seeds."""
    found = []
    with tempfile.TemporaryDirectory(prefix="sojourn-city-") as folder:
        for place, given in _places(Path(folder), seeds, progress):
            rows = []
            for name, ways in _ways():
                progress(f"simulating {place}, {name}")
                results = [
                    RoamingWorld(RoamingScenario(seed=seed, **{**COMMON, **given(seed), **ways})).run()
                    for seed in seeds
                ]
                rows.append(measures(name, results))
            found += [{"place": place, **beside(row, rows[0])} for row in rows]
    return found


def _ways() -> Iterator[tuple[str, Given]]:
    yield "all neighbours", {"predictor": "graph"}
    for order in (1, 2):
        for share in SHARES:
            name = f"order {order}, {share:.0%}"
            yield name, {"predictor": f"order-{order}", "predictor_mass": share}
    yield "oracle", {"predictor": "oracle"}
    yield "reactive", {"scheme": "reactive"}


def measures(name: str, results: list[RoamingResult]) -> Row:
    """The figures of some runs, by the hand-off, so that long runs and short ones compare."""
    moves = sum(result.moves for result in results)

    def total(per: Callable[[RoamingResult], float]) -> float:
        return sum(per(result) for result in results)

    ready_s = [time_s for result in results for time_s in result.ready_s]
    fetched = total(lambda result: result.how.get("fetched", 0))
    return {
        "copies wait": name,
        "hand-offs": moves,
        "late hand-offs": fetched / moves,
        "without a copy": _unprepared(results),
        "copies told a hand-off": total(lambda one: sum(one.hops.get(kind, 0) for kind in COPIES)) / moves,
        "bytes per hand-off": total(lambda one: sum(one.bytes.get(kind, 0) for kind in HAND_OFFS)) / moves,
        "passive copies": total(lambda one: one.passive_copies) / len(results),
        "active copies": total(lambda one: one.active_copies) / len(results),
        "bytes stored": total(lambda one: one.queued_bytes) / len(results),
        "ready, median ms": 1e3 * statistics.median(ready_s) if ready_s else None,
        "events lost": int(total(lambda one: one.expected - one.unique)),
    }


def _unprepared(results: list[RoamingResult]) -> float:
    """The share of hand-offs, those of the warm-up included, that found no copy at their new broker."""
    minutes = [minute for result in results for minute in result.unprepared_by_minute]
    return sum(missed for _, missed in minutes) / max(1, sum(moved for moved, _ in minutes))


def beside(row: Row, first: Row) -> Row:
    """The same with what is saved against copies at all neighbours."""
    saved = {
        f"{name} saved": 1 - row[key] / first[key]
        for name, key in (("bytes", "bytes per hand-off"), ("active copies", "active copies"))
    }
    return row | saved


def _places(
    folder: Path, seeds: tuple[int, ...], progress: Progress
) -> Iterator[tuple[str, Callable[[int], Given]]]:
    yield "building", lambda _seed: BUILDING
    if util.find_spec("sumo") is None:
        progress("SUMO is not installed, so the city is left out: `make sumo` adds it")
        return
    topology, graph = folder / "city.toml", folder / "learnt.json"
    topology.write_text(city())
    tracks = {}
    for seed in (*seeds, LEARNT_SEED):
        progress(f"SUMO drives, seed {seed}")
        (folder / str(seed)).mkdir()
        with contextlib.chdir(folder / str(seed)):  # its tools leave files where they are called
            tracks[seed] = make_fcd(
                Path.cwd(), seed=seed, crossings=CROSSINGS, street_m=STREET_M, end_s=int(CITY_S) + 1
            )
    brokers = load_topology(topology)
    near = Nearest(hysteresis_m=20.0, range_m=STREET_M, away_s=HANDOFF_S)
    paths = load_movement(tracks[LEARNT_SEED], brokers, load_points(topology, brokers), near)
    write_graph(graph, graph_of(list(paths.values()), brokers.names))
    yield (
        "city",
        lambda seed: {
            "topology": "file",
            "topology_file": str(topology),
            "movement": "file",
            "movement_file": str(tracks[seed]),
            "graph_file": str(graph),
            "hysteresis_m": near.hysteresis_m,
            "range_m": near.range_m,
            "handoff_s": near.away_s,
            "duration_s": CITY_S - COMMON["warmup_s"],
        },
    )


def city() -> str:
    """A broker at each crossing of SUMO's grid, linked along the streets."""
    every = range(CROSSINGS)
    links = [(f"{x}-{y}", f"{x + 1}-{y}") for x in every[:-1] for y in every]
    links += [(f"{x}-{y}", f"{x}-{y + 1}") for x in every for y in every[:-1]]
    points = "".join(f'"{x}-{y}" = [{x * STREET_M}, {y * STREET_M}]\n' for x in every for y in every)
    told = ", ".join(f'["{one}", "{other}"]' for one, other in links)
    return f"links = [{told}]\n[points]\n{points}"
