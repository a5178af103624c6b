"""Movement from files: sojourns as CSV, and vehicles as SUMO's floating-car data.

A CSV file has the columns client, broker, from_s and to_s in any order, one stay a row. A floating-car file
(FCD) is XML: `<fcd-export>` with a `<timestep time>` for each instant and a `<vehicle id x y>` in it for each
vehicle that is on the road. Brokers are points then, given by the topology file's table `points`; a vehicle
talks to the nearest broker, and changes it only when another one is nearer by more than the hysteresis, so
that nobody flaps on the border between two.

An FCD file of a city is larger than memory: it is read as a stream, one instant at a time, and the nearest
brokers of an instant are found together. Elements that are not vehicles (`person`, `container`) are clients
too if they have an id and a place. Whatever does not fit is refused in one sentence.
"""

import csv
import math
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

import numpy as np
from scipy.spatial import cKDTree

from sojourn.sim.roaming.run import RoamingError, Sojourn
from sojourn.sim.topology import Topology

COLUMNS = ("client", "broker", "from_s", "to_s")
CLIENTS_MAX = 1_000_000
READ_BYTES = 1 << 18
_MOVERS = frozenset({"vehicle", "person", "container"})

Paths = dict[str, list[Sojourn]]
Place = tuple[float, float]


class Nearest(NamedTuple):
    """How a place becomes a broker."""

    hysteresis_m: float
    """How much nearer another broker must be before a client changes to it."""
    range_m: float
    """Beyond this distance from the nearest broker a client is not connected at all."""
    away_s: float
    """How long a client is between two brokers."""


def load_movement(path: Path, topology: Topology, places: Sequence[Place] | None, near: Nearest) -> Paths:
    """The sojourns of a file: CSV or, where its name ends with .xml, floating-car data."""
    if path.suffix.lower() != ".xml":
        return load_sojourns(path, topology)
    if places is None:
        raise RoamingError(
            "movement_file is floating-car data, so the topology file must give each broker's place, "
            "as in [points] a = [0.0, 120.0]."
        )
    return load_fcd(path, places, near)


def load_points(path: Path, topology: Topology) -> list[Place] | None:
    """Each broker's place from a topology file's table `points`; None if it has no such table."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("points")
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise RoamingError(f"topology_file {path} cannot be read as TOML; give another file.") from None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise RoamingError("points must be a table of places by broker, as in a = [0.0, 120.0].")
    places = []
    for name in topology.names:
        place = table.get(name)
        if not isinstance(place, list) or len(place) != 2 or not all(map(_is_number, place)):
            raise RoamingError(f"points must give broker {name!r} a place of two numbers, in metres.")
        places.append((float(place[0]), float(place[1])))
    return places


def load_sojourns(path: Path, topology: Topology) -> Paths:
    """The sojourns of a CSV file, each client's in their order."""
    number = {name: broker for broker, name in enumerate(topology.names)}
    paths: Paths = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise RoamingError(
                    f"movement_file {path} must have the columns {', '.join(COLUMNS)}; "
                    f"{missing[0]} is missing."
                )
            for row in rows:
                sojourn = _sojourn(row, number, f"{path}, line {rows.line_num}")
                paths.setdefault(row["client"], []).append(sojourn)
    except OSError:
        raise RoamingError(f"movement_file {path} cannot be read; give the path of a CSV file.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise RoamingError(f"movement_file {path} is not a CSV file: {error}.") from None
    return _some(path, {name: sorted(stays, key=lambda stay: stay.from_s) for name, stays in paths.items()})


def _sojourn(row: dict[str, str], number: dict[str, int], where: str) -> Sojourn:
    name = row["broker"]
    if name not in number:
        raise RoamingError(f"movement_file {where}: {name!r} is no broker of the topology.")
    try:
        from_s, to_s = float(row["from_s"]), float(row["to_s"])
    except (TypeError, ValueError):
        raise RoamingError(f"movement_file {where}: from_s and to_s must be numbers of seconds.") from None
    if not (math.isfinite(from_s) and math.isfinite(to_s) and 0 <= from_s < to_s):
        raise RoamingError(f"movement_file {where}: a stay must begin at 0 or later and end after that.")
    return Sojourn(number[name], from_s, to_s)


# Floating-car data ------------------------------------------------------------------------------------


def load_fcd(path: Path, places: Sequence[Place], near: Nearest) -> Paths:
    """Sojourns at the nearest broker from a floating-car file, read as a stream."""
    tree = cKDTree(np.asarray(places, dtype=float))
    spots = np.asarray(places, dtype=float)
    paths: Paths = {}
    at: dict[str, tuple[int, float]] = {}
    """By client on the road: its broker and since when."""
    seen_s: dict[str, float] = {}
    last_s = 0.0
    for last_s, names, here in _instants(path):
        if len(here):
            _step(last_s, names, here, (tree, spots, near), at, paths)
        seen_s.update(dict.fromkeys(names, last_s))
        present = set(names)
        for name in [name for name in at if name not in present]:
            _leave(paths, name, at.pop(name), seen_s[name])
    for name, stay in at.items():
        _leave(paths, name, stay, last_s)
    return _some(path, paths)


def _step(
    now: float,
    names: list[str],
    here: np.ndarray,
    ground: tuple[cKDTree, np.ndarray, Nearest],
    at: dict[str, tuple[int, float]],
    paths: Paths,
) -> None:
    """Move every client of one instant to its broker, if that changed."""
    tree, spots, near = ground
    distances, nearest = tree.query(here)
    for place, name in enumerate(names):
        distance, broker = float(distances[place]), int(nearest[place])
        stay = at.get(name)
        if stay is None:
            if distance <= near.range_m:
                last = paths.get(name)
                begin = max(now, last[-1].to_s + near.away_s) if last else now
                at[name] = (broker, begin)
            continue
        old, since = stay
        if distance > near.range_m:
            _leave(paths, name, at.pop(name), now)
        elif broker != old and now > since:
            own = math.dist(here[place], spots[old])
            if own - distance > near.hysteresis_m or own > near.range_m:
                _leave(paths, name, stay, now)
                at[name] = (broker, now + near.away_s)


def _leave(paths: Paths, name: str, stay: tuple[int, float], now: float) -> None:
    broker, since = stay
    if now > since:
        paths.setdefault(name, []).append(Sojourn(broker, since, now))


Instant = tuple[float, list[str], np.ndarray]


class _FcdReader:
    """Turns the tags of a floating-car file into instants, as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._root = ""
        self._time_s = math.nan
        self._names: list[str] = []
        self._places: list[Place] = []
        self.done: list[Instant] = []
        """The instants whose end has been read."""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._refuse_entity

    def _start(self, tag: str, given: dict[str, str]) -> None:
        if not self._root:
            self._root = tag
            if tag != "fcd-export":
                raise RoamingError(
                    f"movement_file {self._path} must be floating-car data, which begins with <fcd-export>, "
                    f"not with <{tag}>."
                )
        try:
            if tag == "timestep":
                self._time_s = float(given["time"])
            elif tag in _MOVERS:
                self._names.append(given["id"])
                self._places.append((float(given["x"]), float(given["y"])))
        except (KeyError, ValueError):
            raise RoamingError(
                f"movement_file {self._path}, line {self.parser.CurrentLineNumber}: a timestep must have a "
                "time, and a vehicle an id, x and y."
            ) from None

    def _end(self, tag: str) -> None:
        if tag == "timestep":
            places = np.asarray(self._places, dtype=float).reshape(-1, 2)
            self.done.append((self._time_s, self._names, places))
            self._names, self._places = [], []

    def _refuse_entity(self, *_: object) -> None:
        # Entities that name each other grow without limit; floating-car data has none.
        raise RoamingError(f"movement_file {self._path} declares entities; floating-car data has none.")


def _instants(path: Path) -> Iterator[Instant]:
    """Each instant of the file: its time, and the names and places of all clients in it."""
    reader = _FcdReader(path)
    try:
        with path.open("rb") as file:
            while piece := file.read(READ_BYTES):
                reader.parser.Parse(piece)
                yield from reader.done
                reader.done.clear()
            reader.parser.Parse(b"", True)  # noqa: FBT003  expat takes no keyword
    except OSError:
        raise RoamingError(f"movement_file {path} cannot be read; give the path of an FCD file.") from None
    except expat.ExpatError as error:
        raise RoamingError(f"movement_file {path} is not well-formed XML: {error}.") from None


def _some(path: Path, paths: Paths) -> Paths:
    if not paths:
        raise RoamingError(f"movement_file {path} holds no client that stays at a broker.")
    if len(paths) > CLIENTS_MAX:
        raise RoamingError(f"movement_file {path} must hold at most {CLIENTS_MAX} clients.")
    return paths


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
