"""Draws the systems of paper 002: clustered layouts (section 4.1) and the subscription models (section 4.2).

Every draw comes from a named stream of the layout's seed, so that the same nodes stand in the same places
whatever the radio range, and have the same interval lengths in every submodel, as the paper asks. A layout is
kept only if it is connected at `connected_at_m`; positions are drawn anew from the same stream until one is.

The paper gives no spread of the two normal radii, none of the interval lengths, and no range of the centres:
`radius_spread_m`, `length_spread` and `centre_range` are ours, and the study shows what they do.
"""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Subscriptions, interval, subscriptions
from sojourn.adhoc.tree.connectivity import neighbours, reached
from sojourn.interest.measure import MeasuredSet, TopicTree
from sojourn.sim.streams import Streams

Model = Literal["ni-r", "ni-x", "ni-xmod", "ni-x-dealt", "tt"]
"""The paper's, and one of ours: `ni-x-dealt` has the centres of NI-X, dealt out to the nodes at random. It
differs from NI-X in nothing but the tie between place and interest."""

Positions = NDArray[np.float64]

GRID = 2.0**-16
"""Interval bounds are rounded to this, so that sums of lengths are exact in a float, whatever their order."""

TRIES_MAX = 200_000
"""Layouts drawn before giving up on a connected one."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """All parameters of Table 3, its base values as defaults, and the ones the paper leaves out."""

    seed: int = 1
    clusters: int = 3
    nodes_per_cluster: int = 10
    cluster_distance_m: float = 100.0
    """Mean distance of the clusters' centres from the origin (Dc)."""
    node_distance_m: float = 80.0
    """Mean distance of nodes from their cluster's centre (Dn)."""
    radius_spread_m: float = 20.0
    """Standard deviation of both distances; not in the paper."""
    range_m: float = 80.0
    connected_at_m: float = 60.0
    """Layouts are kept only if they are connected at this range, the smallest the paper uses."""
    model: Model = "ni-r"
    length: float = 25.0
    """Mean interval length (l)."""
    length_spread: float = 0.25
    """Standard deviation of interval lengths, as a share of their mean; not in the paper."""
    centre_range: float = 250.0
    """Width of the range of random interval centres; not in the paper, which says that two random intervals
    of mean length 50 overlap with probability 36%: 2 (l/A) - (l/A)^2 = 0.36 gives A = 250."""
    offset_sigma: float = 0.0
    """Standard deviation of the offset in NI-Xmod."""
    branching: int = 9
    depth: int = 3
    """Levels of the topic tree below its root (at b = 2 then 8 of 15 topics are leaves, the paper's 53%)."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.clusters * self.nodes_per_cluster

    def validate(self) -> None:
        """Raise one sentence about the first parameter that cannot be."""
        for name in ("clusters", "nodes_per_cluster", "branching", "depth"):
            if getattr(self, name) < 1:
                raise AdhocError(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("range_m", "connected_at_m", "centre_range"):
            if not getattr(self, name) > 0:
                raise AdhocError(f"{name} must be above 0, not {getattr(self, name):g}.")
        for name in ("radius_spread_m", "length", "length_spread", "offset_sigma"):
            if not getattr(self, name) >= 0:
                raise AdhocError(f"{name} must be at least 0, not {getattr(self, name):g}.")


def draw_positions(layout: Layout) -> Positions:
    """Places of all nodes, connected at the layout's smallest range."""
    layout.validate()
    stream = Streams(layout.seed).fresh("positions")
    for _ in range(TRIES_MAX):
        places = _places(layout, stream)
        if reached(neighbours(places, layout.connected_at_m)).all():
            return places
    raise AdhocError(
        f"no layout of {TRIES_MAX} was connected at {layout.connected_at_m:g} m: raise connected_at_m or "
        "bring the clusters nearer."
    )


def _places(layout: Layout, stream: np.random.Generator) -> Positions:
    centres = _around(np.zeros((layout.clusters, 2)), layout.cluster_distance_m, layout, stream)
    return _around(
        np.repeat(centres, layout.nodes_per_cluster, axis=0), layout.node_distance_m, layout, stream
    )


def _around(centres: Positions, distance_m: float, layout: Layout, stream: np.random.Generator) -> Positions:
    angles = stream.uniform(0, 2 * np.pi, len(centres))
    radii = stream.normal(distance_m, layout.radius_spread_m, len(centres))
    places: Positions = centres + radii[:, None] * np.column_stack((np.cos(angles), np.sin(angles)))
    return places


def draw_place(layout: Layout, stream: np.random.Generator) -> Positions:
    """One more place by the layout's own rule: around a cluster centre drawn like the others."""
    place: Positions = _places(msgspec.structs.replace(layout, clusters=1, nodes_per_cluster=1), stream)[0]
    return place


def draw_interests(layout: Layout, places: Positions) -> list[MeasuredSet]:
    """Every node's inherent subscription."""
    streams = Streams(layout.seed)
    if layout.model == "tt":
        tree = TopicTree(branching=layout.branching, depth=layout.depth)
        return [tree.numbered(int(n)) for n in streams.fresh("topics").integers(tree.nodes, size=len(places))]
    lengths = _lengths(layout, streams.fresh("lengths"), len(places))
    if layout.model == "ni-r":
        centres = streams.fresh("centres").uniform(
            -layout.centre_range / 2, layout.centre_range / 2, len(places)
        )
    elif layout.model == "ni-x-dealt":
        centres = streams.fresh("dealt").permutation(places[:, 0])
    else:
        offsets = streams.fresh("offsets").normal(0, 1, len(places))
        centres = places[:, 0] + (layout.offset_sigma if layout.model == "ni-xmod" else 0.0) * offsets
    lows, highs = (np.round((centres + side * lengths / 2) / GRID) * GRID for side in (-1, 1))
    return [interval(float(low), float(high)) for low, high in zip(lows, highs, strict=True)]


def _lengths(layout: Layout, stream: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Normal lengths; a negative one is drawn as 0, an interest in nothing."""
    return np.maximum(0.0, layout.length * (1 + layout.length_spread * stream.normal(0, 1, count)))


def draw_subscriptions(layout: Layout, places: Positions) -> Subscriptions:
    """The same interests cut into cells."""
    return subscriptions(draw_interests(layout, places))
