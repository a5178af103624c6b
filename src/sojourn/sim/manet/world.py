"""A mobile ad-hoc network from one seed: builds the arrays, lets the compiled loop run, and counts.

All draws come from named streams of the seed: where vehicles go does not depend on the scheme, nor do who
publishes, who subscribes and what is published; so schemes are compared on the same roads and events.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.aodv.tables import HELLO_INTERVAL_S, make_aodv
from sojourn.adhoc.gpsr.neighbours import make_gpsr
from sojourn.adhoc.packets import BEACON, DATA, DELIVERY, HAD_IT, HELLO, KINDS, REASONS, WHATS, Records
from sojourn.adhoc.topics.node import Cores
from sojourn.adhoc.topics.places import home_node, home_place, home_waypoint
from sojourn.adhoc.topics.state import SUBSCRIPTION, TOPIC, make_topics
from sojourn.sim.manet import state
from sojourn.sim.manet.fcd import read_fcd
from sojourn.sim.manet.loop import run_until, start
from sojourn.sim.manet.maps import RoadMap, city_map, load_map
from sojourn.sim.manet.movement import TICK_S, drive
from sojourn.sim.manet.scenario import AODV_CONSTANTS, SCHEMES, Manet, ManetError
from sojourn.sim.manet.state import PUBLICATION, Net, make_net
from sojourn.sim.streams import Streams

GPSR_HEADER_BYTES = 44
"""The goal's, Lp's, Lf's and the sender's place, e0 and the mode: section 2 of the GPSR paper."""
CLEARANCES = 3
"""Clearances are 0, 1 and 2: an event asks for one, a subscriber has one."""
LEAST_MAX = 0.5
"""Events have values between 0 and 1; a subscriber wants those above a number between 0 and this."""
CITY_STREETS_M = 500.0
DRAIN_S = 10.0
"""After the last moment at which anything is published, what is under way may still arrive."""
EVENTS_A_CALL = 2_000_000


class Measured(NamedTuple):
    """What one run came to."""

    expected: int
    """Deliveries due: for each event, the subscriptions that topic, value and policy let it through to."""
    delivered: int
    duplicates: int
    unauthorised: int
    copies: int
    """Deliveries that subscribers had been given before and did not give their applications again."""
    delays_s: NDArray[np.float64]
    """Of each delivery."""
    bytes_per_node_s: float
    """Handed to the radio by all layers above it, once a hop."""
    bytes_by_kind: dict[str, float]
    """The same by kind of packet."""
    packets_by_kind: dict[str, int]
    lost: dict[str, int]
    """Packets lost, by what and why."""
    stale_sent: int
    """Events sent to subscribers that had fallen silent."""
    stale_s: float
    """Age of the oldest subscription by which that was done; below 0 if none was sent."""
    age_s: float
    """Mean age of the subscriptions by which events were sent to subscribers; not a number if none was."""
    hops: float
    """Mean hops of a delivery, from its publisher on; not a number if there was none."""
    attended: NDArray[np.bool_]
    """By event: whether somebody was within K of its topic's home when it was published; over AODV, yes."""
    due: NDArray[np.int64]
    """By event: to how many subscribers it was due."""
    got: NDArray[np.int64]
    """By event: how many of them got it."""
    frames: int
    retried: int
    broken: int
    collisions: int
    happened: int


class World:
    """One run, ready to go."""

    def __init__(
        self,
        manet: Manet,
        *,
        track: NDArray[np.float32] | None = None,
        hops_logged: int = 0,
        ideal: bool = False,
    ) -> None:
        manet.validate()
        self.manet = manet
        self.scheme = SCHEMES[manet.scheme]
        self.map = map_of(manet)
        streams = Streams(manet.seed)
        self.track = track_of(manet, self.map, streams) if track is None else track
        if self.track.shape[1] != manet.nodes:
            raise ManetError(
                f"nodes is {manet.nodes}, but the movement has {self.track.shape[1]} vehicles; set it so."
            )
        self.topic_names = [f"topic {number} of {manet.seed}" for number in range(manet.topics)]
        self.homes = [self._home(name) for name in self.topic_names]
        people = _people(manet, streams)
        self.subscriptions = _subscriptions(manet, people, streams)
        self.publications = _publications(manet, people, streams)
        self.net = self._net(people, streams, hops_logged=hops_logged, ideal=ideal)
        self._started = False

    def _home(self, topic: str) -> tuple[float, float]:
        low = (0.0, 0.0)
        if self.scheme.mapped:
            return home_waypoint(topic, low, self.map.area_m, self.map.waypoints(self.manet.waypoint_m))
        return home_place(topic, low, self.map.area_m)

    def _topics(self) -> Records:
        topics = np.zeros(self.manet.topics, TOPIC)
        for number, name in enumerate(self.topic_names):
            first = number * self.manet.subscribers
            home = -1 if self.scheme.geographic else home_node(name, self.manet.nodes)
            topics[number] = (home, first, first + self.manet.subscribers, *self.homes[number])
        return topics

    def _net(self, people: NDArray[np.int64], streams: Streams, *, hops_logged: int, ideal: bool) -> Net:
        manet, scheme = self.manet, self.scheme
        nodes = manet.nodes
        near = scheme.geographic and manet.proximity
        cores = Cores(
            make_gpsr(
                nodes if scheme.geographic else 1,
                beacon_s=manet.beacon_s,
                capture_m=manet.proximity_m if near else 0.0,
                nearest_m=state.RECEPTION_M,
                home_walk=manet.home_walk,
                relative=manet.relative,
                steady=manet.steady_beacons,
            ),
            make_aodv(
                1 if scheme.geographic else nodes, hello=manet.hello, constants=AODV_CONSTANTS[manet.aodv]
            ),
            make_topics(
                nodes,
                self._topics(),
                self.subscriptions,
                geographic=scheme.geographic,
                rendezvous=scheme.rendezvous,
                proximity=near,
                repair=scheme.repair,
                ttl=manet.ttl,
                message_bytes=manet.message_bytes,
                waits=manet.waits_for_list,
                list_s=manet.list_s,
                header_bytes=GPSR_HEADER_BYTES if scheme.geographic else 0,
                soft_state_s=manet.soft_state_s,
                keep_s=manet.keep_s,
                grace_s=manet.grace_s,
            ),
        )
        advertisers = [
            (int(people[topic, at]), topic)
            for topic in range(manet.topics)
            for at in range(manet.publishers)
            if scheme.rendezvous and not manet.waits_for_list
        ]
        return make_net(
            cores,
            self.track,
            self.publications,
            np.array(advertisers, np.int64).reshape(-1, 2),
            int(streams.fresh("radio").integers(2**63)),
            rules={
                "subscribe_s": manet.subscribe_s,
                "advertise_s": manet.advertise_s,
                "silent_s": manet.duration_s / 2,
                "period_s": manet.beacon_s if scheme.geographic else HELLO_INTERVAL_S,
                "period_spread": 0.5 if scheme.geographic else 0.05,
                "measure_s": manet.warmup_s,
                "tick_s": TICK_S,
                "ideal": float(ideal),
            },
            hops_logged=hops_logged,
        )

    def run(self) -> Measured:
        """Run to the end and measure."""
        for _ in self.steps(self.manet.duration_s):
            pass
        return self.measured()

    def steps(self, seconds: float) -> Iterator[float]:
        """Run to the end, with a pause after so many simulated seconds each; yields the time."""
        if not self._started:
            self._started = True
            start(self.net)
        while self.now_s < self.manet.duration_s:
            until_s = min(self.now_s + seconds, self.manet.duration_s)
            while run_until(self.net, until_s, EVENTS_A_CALL) == EVENTS_A_CALL:
                pass
            yield until_s
        assert self.number(state.OVERFLOW) == 0, "a table of fixed size overflowed"

    def step(self) -> bool:
        """Let one single thing happen; whether there was one before the end."""
        if not self._started:
            self._started = True
            start(self.net)
        return run_until(self.net, self.manet.duration_s, 1) == 1

    @property
    def now_s(self) -> float:
        """The simulated present."""
        return float(self.net.run["now_s"][0])

    def number(self, index: int) -> int:
        """One of the counts of `manet_state`."""
        return int(self.net.run["numbers"][0, index])

    def expected(self) -> NDArray[np.bool_]:
        """By event and subscription: whether it is due, by topic, content and policy."""
        events, wanted = self.publications, self.subscriptions
        due: NDArray[np.bool_] = (
            (events["topic"][:, None] == wanted["topic"])
            & (events["value"][:, None] >= wanted["least"])
            & (wanted["clearance"] >= events["clearance"][:, None])
        )
        heard: NDArray[np.bool_] = wanted["silent"] == 0
        return due & heard

    def attended(self) -> NDArray[np.bool_]:
        """By event: whether somebody was within K of its topic's home when it was published."""
        if not self.scheme.geographic:
            return np.ones(len(self.publications), bool)
        # A publication may be planned for after the end.
        ticks = np.minimum(self.publications["made_s"] / TICK_S, len(self.track) - 1).astype(np.int64)
        homes = np.array(self.homes)[self.publications["topic"]]
        apart = np.linalg.norm(self.track[ticks] - homes[:, None], axis=2)
        near: NDArray[np.bool_] = apart.min(axis=1) <= self.manet.proximity_m
        return near

    def measured(self) -> Measured:
        """What the run came to."""
        net, manet = self.net, self.manet
        due = self.expected()
        at_s = net.delivered_s
        got = due & ~np.isnan(at_s)
        delays = (at_s - self.publications["made_s"][:, None])[got]
        measured_s = manet.duration_s - manet.warmup_s
        sent = net.run["sent"][0]
        total = float(sent[:, :, 1].sum())
        rate = 1.0 / (measured_s * manet.nodes)
        by_kind, packets = {}, {}
        for kind, what in zip(*np.nonzero(sent[:, :, 0]), strict=True):
            name = WHATS[what] if kind == DATA else KINDS[kind]
            by_kind[name] = float(sent[kind, what, 1]) * rate
            packets[name] = int(sent[kind, what, 0])
        return Measured(
            expected=int(due.sum()),
            delivered=int(got.sum()),
            duplicates=self.number(state.DUPLICATES),
            unauthorised=self.number(state.UNAUTHORISED),
            copies=int(net.run["lost"][0][DATA, DELIVERY, HAD_IT]),
            delays_s=delays,
            bytes_per_node_s=total * rate,
            bytes_by_kind=by_kind,
            packets_by_kind=packets,
            lost=_losses(net),
            stale_sent=self.number(state.STALE_SENT),
            stale_s=float(net.run["stale_s"][0]),
            age_s=_mean(float(net.run["age_s"][0]), self.number(state.MATCHED)),
            hops=_mean(self.number(state.HOPS_WALKED), int((~np.isnan(at_s)).sum())),
            attended=self.attended(),
            due=due.sum(axis=1),
            got=got.sum(axis=1),
            frames=self.number(state.FRAMES_SENT),
            retried=self.number(state.RETRIED),
            broken=self.number(state.BROKEN),
            collisions=self.number(state.COLLISIONS),
            happened=self.number(state.HAPPENED),
        )


def _mean(total: float, count: int) -> float:
    return total / count if count else float("nan")


def map_of(manet: Manet) -> RoadMap:
    """The map of a run."""
    if not manet.map.startswith("city:"):
        return load_map(manet.map)
    side, _, street = manet.map.removeprefix("city:").partition(":")
    try:
        return city_map(float(side), float(street or CITY_STREETS_M))
    except (ValueError, ZeroDivisionError):
        raise ManetError(
            f"map must be like city:5000 or city:5000:250, side and streets in metres, not {manet.map!r}."
        ) from None


def track_of(manet: Manet, road_map: RoadMap, streams: Streams) -> NDArray[np.float32]:
    """Where everybody is at every tick: by the movement model, or as a file of SUMO's says."""
    if manet.movement:
        return read_fcd(Path(manet.movement), manet.nodes, manet.duration_s, TICK_S)
    speeds = (manet.slowest_share * manet.speed_m_s, manet.speed_m_s)
    return drive(
        road_map,
        manet.nodes,
        speeds,
        manet.duration_s,
        streams.fresh("movement"),
        acceleration_share=manet.acceleration_share,
        tick_s=TICK_S,
    )


def _people(manet: Manet, streams: Streams) -> NDArray[np.int64]:
    """By topic: its publishers, then its subscribers, all distinct."""
    stream = streams.fresh("people")
    count = manet.publishers + manet.subscribers
    return np.array([stream.permutation(manet.nodes)[:count] for _ in range(manet.topics)])


def _subscriptions(manet: Manet, people: NDArray[np.int64], streams: Streams) -> Records:
    stream = streams.fresh("interests")
    found = np.zeros(manet.topics * manet.subscribers, SUBSCRIPTION)
    found["node"] = people[:, manet.publishers :].reshape(-1)
    found["topic"] = np.repeat(np.arange(manet.topics), manet.subscribers)
    found["least"] = stream.uniform(0, LEAST_MAX, len(found))
    # A node has one clearance, whatever it subscribes to.
    found["clearance"] = stream.integers(0, CLEARANCES, manet.nodes)[found["node"]]
    found["silent"] = streams.fresh("silence").random(len(found)) < manet.silent_share
    return found


def _publications(manet: Manet, people: NDArray[np.int64], streams: Streams) -> Records:
    """All events of a run in the order of their time; each publisher has a phase of its own."""
    stream = streams.fresh("events")
    rows = []
    last_s = manet.duration_s - DRAIN_S
    for topic in range(manet.topics):
        for at in range(manet.publishers):
            first_s = manet.warmup_s + stream.uniform(0, manet.publish_s)
            for time_s in np.arange(first_s, max(last_s, first_s + 1e-9), manet.publish_s):
                value, clearance = stream.random(), int(stream.integers(0, CLEARANCES))
                rows.append((0, int(people[topic, at]), topic, clearance, manet.event_bytes, value, time_s))
    rows.sort(key=lambda row: (row[6], row[2], row[1]))
    events = np.array(rows, PUBLICATION)
    events["event"] = np.arange(len(events))
    return events


def _losses(net: Net) -> dict[str, int]:
    found: dict[str, int] = {}
    lost = net.run["lost"][0]
    for kind, what, reason in zip(*np.nonzero(lost), strict=True):
        name = WHATS[what] if kind == DATA else KINDS[kind]
        found[f"{name}: {REASONS[reason]}"] = int(lost[kind, what, reason])
    return found


CONTROL_KINDS = tuple(KINDS[kind] for kind in range(BEACON, DATA))
assert KINDS[HELLO] in CONTROL_KINDS
