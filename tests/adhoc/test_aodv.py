"""AODV over a perfect radio: finds every route there is, never loops, keeps its limits."""

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from sojourn.adhoc.aodv.tables import BUFFER_MAX, REQUESTS_MAX_PER_S
from sojourn.adhoc.packets import DATA, EVENT, KINDS, REASONS, REQUEST
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.world import World

BASE = Manet(scheme="b-aodv", duration_s=40.0, warmup_s=1.0, topics=2, subscribers=4, publish_s=2.0)


def still(places: NDArray[np.float64], duration_s: float) -> NDArray[np.float32]:
    """Nodes that stay where they are."""
    return np.repeat(places[None].astype(np.float32), round(duration_s * 10) + 1, axis=0)


def broken_invariant(world: World) -> str:
    """What is wrong with the routes, if anything: a circle, or numbers that fall along a route."""
    pairs = world.net.cores.aodv.pairs
    live = (pairs["valid"] != 0) & (pairs["expires_s"] > world.now_s)
    count = len(pairs)
    goals = np.arange(count)
    onward = np.where(live, pairs["next"], -1)
    at, goal = np.nonzero(live & (pairs["next"] != goals[None, :]))
    following = onward[at, goal]
    both = (pairs["seq_known"][at, goal] != 0) & (pairs["seq_known"][following, goal] != 0)
    mine, theirs = pairs["seq"][at, goal], pairs["seq"][following, goal]
    if (both & (mine > theirs)).any():
        return "a sequence number falls along a route"
    same = both & (mine == theirs) & live[following, goal]
    if (same & (pairs["hops"][following, goal] >= pairs["hops"][at, goal])).any():
        return "hops do not fall along a route of one number"
    reached = np.tile(np.arange(count)[:, None], (1, count))
    for _ in range(count + 1):
        step = np.where(reached >= 0, onward[np.maximum(reached, 0), goals[None, :]], -1)
        reached = np.where((reached < 0) | (step < 0) | (reached == goals[None, :]), -1, step)
    return "next hops run in a circle" if (reached >= 0).any() else ""


@pytest.mark.slow
def test_never_loops_while_nodes_move() -> None:
    """After every single event numbers rise and hops fall along live routes, and no route is a circle."""
    for seed in (1, 2, 3):
        world = World(
            msgspec.structs.replace(
                BASE, seed=seed, nodes=16, map="manhattan", speed_m_s=60.0, duration_s=8.0, warmup_s=0.1
            )
        )
        seen = b""
        while world.step():
            pairs = world.net.cores.aodv.pairs
            state = pairs["next"].tobytes() + pairs["seq"].tobytes() + pairs["valid"].tobytes()
            if state != seen:
                seen = state
                assert not broken_invariant(world), f"seed {seed} at {world.now_s:.6f} s"


def test_the_invariant_would_notice_a_circle() -> None:
    """The check itself finds a circle that is put into the tables."""
    world = World(msgspec.structs.replace(BASE, nodes=6, map="manhattan", duration_s=2.0, warmup_s=0.1))
    pairs = world.net.cores.aodv.pairs
    for node, onward in ((0, 1), (1, 2), (2, 0)):
        pairs[node, 5]["valid"], pairs[node, 5]["next"], pairs[node, 5]["expires_s"] = 1, onward, 9.0
    assert broken_invariant(world) == "next hops run in a circle"


def test_finds_a_route_whenever_there_is_one() -> None:
    """On still layouts every event gets through between nodes that are connected, and none between others."""
    stream = np.random.default_rng(8)
    tried = 0
    for seed in range(1, 13):
        places = stream.uniform(0, 900, (20, 2))
        part = connected_components(cdist(places, places) <= 249.5)[1]
        given = msgspec.structs.replace(BASE, seed=seed, nodes=20)
        world = World(given, track=still(places, given.duration_s), ideal=True)
        world.run()
        homes = world.net.cores.topics.topics["home"]
        for event in world.publications:
            home = homes[event["topic"]]
            for number, wanted in enumerate(world.subscriptions):
                if not world.expected()[event["event"], number]:
                    continue
                joined = part[event["node"]] == part[home] == part[wanted["node"]]
                got = not np.isnan(world.net.delivered_s[event["event"], number])
                # The first subscriptions need a second to arrive, and longer where a search goes on.
                if event["made_s"] > 5.0:
                    tried += joined
                    assert got == joined, f"seed {seed}: event {event['event']} to {number}"
    assert tried > 300


def test_limits_are_kept() -> None:
    """Nobody asks more than ten times a second, and packets that wait have a limit; what is more is lost."""
    places = np.column_stack((np.arange(30) * 1000.0, np.zeros(30)))
    given = Manet(
        scheme="b-aodv", nodes=30, topics=20, publishers=1, subscribers=20, duration_s=20.0, warmup_s=1.0,
        subscribe_s=0.2,
    )  # fmt: skip
    world = World(given, track=still(places, 20.0), ideal=True)
    result = world.run()
    assert result.packets_by_kind["route request"] <= REQUESTS_MAX_PER_S * 20 * 30
    stations = world.net.cores.aodv.stations
    assert stations["requests"].max() == REQUESTS_MAX_PER_S
    lost = world.net.run["lost"][0][DATA].sum(axis=0)
    assert lost[REASONS.index("buffer full")] > 0
    assert world.net.cores.aodv.waiting.shape[1] == BUFFER_MAX
    assert KINDS[REQUEST] == "route request"


def lone(places: NDArray[np.float64], duration_s: float, *, leaves: int = -1) -> World:
    """Node 0 publishes an event a second for the last node; after eight seconds one may leave."""
    nodes = len(places)
    given = Manet(
        scheme="b-aodv", nodes=nodes, topics=1, publishers=1, subscribers=1, duration_s=duration_s,
        warmup_s=1.5, publish_s=1.0, hello=False,
    )  # fmt: skip
    track = still(places, duration_s)
    if leaves >= 0:
        track[80:, leaves] += 9_000.0
    world = World(given, track=track)
    topics = world.net.cores.topics
    topics.subscriptions["node"] = topics.topics["home"] = nodes - 1
    topics.subscriptions["least"], topics.subscriptions["clearance"] = 0.0, 9
    world.publications["node"] = 0
    return world


def test_a_search_asks_the_whole_net_twice() -> None:
    """Rings of 1, 3, 5 and 7 hops, then twice the whole net: after 10.3 s what waits is lost, not before."""
    world = lone(np.array([[0.0, 0.0], [9_000.0, 0.0]]), 25.0)
    first_s = float(world.publications["made_s"][0])
    lost = world.net.run["lost"][0][DATA, EVENT]
    for now_s in world.steps(0.1):
        waited_s = now_s - first_s
        if waited_s < 10.2:
            assert lost.sum() == 0
        elif 10.5 < waited_s < 20.0:
            assert lost[REASONS.index("no route")] == lost.sum() == 11
        if 9.0 < waited_s < 10.2:
            assert world.net.run["sent"][0][REQUEST].sum(axis=0)[0] == 6


def test_what_the_radio_could_not_hand_on_is_lost_at_its_source_too() -> None:
    """One event per broken link is lost; the next ones wait for a route, and there is another way."""
    places = np.array([[0.0, 0.0], [200.0, 0.0], [200.0, 100.0], [400.0, 0.0]])
    broken = 0
    for leaves in (1, 2):  # whichever of the two ways AODV chose, one of these breaks it
        world = lone(places, 20.0, leaves=leaves)
        result = world.run()
        lost = world.net.run["lost"][0][DATA, EVENT]
        assert lost.sum() == lost[REASONS.index("link broke")] == result.broken <= 1
        assert int(np.isfinite(world.net.delivered_s).sum()) == len(world.publications) - lost.sum()
        broken += result.broken
    assert broken == 1


def test_a_route_is_mended_where_its_link_broke() -> None:
    """With ns-2's constants a node on the way finds another way for what its link lost; else it is lost."""
    line = np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0], [600.0, 0.0], [400.0, 5000.0]])
    gone = line[[0, 1, 4, 3, 2]]  # the third node leaves, and the fifth takes its place
    given = Manet(
        scheme="b-aodv", nodes=5, topics=1, publishers=1, subscribers=1, duration_s=40.0, warmup_s=1.0,
        publish_s=0.5, hello=False,
    )  # fmt: skip
    delivered = {}
    for aodv in ("rfc-3561", "ns-2"):
        track = np.concatenate([still(line, 15.0), still(gone, 25.0)])
        world = World(msgspec.structs.replace(given, aodv=aodv), track=track, ideal=True)
        topics = world.net.cores.topics
        topics.topics["home"] = 3
        topics.subscriptions["node"], topics.subscriptions["least"] = 3, 0.0
        topics.subscriptions["clearance"] = 9
        world.publications["node"] = 0
        world.run()
        delivered[aodv] = int((~np.isnan(world.net.delivered_s)).sum())
    assert delivered["ns-2"] == len(world.publications)
    assert delivered["rfc-3561"] < delivered["ns-2"]
