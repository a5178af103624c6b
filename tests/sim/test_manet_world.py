"""Schemes over mobile networks: homes, soft state, policies, repair, traces; and movement on maps."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from sojourn.adhoc.topics.places import home_node, home_place, home_waypoint
from sojourn.errors import SojournError
from sojourn.sim.manet.fcd import read_fcd
from sojourn.sim.manet.maps import MapError, RoadMap, city_map, legs_of, load_map
from sojourn.sim.manet.movement import SAFETY_M, drive, turns_of
from sojourn.sim.manet.scenario import SCHEMES, Manet
from sojourn.sim.manet.trace import record
from sojourn.sim.manet.world import Measured, World
from sojourn.sim.recorder import Recorder
from sojourn.studies.manet.parameters import SCENARIOS

SHORT = Manet(duration_s=60.0, warmup_s=10.0, topics=3, publishers=1, subscribers=6, publish_s=2.0)


def test_a_topic_has_one_home_for_everybody() -> None:
    """Places lie in the area, waypoints on the road nearest to them, and nodes are spread over topics."""
    road_map = load_map("freeway")
    waypoints = road_map.waypoints(50.0)
    for number in range(50):
        place = home_place(f"t{number}", (0.0, 0.0), road_map.area_m)
        assert 0 <= place[0] <= 2000
        assert 0 <= place[1] <= 2000
        chosen = home_waypoint(f"t{number}", (0.0, 0.0), road_map.area_m, waypoints)
        nearest = min(np.hypot(x - place[0], y - place[1]) for x, y in waypoints)
        assert np.hypot(chosen[0] - place[0], chosen[1] - place[1]) == pytest.approx(nearest)
    assert len({home_node(f"t{number}", 60) for number in range(200)}) > 30


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_delivers_what_is_allowed_and_once(scheme: str) -> None:
    """On a dense small map events arrive; none against topic, content or policy, none twice."""
    given = msgspec.structs.replace(SHORT, scheme=scheme, map="city:600", speed_m_s=10.0)
    result = World(given).run()
    assert result.expected > 50
    assert result.unauthorised == 0
    assert result.duplicates == 0
    # Without a map a topic may have its home where nobody drives.
    share = 0.7 if SCHEMES[scheme].mapped or not SCHEMES[scheme].geographic else 0.4
    assert result.delivered > share * result.expected


@pytest.mark.parametrize("scheme", ["b-aodv", "r-aodv", "b-gpsr-map", "r-gpsr-map"])
def test_subscriptions_of_silent_nodes_run_out(scheme: str) -> None:
    """Nobody is sent an event by a subscription older than the timeout, and in the end nobody at all."""
    given = msgspec.structs.replace(SHORT, scheme=scheme, map="city:600", silent_share=0.5, publish_s=0.5)
    world = World(given)
    result = world.run()
    assert result.stale_sent > 0
    assert result.stale_s <= given.soft_state_s
    silent = world.subscriptions["silent"] != 0
    late = world.publications["made_s"] > given.duration_s / 2 + 3 * given.soft_state_s
    assert np.isnan(world.net.delivered_s[late][:, silent]).all()


def test_a_publisher_may_wait_for_the_list_of_subscribers() -> None:
    """Who asks for the list when it publishes takes longer than who has it, and delivers nothing twice."""
    given = msgspec.structs.replace(SHORT, scheme="r-gpsr-map", map="city:600", speed_m_s=10.0)
    at_once = World(given).run()
    waits = World(msgspec.structs.replace(given, waits_for_list=True)).run()
    assert waits.delivered > 0.7 * waits.expected
    assert waits.duplicates == waits.unauthorised == 0
    assert np.median(waits.delays_s) > np.median(at_once.delays_s)
    assert waits.packets_by_kind["advertise"] < at_once.packets_by_kind["advertise"]


def test_a_list_may_outlast_what_it_lists() -> None:
    """Publishers that advertise rarely have nobody to send to unless they keep the list that long."""
    rare = msgspec.structs.replace(
        SHORT, scheme="r-gpsr-map", map="city:600", speed_m_s=10.0, advertise_s=10.0
    )
    kept = World(msgspec.structs.replace(rare, list_s=13.5)).run()
    assert World(rare).run().delivered < 0.6 * kept.delivered
    assert kept.delivered > 0.7 * kept.expected


def test_messages_may_all_have_the_size_of_an_event() -> None:
    """Subscriptions, advertisements and lists then weigh what events do; events weigh what they did."""
    given = msgspec.structs.replace(SHORT, scheme="r-gpsr-map", map="city:600", speed_m_s=10.0)
    plain, sized = World(given).run(), World(msgspec.structs.replace(given, message_bytes=512)).run()

    def size(result: Measured, kind: str) -> float:
        seconds = (given.duration_s - given.warmup_s) * given.nodes
        return result.bytes_by_kind[kind] * seconds / result.packets_by_kind[kind]

    for kind in ("subscribe", "advertise", "list"):
        assert size(sized, kind) == pytest.approx(size(sized, "delivery"))
        assert size(sized, "delivery") == pytest.approx(size(plain, "delivery"))
        assert size(plain, kind) < size(sized, kind)


def test_steady_beacons_go_out_whatever_else_is_sent() -> None:
    """A node that sends data all the time sends a beacon a second all the same."""
    given = msgspec.structs.replace(SHORT, map="city:600", speed_m_s=10.0)
    usual = World(given).run().packets_by_kind["beacon"]
    steady = World(msgspec.structs.replace(given, steady_beacons=True)).run().packets_by_kind["beacon"]
    seconds = (given.duration_s - given.warmup_s) * given.nodes
    assert steady > 0.9 * seconds
    assert usual < 0.9 * steady


def test_proximity_adds_to_the_nearest_node() -> None:
    """Where nobody is within K of a place but somebody in radio range, packets for it arrive, either way."""
    places = np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]])
    track = np.repeat(places[None].astype(np.float32), 601, axis=0)
    for proximity in (True, False):
        given = Manet(
            scheme="b-gpsr-map", nodes=3, topics=1, publishers=1, subscribers=1, duration_s=60.0,
            warmup_s=10.0, publish_s=2.0, proximity=proximity,
        )  # fmt: skip
        world = World(given, track=track)
        world.net.cores.topics.topics["x"], world.net.cores.topics.topics["y"] = 400.0, 200.0
        result = world.run()
        assert result.delivered > 0.8 * result.expected


def test_repair_delivers_more_for_less() -> None:
    """On the freeway, what is sent again when subscriptions come beats the paper's best at a lower load."""
    given = msgspec.structs.replace(SHORT, duration_s=120.0, speed_m_s=60.0, publish_s=5.0)
    plain = World(given).run()
    ours = msgspec.structs.replace(given, scheme="b-gpsr-repair", subscribe_s=2.0, soft_state_s=7.0)
    repaired = World(ours).run()
    assert repaired.delivered > plain.delivered
    assert repaired.bytes_per_node_s < plain.bytes_per_node_s
    assert repaired.duplicates == 0


def test_a_trace_has_every_event_interest_and_delivery() -> None:
    """The recorded tables hold what the run did, with policies as expressions."""
    world = World(msgspec.structs.replace(SHORT, map="city:600"))
    result = world.run()
    recorder = Recorder("one", study="manet")
    record(world, recorder, "{}")
    tables = recorder.tables
    assert len(tables["publications"]["run_id"]) == len(world.publications)
    assert len(tables["interests"]["run_id"]) == len(world.subscriptions)
    assert len(tables["deliveries"]["run_id"]) == result.delivered
    assert all(text.startswith("clearance >= ") for text in tables["publications"]["policy"])


# ------------------------------------------------------------------------------ movement


@pytest.mark.parametrize(("name", "speeds"), [("freeway", (20.0, 40.0)), ("manhattan", (5.0, 10.0))])
def test_vehicles_stay_on_roads_and_within_their_speed(name: str, speeds: tuple[float, float]) -> None:
    """At every tick a vehicle is beside a road, and moves no faster than it may but for a change of lane."""
    road_map = load_map(name)
    track = drive(road_map, 40, speeds, 120.0, np.random.default_rng(3))
    waypoints = np.array(road_map.waypoints(2.0))
    for places in track[::60]:
        apart = np.hypot(*(places[:, None] - waypoints[None]).transpose(2, 0, 1)).min(axis=1)
        assert apart.max() < 3 * road_map.lane_width_m
    moved = np.hypot(*np.diff(track.astype(float), axis=0).transpose(2, 0, 1))
    assert np.quantile(moved, 0.99) <= speeds[1] * 0.1 + 1e-3
    assert moved.max() <= speeds[1] * 0.1 + 4 * road_map.lane_width_m


def test_no_one_overtakes_within_the_safety_distance() -> None:
    """In one lane of a long road, whoever comes close behind another stays behind."""
    road_map = msgspec.convert(
        {"name": "straight", "area_m": [1e5, 10.0], "road": [{"points": [[0, 0], [1e5, 0]]}]}, RoadMap
    )
    track = drive(road_map, 30, (10.0, 30.0), 60.0, np.random.default_rng(4))
    assert SAFETY_M > 30.0 * 0.1
    eastbound = track[0, :, 1] < 0
    order = np.argsort(track[0, eastbound, 0])
    gaps = np.diff(track[:, eastbound, 0][:, order], axis=1)
    assert gaps.min() > -0.5


def test_turns_have_their_shares() -> None:
    """At a crossing one half go straight on, a quarter each way; at a road's end they come back."""
    legs = legs_of(city_map(1000.0, 500.0))
    turns = turns_of(legs)
    into_the_middle = next(
        at for at, leg in enumerate(legs) if leg.start == (0.0, 500.0) and leg.end == (500.0, 500.0)
    )
    straight, left, right, back = turns[into_the_middle]
    assert legs[straight].end == (1000.0, 500.0)
    assert legs[left].end == (500.0, 1000.0)
    assert legs[right].end == (500.0, 0.0)
    assert back == into_the_middle ^ 1


def test_sumo_movement_is_read(tmp_path: Path) -> None:
    """Places lie between those that the file gives; who is not on the road is out of everyone's range."""
    path = tmp_path / "fcd.xml"
    path.write_text(
        "<fcd-export><timestep time='0'><vehicle id='a' x='0' y='0'/><vehicle id='b' x='5' y='5'/></timestep>"
        "<timestep time='1'><vehicle id='a' x='10' y='20'/></timestep></fcd-export>"
    )
    track = read_fcd(path, 2, 2.0, 0.5)
    assert track[1, 0].tolist() == [5.0, 10.0]
    assert track[2, 1, 0] > 1e6
    with pytest.raises(MapError, match="only 2 vehicles"):
        read_fcd(path, 3, 2.0, 0.5)


@pytest.mark.parametrize(
    "changes",
    [
        {"scheme": "flooding"}, {"nodes": 5}, {"speed_m_s": 0.0}, {"map": "nowhere"}, {"map": "city:wide"},
        {"warmup_s": 70.0}, {"movement": "missing.xml"},
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_in_a_sentence(changes: dict[str, object]) -> None:
    """A wrong parameter is named, with the way out."""
    with pytest.raises(SojournError, match=next(iter(changes))):
        World(msgspec.structs.replace(SHORT, **changes))


KNOWN = {
    ("freeway", "b-aodv"): (110164, 21596, 12791, 2171, 234, 9, 279),
    ("manhattan", "r-aodv"): (229748, 44276, 21063, 3466, 356, 47, 234),
    ("manhattan", "r-gpsr"): (924285, 134629, 101758, 8302, 167, 43, 508),
    ("freeway", "b-gpsr-map"): (55554, 16103, 1805, 2788, 446, 15, 22),
    ("manhattan", "b-gpsr-repair"): (50531, 14814, 964, 1081, 166, 35, 27),
}
CHANGES: dict[str, dict[str, object]] = {
    "b-aodv": {"speed_m_s": 60.0},
    "r-aodv": {"speed_m_s": 20.0, "aodv": "ns-2", "hello": False},
    "r-gpsr": {"speed_m_s": 5.0},
    "b-gpsr-map": {"speed_m_s": 30.0, "steady_beacons": True},
    "b-gpsr-repair": {"speed_m_s": 10.0, "silent_share": 1 / 3},
}


@pytest.mark.parametrize(("scenario", "scheme"), KNOWN)
def test_runs_come_to_what_they_came_to(scenario: str, scheme: str) -> None:
    """Things that happened, frames, collisions, retries, broken links, deliveries, losses: a seed's own.

    Whoever makes the kernels faster changes none of these; who changes what a node does changes all.
    """
    given = msgspec.convert(
        {
            **SCENARIOS[scenario],
            **CHANGES[scheme],
            "scheme": scheme,
            "seed": 3,
            "duration_s": 45.0,
        },
        Manet,
    )
    result = World(given).run()
    assert KNOWN[scenario, scheme] == (
        result.happened,
        result.frames,
        result.collisions,
        result.retried,
        result.broken,
        result.delivered,
        sum(result.lost.values()),
    )
