"""`sojourn bench manet`: how fast mobile networks are simulated, and how that grows with their size.

The first rows are the paper's: sixty nodes for 900 s. The others keep the density of nodes and of topics
while nodes grow from 60 to 1,000, which fill 5 km by 5 km, for 60 s. Every row is a process of its own, so
that its memory is its own; compiling is measured apart, since kernels are kept on disk.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from sojourn.cli.benchmarks import Progress, Row
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.world import World

SIZES = (60, 125, 250, 500, 1_000)
NODES_PER_KM2 = 40
NODES_A_TOPIC = 30
STREETS_M = 200
"""Between two streets: close enough for most nodes to have a path to most others."""


def rows() -> dict[str, Manet]:
    """Every row's run."""
    found = {
        f"paper, {scheme}": Manet(scheme=scheme) for scheme in ("b-gpsr-map", "b-gpsr", "b-aodv", "r-aodv")
    }
    for scheme in ("b-gpsr-map", "b-aodv"):
        for nodes in SIZES:
            side_m = round(1000 * math.sqrt(nodes / NODES_PER_KM2))
            found[f"{nodes} nodes, {scheme}"] = Manet(
                scheme=scheme,
                nodes=nodes,
                map=f"city:{side_m}:{STREETS_M}",
                speed_m_s=15.0,
                topics=max(1, nodes // NODES_A_TOPIC),
                duration_s=60.0,
            )
    return found


def run(progress: Progress = lambda _: None, names: Iterable[str] | None = None) -> list[Row]:
    """Measure the named rows one after the other; the units are in the columns' names."""
    every = rows()
    context = multiprocessing.get_context("spawn")
    found = []
    for name in names or every:
        progress(f"simulating {name}")
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            found.append({"row": name, **pool.submit(measure, every[name]).result()})
    return found


def measure(manet: Manet) -> Row:
    """One row."""
    start = time.perf_counter()
    World(Manet(duration_s=0.2, warmup_s=0.1)).run()
    ready = time.perf_counter()
    world = World(manet)
    built, built_cpu = time.perf_counter(), time.process_time()
    result = world.run()
    seconds, cpu_s = time.perf_counter() - built, time.process_time() - built_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "scheme": manet.scheme,
        "nodes": manet.nodes,
        "area_km": round(world.map.area_m[0] / 1000, 2),
        "simulated_s": manet.duration_s,
        "frames": result.frames,
        "events": result.happened,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_s, 3),
        "events_per_s": round(result.happened / seconds),
        "frames_per_s": round(result.frames / seconds),
        "simulated_s_per_s": round(manet.duration_s / seconds, 1),
        "delivery_ratio": round(result.delivered / max(1, result.expected), 4),
        "build_seconds": round(built - ready, 3),
        "load_or_compile_seconds": round(ready - start, 3),
        "peak_rss_mb": round(peak / 1024 / (1024 if sys.platform == "darwin" else 1), 1),
    }
