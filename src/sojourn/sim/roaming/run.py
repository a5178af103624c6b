"""How subscribers roam between brokers, as a lazy list of sojourns for each client.

Paper 001, section 5.1.2: a subscriber is connected for an exponential time, then with equal probability its
link breaks down or it leaves; a broken link comes back at the same broker or turns into a departure, with
equal probability again; whoever left turns up at a different broker after an exponential time. `random` goes
to any other broker, `neighbour` only to neighbours in the graph of the building, `commute` goes on as people
in corridors do: rarely back to where it came from (what an order-2 predictor can learn), `file` is what a
trace of sojourns or of vehicles says.

Rules: each client draws from its own stream, so its path depends on nobody else and not on the scheme under
test. A sojourn ends with a broken link, never with a goodbye: nobody is told. Sojourns of a client follow
each other in time, and the next one's broker says whether it was a hand-off. Not here: brokers, messages,
and what detects a broken link.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sojourn.errors import SojournError
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology, build

BUILDING_LINKS = ((1, 2), (1, 6), (2, 3), (2, 6), (3, 4), (3, 5), (3, 6), (4, 6))
"""The six-broker building of paper 001's Figure 3: between which brokers people can walk."""

MODELS = ("random", "neighbour", "commute", "file")

TURN_BACK = 0.1
"""The weight of a commuter's way back; every other way has the weight 1."""

_BLOCK = 64


class RoamingError(SojournError):
    """Clients cannot move as asked."""


class Sojourn(NamedTuple):
    """A client's stay at one broker, from connecting to the loss of its link."""

    broker: int
    from_s: float
    to_s: float


class Stays(NamedTuple):
    """Mean lengths of the three states, in seconds."""

    connect_s: float
    disconnect_s: float
    handoff_s: float


def building() -> Topology:
    """The six-broker building; broker B1 is number 0."""
    links = [(one - 1, other - 1) for one, other in BUILDING_LINKS]
    return build(6, links, leaves=range(6), names=[f"B{number}" for number in range(1, 7)])


class Roaming:
    """The paths of all clients of a run."""

    def __init__(
        self, model: str, topology: Topology, stays: Stays, streams: Streams, under_way_s: float = 0.0
    ) -> None:
        if model not in MODELS or model == "file":
            raise RoamingError(f"movement may be {', '.join(MODELS)}, not {model!r}.")
        if topology.brokers < 2 and model == "random":
            raise RoamingError("brokers must be 2 or more for clients to move between them.")
        self._model = model
        self._topology = topology
        self._stays = stays
        self._streams = streams
        self._since_s = -under_way_s
        everyone = list(range(topology.brokers))
        self._ways: list[list[int]] = [
            [other for other in everyone if other != broker] if model == "random" else near
            for broker, near in enumerate(topology.neighbours)
        ]
        """By broker: where a client may turn up next."""

    def sojourns(self, client: int, stream: str = "roaming") -> Iterator[Sojourn]:
        """A client's sojourns without end, from when it set out: time 0, or `under_way_s` before it."""
        draw = self._streams.fresh(stream, client)
        connect_s, disconnect_s, handoff_s = self._stays
        broker, before = int(draw.integers(self._topology.brokers)), -1
        now = self._since_s
        numbers = _exponentials_and_coins(draw)
        while True:
            (stay, off, away), (breaks, leaves, way) = next(numbers)
            end = now + connect_s * stay
            yield Sojourn(broker, now, end)
            now = end
            moves = True
            if breaks < 0.5:
                now += disconnect_s * off
                moves = leaves < 0.5
            if moves:
                now += handoff_s * away
                broker, before = self._next(broker, before, way), broker

    def _next(self, broker: int, before: int, way: float) -> int:
        ways = self._ways[broker]
        if self._model != "commute" or before not in ways or len(ways) == 1:
            return ways[min(int(way * len(ways)), len(ways) - 1)]
        back = TURN_BACK / (len(ways) - 1 + TURN_BACK)
        if way < back:
            return before
        onward = [other for other in ways if other != before]
        return onward[min(int((way - back) / (1 - back) * len(onward)), len(onward) - 1)]


def _exponentials_and_coins(draw: np.random.Generator) -> Iterator[tuple[list[float], list[float]]]:
    """Triples of exponential and of uniform numbers, drawn in blocks."""
    while True:
        times, coins = draw.exponential(size=(_BLOCK, 3)).tolist(), draw.random((_BLOCK, 3)).tolist()
        yield from zip(times, coins, strict=True)


class Recorded:
    """Paths that a file gives; a client of the file is a client of the run."""

    def __init__(self, paths: Mapping[str, Sequence[Sojourn]]) -> None:
        self.names = sorted(paths)
        """The clients' names; their places are their numbers in the run."""
        self._paths = [list(paths[name]) for name in self.names]
        for name, path in zip(self.names, self._paths, strict=True):
            for one, other in pairwise(path):
                if one.to_s > other.from_s:
                    raise RoamingError(
                        f"movement_file has client {name!r} at two brokers at {other.from_s:g} s;"
                        " its stays must follow each other."
                    )

    def sojourns(self, client: int, stream: str = "roaming") -> Iterator[Sojourn]:  # noqa: ARG002  as `Roaming`
        """A client's sojourns, as many as the file has."""
        return iter(self._paths[client])


Paths = Roaming | Recorded
