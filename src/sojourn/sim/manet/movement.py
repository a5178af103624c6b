"""The Freeway and Manhattan movement models (Bai, Sadagopan, Helmy) on a road map, as places by tick.

Vehicles keep to their lane. Once a second a vehicle's speed changes by a random share, between -1 and 1, of
its acceleration, within its limits. Within the safety distance of the one ahead in its lane it is no faster
than that one. At a crossing it goes straight on with probability 1/2 and turns left or right with 1/4 each,
or in those proportions among what there is; where a road ends it comes back on the other side. A freeway is a
map without crossings. What is returned is where every vehicle is at every tick; nothing here knows of radios.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.kernels import entry, inner
from sojourn.sim.manet.heap import uniform
from sojourn.sim.manet.maps import Leg, MapError, RoadMap, legs_of

TICK_S = 0.1
SPEED_CHANGES_S = 1.0
SAFETY_M = 10.0
STRAIGHT_WITHIN = math.pi / 4
STRAIGHT, LEFT, RIGHT, BACK = range(4)
SHARES = np.array([0.5, 0.25, 0.25])

VEHICLE = np.dtype([("leg", "i8"), ("lane", "i8"), ("along_m", "f8"), ("speed", "f8")], align=True)


def turns_of(legs: list[Leg]) -> NDArray[np.int64]:
    """By leg and way (straight, left, right, back): the leg that follows, -1 for none.

    At a bend, where only one road goes on, that is straight on whatever its angle. Where two go the same way,
    the first counts.
    """
    turns = np.full((len(legs), 4), -1, np.int64)
    for number, leg in enumerate(legs):
        onward = [n for n, other in enumerate(legs) if other.start == leg.end and n != number ^ 1]
        turns[number, BACK] = number ^ 1
        if len(onward) == 1:
            turns[number, STRAIGHT] = onward[0]
            continue
        heading = math.atan2(leg.end[1] - leg.start[1], leg.end[0] - leg.start[0])
        for other in onward:
            start, end = legs[other].start, legs[other].end
            turn = math.remainder(math.atan2(end[1] - start[1], end[0] - start[0]) - heading, 2 * math.pi)
            way = STRAIGHT if abs(turn) <= STRAIGHT_WITHIN else LEFT if turn > 0 else RIGHT
            if turns[number, way] < 0:
                turns[number, way] = other
    return turns


@inner
def _next_leg(turns: NDArray[np.int64], leg: int, draw: float) -> int:
    total = 0.0
    for way in range(3):
        if turns[leg, way] >= 0:
            total += SHARES[way]
    if total == 0.0:
        return int(turns[leg, BACK])
    left = draw * total
    last = -1
    for way in range(3):
        if turns[leg, way] >= 0:
            last = int(turns[leg, way])
            left -= SHARES[way]
            if left < 0:
                break
    return last


@inner
def _keep_distance(vehicles: NDArray[np.void], speeds: NDArray[np.float64]) -> None:
    """What each may drive: no faster than the one ahead, if that is within the safety distance."""
    for one in range(len(vehicles)):
        speeds[one] = vehicles[one].speed
        nearest = SAFETY_M
        for other in range(len(vehicles)):
            if vehicles[other].leg != vehicles[one].leg or vehicles[other].lane != vehicles[one].lane:
                continue
            ahead = vehicles[other].along_m - vehicles[one].along_m
            if other != one and 0 <= ahead < nearest and (ahead > 0 or other < one):
                nearest = ahead
                speeds[one] = min(vehicles[one].speed, vehicles[other].speed)


@entry
def _drive(
    vehicles: NDArray[np.void],
    geometry: NDArray[np.float64],
    turns: NDArray[np.int64],
    limits: NDArray[np.float64],
    random: NDArray[np.uint64],
    speeds: NDArray[np.float64],
    track: NDArray[np.float32],
) -> None:
    """Fill the track; `geometry` is start, direction, length, lanes of each leg and the lane's width."""
    slowest, fastest, acceleration, tick_s = limits[0], limits[1], limits[2], limits[3]
    each = round(SPEED_CHANGES_S / tick_s)
    for tick in range(len(track)):
        for one in range(len(vehicles)):
            leg = vehicles[one].leg
            ux, uy, width = geometry[leg, 2], geometry[leg, 3], geometry[leg, 6]
            beside = (vehicles[one].lane + 0.5) * width
            track[tick, one, 0] = geometry[leg, 0] + ux * vehicles[one].along_m + uy * beside
            track[tick, one, 1] = geometry[leg, 1] + uy * vehicles[one].along_m - ux * beside
        if tick % each == 0:
            for one in range(len(vehicles)):
                faster = vehicles[one].speed + (2 * uniform(random) - 1) * acceleration
                vehicles[one].speed = min(max(faster, slowest), fastest)
        _keep_distance(vehicles, speeds)
        for one in range(len(vehicles)):
            vehicles[one].speed = speeds[one]
            vehicles[one].along_m += speeds[one] * tick_s
            while vehicles[one].along_m >= geometry[vehicles[one].leg, 4]:
                vehicles[one].along_m -= geometry[vehicles[one].leg, 4]
                leg = _next_leg(turns, vehicles[one].leg, uniform(random))
                vehicles[one].leg = leg
                vehicles[one].lane = min(vehicles[one].lane, int(geometry[leg, 5]) - 1)


def drive(
    road_map: RoadMap,
    vehicles: int,
    speed_m_s: tuple[float, float],
    duration_s: float,
    stream: np.random.Generator,
    *,
    acceleration_share: float = 0.1,
    tick_s: float = TICK_S,
) -> NDArray[np.float32]:
    """Where every vehicle is at every tick, as an array by tick, vehicle and axis.

    Vehicles start anywhere on the roads, at any speed within the limits; the acceleration is a share of the
    upper one.
    """
    slowest, fastest = speed_m_s
    if vehicles < 1:
        raise MapError(f"vehicles must be at least 1, not {vehicles}.")
    if not 0 <= slowest <= fastest:
        raise MapError(f"speeds must be at least 0 and in order, not {slowest:g} to {fastest:g}.")
    legs = legs_of(road_map)
    geometry = np.array(
        [
            (
                *leg.start,
                (leg.end[0] - leg.start[0]) / leg.length_m,
                (leg.end[1] - leg.start[1]) / leg.length_m,
                leg.length_m,
                leg.lanes,
                road_map.lane_width_m,
            )
            for leg in legs
        ]
    )
    started = np.zeros(vehicles, VEHICLE)
    shares = geometry[:, 4] * geometry[:, 5]
    started["leg"] = stream.choice(len(legs), vehicles, p=shares / shares.sum())
    started["lane"] = (stream.random(vehicles) * geometry[started["leg"], 5]).astype(int)
    started["along_m"] = stream.random(vehicles) * geometry[started["leg"], 4]
    started["speed"] = stream.uniform(slowest, fastest, vehicles)
    track = np.zeros((round(duration_s / tick_s) + 1, vehicles, 2), np.float32)
    random = np.array([stream.integers(2**63)], np.uint64)
    limits = np.array([slowest, fastest, acceleration_share * fastest, tick_s])
    _drive(started, geometry, turns_of(legs), limits, random, np.zeros(vehicles), track)
    return track
