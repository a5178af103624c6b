"""Our AODV and radio beside ns-3's: the same movement, the same flows, three densities (`make ns3`).

Needs the optional package `ns3` (its libraries and headers) and a C++ compiler. Flows are constant streams of
512-byte packets between random pairs. In our world a flow is a topic whose home and only subscriber is the
goal: the publisher's events go to it over AODV, and nothing else is sent. Prints one JSON object a density.

Both sides are told of broken links by the MAC; hellos are off unless asked for, since ns-3 counts nothing but
hellos as a sign of life and gives links up when two of these unacknowledged broadcasts collide. ns-3 resolves
hardware addresses by ARP, which its AODV needs to find out whom the MAC could not reach; we have no ARP.
"""

import argparse
import json
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
    parser.add_argument("--hello", action="store_true", help="let AODV say hello on both sides")
    parser.add_argument("--sides", type=int, nargs="*", default=SIDES_M, help="sides of the map, m")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = _build(Path(folder))
        for side in given.sides:
            sys.stderr.write(f"60 nodes on {side} m, {given.duration:g} s\n")
            sys.stdout.write(json.dumps(_compare(program, side, given)) + "\n")
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


def _world(side: int, given: argparse.Namespace) -> World:
    world = World(
        Manet(
            scheme="b-aodv",
            seed=given.seed,
            hello=given.hello,
            map=f"city:{side}",
            speed_m_s=15.0,
            duration_s=given.duration,
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


def _compare(program: Path, side: int, given: argparse.Namespace) -> dict[str, Any]:
    World(Manet(duration_s=0.2, warmup_s=0.1)).run()  # compiled, or loaded, before anything is timed
    world = _world(side, given)
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
        command = [str(program), f"--movement={movement}", f"--flows={flows}", f"--interval={INTERVAL_S}"]
        command += [f"--duration={given.duration}", f"--last={given.duration - 10}", f"--run={given.seed}"]
        command += [f"--hello={int(given.hello)}"]
        answer = Path(folder) / "answer"
        started = time.perf_counter()
        with answer.open("w") as output:
            child = subprocess.Popen(command, stdout=output)  # noqa: S603
            their_mb = _watch(child)
        their_s = time.perf_counter() - started
        if child.returncode != 0:
            sys.exit(f"ns-3 ended with status {child.returncode}: {' '.join(command)}")
        theirs = json.loads(answer.read_text())
    return {
        "side_m": side,
        "simulated_s": given.duration,
        "hello": given.hello,
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


def _watch(child: "subprocess.Popen[bytes]") -> float:
    """Wait for a process; its peak of memory in MB, where the system tells (a fork inherits its parent's)."""
    peak = 0.0
    status = Path("/proc") / str(child.pid) / "status"
    while child.poll() is None:
        if status.exists():
            lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            peak = max([peak, *(float(line.split()[1]) / 1024 for line in lines)])
        time.sleep(0.05)
    return peak


if __name__ == "__main__":
    main()
