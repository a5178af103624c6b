"""The radio and the world of node cores: joining, failing, publishing, several publishers, the same twice."""

import numpy as np
import pytest

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.connectivity import neighbours
from sojourn.adhoc.tree.cooling import COLD, Cooling
from sojourn.adhoc.tree.node import Choosing, Timing
from sojourn.adhoc.tree.overhead import Costs, tree_work
from sojourn.adhoc.tree.whole_graph import overhead_of, system
from sojourn.interest.measure import MeasuredSet, TopicTree
from sojourn.sim.adhoc.layout import Layout, draw_interests, draw_positions, draw_subscriptions
from sojourn.sim.adhoc.world import AdhocWorld
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams

SMALL = Layout(seed=4, nodes_per_cluster=5, cluster_distance_m=60, node_distance_m=50, range_m=60, model="tt")
LEAVES = TopicTree(branching=SMALL.branching, depth=SMALL.depth).leaves


def _world(roots: tuple[int, ...] = (0,), *, flooding: bool = False, loss: float = 0.0) -> AdhocWorld:
    places = draw_positions(SMALL)
    streams = Streams(SMALL.seed)
    return AdhocWorld(
        Radio(places, SMALL.range_m, loss=loss, stream=streams.get("radio")),
        _interests(),
        streams.get("timers"),
        choosing=[Choosing()] * len(places),
        roots=roots,
        flooding=flooding,
    )


def _interests() -> list[MeasuredSet]:
    return draw_interests(SMALL, draw_positions(SMALL))


def test_published_work_is_the_formula() -> None:
    """One event a leaf topic: each node's counted work is exactly its cost, and all who want it get it."""
    world = _world()
    world.take_turns(range(SMALL.nodes))
    for leaf in range(LEAVES):
        world.publish(0, leaf, leaf)
        world.pump()
    costs = Costs(receive=2, process=3, forward=5)
    formula = tree_work(world.parents().tolist(), _interests(), costs)
    for work, expected in zip(world.work(), formula, strict=True):
        assert 2 * work.received + 3 * work.processed + 5 * work.forwarded == expected.cost
    for (_, leaf), got in world.delivered.items():
        assert got == {node for node, interest in enumerate(_interests()) if leaf in interest}


def test_any_node_may_publish() -> None:
    """Over the shared tree with shortcuts, and over a tree of its own, an event reaches just who wants it."""
    publisher = 7
    world = _world(roots=(0, publisher))
    for tree in (0, publisher):
        world.take_turns(range(SMALL.nodes), tree)
        for leaf in range(0, LEAVES, 9):
            world.publish(publisher, leaf + 1000 * tree, leaf, tree)
            world.pump()
    for (_, sequence), got in world.delivered.items():
        leaf = sequence % 1000
        assert got == {node for node, interest in enumerate(_interests()) if leaf in interest}
    shared = sum(work.forwarded for work in world.work(0))
    own = sum(work.forwarded for work in world.work(publisher))
    assert own <= shared


def test_flooding_reaches_everybody_once() -> None:
    """Flooded events are said once by every node and delivered to all who want them."""
    world = _world(flooding=True)
    world.take_turns(range(SMALL.nodes))
    for leaf in range(0, LEAVES, 50):
        world.publish(0, leaf, leaf)
        world.pump()
    assert world.flooded == world.delivered
    assert {flood.work.forwarded for flood in world.floods} == {len(world.flooded)}


def test_joins_beacons_and_a_failed_parent() -> None:
    """All join by themselves; when an inner node falls silent its children forget it and hang elsewhere."""
    world = _world()
    world.start()
    world.run_until(20.0)
    parents = world.parents()
    assert (parents[1:] >= 0).all()
    inner = int(np.bincount(parents[1:][parents[1:] > 0]).argmax())
    world.fail(inner)
    world.run_until(45.0)
    left = world.radio.reached_from(0)
    after = world.parents()
    for node in range(1, SMALL.nodes):
        if node != inner:
            assert (after[node] >= 0) == left[node]
            assert after[node] != inner
    world.revive(inner)
    world.run_until(80.0)
    assert (world.parents()[1:] >= 0).all()


def test_cooled_shopping_over_the_air() -> None:
    """By beacons, timers and messages alone, cooled shopping ends in trees that cost less than SP-COMBO's."""
    totals = {"combo": 0.0, "path": 0.0}
    for seed in (1, 2, 4):
        layout = Layout(seed=seed)
        places = draw_positions(layout)
        interests = draw_subscriptions(layout, places)
        given = system(neighbours(places, layout.range_m), interests, Costs())
        for metric, cooling in (("combo", COLD), ("path", Cooling(40.0, 90, seed))):
            world = AdhocWorld(
                Radio(places, layout.range_m),
                interests.sets(),
                Streams(seed).fresh("timers"),
                choosing=[Choosing(metric=metric)] * len(places),
                cooling=cooling,
            )
            world.start()
            world.run_until(110.0)
            assert (world.parents()[1:] >= 0).all()
            totals[metric] += overhead_of(given, world.parents())
    assert totals["path"] < 0.98 * totals["combo"]


def test_a_partitioned_node_tries_again() -> None:
    """A node out of range probes again and again, and joins once it is back."""
    world = _world()
    far = SMALL.nodes - 1
    home = world.radio.places[far].copy()
    world.radio.move(far, np.array([9_999.0, 0.0]))
    world.start()
    world.run_until(10.0)
    assert world.parents()[far] == -1
    probes = world.said["ParentProbe"]
    world.run_until(20.0)
    assert world.said["ParentProbe"] >= probes + 5
    world.radio.move(far, home)
    world.run_until(25.0)
    assert world.parents()[far] >= 0


def test_a_lossy_radio_is_survived() -> None:
    """With a tenth of all receptions lost, everybody still has a parent most of the time."""
    world = _world(loss=0.1)
    world.start()
    world.run_until(60.0)
    assert (world.parents()[1:] >= 0).mean() >= 0.9


def test_the_same_seed_gives_the_same_run() -> None:
    """Twice the same seed: the same tree, messages and times."""
    runs = []
    for _ in range(2):
        world = _world(loss=0.05)
        world.start()
        world.run_until(15.0)
        runs.append((world.parents().tolist(), dict(world.said), world.changed_s))
    assert runs[0] == runs[1]


def test_bad_radio_is_one_sentence() -> None:
    """Range, loss and delay that cannot be are refused."""
    places = np.zeros((2, 2))
    with pytest.raises(AdhocError, match="range_m must be above 0"):
        Radio(places, 0.0)
    with pytest.raises(AdhocError, match="loss must be at least 0 and below 1"):
        Radio(places, 1.0, loss=1.0)
    with pytest.raises(AdhocError, match="needs a random stream"):
        Radio(places, 1.0, loss=0.5)
    with pytest.raises(AdhocError, match="delay_s must be above 0"):
        Radio(places, 1.0, delay_s=0.0)
    with pytest.raises(AdhocError, match="beacon_s must be above 0"):
        Timing(beacon_s=0)
