"""Where a topic is at home (paper 004, sections 3.3 and 3.6).

One hash of the topic's name gives two numbers between 0 and 1, alike on every node. Over AODV they name the
node whose own hash is closest; over GPSR they are a place in the area, or the waypoint of the map nearest to
it. Nothing is looked up: whoever knows the topic's name and the map knows its home.
"""

import hashlib
import math
from collections.abc import Sequence

Place = tuple[float, float]

_UNIT = 2.0**64


def hashed(text: str) -> tuple[float, float]:
    """Two numbers between 0 and 1 that everybody computes alike."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / _UNIT, int.from_bytes(digest[8:16], "big") / _UNIT


def home_place(topic: str, low: Place, high: Place) -> Place:
    """The place of a topic in the area between two corners: (Hx, Hy) of section 3.3."""
    across, up = hashed(topic)
    return low[0] + across * (high[0] - low[0]), low[1] + up * (high[1] - low[1])


def home_waypoint(topic: str, low: Place, high: Place, waypoints: Sequence[Place]) -> Place:
    """The waypoint nearest to the topic's place (section 3.6); of equals the first."""
    place = home_place(topic, low, high)
    return min(waypoints, key=lambda waypoint: math.dist(waypoint, place))


def home_node(topic: str, nodes: int) -> int:
    """The node whose hashed identifier is closest to the topic's, on a ring."""
    wanted = hashed(topic)[0]

    def apart(node: int) -> float:
        distance = abs(hashed(f"node {node}")[0] - wanted)
        return min(distance, 1 - distance)

    return min(range(nodes), key=apart)
