"""Road maps of mobile networks, read from TOML: an area, and roads as lines of points with lanes both ways.

Roads that share a point cross there. A map also knows its waypoints, points along its roads that every node
with the map knows alike (paper 004, section 3.6).
"""

import math
import tomllib
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from sojourn.errors import SojournError

Place = tuple[float, float]


class MapError(SojournError):
    """A map cannot be used."""


class Road(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One road, with lanes in both directions."""

    points: list[Place]
    lanes: int = 1
    """In each direction."""


class RoadMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An area with roads."""

    name: str
    area_m: Place
    road: list[Road]
    lane_width_m: float = 3.5

    def __post_init__(self) -> None:
        if min(self.area_m) <= 0:
            raise MapError(f"area_m of map {self.name!r} must be above 0 both ways, not {self.area_m}.")
        if not self.road:
            raise MapError(f"map {self.name!r} has no [[road]]; it needs at least one.")
        for road in self.road:
            if len(road.points) < 2 or road.lanes < 1:
                raise MapError(
                    f"every road of map {self.name!r} needs two points or more and a lane or more."
                )
            if any(a == b for a, b in pairwise(road.points)):
                raise MapError(f"a road of map {self.name!r} has the same point twice in a row.")

    def waypoints(self, spacing_m: float) -> list[Place]:
        """Points along the roads, no further apart than that."""
        found: dict[Place, None] = {}
        for road in self.road:
            for (ax, ay), (bx, by) in pairwise(road.points):
                steps = max(1, math.ceil(math.dist((ax, ay), (bx, by)) / spacing_m))
                for step in range(steps + 1):
                    share = step / steps
                    found[ax + share * (bx - ax), ay + share * (by - ay)] = None
        return list(found)


VOID_POINTS = 200
"""Points each way by which the void part of an area is measured."""


def void_share(road_map: RoadMap, reach_m: float) -> float:
    """The share of the area that lies further from every road than that."""
    wide, high = road_map.area_m
    steps = (np.arange(VOID_POINTS) + 0.5) / VOID_POINTS
    places = np.stack(np.meshgrid(steps * wide, steps * high), axis=-1).reshape(-1, 2)
    apart = np.full(len(places), np.inf)
    for road in road_map.road:
        for start, end in pairwise(road.points):
            along = np.subtract(end, start)
            share = np.clip((places - start) @ along / (along @ along), 0.0, 1.0)
            apart = np.minimum(apart, np.linalg.norm(places - start - share[:, None] * along, axis=1))
    return float((apart > reach_m).mean())


class Leg(NamedTuple):
    """One direction of a straight piece of road."""

    start: Place
    end: Place
    lanes: int

    @property
    def length_m(self) -> float:
        """From end to end."""
        return math.dist(self.start, self.end)


def legs_of(road_map: RoadMap) -> list[Leg]:
    """Both directions of every straight piece of road; a leg's way back stands next to it."""
    legs = []
    for road in road_map.road:
        for a, b in pairwise(road.points):
            legs += [Leg(a, b, road.lanes), Leg(b, a, road.lanes)]
    return legs


def city_map(side_m: float, spacing_m: float, name: str = "city") -> RoadMap:
    """A square grid of streets, for networks of any size."""
    count = max(2, round(side_m / spacing_m) + 1)
    lines = [side_m * at / (count - 1) for at in range(count)]
    across = [Road(points=[(x, y) for x in lines]) for y in lines]
    up = [Road(points=[(x, y) for y in lines]) for x in lines]
    return RoadMap(name=name, area_m=(side_m, side_m), road=[*across, *up])


def load_map(name: str) -> RoadMap:
    """A map that comes with the package, by name, or a TOML file."""
    packaged = resources.files("sojourn.sim").joinpath("maps", f"{name}.toml")
    if "/" not in name and packaged.is_file():
        text = packaged.read_text(encoding="utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            raise MapError(f"map {name!r} is neither freeway nor manhattan nor a file; name a TOML file.")
        text = path.read_text(encoding="utf-8")
    try:
        return msgspec.convert(tomllib.loads(text), RoadMap)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise MapError(f"map {name!r} cannot be read: {error}; see freeway.toml for the form.") from None
