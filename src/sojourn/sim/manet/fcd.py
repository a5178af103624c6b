"""Movement from SUMO: its floating-car data (FCD) as places by tick, and making such data on a map of SUMO's.

A vehicle that is not on the road at a time is put where nobody hears it. Of more vehicles than nodes, those
that are longest on the road are taken. SUMO itself comes with the optional package `eclipse-sumo`
(`make sumo`); reading its files needs nothing.
"""

import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib import util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sojourn.sim.manet.maps import MapError

AWAY_M = 1e7
"""Where vehicles are that are not there; each so far from the next that they do not hear each other."""


def read_fcd(path: Path, nodes: int, duration_s: float, tick_s: float) -> NDArray[np.float32]:
    """Where each of so many vehicles is at every tick."""
    tracks: dict[str, list[tuple[float, float, float]]] = {}
    try:
        # The file is the user's own; ElementTree resolves no external entities.
        for _, element in ET.iterparse(path):  # noqa: S314 - the user's own file
            if element.tag == "timestep":
                time_s = float(element.attrib["time"])
                for vehicle in element.iter("vehicle"):
                    at = (time_s, float(vehicle.attrib["x"]), float(vehicle.attrib["y"]))
                    tracks.setdefault(vehicle.attrib["id"], []).append(at)
                element.clear()
    except OSError:
        raise MapError(f"movement file {path} cannot be read; give a file of `sumo --fcd-output`.") from None
    except (ET.ParseError, KeyError, ValueError) as error:
        raise MapError(f"movement file {path} is no FCD output of SUMO: {error!r}.") from None
    if len(tracks) < nodes:
        raise MapError(f"nodes is {nodes}, but {path} has only {len(tracks)} vehicles; lower nodes.")
    longest = sorted(tracks, key=lambda name: (-len(tracks[name]), name))[:nodes]
    times = np.arange(round(duration_s / tick_s) + 1) * tick_s
    track = np.empty((len(times), nodes, 2), np.float32)
    for node, name in enumerate(longest):
        seen = np.array(tracks[name])
        there = (times >= seen[0, 0]) & (times <= seen[-1, 0])
        for axis in (0, 1):
            track[:, node, axis] = np.interp(times, seen[:, 0], seen[:, axis + 1])
        track[~there, node] = AWAY_M * (1 + node)
    return track


def make_fcd(
    folder: Path, *, seed: int = 1, crossings: int = 4, street_m: float = 350.0, end_s: int = 300
) -> Path:
    """Have SUMO make a grid of streets and drive on it; the FCD file."""
    if util.find_spec("sumo") is None:
        raise MapError("SUMO is not installed: `make sumo` puts it into .venv.")
    import sumo  # type: ignore[import-not-found]  # noqa: PLC0415  an optional package

    home = Path(sumo.SUMO_HOME)
    folder.mkdir(parents=True, exist_ok=True)
    net, trips, fcd = folder / "net.xml", folder / "trips.xml", folder / "fcd.xml"
    _call(home / "bin" / "netgenerate", "--grid", "--grid.number", crossings, "--grid.length", street_m,
          "--seed", seed, "--output-file", net)  # fmt: skip
    # Two vehicles a second for a minute, each with errands that keep it on the road.
    _call(sys.executable, home / "tools" / "randomTrips.py", "-n", net, "-o", trips, "-e", 60, "-p", 0.5,
          "--seed", seed, "--min-distance", 2 * street_m, "--intermediate", 12)  # fmt: skip
    _call(home / "bin" / "sumo", "-n", net, "-r", trips, "--fcd-output", fcd, "--end", end_s, "--seed", seed,
          "--no-step-log", "--no-warnings")  # fmt: skip
    return fcd


def _call(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)  # noqa: S603 - SUMO, named by the user
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise MapError(f"{Path(str(command[0])).name} failed: {' '.join(last)}")
