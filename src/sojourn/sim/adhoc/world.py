"""Runs the node cores of `adhoc.tree` over a broadcast radio: a deterministic world from one seed.

The beats are always the same: a core is fed a fact, its effects are carried out, messages and timers go onto
the clock's heap. The driver decides nothing. Two ways to let time pass:
- `run_until`: beacons, timeouts and turns as the cores' timers ask for, a little varied by a random stream.
- `turn`: nobody's timer runs; one node probes and shops, everything said is heard, then beacons go round
  until nothing changes. Turns in a given order build the same tree as `adhoc.tree.whole_graph` does.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.tree.cells import Interest, Subscriptions
from sojourn.adhoc.tree.cooling import COLD, Cooling, handicap
from sojourn.adhoc.tree.messages import (
    Deliver,
    Effect,
    EventMessage,
    Fact,
    Heard,
    Message,
    ParentAdvertise,
    ParentChanged,
    ParentProbe,
    Published,
    Say,
    SetTimer,
    Started,
    TimerFired,
    Update,
)
from sojourn.adhoc.tree.node import Choosing, ShopParent, Timing
from sojourn.adhoc.tree.overhead import Costs
from sojourn.adhoc.tree.publishing import Flooding, Relay, Work
from sojourn.interest.measure import Bound
from sojourn.sim.clock import Clock
from sojourn.sim.radio import Radio

JITTER = 0.1
"""Share by which a periodic timer may come early or late, so that nodes do not beacon in step."""

REFRESHES_MAX = 1000
"""Beacon rounds after a turn; more would mean that advertisements never come to rest."""


class AdhocWorld:
    """Nodes, their radio, and the clock."""

    def __init__(
        self,
        radio: Radio,
        inherent: Sequence[Interest],
        stream: np.random.Generator,
        *,
        choosing: Sequence[Choosing],
        timing: Timing | None = None,
        roots: Sequence[int] = (0,),
        flooding: bool = False,
        cooling: Cooling = COLD,
    ) -> None:
        self.radio = radio
        self.clock = Clock()
        self._stream = stream
        rules = timing or Timing()
        self._beacon_s = rules.beacon_s
        self._news_at_once = rules.news_at_once
        self._asked: dict[tuple[int, int], Interest] = {}
        """By node and tree: what its last beacon asked for, where that is the only notice."""
        self._cooling = cooling
        self.cores: list[dict[int, ShopParent]] = [
            {root: ShopParent(node, root, own, choosing[node], rules) for root in roots}
            for node, own in enumerate(inherent)
        ]
        self.relays: list[dict[int, Relay]] = [
            {root: Relay(core) for root, core in cores.items()} for cores in self.cores
        ]
        self.floods = [Flooding(node, own) for node, own in enumerate(inherent)] if flooding else []
        self.said: Counter[str] = Counter()
        """Broadcasts by kind of message."""
        self.heard = 0
        """Receptions of control messages."""
        self.changed_s = 0.0
        """When a parent or an effective subscription last changed."""
        self.switches = 0
        self.delivered: dict[tuple[int, int], set[int]] = {}
        """By event: who got it over a tree."""
        self.flooded: dict[tuple[int, int], set[int]] = {}
        """By event: who got it by flooding."""
        self._timers: dict[tuple[int, int, str], int] = {}
        self._timed = False

    # ------------------------------------------------------------------------ time

    def start(self) -> None:
        """Switch all nodes on, each at a moment of its own within the first beacon period."""
        self._timed = True
        for node, cores in enumerate(self.cores):
            for tree in cores:
                self.clock.plan(float(self._stream.random()), self._feed_later, (node, tree, Started()))

    def fail(self, node: int) -> None:
        """Switch a node off: it neither hears nor says anything, and its timers are void."""
        self.radio.silent.add(node)

    def revive(self, node: int) -> None:
        """Switch a node on again, with what it last knew."""
        self.radio.silent.discard(node)
        for tree in self.cores[node]:
            for name in ("beacon", "shop", "retry"):
                self.feed(node, tree, TimerFired(name=name))

    def run_until(self, time_s: float) -> None:
        """Let everything happen that is due before a time."""
        self.clock.run_until(time_s)

    def pump(self) -> None:
        """Let everything be heard that was said, and time pass as that takes."""
        self.clock.run()

    # ------------------------------------------------------------------------ turns

    def turn(self, node: int, tree: int = 0, handicaps: dict[int, float] | None = None) -> bool:
        """One node shops while all others stand still; says whether its parent changed."""
        assert not self._timed, "turns are taken in a world whose timers do not run"
        core = self.cores[node][tree]
        before = core.parent
        if node != tree:
            self._carry_out(node, tree, [Say(ParentProbe(tree=tree, sender=node))])
            self.pump()
            self.feed(node, tree, TimerFired(name="choose", handicaps=handicaps or {}))
            self.pump()
            self._refresh(tree)
        return core.parent != before

    def take_turns(self, order: Sequence[int], tree: int = 0, rounds_max: int = 100) -> int:
        """Rounds of turns until nobody switches; says how many it took."""
        for done in range(rounds_max):
            switches = sum(self.turn(node, tree) for node in order)
            if not switches:
                return done + 1
        return rounds_max

    def _refresh(self, tree: int) -> None:
        """Let beacons go round, those near the root first, until no node has anything new to say."""
        before = None
        for _ in range(REFRESHES_MAX):
            for node in sorted(range(len(self.cores)), key=lambda node: self._depth(node, tree)):
                self.feed(node, tree, TimerFired(name="beacon"))
                self.pump()
            now = [cores[tree].advertise() for cores in self.cores]
            if now == before:
                return
            before = now
        raise AssertionError("advertisements do not come to rest")

    def _depth(self, node: int, tree: int) -> int:
        route = self.cores[node][tree].route()
        return len(self.cores) if route is None else len(route)

    # ------------------------------------------------------------------------ what nodes do

    def feed(self, node: int, tree: int, fact: Fact) -> None:
        """Give a core a fact and carry out what it answers."""
        core = self.cores[node][tree]
        self._carry_out(node, tree, core.handle(fact, self.clock.now))

    def publish(self, node: int, sequence: int, value: Bound, tree: int = 0) -> None:
        """Have a node publish an event over a tree, and by flooding if that is compared."""
        fact = Published(sequence=sequence, value=value)
        self.delivered[node, sequence] = set()
        self._carry_out(node, tree, self.relays[node][tree].publish(fact))
        if self.floods:
            self.flooded[node, sequence] = set()
            self._carry_out(node, -1, self.floods[node].publish(fact))

    def publish_all(self, node: int, interests: Subscriptions, tree: int, costs: Costs) -> float:
        """Have a node publish an event of every cell over a tree; what that takes beyond own interests.

        The work for one event of a cell stands for all of them, so it counts as often as the cell weighs.
        """
        total = 0.0
        for cell, weight in enumerate(interests.weights):
            before = self._overhead(tree, costs)
            self.publish(node, cell + tree * len(interests.weights), cell, tree)
            self.pump()
            total += float(weight) * (self._overhead(tree, costs) - before)
        return total

    def _overhead(self, tree: int, costs: Costs) -> float:
        return sum(
            costs.receive * (work.received - work.processed) + costs.forward * work.forwarded
            for work in self.work(tree)
        )

    def _feed_later(self, thing: tuple[int, int, Fact]) -> None:
        if thing[0] not in self.radio.silent:
            self.feed(*thing)

    def _timer(self, thing: tuple[int, int, int, SetTimer]) -> None:
        node, tree, number, timer = thing
        if self._timers.get((node, tree, timer.name)) == number and node not in self.radio.silent:
            handicaps = self._handicaps(node) if timer.name in ("shop", "choose") else {}
            self.feed(node, tree, TimerFired(name=timer.name, token=timer.token, handicaps=handicaps))

    def _handicaps(self, node: int) -> dict[int, float]:
        """The noise of cooled shopping; a beacon period is a round."""
        number = int(self.clock.now / self._beacon_s)
        if number >= self._cooling.rounds:
            return {}
        others: list[int] = np.flatnonzero(self.radio.graph[node]).tolist()
        return {other: float(handicap(self._cooling, number, node, other)) for other in others}

    def _carry_out(self, node: int, tree: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Say(message):
                    self._say(node, message)
                case SetTimer():
                    if self._timed:
                        self._set(node, tree, effect)
                case ParentChanged():
                    self.switches += 1
                    self.changed_s = self.clock.now
                case Deliver(source=source, sequence=sequence):
                    book = self.flooded if tree == -1 else self.delivered
                    book[source, sequence].add(node)

    def _set(self, node: int, tree: int, timer: SetTimer) -> None:
        delay = timer.delay_s
        if timer.periodic:
            delay *= 1 + JITTER * (2 * float(self._stream.random()) - 1)
        number = self._timers.get((node, tree, timer.name), 0) + 1
        self._timers[node, tree, timer.name] = number
        self.clock.plan(self.clock.now + delay, self._timer, (node, tree, number, timer))

    def _say(self, node: int, message: Message) -> None:
        if node in self.radio.silent:
            return
        self.said[type(message).__name__] += 1
        if isinstance(message, Update) or self._asks_anew(message):
            self.changed_s = self.clock.now
        self.clock.plan(
            self.clock.now + self.radio.delay_s, self._arrive, (self.radio.hearers(node), message)
        )

    def _asks_anew(self, message: Message) -> bool:
        """Whether a beacon that stands in for an Update asks its sender's parent for something else."""
        if self._news_at_once or not isinstance(message, ParentAdvertise) or message.parent is None:
            return False
        asked, known = message.inherent | message.proxied, self._asked.get((message.sender, message.tree))
        self._asked[message.sender, message.tree] = asked
        return bool(asked != known)

    def _arrive(self, thing: tuple[list[int], Message]) -> None:
        hearers, message = thing
        for node in hearers:
            if node in self.radio.silent:
                continue
            if isinstance(message, EventMessage):
                self._hear_event(node, message)
            elif message.to is None or message.to == node:
                self.heard += 1
                self.feed(node, message.tree, Heard(message))

    def _hear_event(self, node: int, message: EventMessage) -> None:
        if message.tree == -1:
            self._carry_out(node, -1, self.floods[node].hear(message))
        else:
            self._carry_out(node, message.tree, self.relays[node][message.tree].hear(message))

    # ------------------------------------------------------------------------ what can be seen

    def parents(self, tree: int = 0) -> NDArray[np.int64]:
        """By node: its parent, -1 for none."""
        found = [cores[tree].parent for cores in self.cores]
        return np.array([-1 if parent is None else parent for parent in found], dtype=np.int64)

    def work(self, tree: int = 0) -> list[Work]:
        """By node: what it did for events."""
        return [relays[tree].work for relays in self.relays]

    @property
    def control_said(self) -> int:
        """Broadcasts that were not events."""
        return sum(count for kind, count in self.said.items() if kind != "EventMessage")
