"""Runs the nodes of `adhoc.election` over the radio while the network falls apart and comes together again.

A history of partitions is drawn from one seed: again and again the nodes are dealt to islands out of each
other's range, some nodes are switched off, and within an island nodes stand in a chain of cliques so that
messages take several hops. Displayers subscribe and sources publish all the while. A history may also let
nodes die between two effects, and let some reach a fixed network (`fixed.py`). At the end all nodes come
together and are switched on: the network has healed. From then on the world is watched until there is one
broker, it has every displayer's subscription, and every displayer has been shown what it is owed.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.election.messages import (
    Effect,
    Fact,
    FixedLost,
    FixedReached,
    FixedTold,
    FixedTook,
    Flood,
    Heard,
    Keep,
    Kept,
    Message,
    Note,
    Offer,
    Published,
    Routed,
    Say,
    SetTimer,
    Show,
    Shown,
    Started,
    Subscribed,
    TimerFired,
)
from sojourn.adhoc.election.node import Node
from sojourn.adhoc.election.timing import Meeting, Timing
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.sim.clock import Clock
from sojourn.sim.election.fixed import FixedNetwork
from sojourn.sim.election.history import Healed, History
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams

JITTER = 0.1
RANGE_M = 100.0
ISLAND_M = 10_000.0
"""Between islands: far out of range."""
REACH_SHARE = 0.1
"""Of the nodes, in reach of the fixed network in each phase."""
OFFER_S = 0.02
LOST_ANSWERS = 0.05
"""Of the events that the fixed network took, those whose node does not hear so."""
DEAD_S = 0.3
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
        self._chances = streams.get("chances")
        self._timing = Timing(refresh_s=history.refresh_s, meeting=Meeting(history.meeting))
        self.nodes = [Node(number, self._timing) for number in range(history.nodes)]
        self.notes: list[list[Note]] = [[] for _ in range(history.nodes)]
        self.fixed = FixedNetwork() if history.fixed else None
        self.told: dict[tuple[str, int], float] = {}
        """By event of the fixed network: when a node first learnt of it."""
        self.deaths = 0
        self._dying: set[int] = set()
        self._dead: set[int] = set()
        self.fixed_events: dict[tuple[str, int], Event] = {}
        self._timers: dict[tuple[int, str], int] = {}
        self.said: Counter[str] = Counter()
        self.shown: list[tuple[int, str, int]] = []
        self._shown_numbers: set[tuple[int, int]] = set()
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
        if self.fixed is not None:
            self.clock.plan(history.publish_s, self._publish_fixed, 0)

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
        if self.fixed is not None:
            # At the end, when all are together, one node is in reach, and who it is was not foreseen.
            in_reach = self._chances.random(count) < REACH_SHARE
            in_reach[int(self._chances.integers(count))] = islands == 1
            for node in range(count):
                self._reach(node, is_there=bool(in_reach[node]) and node not in self.radio.silent)
        for node in back:
            if node not in self.radio.silent:
                self._revive(node)

    def kill(self, nodes: int) -> None:
        """Let some nodes die while they do what they are told next."""
        alive = [node for node in range(self.history.nodes) if node not in self.radio.silent]
        self._dying.update(int(node) for node in self._chances.permutation(alive)[:nodes])

    def stop_publishing(self) -> None:
        """From now on no new events."""
        self._publishing = False

    # What happens -----------------------------------------------------------------------------------

    def _start(self, number: int) -> None:
        self._dead.discard(number)
        self._feed(number, Started())
        self._reach_again(number)

    def _revive(self, number: int) -> None:
        """A node that was off goes on with what it knew: all its timers have run out."""
        for name in ("refresh", "search", "election", "silence"):
            if (number, name) in self._timers:
                self._timers[number, name] += 1
                self._feed(number, TimerFired(name))

    def _die(self, number: int) -> None:
        """A node that died is switched on again, and knows what it noted."""
        self.deaths += 1
        for name in ("refresh", "search", "election", "silence", "upstream"):
            if (number, name) in self._timers:
                self._timers[number, name] += 1
        self._dead.add(number)
        self.nodes[number] = Node(number, self._timing, self.notes[number])
        self.clock.plan(self.clock.now + DEAD_S, self._start, number)

    # The fixed network ------------------------------------------------------------------------------

    def _reach(self, number: int, *, is_there: bool) -> None:
        assert self.fixed is not None
        if is_there and number not in self.fixed.reach:
            self.fixed.connect(number)
            self._reach_again(number)
        elif not is_there and number in self.fixed.reach:
            self.fixed.reach.discard(number)
            self._feed(number, FixedLost())

    def _reach_again(self, number: int) -> None:
        is_there = self.fixed is not None and number in self.fixed.reach
        if is_there and self._feed(number, FixedReached()):
            self._listen(number)

    def _listen(self, number: int) -> None:
        """Tell a node what its session holds, one by one."""
        if self.fixed is None or number not in self.fixed.reach or number in self.radio.silent:
            return
        event = self.fixed.next_for(number)
        if event is not None and self._feed(number, FixedTold(event)):  # else it is told again
            self.fixed.told(number)
            if event.source == "fixed":
                self.told.setdefault((event.source, event.sequence), self.clock.now)
        life = self.nodes[number].life
        self.clock.plan(
            self.clock.now + (0.01 if event is not None else 0.2), self._listen_on, (number, life)
        )

    def _listen_on(self, thing: tuple[int, int]) -> None:
        number, life = thing
        if self.nodes[number].life == life and number not in self._dead:
            self._listen(number)

    def _offer(self, thing: tuple[int, int, Kept]) -> None:
        number, life, kept = thing
        if self.fixed is None or self.nodes[number].life != life or number not in self.fixed.reach:
            return
        if number not in self.radio.silent:
            self.fixed.take(kept)
            if self._chances.random() >= LOST_ANSWERS:
                self._feed(number, FixedTook(kept.id))

    def _publish_fixed(self, sequence: int) -> None:
        if self.fixed is None or not self._publishing:
            return
        event = Event({"value": int(self._chances.integers(100))}, source="fixed", sequence=sequence)
        self.fixed_events["fixed", sequence] = event
        self.fixed.publish(event)
        wait = float(self._chances.exponential(self.history.publish_s))
        self.clock.plan(self.clock.now + wait, self._publish_fixed, sequence + 1)

    # The users --------------------------------------------------------------------------------------

    def _subscribe(self, number: int) -> None:
        low = int(self._load.integers(60))
        wanted = Filter.parse(f"value >= {low} AND value < {low + 40}")
        if number in self.radio.silent or number in self._dead:  # its user waits until it is on
            self.clock.plan(self.clock.now + 1.0, self._subscribe, number)
            return
        now = self.clock.now
        self._feed(number, Subscribed(wanted))
        if self.nodes[number].user.wanted == wanted:
            self.subscribed[number] = now, wanted
        else:  # it died before it had noted that
            self.clock.plan(now + 1.0, self._subscribe, number)

    def _insist(self, thing: tuple[int, Fact]) -> None:
        """An application says something again if its node died over it."""
        if not self._feed(*thing):
            self.clock.plan(self.clock.now + 1.0, self._insist, thing)

    def _publish(self, number: int) -> None:
        if not self._publishing:
            return
        if number not in self.radio.silent and number not in self._dead:
            event = Event(
                {"value": int(self._load.integers(100))},
                source=f"n{number}",
                sequence=self._sequences[number],
            )
            self._sequences[number] += 1
            self.published[event.source, event.sequence] = self.clock.now, event
            self._insist((number, Published(event)))
        wait = float(self._load.exponential(self.history.publish_s))
        self.clock.plan(self.clock.now + wait, self._publish, number)

    def _feed(self, number: int, fact: Fact) -> bool:
        """Tell a node a fact; False if it is dead, or dies over it."""
        if number in self._dead:
            return False
        node = self.nodes[number]
        served = node.serves
        effects = node.handle(fact, self.clock.now)
        dies = number in self._dying and len(effects) > 1
        if dies:
            effects = effects[: int(self._chances.integers(len(effects)))]
        self._carry_out(number, effects)
        if dies:
            self._dying.discard(number)
            self._die(number)
        self.merges += served and not node.serves
        return not dies

    def _carry_out(self, number: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Say(message):
                    self._say(number, message)
                case SetTimer():
                    self._set(number, effect)
                case Keep(note):
                    self.notes[number].append(note)
                case Show(kept, number_shown):
                    self._show(number, kept, number_shown)
                case Offer(kept):
                    life = self.nodes[number].life
                    self.clock.plan(self.clock.now + OFFER_S, self._offer, (number, life, kept))

    def _show(self, number: int, kept: Kept, shown: int) -> None:
        """The user knows what is shown again by its number."""
        if (number, shown) not in self._shown_numbers:
            self._shown_numbers.add((number, shown))
            self.shown.append((number, kept.event.source, kept.event.sequence))
        self._feed(number, Shown(shown))

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
        alone = self.history.meeting == "coordinate" or len(self.brokers()) == 1
        return alone and self.missing() == 0 and not self.fixed_lacks()

    def fixed_lacks(self) -> int:
        """Events of nodes that the fixed network does not have."""
        if self.fixed is None:
            return 0
        return sum(event not in self.fixed.got for event in self.published)

    def fixed_unshown(self) -> int:
        """Events of the fixed network that a node learnt of, and some displayer that wants them lacks."""
        shown = set(self.shown)
        return sum(
            (number, *event) not in shown
            for number, (since_s, wanted) in self.subscribed.items()
            for event, told_s in self.told.items()
            if told_s > since_s and wanted.matches(self.fixed_events[event])
        )

    def is_wanted(self, shown: tuple[int, str, int]) -> bool:
        """Whether what was shown is what a displayer asked for; the fixed network may tell of old events."""
        number, source, sequence = shown
        since_s, wanted = self.subscribed[number]
        known = self.published.get((source, sequence))
        if known is None:
            return wanted.matches(self.fixed_events[source, sequence])
        return wanted.matches(known[1]) and (self.fixed is not None or known[0] >= since_s)

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
        world.kill(history.kills)
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
        is_done = not world.owed().difference(world.shown) and not world.fixed_unshown()
        if healed_s is not None and delivered_s is None and is_done:
            delivered_s = since
        if delivered_s is not None and since > delivered_s + 3 * history.refresh_s:
            break
    owed, fixed = world.owed(), world.fixed
    return Healed(
        healed_s=healed_s,
        delivered_s=delivered_s,
        brokers=len(world.brokers()),
        missing=world.missing(),
        owed=len(owed),
        lost=len(owed.difference(world.shown)),
        duplicated=len(world.shown) - len(set(world.shown)),
        unwanted=sum(not world.is_wanted(shown) for shown in set(world.shown) - owed),
        brokers_before=before,
        most_brokers=most,
        merges=world.merges,
        said=sum(world.said.values()),
        offered=0 if fixed is None else len(fixed.got),
        fixed_lost=world.fixed_lacks() + world.fixed_unshown(),
        fixed_doubled=0 if fixed is None else sum(times > 1 for times in fixed.got.values()),
        deaths=world.deaths,
    )
