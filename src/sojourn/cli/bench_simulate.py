"""`sojourn bench simulate` and `sojourn bench calibrate`: how fast the world runs, and what routing costs.

`run` measures simulated message-hops a second on one core. The first row is the yardstick: the standard
protocol, 250 publishers, 500 subscribers, no computations (paper 000, section 5.2.4); then the other
protocols, the two classes of computations, and a city of 1,365 brokers with 5,000 publishers and 50,000
subscribers for ten simulated minutes; at last 200 roaming subscribers for an hour, pro-active under neighbour
mobility (paper 001), where deliveries count. Every row is a process of its own, so its memory is its own.
Beside the hops stands a bare `heapq` loop of as many events in the same process: what an event costs before
any protocol is run.

`calibrate` measures what our own tables take for a publication, a subscription and an advertisement at
several table sizes, in the form that `computations = "measured"` reads (`sim/publishers/costs.py`). The
filters and events are workload W1 of `bench_match.py`.
"""

from __future__ import annotations

import heapq
import json
import multiprocessing
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.cli.bench_match import filter_object, make_events, make_filters
from sojourn.cli.benchmarks import Progress, Row
from sojourn.interest.advertisements import Advertisement
from sojourn.interest.filters import Filter
from sojourn.routing.filter_interests import FilterInterests
from sojourn.sim.publishers.world import World
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.sim.scenario import Scenario
from sojourn.studies.handoff import parameters as handoff

PUBLISHERS = 250
CALIBRATION_SIZES = (1_000, 10_000, 100_000)
SEED = 1
_SAMPLES = 400

_PROTOCOLS = ("standard", "prefetching", "proxy", "delayed", "prefetch-delayed", "proxy+delayed")

ROWS: dict[str, Row] = {
    **{name: {"protocol": name, "duration_s": 1800.0} for name in _PROTOCOLS},
    "standard, fast": {"protocol": "standard", "duration_s": 1800.0, "computations": "fast"},
    "standard, complex": {"protocol": "standard", "duration_s": 600.0, "computations": "complex"},
    "standard, publishing": {"protocol": "standard", "duration_s": 600.0, "publish_interval_s": 2.0},
    "scale": {
        "protocol": "prefetch-delayed",
        "tree_height": 6,
        "publishers": 5_000,
        "subscribers": 50_000,
        "warmup_s": 60.0,
        "duration_s": 540.0,
    },
}
"""By name: what differs from Table 4 in each row."""

ROAMING = "roaming"
ROAMING_CHANGES: Row = {
    **handoff.TESTBED,
    "scheme": "proactive",
    "movement": "neighbour",
    "subscribers": 200,
    "warmup_s": 60.0,
    "duration_s": 3600.0,
}
"""The row of roaming subscribers: what differs from Table 1 of paper 001."""


def run(
    progress: Progress = lambda _: None, names: Iterable[str] = (*ROWS, ROAMING), seed: int = SEED
) -> list[Row]:
    """Measure the named rows one after the other; the units are in the columns' names."""
    rows = []
    context = multiprocessing.get_context("spawn")
    for name in names:
        progress(f"simulating {name}")
        # One process per row: the peak of memory is then this row's.
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            how = measure_roaming if name == ROAMING else measure
            rows.append(pool.submit(how, name, seed).result())
    return rows


def measure_roaming(name: str = ROAMING, seed: int = SEED, **changes: Any) -> Row:
    """The row of roaming subscribers: deliveries a second, beside a bare heap of as many events."""
    scenario = RoamingScenario(**{"seed": seed, **ROAMING_CHANGES, **changes})
    start = time.perf_counter()
    world = RoamingWorld(scenario)
    built, built_cpu = time.perf_counter(), time.process_time()
    result = world.run()
    seconds, cpu_s = time.perf_counter() - built, time.process_time() - built_cpu
    simulated_s = scenario.warmup_s + scenario.duration_s
    peer_per_s = _bare_heap_events_per_s(result.received, scenario.subscribers)
    return {
        "row": name,
        "protocol": f"{scenario.scheme}, {scenario.movement}",
        "brokers": world.topology.brokers,
        "publishers": scenario.publishers,
        "subscribers": scenario.subscribers,
        "simulated_s": simulated_s,
        "moves": result.moves,
        "deliveries": result.received,
        "lost": result.expected - result.unique,
        "doubled": result.doubled,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_s, 3),
        "deliveries_per_cpu_s": round(result.received / cpu_s),
        "build_seconds": round(built - start, 3),
        "simulated_s_per_s": round(simulated_s / seconds),
        "peer_heapq_events_per_s": peer_per_s,
        "deliveries_per_peer_event": round(result.received / seconds / peer_per_s, 3),
        "peak_rss_mb": round(_peak_rss_mb(), 1),
    }


def measure(name: str, seed: int = SEED) -> Row:
    """One row: build and run a world, then a bare heap of as many events."""
    scenario = Scenario(**{"seed": seed, "publishers": PUBLISHERS, **ROWS[name]})
    start = time.perf_counter()
    world = World(scenario)
    built = time.perf_counter()
    world.set_up()
    ready, ready_cpu = time.perf_counter(), time.process_time()
    result = world.run()
    seconds, cpu_s = time.perf_counter() - ready, time.process_time() - ready_cpu
    hops = result.hops_total
    peer_per_s = _bare_heap_events_per_s(hops, scenario.publishers)
    return {
        "row": name,
        "protocol": scenario.protocol,
        "computations": scenario.computations,
        "brokers": world.topology.brokers,
        "publishers": scenario.publishers,
        "subscribers": scenario.subscribers,
        "simulated_s": scenario.warmup_s + scenario.duration_s,
        "moves": len(world.moved) - 1,
        "hops": hops,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_s, 3),
        "hops_per_s": round(hops / seconds),
        "hops_per_cpu_s": round(hops / cpu_s),
        "setup_hops": result.setup_hops,
        "setup_seconds": round(ready - built, 3),
        "build_seconds": round(built - start, 3),
        "simulated_s_per_s": round((scenario.warmup_s + scenario.duration_s) / seconds),
        "rebuild_ms": round(result.rebuild_mean_s * 1000, 3),
        "peer_heapq_events_per_s": peer_per_s,
        "hops_per_peer_event": round(hops / seconds / peer_per_s, 3),
        "peak_rss_mb": round(_peak_rss_mb(), 1),
    }


def _bare_heap_events_per_s(events: int, waiting: int) -> int:
    """How many events a loop that only pops and pushes handles, with so many of them planned."""
    events = max(events, 100_000)
    heap = [(float(order), order, None, None) for order in range(waiting)]
    start = time.perf_counter()
    for order in range(events):
        now = heapq.heappop(heap)[0]
        heapq.heappush(heap, (now + waiting, waiting + order, None, None))
    return round(events / (time.perf_counter() - start))


def _peak_rss_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 / 1024 if sys.platform == "darwin" else peak / 1024


def calibrate(
    path: Path,
    progress: Progress = lambda _: None,
    sizes: Iterable[int] = CALIBRATION_SIZES,
    seed: int = SEED,
) -> list[Row]:
    """Measure our own tables, write the calibration file, and return a row for each size."""
    rows = []
    curves: Row = {"publication": [], "subscription": [], "advertisement": []}
    for size in sorted(sizes):
        progress(f"measuring tables of {size:,} subscriptions")
        row = _calibrate_at(size, seed)
        rows.append(row)
        for work in ("publication", "subscription", "advertisement"):
            curves[work].append([size, row[f"{work}_us"] / 1e6])
    about = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "workload": "W1",
        "seed": seed,
    }
    path.write_text(json.dumps({"about": about, **curves}, indent=2) + "\n", encoding="utf-8")
    return rows


def _calibrate_at(size: int, seed: int) -> Row:
    random = np.random.default_rng(seed)
    filters = make_filters("W1", size + 3 * _SAMPLES, random)
    events = make_events("W1", _SAMPLES, random).objects(_SAMPLES)
    # The table is filled without looking for coverings, which nobody will ask for; only what is measured is.
    interests = FilterInterests(covering=False)
    for row in range(size):
        interests.subscription(filter_object(filters, row))
    interests.covering = True
    spare = [filter_object(filters, row) for row in range(size, size + 3 * _SAMPLES)]
    ads = [_advertisement(wanted) for wanted in spare[2 * _SAMPLES :]]
    interests.match(events[0])
    return {
        "row": "calibrate",
        "subscriptions": size,
        "publication_us": _median_us(lambda at: interests.match(events[at])),
        "subscription_us": _median_us(lambda at: interests.subscription(spare[at])),
        "advertisement_us": _median_us(lambda at: interests.advertisement(ads[at])),
    }


def _advertisement(wanted: Filter) -> Advertisement:
    """What a publisher of such events might announce: the same values of the same attributes."""
    return Advertisement.of(wanted.conjunctions[0].constraints)


def _median_us(act: Callable[[int], object]) -> float:
    """The mean time of one call, taken as the median over blocks so that a hiccup of the machine is none."""
    block = 20
    blocks = []
    for start in range(0, _SAMPLES, block):
        began = time.perf_counter()
        for at in range(start, start + block):
            act(at)
        blocks.append((time.perf_counter() - began) / block * 1e6)
    return round(statistics.median(blocks), 3)
