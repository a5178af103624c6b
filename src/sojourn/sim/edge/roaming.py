"""Displayers that roam among brokers while brokers and links fail, and what each was shown in the end.

All randomness comes from one seed. Displayers stay, leave, and come back at a random broker that is up; a
broker that goes down throws its displayers out. When the time is over everything is repaired and every
displayer connects once more, so that whatever is owed can be paid: what is missing then is lost.
"""

from typing import Literal

import msgspec
import numpy as np

from sojourn.edge.broker import BrokerRules
from sojourn.edge.custody import CustodyRules
from sojourn.edge.displayer import EventDisplayer
from sojourn.edge.source import EventSource, SourceRules
from sojourn.sim.edge.workload import ADVERTISEMENT, Workload, draw_event, draw_filter
from sojourn.sim.edge.world import EdgeWorld, Links
from sojourn.sim.streams import Streams

Coordination = Literal["log", "wait", "careless"]


class EdgeRoaming(msgspec.Struct, frozen=True, kw_only=True):
    """All that makes such a run."""

    seed: int = 1
    brokers: int = 5
    architecture: str = "multicast"
    displayers: int = 6
    subscriptions: int = 2
    """Of each displayer."""
    sources: int = 3
    duration_s: float = 120.0
    period_s: float = 0.5
    """Between two events of a source, on the average."""
    stay_s: float = 12.0
    away_s: float = 4.0
    up_s: float = 30.0
    """Mean time between failures of a broker, and of a link; 0 means that nothing fails."""
    down_s: float = 15.0
    coordination: Coordination = "log"
    """`log`: brokers use the displayer's log; `wait`: all waits for all answers; `careless`: nobody asks."""
    workload: Workload = Workload(areas=3, width=300)


class Roamed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    expected: int
    lost: int
    duplicated: int
    unwanted: int
    held_s: tuple[float, ...]
    """By event shown: seconds since it was generated and the displayer was there to be shown it."""
    moves: int
    while_old_down: int
    """Connections made while the displayer's last broker was down or cut off."""
    handover_bytes: int


class _Roam:
    """One run in the making."""

    def __init__(self, roaming: EdgeRoaming) -> None:
        self.roaming = roaming
        streams = Streams(roaming.seed)
        self.moves_stream, self.faults = streams.get("moves"), streams.get("faults")
        self.load = streams.get("load")
        graph = _random_tree(roaming.brokers, streams.get("graph"))
        custody = CustodyRules(
            uses_log=roaming.coordination == "log", asks_others=roaming.coordination != "careless"
        )
        self.world = EdgeWorld(
            graph,
            roaming.architecture,
            stream=streams.get("links"),
            rules=BrokerRules(custody=custody),
            links=Links(jitter_s=0.05),
            advertises=ADVERTISEMENT,
        )
        self.edges = [(one, other) for one, near in enumerate(graph) for other in near if one < other]
        self.cut: set[tuple[int, int]] = set()
        self.wanted = []
        for _ in range(roaming.displayers):
            filters = [draw_filter(roaming.workload, self.load) for _ in range(roaming.subscriptions)]
            numbers = tuple(self.world.subscription(each) for each in filters)
            self.world.add_displayer(EventDisplayer(numbers))
            self.wanted.append(filters)
        self.sequences = [0] * roaming.sources
        for source in range(roaming.sources):
            self.world.add_source(EventSource(SourceRules()), source % roaming.brokers)
        self.at: list[int | None] = [None] * roaming.displayers
        self.last: list[int | None] = [None] * roaming.displayers
        self.stays: list[list[list[float]]] = [[] for _ in range(roaming.displayers)]
        """By displayer: when each connection began and, if it did, ended."""
        self.moves = self.while_old_down = 0
        self.ended = False

    def run(self) -> Roamed:
        roaming, world = self.roaming, self.world
        for source in range(roaming.sources):
            world.connect_source(source)
        for client in range(roaming.displayers):
            self._arrive(client)
        world.settle()
        start = world.clock.now
        for source in range(roaming.sources):
            world.clock.plan(start + self._wait(roaming.period_s, self.load), self._publish, source)
        for client in range(roaming.displayers):
            world.clock.plan(start + self._wait(roaming.stay_s, self.moves_stream), self._leave, client)
        if roaming.up_s > 0:
            for broker in range(roaming.brokers):
                world.clock.plan(start + self._wait(roaming.up_s, self.faults), self._fail, broker)
            for edge in self.edges:
                world.clock.plan(start + self._wait(roaming.up_s, self.faults), self._part, edge)
        world.run_until(start + roaming.duration_s)
        self._repair()
        return self._outcome()

    def _wait(self, mean_s: float, stream: np.random.Generator) -> float:
        return float(stream.exponential(mean_s))

    # What happens -----------------------------------------------------------------------------------

    def _publish(self, source: int) -> None:
        if self.ended:
            return
        event = draw_event(self.roaming.workload, self.load, f"s{source}", self.sequences[source])
        self.sequences[source] += 1
        self.world.generate(source, event, self.roaming.workload.event_bytes)
        wait = self._wait(self.roaming.period_s, self.load)
        self.world.clock.plan(self.world.clock.now + wait, self._publish, source)

    def _arrive(self, client: int) -> None:
        if self.ended:
            return
        self._connect(client)
        if self.at[client] is None:  # nobody is up: try again
            self.world.clock.plan(self.world.clock.now + 1.0, self._arrive, client)
        elif self.world.clock.now > 0:
            stay = self._wait(self.roaming.stay_s, self.moves_stream)
            self.world.clock.plan(self.world.clock.now + stay, self._leave, client)

    def _connect(self, client: int) -> None:
        up = [broker for broker in range(self.roaming.brokers) if self.world.is_up(broker)]
        if not up:
            return
        broker = up[int(self.moves_stream.integers(len(up)))]
        assert self.world.connect(client, broker)
        old = self.last[client]
        self.moves += 1
        cut_off = any(broker in edge or old in edge for edge in self.cut)
        self.while_old_down += old not in (None, broker) and (old not in up or cut_off)
        self.at[client] = self.last[client] = broker
        self.stays[client].append([self.world.clock.now])

    def _leave(self, client: int) -> None:
        broker = self.at[client]
        if self.ended or broker is None:
            return
        self.world.disconnect(client, broker)
        self._gone(client)
        self._return_later(client)

    def _gone(self, client: int) -> None:
        self.at[client] = None
        self.stays[client][-1].append(self.world.clock.now)

    def _return_later(self, client: int) -> None:
        wait = self._wait(self.roaming.away_s, self.moves_stream)
        self.world.clock.plan(self.world.clock.now + wait, self._arrive, client)

    def _fail(self, broker: int) -> None:
        if self.ended:
            return
        self.world.take_down(broker)
        for client, at in enumerate(self.at):
            if at == broker:
                self._gone(client)
                self._return_later(client)
        down = self._wait(self.roaming.down_s, self.faults)
        self.world.clock.plan(self.world.clock.now + down, self._recover, broker)

    def _recover(self, broker: int) -> None:
        if self.ended:
            return
        self.world.bring_up(broker)
        up = self._wait(self.roaming.up_s, self.faults)
        self.world.clock.plan(self.world.clock.now + up, self._fail, broker)

    def _part(self, edge: tuple[int, int]) -> None:
        if self.ended:
            return
        self.world.cut(*edge)
        self.cut.add(edge)
        down = self._wait(self.roaming.down_s, self.faults)
        self.world.clock.plan(self.world.clock.now + down, self._join, edge)

    def _join(self, edge: tuple[int, int]) -> None:
        if self.ended:
            return
        self.world.mend(*edge)
        self.cut.discard(edge)
        up = self._wait(self.roaming.up_s, self.faults)
        self.world.clock.plan(self.world.clock.now + up, self._part, edge)

    def _repair(self) -> None:
        self.ended = True
        for broker in range(self.roaming.brokers):
            self.world.bring_up(broker)
        for edge in self.edges:
            self.world.mend(*edge)
        self.cut.clear()
        # Some connect while the news still travels, some when all is quiet; all connect once more.
        for client, at in enumerate(self.at):
            if at is not None:
                self.world.disconnect(client, at)
                self._gone(client)
            self._connect(client)
        self.world.settle()

    def _there_s(self, client: int, generated_s: float) -> float:
        """When a displayer was first there to be shown an event."""
        for stay in self.stays[client]:
            if len(stay) == 1 or stay[1] > generated_s:
                return max(stay[0], generated_s)
        raise AssertionError("everybody is connected in the end")

    def _outcome(self) -> Roamed:
        owed = {
            (client, *event)
            for client, filters in enumerate(self.wanted)
            for event, (_, content) in self.world.generated.items()
            if any(each.matches(content) for each in filters)
        }
        shown = [(each.client, each.source, each.sequence) for each in self.world.shown]
        held = []
        for each in self.world.shown:
            generated = self.world.generated[each.source, each.sequence][0]
            held.append(each.time_s - self._there_s(each.client, generated))
        return Roamed(
            expected=len(owed),
            lost=len(owed.difference(shown)),
            duplicated=len(shown) - len(set(shown)),
            unwanted=len(set(shown) - owed),
            held_s=tuple(held),
            moves=self.moves,
            while_old_down=self.while_old_down,
            handover_bytes=self.world.bytes["handover"],
        )


def roam_edge(roaming: EdgeRoaming) -> Roamed:
    """Carry out one run."""
    return _Roam(roaming).run()


def _random_tree(brokers: int, stream: np.random.Generator) -> list[list[int]]:
    graph: list[list[int]] = [[] for _ in range(brokers)]
    for broker in range(1, brokers):
        other = int(stream.integers(broker))
        graph[broker].append(other)
        graph[other].append(broker)
    return graph
