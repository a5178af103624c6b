"""GPSR on static layouts: it delivers wherever a path exists, on graphs that are planar and connected."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from sojourn.adhoc.gpsr.core import forward, link_broke
from sojourn.adhoc.gpsr.neighbours import EXPIRY_BEACONS, Gpsr, forget_silent, hear, make_gpsr
from sojourn.adhoc.gpsr.planar import FULL_TURN, STRAIGHT_BACK, kept, next_edge
from sojourn.adhoc.kernels import entry
from sojourn.adhoc.packets import ARRIVED, DATA, LOST, ROUTE, SEND, Effects, emit_new, make_effects

REACH = 250.0
LAYOUTS = 1000


@entry
def know_each_other(gpsr: Gpsr, places: NDArray[np.float64], reach: float) -> None:
    """Everybody in reach has been heard."""
    for one in range(len(places)):
        for other in range(len(places)):
            apart = (places[one, 0] - places[other, 0]) ** 2 + (places[one, 1] - places[other, 1]) ** 2
            if one != other and apart <= reach * reach:
                hear(gpsr, one, other, places[other, 0], places[other, 1], 0.0)


@entry
def send(
    gpsr: Gpsr, places: NDArray[np.float64], start: int, goal: int, place: NDArray[np.float64], out: Effects
) -> tuple[int, int, int]:
    """Hop by hop over a perfect radio: the last effect, where it happened, and the hops taken."""
    out.filled[:] = 0
    packet = out.rows[emit_new(out, start, DATA, ROUTE, 0.0)]
    packet.goal, packet.goal_x, packet.goal_y, packet.ttl = goal, place[0], place[1], 100_000
    node = start
    while True:
        out.filled[0] = 1
        forward(gpsr, node, places[node, 0], places[node, 1], out.rows[0], 0.0, out)
        answer = out.rows[1]
        if answer.effect != SEND:
            return answer.effect, node, answer.hops
        node = answer.to
        out.rows[0] = answer
        out.rows[0].arrived_x, out.rows[0].arrived_y = answer.x, answer.y


@entry
def planar_edges(gpsr: Gpsr, places: NDArray[np.float64], edges: NDArray[np.bool_]) -> None:
    """Note which edges each node keeps."""
    for node in range(len(places)):
        for at in range(gpsr[node].degree):
            edges[node, gpsr[node].near[at]] = kept(gpsr, node, places[node, 0], places[node, 1], at)


@entry
def edges_after(
    gpsr: Gpsr, places: NDArray[np.float64], spots: NDArray[np.float64], found: NDArray[np.int64]
) -> None:
    """By spot and node: the edge that comes first, counter-clockwise from the direction of the spot."""
    for at in range(len(spots)):
        for node in range(len(places)):
            x, y = places[node, 0], places[node, 1]
            found[at, node] = next_edge(gpsr, node, x, y, spots[at, 0], spots[at, 1])


@entry
def break_link(gpsr: Gpsr, node: int, x: float, y: float, out: Effects) -> None:
    """The MAC gave up on the packet in the first row."""
    link_broke(gpsr, node, x, y, out.rows[0], 0.0, out)


@entry
def forget_old(gpsr: Gpsr, node: int, now_s: float) -> None:
    """Time passes."""
    forget_silent(gpsr, node, now_s)


def layout(stream: np.random.Generator) -> NDArray[np.float64]:
    """The largest connected part of random places with up to three round voids."""
    while True:
        places = stream.uniform(0, 1000, (int(stream.integers(5, 60)), 2))
        for _ in range(int(stream.integers(0, 4))):
            void = stream.uniform(0, 1000, 2)
            places = places[np.hypot(*(places - void).T) > stream.uniform(100, 350)]
        if len(places) > 2:
            part = connected_components(cdist(places, places) <= REACH)[1]
            places = np.ascontiguousarray(places[part == np.bincount(part).argmax()])
            if len(places) > 2:
                return places


@pytest.mark.parametrize("relative", [False, True], ids=["gabriel", "relative"])
def test_delivers_wherever_a_path_exists(relative: bool) -> None:
    """On a thousand connected unit-disk layouts with voids every packet arrives, and many had to walk."""
    stream = np.random.default_rng(4)
    out = make_effects()
    walked = 0
    for number in range(LAYOUTS):
        places = layout(stream)
        gpsr = make_gpsr(len(places), relative=relative)
        know_each_other(gpsr, places, REACH)
        for _ in range(5):
            start, goal = stream.choice(len(places), 2, replace=False)
            effect, where, hops = send(gpsr, places, start, goal, places[goal], out)
            assert (effect, where) == (ARRIVED, goal), f"layout {number}: {start} to {goal} ended at {where}"
            walked += hops > np.hypot(*(places[goal] - places[start])) / REACH + 8
    assert walked > 50, "the layouts have too few voids to prove anything"


def test_a_place_belongs_to_the_nearest_node_on_its_face() -> None:
    """With `home_walk` a packet to a place ends where nobody on the walk round it was nearer."""
    stream = np.random.default_rng(5)
    out = make_effects()
    for _ in range(200):
        places = layout(stream)
        gpsr = make_gpsr(len(places), home_walk=True)
        know_each_other(gpsr, places, REACH)
        spot = stream.uniform(0, 1000, 2)
        ends = set()
        for start in stream.choice(len(places), min(4, len(places)), replace=False):
            effect, where, _ = send(gpsr, places, start, -1, spot, out)
            assert effect == ARRIVED
            ends.add(where)
        nearest = int(np.argmin(np.hypot(*(places - spot).T)))
        assert ends == {nearest}, "all senders agree on the nearest node"


def test_without_home_walk_a_void_place_loses_packets() -> None:
    """A packet to a place where nobody is within the capture radius walks round it and is lost."""
    places = np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]])
    gpsr = make_gpsr(3, capture_m=125.0)
    know_each_other(gpsr, places, REACH)
    out = make_effects()
    assert send(gpsr, places, 0, -1, np.array([400.0, 500.0]), out)[0] == LOST
    assert send(gpsr, places, 0, -1, np.array([400.0, 100.0]), out)[:2] == (ARRIVED, 2)


@pytest.mark.parametrize("relative", [False, True])
def test_planar_graphs_are_planar_symmetric_and_connected(relative: bool) -> None:
    """No two kept edges cross, both ends keep an edge or neither does, and nobody is cut off."""
    stream = np.random.default_rng(6)
    for _ in range(30):
        places = layout(stream)
        gpsr = make_gpsr(len(places), relative=relative)
        know_each_other(gpsr, places, REACH)
        edges = np.zeros((len(places), len(places)), np.bool_)
        planar_edges(gpsr, places, edges)
        assert (edges == edges.T).all()
        assert connected_components(edges)[0] == 1
        pairs = np.argwhere(np.triu(edges))
        for at, (a, b) in enumerate(pairs):
            for c, d in pairs[:at]:
                if len({a, b, c, d}) == 4:
                    assert not _cross(*places[[a, b, c, d]])


def test_the_next_edge_is_that_of_the_smallest_angle() -> None:
    """However few angles are worked out: also towards neighbours, places in line and the node itself."""
    stream = np.random.default_rng(7)
    for number in range(16):
        places = layout(stream)
        if number % 2:
            places = np.unique(np.round(places, -2), axis=0)  # a lattice, where angles tie
        gpsr = make_gpsr(len(places))
        know_each_other(gpsr, places, REACH)
        spots = np.concatenate((places, stream.uniform(0, 1000, (10, 2))))
        found = np.zeros((len(spots), len(places)), np.int64)
        edges_after(gpsr, places, spots, found)
        kept_edges = np.zeros((len(places), len(places)), np.bool_)
        planar_edges(gpsr, places, kept_edges)
        for at, node in np.ndindex(found.shape):
            assert found[at, node] == _first_by_angle(gpsr[node], places[node], spots[at], kept_edges[node])


def _first_by_angle(
    me: Gpsr, here: NDArray[np.float64], spot: NDArray[np.float64], is_kept: NDArray[np.bool_]
) -> int:
    start = math.atan2(spot[1] - here[1], spot[0] - here[0])
    best, best_turn = -1, 2 * FULL_TURN
    for entry_ in range(int(me["degree"])):
        turn = (math.atan2(me["y"][entry_] - here[1], me["x"][entry_] - here[0]) - start) % FULL_TURN
        turn += FULL_TURN if turn < STRAIGHT_BACK else 0.0
        if turn < best_turn and is_kept[me["near"][entry_]]:
            best, best_turn = entry_, turn
    return best


def _cross(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], d: NDArray[np.float64]
) -> bool:
    def side(p: NDArray[np.float64], q: NDArray[np.float64], r: NDArray[np.float64]) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def test_a_full_table_lets_the_longest_silent_go() -> None:
    """A table has a limit; who was heard longest ago makes room, and silence ends an entry."""
    places = np.column_stack((np.arange(6.0), np.zeros(6)))
    gpsr = make_gpsr(6, room=3)
    know_each_other(gpsr, places, REACH)
    assert gpsr[0]["degree"] == 3
    forget_old(gpsr, 0, EXPIRY_BEACONS + 0.1)
    assert gpsr[0]["degree"] == 0


def test_a_broken_link_is_forgotten_and_another_taken() -> None:
    """When the MAC gives up, the neighbour goes and the packet leaves by another."""
    places = np.array([[0.0, 0.0], [200.0, 0.0], [190.0, 10.0], [390.0, 0.0]])
    gpsr = make_gpsr(4)
    know_each_other(gpsr, places, REACH)
    out = make_effects()
    out.filled[:] = 0
    packet = out.rows[0]
    packet["kind"], packet["goal"], packet["goal_x"], packet["goal_y"], packet["ttl"] = DATA, 3, 390.0, 0.0, 9
    packet["to"], packet["edge_from"], packet["mode"] = 1, -1, 0
    out.filled[0] = 1
    break_link(gpsr, 0, 0.0, 0.0, out)
    assert gpsr[0]["degree"] == 1
    assert (out.rows[1]["effect"], out.rows[1]["to"]) == (SEND, 2)
