"""Runs the nodes of `adhoc.election` over the radio while the network falls apart and comes together again.

A history of partitions is drawn from one seed: again and again the nodes are dealt to islands out of each
other's range, some nodes are switched off, and within an island nodes stand in a chain of cliques so that
messages take several hops. Displayers subscribe and sources publish all the while. At the end all nodes come
together and are switched on: the network has healed. From then on the world is watched until there is one
broker, it has every displayer's subscription, and every displayer has been shown what it is owed.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.election.messages import (
    Effect,
    Fact,
    Flood,
    Heard,
    Message,
    Published,
    Routed,
    Say,
    SetTimer,
    Show,
    Started,
    Subscribed,
    TimerFired,
)
from sojourn.adhoc.election.node import Node, Timing
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.sim.clock import Clock
from sojourn.sim.election.history import Healed, History
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams

JITTER = 0.1
RANGE_M = 100.0
ISLAND_M = 10_000.0
"""Between islands: far out of range."""
STEP_S = 0.05
"""How often the healing is looked at."""


class ElectionWorld:
    """Nodes, their radio and the clock."""

    def __init__(self, history: History) -> None:
        self.history = history
        streams = Streams(history.seed)
        self._moves, self._load = streams.get("partitions"), streams.get("load")
        self._timers_stream = streams.get("timers")
        self.clock = Clock()
        self.radio = Radio(
            np.zeros((history.nodes, 2)), RANGE_M, loss=history.loss, stream=streams.get("radio")
        )
        timing = Timing(refresh_s=history.refresh_s)
        self.nodes = [Node(number, timing) for number in range(history.nodes)]
        self._timers: dict[tuple[int, str], int] = {}
        self.said: Counter[str] = Counter()
        self.shown: list[tuple[int, str, int]] = []
        self.published: dict[tuple[str, int], tuple[float, Event]] = {}
        self.subscribed: dict[int, tuple[float, Filter]] = {}
        self.merges = 0
        self._sequences = [0] * history.nodes
        self._publishing = True

    # Time -------------------------------------------------------------------------------------------

    def run_until(self, time_s: float) -> None:
        """Let everything happen that is due before a time."""
        self.clock.run_until(time_s)

    def start(self) -> None:
        """Switch everything on, and let displayers subscribe and sources publish in their time."""
        history = self.history
        for number in range(history.nodes):
            self.clock.plan(float(self._timers_stream.random()) * history.refresh_s, self._start, number)
        for number in range(history.displayers):
            self.clock.plan(float(self._load.random()) * history.phase_s, self._subscribe, number)
        for number in range(history.nodes - history.sources, history.nodes):
            self.clock.plan(float(self._load.exponential(history.publish_s)), self._publish, number)

    def deal(self, islands: int, off_share: float) -> None:
        """Put each node on some island, and switch some off."""
        count = self.history.nodes
        where = self._moves.integers(islands, size=count)
        back = sorted(self.radio.silent)
        self.radio.silent.clear()
        self.radio.silent.update(int(node) for node in np.flatnonzero(self._moves.random(count) < off_share))
        places: NDArray[np.float64] = np.zeros((count, 2))
        for island in range(islands):
            members = np.flatnonzero(where == island)
            order = self._moves.permutation(members)
            # A chain in which everybody hears one or two on either side: always connected, several hops long.
            steps = np.cumsum(self._moves.uniform(0.4, 0.9, size=len(order))) * RANGE_M
            places[order, 0] = steps
            places[order, 1] = island * ISLAND_M
        self.radio.places = places
        self.radio.settle()
        for node in back:
            if node not in self.radio.silent:
                self._revive(node)

    def stop_publishing(self) -> None:
        """From now on no new events."""
        self._publishing = False

    # What happens -----------------------------------------------------------------------------------

    def _start(self, number: int) -> None:
        self._feed(number, Started())

    def _revive(self, number: int) -> None:
        """A node that was off goes on with what it knew: all its timers have run out."""
        for name in ("refresh", "search", "election", "silence"):
            if (number, name) in self._timers:
                self._timers[number, name] += 1
                self._feed(number, TimerFired(name))

    def _subscribe(self, number: int) -> None:
        low = int(self._load.integers(60))
        wanted = Filter.parse(f"value >= {low} AND value < {low + 40}")
        if number in self.radio.silent:  # its user waits until it is on
            self.clock.plan(self.clock.now + 1.0, self._subscribe, number)
            return
        self.subscribed[number] = self.clock.now, wanted
        self._feed(number, Subscribed(wanted))

    def _publish(self, number: int) -> None:
        if not self._publishing:
            return
        if number not in self.radio.silent:
            event = Event(
                {"value": int(self._load.integers(100))},
                source=f"n{number}",
                sequence=self._sequences[number],
            )
            self._sequences[number] += 1
            self.published[event.source, event.sequence] = self.clock.now, event
            self._feed(number, Published(event))
        wait = float(self._load.exponential(self.history.publish_s))
        self.clock.plan(self.clock.now + wait, self._publish, number)

    def _feed(self, number: int, fact: Fact) -> None:
        node = self.nodes[number]
        served = node.serves
        self._carry_out(number, node.handle(fact, self.clock.now))
        self.merges += served and not node.serves

    def _carry_out(self, number: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Say(message):
                    self._say(number, message)
                case SetTimer():
                    self._set(number, effect)
                case Show(kept):
                    self.shown.append((number, kept.event.source, kept.event.sequence))

    def _set(self, number: int, timer: SetTimer) -> None:
        delay = timer.delay_s
        if timer.periodic:
            delay *= 1 + JITTER * (2 * float(self._timers_stream.random()) - 1)
        token = self._timers.get((number, timer.name), 0) + 1
        self._timers[number, timer.name] = token
        self.clock.plan(self.clock.now + delay, self._timer, (number, timer.name, token))

    def _timer(self, thing: tuple[int, str, int]) -> None:
        number, name, token = thing
        if self._timers[number, name] == token and number not in self.radio.silent:
            self._feed(number, TimerFired(name))

    def _say(self, number: int, message: Message) -> None:
        if number in self.radio.silent:
            return
        self.said[type(message.what).__name__] += 1
        hearers = self.radio.hearers(number)
        if isinstance(message, Routed):
            hearers = [message.to] if message.to in hearers else []
        if hearers:
            self.clock.plan(self.clock.now + self.radio.delay_s, self._hear, (hearers, message))

    def _hear(self, thing: tuple[list[int], Flood | Routed]) -> None:
        hearers, message = thing
        for number in hearers:
            if number not in self.radio.silent:
                self._feed(number, Heard(message))

    # What can be seen -------------------------------------------------------------------------------

    def brokers(self) -> list[Node]:
        """The nodes that serve."""
        return [node for node in self.nodes if node.serves]

    def missing(self) -> int:
        """Live subscriptions that no broker has as they are."""
        tables = [node.table for node in self.brokers() if node.table is not None]
        return sum(
            not any(table.wants(number) == wanted for table in tables)
            for number, (_, wanted) in self.subscribed.items()
        )

    def is_healed(self) -> bool:
        """Whether there is one broker with every live subscription."""
        return len(self.brokers()) == 1 and self.missing() == 0

    def owed(self) -> set[tuple[int, str, int]]:
        """What one broker that had never been out of reach would have had shown."""
        return {
            (number, *event)
            for number, (since_s, wanted) in self.subscribed.items()
            for event, (time_s, content) in self.published.items()
            if time_s >= since_s and wanted.matches(content)
        }


def heal(history: History) -> Healed:
    """Play a history and watch the network heal."""
    world = ElectionWorld(history)
    moves = Streams(history.seed).get("phases")
    world.start()
    most = 0
    for phase in range(history.partitions):
        # The last phase is a partition for sure, or there would be nothing to heal.
        least = 2 if phase == history.partitions - 1 else 1
        world.deal(int(moves.integers(least, history.islands + 1)), history.off_share)
        until = world.clock.now + float(moves.exponential(history.phase_s)) + 0.5
        while world.clock.now < until:
            world.run_until(min(until, world.clock.now + 0.5))
            most = max(most, len(world.brokers()))
    world.deal(1, 0.0)
    return _watch(world, most)


def _watch(world: ElectionWorld, most: int) -> Healed:
    """From the healing on: when it is done, and that it stays so."""
    history = world.history
    start, before = world.clock.now, len(world.brokers())
    world.stop_publishing()
    limit = start + 12 * history.refresh_s + 10.0
    healed_s: float | None = None
    delivered_s: float | None = None
    while world.clock.now < limit:
        world.run_until(world.clock.now + STEP_S)
        since = world.clock.now - start
        most = max(most, len(world.brokers()))
        if world.is_healed() and len(world.subscribed) == history.displayers:
            healed_s = since if healed_s is None else healed_s
        else:
            healed_s = delivered_s = None
        if healed_s is not None and delivered_s is None and not world.owed().difference(world.shown):
            delivered_s = since
        if delivered_s is not None and since > delivered_s + 3 * history.refresh_s:
            break
    owed = world.owed()
    return Healed(
        healed_s=healed_s,
        delivered_s=delivered_s,
        brokers=len(world.brokers()),
        missing=world.missing(),
        owed=len(owed),
        lost=len(owed.difference(world.shown)),
        duplicated=len(world.shown) - len(set(world.shown)),
        unwanted=len(set(world.shown) - owed),
        brokers_before=before,
        most_brokers=most,
        merges=world.merges,
        said=sum(world.said.values()),
    )
