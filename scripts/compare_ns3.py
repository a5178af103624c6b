"""Our AODV and radio beside ns-3's: the same movement, the same flows, three densities (`make ns3`).

Needs the optional package `ns3` (its libraries and headers) and a C++ compiler. Flows are constant streams of
512-byte packets between random pairs. In our world a flow is a topic whose home and only subscriber is the
goal: the publisher's events go to it over AODV, and nothing else is sent. Prints one JSON object a density.
The speeds are compared by processor time, which does not depend on what else the machine does.

The two describe the same network; what had to be done for that, and why:

- Capture. ns-3 decodes 2 Mb/s through interference up to about a frame's own strength (direct sequence has a
  gain of 11), and its model for these rates cannot be exchanged; ns-2, and so ours, asks for a tenfold. Here
  ours takes ns-3's. `delivery_ns2_capture` is ours with ns-2's.
- ARP, queues. We have no ARP, and ns-2's queue of fifty; ns-3 is told all hardware addresses and given such a
  queue instead of a queue discipline and frames that die after half a second.
- Neighbours of sources. RFC 3561 gives a route up when the MAC cannot reach its next hop. ns-3's AODV looks
  the hop up in a table of neighbours that requests, hellos and forwarded packets fill, but not packets that a
  node sends itself. So sources mostly do not notice, and each packet they send prolongs the broken route.
  `compare_ns3.cc` fills the table when a source sends. `unreached` and `kept` count how often a MAC gave a
  frame up, and after how many of these the node still had a valid route over that neighbour.

`--shipped` runs ns-3 once more with none of that. Hellos are off on both sides unless asked for: ns-3 counts
hardly anything but hellos as a sign of life and gives links up when two of these broadcasts are lost.

What the comparison found wrong in ours, and was mended there: a unicast frame was sent eight times instead of
seven; the whole net was asked for a route three times, up to twenty seconds, instead of twice; and a source
kept and sent again what its MAC had given up, which neither RFC 3561 nor ns-2 nor ns-3 does.

What it came to (seed 1, 900 s, 34,800 packets; delivery and mean delay):

    side     path   ours           ns-3           ns-3 as shipped
    800 m    0.974  0.908, 54 ms   0.858, 56 ms   0.801, 55 ms
    1000 m   0.752  0.682, 204 ms  0.636, 160 ms
    1300 m   0.387  0.353, 204 ms  0.349, 270 ms

On nodes that stand still both deliver all, in 60 ms each at four times the load of these flows. What is left
between the two on moving nodes is not isolated. ns-3 also drops requests that come from the next hop of a
route given up long ago; ours, made to do the same, falls by a point at most.
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
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from sojourn.sim.manet.movement import TICK_S
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.state import CAPTURE, RECEPTION_M
from sojourn.sim.manet.world import Measured, World

PROGRAM = Path(__file__).with_suffix(".cc")
MODULES = (
    "aodv", "applications", "core", "internet", "mobility", "network", "propagation", "traffic-control",
    "wifi",
)  # fmt: skip
SIDES_M = (800, 1000, 1300)
FLOWS = 10
INTERVAL_S = 0.25
CAPTURE_DB = 1.2
"""How much stronger than all else in the air a frame of ours must be for ns-3 to decode nine of ten."""


def main() -> None:
    """Compare at every density."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--duration", type=float, default=900.0, help="simulated seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hello", action="store_true", help="let AODV say hello on both sides")
    parser.add_argument("--shipped", action="store_true", help="run ns-3 also as it is shipped")
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
    # -w: what it would warn of is how `compare_ns3.cc` comes by AODV's tables, and ns-3's own headers.
    command = ["g++", "-O2", "-w", "-std=c++20", f"-I{root / 'include'}", str(PROGRAM), "-o", str(program)]
    command += [f"-L{libraries}", *linked, f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"]
    subprocess.run(command, check=True)
    return program


def _world(side: int, given: argparse.Namespace, capture: float) -> World:
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
    world.net.run["capture"] = capture
    topics = world.net.cores.topics
    topics.topics["home"] = topics.subscriptions["node"]
    topics.subscriptions["least"], topics.subscriptions["clearance"] = 0.0, 9
    return world


def _compare(program: Path, side: int, given: argparse.Namespace) -> dict[str, Any]:
    World(Manet(duration_s=0.2, warmup_s=0.1)).run()  # compiled, or loaded, before anything is timed
    world = _world(side, given, 10 ** (CAPTURE_DB / 10))
    started, started_cpu = time.perf_counter(), time.process_time()
    ours = world.run()
    our_s, our_cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
    our_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    strict = _world(side, given, CAPTURE).run()
    found = {
        "side_m": side,
        "simulated_s": given.duration,
        "hello": given.hello,
        "packets": len(world.publications),
        "path_at_sending": round(_with_path(world), 4),
        "delivery": round(_delivery(ours), 4),
        "delivery_ns2_capture": round(_delivery(strict), 4),
        "delay_ms": round(1000 * float(ours.delays_s.mean()), 2),
        "delay_ms_ns2_capture": round(1000 * float(strict.delays_s.mean()), 2),
        "seconds": round(our_s, 2),
        "cpu_seconds": round(our_cpu_s, 2),
        "peak_rss_mb": round(our_mb),
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [str(program), *_files(world, Path(folder))]
        command += [f"--duration={given.duration}", f"--last={given.duration - 10}", f"--run={given.seed}"]
        command += [f"--interval={INTERVAL_S}", f"--hello={int(given.hello)}"]
        found |= _ns3([*command, f"--capture={CAPTURE_DB}"], "ns3")
        found["times_as_fast"] = round(found["cpu_seconds_ns3"] / our_cpu_s, 1)
        if given.shipped:
            found |= _ns3([*command, "--shipped=1"], "ns3_shipped")
    return found


def _files(world: World, folder: Path) -> list[str]:
    """Write movement and flows to files; the options that name them."""
    movement, flows = folder / "movement", folder / "flows"
    world.track.astype(np.float32).tofile(movement)
    goals = world.net.cores.topics.subscriptions["node"]
    lines = []
    for topic in range(FLOWS):
        mine = world.publications[world.publications["topic"] == topic]
        lines.append(f"{mine['node'][0]} {goals[topic]} {mine['made_s'].min()}\n")
    flows.write_text("".join(lines))
    return [f"--movement={movement}", f"--flows={flows}"]


def _ns3(command: list[str], name: str) -> dict[str, Any]:
    """Run the ns-3 program; its numbers with a name behind each."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, stdout=output)
        peak_mb = _watch(child)
        seconds = time.perf_counter() - started
        if child.returncode != 0:
            sys.exit(f"ns-3 ended with status {child.returncode}: {' '.join(command)}")
        output.seek(0)
        theirs = json.loads(output.read())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        f"delivery_{name}": round(theirs["delivered"] / theirs["sent"], 4),
        f"delay_ms_{name}": round(1000 * theirs["delay_s"], 2),
        f"seconds_{name}": round(seconds, 2),
        f"cpu_seconds_{name}": round(cpu_s, 2),
        f"peak_rss_mb_{name}": round(peak_mb),
        f"unreached_{name}": theirs["unreached"],
        f"kept_{name}": theirs["kept"],
    }


def _delivery(measured: Measured) -> float:
    return measured.delivered / measured.expected


def _with_path(world: World) -> float:
    """The share of packets for which there was a path when they were sent."""
    events = world.publications
    ticks = (events["made_s"] / TICK_S).astype(np.int64)
    goals = world.net.cores.topics.subscriptions["node"][events["topic"]]
    found: NDArray[np.bool_] = np.zeros(len(events), bool)
    for tick in np.unique(ticks):
        places = world.track[tick]
        part = connected_components(cdist(places, places) <= RECEPTION_M)[1]
        at = np.flatnonzero(ticks == tick)
        found[at] = part[events["node"][at]] == part[goals[at]]
    return float(found.mean())


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
