"""Nodes over GPSR and over AODV, each driven alone by facts, as a radio would drive them."""

import heapq
import itertools
from collections.abc import Iterable

import numpy as np
import pytest

from sojourn.adhoc.aodv.tables import make_aodv
from sojourn.adhoc.gpsr.neighbours import make_gpsr
from sojourn.adhoc.packets import DELIVER, EVERYBODY, PACKET, SEND, TIMER, Packet
from sojourn.adhoc.topics.node import Cores
from sojourn.adhoc.topics.state import SUBSCRIPTION, TOPIC, make_topics
from sojourn.adhoc.topics.station import Fact, Heard, PeriodDue, Publish, Station, Subscribe, TimerFired

PLACES = [(200.0 * number, 0.0) for number in range(5)]
REACH_M = 250.0
HOME, SUBSCRIBER, PUBLISHER = 2, 0, 4


def _cores(*, geographic: bool) -> Cores:
    """One node's arrays: every station has its own, and knows nothing of the others'."""
    topics = np.zeros(1, TOPIC)
    topics[0] = (-1 if geographic else HOME, 0, 1, *PLACES[HOME])
    wanted = np.zeros(1, SUBSCRIPTION)
    wanted[0] = (SUBSCRIBER, 0, 0, 0, 0.0)
    rules = {"geographic": geographic, "ttl": 30, "soft_state_s": 60.0, "keep_s": 30.0, "grace_s": 5.0}
    nodes = len(PLACES)
    return Cores(
        make_gpsr(nodes, beacon_s=1.0, nearest_m=REACH_M),
        make_aodv(nodes),
        make_topics(nodes, topics, wanted, **rules),
    )


class Ether:
    """A perfect radio: everybody within reach hears everything."""

    def __init__(self, stations: list[Station]) -> None:
        self.stations = stations
        self.delivered: list[tuple[int, int]] = []
        self._order = itertools.count()
        self._due: list[tuple[float, int, int, Fact]] = []

    def plan(self, time_s: float, node: int, fact: Fact) -> None:
        """Tell a station something later."""
        heapq.heappush(self._due, (time_s, next(self._order), node, fact))

    def run(self, until_s: float) -> None:
        """Let everything happen until then."""
        while self._due and self._due[0][0] <= until_s:
            now_s, _, node, fact = heapq.heappop(self._due)
            self._carry_out(node, self.stations[node].handle(fact, PLACES[node], now_s), now_s)
            if isinstance(fact, PeriodDue):
                self.plan(now_s + 1.0, node, fact)

    def _carry_out(self, node: int, effects: Iterable[Packet], now_s: float) -> None:
        for packet in effects:
            if packet["effect"] == SEND:
                self._send(node, packet, now_s + float(packet["delay_s"]) + 0.001)
            elif packet["effect"] == TIMER:
                self.plan(now_s + float(packet["delay_s"]), node, TimerFired(packet))
            elif packet["effect"] == DELIVER:
                self.delivered.append((node, int(packet["event"])))

    def _send(self, node: int, packet: Packet, time_s: float) -> None:
        for other, place in enumerate(PLACES):
            if other != node and abs(place[0] - PLACES[node][0]) <= REACH_M:
                assert packet["to"] == EVERYBODY or 0 <= packet["to"] < len(PLACES)
                self.plan(time_s, other, Heard(packet))


@pytest.mark.parametrize("geographic", [True, False], ids=["gpsr", "aodv"])
def test_an_event_crosses_stations_that_share_nothing_but_the_air(*, geographic: bool) -> None:
    """It goes from its publisher to the topic's home, and from there to who wants it, over two hops each."""
    ether = Ether([Station(number, _cores(geographic=geographic)) for number in range(len(PLACES))])
    for number in range(len(PLACES)):
        ether.plan(0.1 * number, number, PeriodDue())
    ether.plan(5.0, SUBSCRIBER, Subscribe(0))
    event = np.zeros(1, PACKET)[0]
    event["event"], event["value"], event["bytes"] = 7, 1.0, 100
    ether.plan(10.0, PUBLISHER, Publish(event))
    ether.run(20.0)
    assert ether.delivered == [(SUBSCRIBER, 7)]
