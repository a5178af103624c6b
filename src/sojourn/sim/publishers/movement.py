"""How publishers move through the city, as an endless lazy list of moves for each publisher.

The city is a street of leaf brokers, each as wide as `broker_width_km` (paper 000, section 5.2.1). A
publisher starts somewhere in a random leaf's piece of street and moves at its speed; when it crosses into
the next piece it loses the old broker, and `disconnection_s` later it is connected to the new one. So the
time between two moves is width / speed whatever the disconnection, and a faster publisher moves more often.

Rules: each publisher draws from its own streams, so its path does not depend on anybody else's, nor on the
protocol under test; a wrong prediction draws from a stream of its own, so that accuracy leaves paths alone.
Where predictions are learnt, they are so from other publishers, who move through the same city (`_learnt`).
This module knows nothing of messages or trees.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise, takewhile
from typing import NamedTuple

import msgspec

from sojourn.mobility.prediction import Predictor, foreseen
from sojourn.sim.roaming.run import Sojourn
from sojourn.sim.roaming.training import CLIENTS, graph_of
from sojourn.sim.scenario import Scenario
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology

SECONDS_AN_HOUR = 3600.0
TRAINING_S = 3600.0
TRAINING_SEED = 0x5EED
"""Added to the seed of a run: who is learnt from moves by other draws than who is predicted."""


class Move(NamedTuple):
    """One move of one publisher."""

    left_s: float
    """When the publisher lost the old broker."""
    arrived_s: float
    """When it is connected to the new one."""
    from_broker: int
    to_broker: int
    predicted: int
    """The broker a prefetching protocol is told; `to_broker` if the prediction is right."""


class Movement:
    """The paths of all publishers of a scenario."""

    def __init__(self, scenario: Scenario, topology: Topology, streams: Streams) -> None:
        self._scenario = scenario
        self._topology = topology
        self._leaves = topology.leaves
        self._streams = streams
        self._homes = [self._draw_home(publisher) for publisher in range(scenario.publishers)]

    def home(self, publisher: int) -> int:
        """The broker a publisher first connected to, when it set out."""
        return self._leaves[self._homes[publisher]]

    def start(self, publisher: int) -> int:
        """The broker a publisher is connected to at time 0."""
        if self._scenario.under_way_s > 0:
            for move in self.moves(publisher):
                return move.from_broker
        return self.home(publisher)

    def proxies(self, publisher: int) -> tuple[int, ...]:
        """The leaves closest to the publisher's first one, itself included (section 5.2.1)."""
        low, high = self._proxy_span(publisher)
        return tuple(self._leaves[low:high])

    def moves(self, publisher: int) -> Iterator[Move]:
        """The publisher's moves from time 0 on, without end; none if there is nowhere to go."""
        return (move for move in self._all_moves(publisher) if move.left_s >= 0)

    def _all_moves(self, publisher: int) -> Iterator[Move]:
        step = self._stepper(publisher)
        if step is None:
            return
        scenario, leaves, speeds = self._scenario, self._leaves, self._scenario.speeds_kmh
        draw = self._streams.fresh("movement.speed", self._leader(publisher))
        predict = self._predictor(publisher)
        speed = speeds[int(draw.integers(len(speeds)))]
        # The first stay is what is left of the leaf's street from a random point on it.
        left = 1.0 - scenario.start_spread * float(draw.random())
        now = left * self._crossing_s(speed) + self._trailing_s(publisher) - self._set_out_s(publisher)
        before, at = None, self._homes[publisher]
        while True:
            to = step(at)
            predicted = predict(before, at, to)
            yield Move(now, now + scenario.disconnection_s, leaves[at], leaves[to], leaves[predicted])
            before, at = at, to
            if scenario.speed_drawn == "move":
                speed = speeds[int(draw.integers(len(speeds)))]
            now += self._crossing_s(speed)

    def _crossing_s(self, speed_kmh: float) -> float:
        return self._scenario.broker_width_km / speed_kmh * SECONDS_AN_HOUR

    def _set_out_s(self, publisher: int) -> float:
        """How long before time 0 a publisher set out."""
        draw = self._streams.fresh("movement.set-out", self._leader(publisher))
        return float(draw.random()) * self._scenario.under_way_s

    def _leader(self, publisher: int) -> int:
        """The publisher whose draws this one follows: its group's first, or itself."""
        if self._scenario.movement == "group":
            return publisher - publisher % self._scenario.group_size
        return publisher

    def _trailing_s(self, publisher: int) -> float:
        """A group moves together, yet no two radios switch in the same instant: a tenth of a second apart."""
        return 0.1 * (publisher - self._leader(publisher))

    def _draw_home(self, publisher: int) -> int:
        leader = self._leader(publisher)
        return int(self._streams.fresh("movement.start", leader).integers(len(self._leaves)))

    def _proxy_span(self, publisher: int) -> tuple[int, int]:
        count = min(self._scenario.proxies, len(self._leaves))
        low = min(max(self._homes[publisher] - (count - 1) // 2, 0), len(self._leaves) - count)
        return low, low + count

    def _span(self, publisher: int) -> tuple[int, int]:
        """First and last leaf the publisher may visit."""
        last = len(self._leaves) - 1
        movement = self._scenario.movement
        if movement == "patrol":
            low, high = self._proxy_span(publisher)
            return max(low - self._scenario.overshoot, 0), min(high - 1 + self._scenario.overshoot, last)
        if movement == "route":
            length = min(self._scenario.route_brokers, last + 1)
            start = self._homes[publisher]
            offset = int(self._streams.fresh("movement.route", publisher).integers(length))
            low = min(max(start - offset, 0), last + 1 - length)
            return low, low + length - 1
        return 0, last

    def _stepper(self, publisher: int) -> Callable[[int], int] | None:
        """The function from a leaf's place in the street to the next one's."""
        low, high = self._span(publisher)
        if low == high:
            return None
        coin = self._streams.fresh("movement.direction", self._leader(publisher))
        coin_each_time = self._scenario.movement == "walk"
        heading = 1 if coin.random() < 0.5 else -1

        def step(at: int) -> int:
            nonlocal heading
            if coin_each_time:
                heading = 1 if coin.random() < 0.5 else -1
            if not low <= at + heading <= high:
                heading = -heading
            return at + heading

        return step

    def _predictor(self, publisher: int) -> Callable[[int | None, int, int], int]:
        """The function from where a publisher was, is and goes to where the protocol thinks it goes."""
        accuracy, last = self._scenario.prediction, len(self._leaves) - 1
        if self._scenario.predictor != "told":
            return self._likeliest
        if accuracy >= 1.0:
            return lambda _before, _at, to: to
        draw = self._streams.fresh("prediction", publisher)

        def predict(_before: int | None, at: int, to: int) -> int:
            if draw.random() < accuracy:
                return to
            # A wrong guess is the other neighbour; at the city's end there is none, and it shoots past.
            for guess in (2 * at - to, 2 * to - at):
                if 0 <= guess <= last:
                    return guess
            return at

        return predict

    def _likeliest(self, before: int | None, at: int, _to: int) -> int:
        """Where publishers on the same path mostly went; where none was ever seen, back where it is."""
        leaves = self._leaves
        found = self._learnt.likely(leaves[at], None if before is None else leaves[before])
        return leaves.index(found[0]) if found else at

    @cached_property
    def _learnt(self) -> Predictor:
        """What the moves of other publishers teach, as the pipeline learns it from a trace."""
        scenario, names = self._scenario, self._topology.names
        others = msgspec.structs.replace(scenario, publishers=CLIENTS, predictor="told", prediction=1.0)
        past = Movement(others, self._topology, Streams(scenario.seed + TRAINING_SEED))
        stays = []
        for publisher in range(CLIENTS):
            moves = list(takewhile(lambda move: move.left_s < TRAINING_S, past.moves(publisher)))
            stays.append(
                [Sojourn(one.to_broker, one.arrived_s, other.left_s) for one, other in pairwise(moves)]
            )
        order = int(scenario.predictor.removeprefix("order-"))
        return Predictor(foreseen(graph_of(stays, names), order=order, by_hour=False), names)
