"""Moving nodes under SHOPPARENT, message by message: one node moved (section 5.6), and all of them roaming.

`move_one` lets a system settle, puts one node elsewhere, and watches how long the tree takes to come to rest
and what it then costs beside a tree built with the node at its new place from the start. `roam` goes beyond
the paper: every node but the root walks from one random point to the next while the root publishes, over the
tree and by flooding at once, so that both see the same paths and the same events.
"""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT, neighbours, reached
from sojourn.adhoc.tree.node import Choosing, Timing
from sojourn.adhoc.tree.overhead import Costs
from sojourn.adhoc.tree.whole_graph import overhead_of, system
from sojourn.sim.adhoc.layout import Layout, Positions, draw_place, draw_positions, draw_subscriptions
from sojourn.sim.adhoc.world import AdhocWorld
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams

SETTLING_S = 30.0
"""Given to a new system to settle; joining takes a few beacons."""

CALM_BEACONS = 15
"""Beacon periods without a change after which a tree has come to rest; each node has had as many turns."""

WATCH_MAX_S = 300.0
"""A tree that still changes this long after a move is called unstable."""

PLACES_MAX = 10_000
TICK_S = 0.1
"""How often places change while nodes roam; at 40 m/s that is 4 m, a twentieth of the range."""


class Moved(NamedTuple):
    """What one move did."""

    stable: bool
    """Whether the tree came to rest with everybody in it."""
    seconds: float
    """From the move to the last change of a parent or of what is asked of one."""
    hops_before: int
    hops_after: int
    overhead: float
    overhead_fresh: float
    """Of a tree built with the node at its new place from the start."""
    node: int
    places: Positions
    """Before the move; afterwards `place` is the node's."""
    place: Positions
    parents_before: NDArray[np.int64]
    parents_after: NDArray[np.int64]


class Roamed(NamedTuple):
    """What was delivered and what it took, over the tree and by flooding."""

    wanted: int
    """Deliveries due: nodes interested in an event and connected with the root when it was published."""
    tree_delivered: int
    flood_delivered: int
    events: int
    tree_overhead: float
    """Work for events that was not for the receivers' own interests."""
    flood_overhead: float
    control_said: int
    control_heard: int
    switches: int
    seconds: float


def _choosing(streams: Streams, count: int, metric: str) -> list[Choosing]:
    draws = streams.fresh("draws").random((count, count))
    return [
        Choosing(metric=metric, draw=lambda other, node=node: float(draws[node, other]))  # type: ignore[misc]  # mypy infers no default of a lambda
        for node in range(count)
    ]


def _world(
    layout: Layout,
    places: Positions,
    interests: Subscriptions,
    timing: Timing,
    metric: str,
    *,
    flooding: bool,
) -> AdhocWorld:
    streams = Streams(layout.seed)
    return AdhocWorld(
        Radio(places, layout.range_m),
        interests.sets(),
        streams.fresh("timers"),
        choosing=_choosing(streams, len(places), metric),
        timing=timing,
        flooding=flooding,
    )


def _rest(world: AdhocWorld, timing: Timing, until_s: float) -> bool:
    """Run until nothing has changed for a while; says whether that came about in time."""
    calm_s = CALM_BEACONS * timing.beacon_s + timing.timeout_s
    while world.clock.now < until_s:
        world.run_until(world.clock.now + timing.beacon_s)
        if world.clock.now - world.changed_s > calm_s:
            return True
    return False


def _hops(parents: NDArray[np.int64], node: int) -> int:
    hops = 0
    while node != ROOT and hops <= len(parents):
        node = int(parents[node])
        if node < 0:
            return -1
        hops += 1
    return hops


def move_one(layout: Layout, timing: Timing, metric: str = "combo") -> Moved:
    """Settle, move one node to a place where the system stays connected, and watch."""
    places = draw_positions(layout)
    interests = draw_subscriptions(layout, places)
    world = _world(layout, places, interests, timing, metric, flooding=False)
    world.start()
    world.run_until(SETTLING_S)
    _rest(world, timing, SETTLING_S + WATCH_MAX_S)
    before = world.parents()
    stream = Streams(layout.seed).fresh("move")
    node = int(stream.integers(1, len(places)))
    place = _connected_place(layout, places, node, stream)
    moved_s = world.changed_s = world.clock.now
    world.radio.move(node, place)
    # Whoever was left behind finds out after a timeout only: nothing may change before, and that is not rest.
    world.run_until(moved_s + timing.timeout_s + timing.beacon_s)
    calm = _rest(world, timing, moved_s + WATCH_MAX_S)
    after = world.parents()
    moved_places = places.copy()
    moved_places[node] = place
    whole = calm and all(_hops(after, each) >= 0 for each in range(len(places)))
    given = system(neighbours(moved_places, layout.range_m), interests, Costs())
    fresh = _world(layout, moved_places, interests, timing, metric, flooding=False)
    fresh.start()
    fresh.run_until(SETTLING_S)
    _rest(fresh, timing, SETTLING_S + WATCH_MAX_S)
    return Moved(
        stable=whole,
        seconds=world.changed_s - moved_s,
        hops_before=_hops(before, node),
        hops_after=_hops(after, node),
        overhead=overhead_of(given, after) if whole else float("nan"),
        overhead_fresh=overhead_of(given, fresh.parents()),
        node=node,
        places=places,
        place=place,
        parents_before=before,
        parents_after=after,
    )


def _connected_place(layout: Layout, places: Positions, node: int, stream: np.random.Generator) -> Positions:
    """A random place by the layout's rule at which everybody still has a route."""
    tried = places.copy()
    for _ in range(PLACES_MAX):
        tried[node] = draw_place(layout, stream)
        if reached(neighbours(tried, layout.range_m)).all():
            found: Positions = tried[node].copy()
            return found
    raise AdhocError(f"no place for node {node} keeps the layout connected; raise range_m.")


class Roaming(msgspec.Struct, frozen=True, kw_only=True):
    """How nodes roam and how much is published."""

    speed_m_s: float
    warmup_s: float = 15.0
    duration_s: float = 60.0
    event_interval_s: float = 0.25

    def __post_init__(self) -> None:
        if not self.speed_m_s >= 0:
            raise AdhocError(f"speed_m_s must be at least 0, not {self.speed_m_s:g}.")
        for name in ("duration_s", "event_interval_s"):
            if not getattr(self, name) > 0:
                raise AdhocError(f"{name} must be above 0, not {getattr(self, name):g}.")


class _Walkers:
    """Everybody but the root goes straight to a random point of the layout's box, then to the next."""

    def __init__(self, places: Positions, speed_m_s: float, stream: np.random.Generator) -> None:
        self._low, self._high = places.min(axis=0), places.max(axis=0)
        self._speed = speed_m_s
        self._stream = stream
        self._goals = stream.uniform(self._low, self._high, places.shape)

    def step(self, places: Positions, seconds: float) -> None:
        way = self._goals - places
        left = np.hypot(way[:, 0], way[:, 1])
        reach = self._speed * seconds
        there = left <= reach
        places[~there] += way[~there] / left[~there, None] * reach
        places[there] = self._goals[there]
        places_root_free = there.copy()
        places_root_free[ROOT] = False
        self._goals[places_root_free] = self._stream.uniform(
            self._low, self._high, (int(places_root_free.sum()), 2)
        )


def roam(layout: Layout, timing: Timing, roaming: Roaming, metric: str = "combo") -> Roamed:
    """Let nodes roam and the root publish; count deliveries and work."""
    places = draw_positions(layout)
    interests = draw_subscriptions(layout, places)
    world = _world(layout, places, interests, timing, metric, flooding=True)
    streams = Streams(layout.seed)
    walkers = _Walkers(places, roaming.speed_m_s, streams.fresh("walk"))
    chances = streams.fresh("events")
    shares = interests.weights / interests.weights.sum()
    home = places[ROOT].copy()
    world.start()
    due: dict[tuple[int, int], set[int]] = {}
    control = (0, 0, 0)
    next_event_s, sequence = roaming.warmup_s, 0
    end_s = roaming.warmup_s + roaming.duration_s
    measured = False
    while world.clock.now < end_s:
        world.run_until(world.clock.now + TICK_S)
        if roaming.speed_m_s > 0:
            walkers.step(world.radio.places, TICK_S)
            world.radio.places[ROOT] = home
            world.radio.settle()
        if not measured and world.clock.now >= roaming.warmup_s:
            measured, control = True, (world.control_said, world.heard, world.switches)
        while measured and next_event_s <= world.clock.now < end_s:
            cell = int(chances.choice(len(shares), p=shares))
            connected = world.radio.reached_from(ROOT)
            due[ROOT, sequence] = {
                int(node) for node in np.flatnonzero(interests.member[:, cell] & connected)
            }
            world.publish(ROOT, sequence, cell)
            sequence, next_event_s = sequence + 1, next_event_s + roaming.event_interval_s
    said, heard, switches = world.control_said, world.heard, world.switches
    world.run_until(end_s + 1.0)
    return _count(world, due, roaming, (said - control[0], heard - control[1], switches - control[2]))


def _count(
    world: AdhocWorld,
    due: dict[tuple[int, int], set[int]],
    roaming: Roaming,
    control: tuple[int, int, int],
) -> Roamed:
    def overhead(works: list[tuple[int, int, int]]) -> float:
        # Receiving what a node wants itself is no overhead; everything else is (section 2.1, r = f = 1).
        return float(sum(received - processed + forwarded for received, processed, forwarded in works))

    tree = [(work.received, work.processed, work.forwarded) for work in world.work()]
    flood = [(each.work.received, each.work.processed, each.work.forwarded) for each in world.floods]
    return Roamed(
        wanted=sum(len(nodes) for nodes in due.values()),
        tree_delivered=sum(len(nodes & world.delivered[event]) for event, nodes in due.items()),
        flood_delivered=sum(len(nodes & world.flooded[event]) for event, nodes in due.items()),
        events=len(due),
        tree_overhead=overhead(tree),
        flood_overhead=overhead(flood),
        control_said=control[0],
        control_heard=control[1],
        switches=control[2],
        seconds=roaming.duration_s,
    )
