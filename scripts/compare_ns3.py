"""Our AODV and radio beside ns-3's: the same movement, the same flows, three densities (`make ns3`).

Needs the optional package `ns3` (its libraries and headers) and a C++ compiler. Flows are constant streams of
512-byte packets between random pairs. In our world a flow is a topic whose home and only subscriber is the
goal: the publisher's events go to it over AODV, and nothing else is sent. Prints one JSON object a density.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.sim.manet_scenario import Manet
from sojourn.sim.manet_world import World

PROGRAM = Path(__file__).with_suffix(".cc")
MODULES = ("aodv", "applications", "core", "internet", "mobility", "network", "propagation", "wifi")
SIDES_M = (800, 1000, 1300)
FLOWS = 10
INTERVAL_S = 0.25


def main() -> None:
    """Compare at every density."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=900.0, help="simulated seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sides", type=int, nargs="*", default=SIDES_M, help="sides of the map, m")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = _build(Path(folder))
        for side in given.sides:
            sys.stderr.write(f"60 nodes on {side} m, {given.duration:g} s\n")
            sys.stdout.write(json.dumps(_compare(program, side, given.duration, given.seed)) + "\n")
            sys.stdout.flush()


def _build(folder: Path) -> Path:
    """Compile the ns-3 program against the installed package."""
    found = util.find_spec("ns3")
    if found is None or not found.submodule_search_locations:
        sys.exit("ns-3 is not installed: `make ns3` puts it into .venv.")
    root = Path(found.submodule_search_locations[0])
    libraries = next(path for path in (root / "lib64", root / "lib") if path.is_dir())
    linked = [
        f"-l{path.stem.removeprefix('lib')}" for m in MODULES for path in libraries.glob(f"libns3*-{m}.so")
    ]
    program = folder / "aodv"
    command = ["g++", "-O2", "-std=c++20", f"-I{root / 'include'}", str(PROGRAM), "-o", str(program)]
    command += [f"-L{libraries}", *linked, f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True)  # noqa: S603  our own program
    return program


def _world(side: int, duration_s: float, seed: int) -> World:
    world = World(
        Manet(
            scheme="b-aodv",
            seed=seed,
            map=f"city:{side}",
            speed_m_s=15.0,
            duration_s=duration_s,
            topics=FLOWS,
            publishers=1,
            subscribers=1,
            publish_s=INTERVAL_S,
            event_bytes=512,
        )
    )
    topics = world.net.cores.topics
    topics.topics["home"] = topics.subscriptions["node"]
    topics.subscriptions["least"], topics.subscriptions["clearance"] = 0.0, 9
    return world


def _compare(program: Path, side: int, duration_s: float, seed: int) -> dict[str, Any]:
    World(Manet(duration_s=0.2, warmup_s=0.1)).run()  # compiled, or loaded, before anything is timed
    world = _world(side, duration_s, seed)
    started = time.perf_counter()
    ours = world.run()
    our_s = time.perf_counter() - started
    our_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        movement, flows = Path(folder) / "movement", Path(folder) / "flows"
        world.track.astype(np.float32).tofile(movement)
        firsts = [world.publications[world.publications["topic"] == t]["made_s"].min() for t in range(FLOWS)]
        sources = [world.publications[world.publications["topic"] == t]["node"][0] for t in range(FLOWS)]
        goals = world.net.cores.topics.subscriptions["node"]
        flows.write_text("".join(f"{s} {g} {f}\n" for s, g, f in zip(sources, goals, firsts, strict=True)))
        command = [str(program), f"--movement={movement}", f"--flows={flows}", f"--duration={duration_s}",
                   f"--interval={INTERVAL_S}", f"--last={duration_s - 10}", f"--run={seed}"]  # fmt: skip
        answer = Path(folder) / "answer"
        started = time.perf_counter()
        with answer.open("w") as output:
            child = subprocess.Popen(command, stdout=output)  # noqa: S603
            _, status, usage = os.wait4(child.pid, 0)
        their_s = time.perf_counter() - started
        if status != 0:
            sys.exit(f"ns-3 ended with status {status}: {' '.join(command)}")
        theirs = json.loads(answer.read_text())
    their_mb = usage.ru_maxrss / 1024
    return {
        "side_m": side,
        "simulated_s": duration_s,
        "packets": len(world.publications),
        "delivery": round(ours.delivered / ours.expected, 4),
        "delivery_ns3": round(theirs["delivered"] / theirs["sent"], 4),
        "delay_ms": round(1000 * float(ours.delays_s.mean()), 2),
        "delay_ms_ns3": round(1000 * theirs["delay_s"], 2),
        "seconds": round(our_s, 2),
        "seconds_ns3": round(their_s, 2),
        "times_as_fast": round(their_s / our_s, 1),
        "peak_rss_mb": round(our_mb),
        "peak_rss_mb_ns3": round(their_mb),
    }


if __name__ == "__main__":
    main()
