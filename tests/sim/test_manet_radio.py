"""The radio of mobile networks: who hears whom, collisions, acknowledgements, limits."""

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from sojourn.adhoc.packets import DATA, REASONS
from sojourn.sim.manet import state
from sojourn.sim.manet.loop import run_until, start
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.manet.world import World

QUIET = Manet(
    scheme="b-gpsr", nodes=10, topics=1, publishers=1, subscribers=1, duration_s=30.0, warmup_s=0.5,
    subscribe_s=1e6, publish_s=1e6,
)  # fmt: skip


def still(places: NDArray[np.float64], duration_s: float = 30.0) -> NDArray[np.float32]:
    """Nodes that stay where they are."""
    return np.repeat(places[None].astype(np.float32), round(duration_s * 10) + 1, axis=0)


def test_neighbours_are_those_within_carrier_sense() -> None:
    """The search by cells finds exactly the pairs that comparing all with all finds."""
    stream = np.random.default_rng(1)
    for side in (300.0, 3_000.0, 60_000.0):
        places = stream.uniform(0, side, (200, 2))
        world = World(msgspec.structs.replace(QUIET, nodes=200), track=still(places))
        start(world.net)
        run_until(world.net, 0.05, 1)
        apart = cdist(places.astype(np.float32), places.astype(np.float32))
        for node, mac in enumerate(world.net.macs):
            near = world.net.hoods[node]["near"][: mac["near_count"]]
            heard, sensed = set((-1 - near[near < 0]).tolist()), set(near[near >= 0].tolist())
            assert heard == set(np.flatnonzero(apart[node] <= 250.0).tolist()) - {node}
            assert sensed == set(np.flatnonzero(apart[node] <= 550.0).tolist()) - heard - {node}


def test_beacons_are_heard_within_range_and_not_beyond() -> None:
    """After some beacons a node knows those within 250 m and nobody else."""
    places = np.array([[0.0, 0.0], [249.0, 0.0], [0.0, 251.0], [499.0, 0.0], [5000.0, 0.0]])
    world = World(
        msgspec.structs.replace(QUIET, nodes=5, duration_s=10.0, subscribers=1), track=still(places, 10.0)
    )
    world.run()
    known = [set(row["near"][: row["degree"]].tolist()) for row in world.net.cores.gpsr]
    assert known[0] == {1}
    assert known[1] == {0, 3}
    assert known[2] == known[4] == set()


def test_hidden_nodes_collide_and_retries_mend_it() -> None:
    """Two nodes that do not sense each other collide at the one between, and unicast gets through anyway."""
    places = np.array([[0.0, 0.0], [240.0, 0.0], [480.0, 0.0], [720.0, 0.0], [720.0, 200.0]])
    given = Manet(
        scheme="b-aodv", nodes=5, topics=3, publishers=1, subscribers=4, duration_s=60.0, warmup_s=2.0,
        subscribe_s=0.05, publish_s=1.0, event_bytes=1500,
    )  # fmt: skip
    world = World(given, track=still(places, 60.0))
    result = world.run()
    assert result.collisions > 100
    assert result.retried > 100
    assert result.delivered > 0.8 * result.expected
    ideal = World(given, track=still(places, 60.0), ideal=True).run()
    assert ideal.collisions == ideal.retried == 0
    assert ideal.delivered >= result.delivered


def test_capture_decides_which_frames_spoil_each_other() -> None:
    """A frame from 240 m is spoilt by one from 380 m, 8 dB weaker, where capture takes 10 dB, not 0."""
    places = np.array([[0.0, 0.0], [240.0, 0.0], [620.0, 0.0], [860.0, 0.0]])
    given = Manet(
        scheme="b-aodv", nodes=4, topics=2, publishers=1, subscribers=3, duration_s=20.0, warmup_s=2.0,
        subscribe_s=0.02, publish_s=1.0, hello=False,
    )  # fmt: skip
    spoilt = []
    for capture in (1.0, state.CAPTURE):
        world = World(given, track=still(places, 20.0))
        world.net.run["capture"] = capture
        spoilt.append(world.run().collisions)
    assert spoilt[0] < 0.5 * spoilt[1]


def test_a_link_that_breaks_is_reported_after_seven_attempts() -> None:
    """Where the next hop has gone the MAC gives up, and the layer above hears of it."""
    places = np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]])
    track = still(places, 20.0)
    track[100:, 1] = (0.0, 9_000.0)
    given = Manet(
        scheme="b-aodv", nodes=3, topics=4, publishers=1, subscribers=2, duration_s=20.0, warmup_s=1.0,
        publish_s=0.5, subscribe_s=0.5,
    )  # fmt: skip
    result = World(given, track=track).run()
    assert result.broken > 0
    assert result.retried >= 6 * result.broken


def test_queues_have_a_limit() -> None:
    """What a full queue cannot take is lost and counted, and nothing else breaks."""
    places = np.column_stack((np.arange(8) * 100.0, np.zeros(8)))
    given = Manet(
        scheme="b-gpsr-map", map="freeway", nodes=8, topics=5, publishers=1, subscribers=7, duration_s=5.0,
        warmup_s=0.5, subscribe_s=0.003, publish_s=1.0, proximity_m=2000.0,
    )  # fmt: skip
    world = World(given, track=still(places, 5.0))
    world.run()
    assert world.net.run["lost"][0][DATA, :, REASONS.index("queue full")].sum() > 0
    assert world.net.macs["count"].max() <= state.QUEUE_MAX


def test_the_same_seed_gives_the_same_run() -> None:
    """A run repeats itself to the byte, in one go or in steps; another seed gives another."""
    given = Manet(scheme="r-gpsr-map", duration_s=25.0, warmup_s=5.0)
    one, two = World(given), World(given)
    one.run()
    for _ in two.steps(0.37):
        pass
    assert one.net.run.tobytes() == two.net.run.tobytes()
    assert one.net.delivered_s.tobytes() == two.net.delivered_s.tobytes()
    other = World(msgspec.structs.replace(given, seed=2))
    other.run()
    assert one.net.run.tobytes() != other.net.run.tobytes()
