"""One node of an ad-hoc network with a central broker: it may show events, publish them, or be the broker.

    effects = node.handle(fact, now)

How it works (paper 003, section 3.1):
1. A node that wants to publish or to be shown events searches for a broker by a flood. A broker answers with
   a beacon, which it floods every `refresh_s` anyway; nodes learn from beacons where it is.
2. If none answers, the node offers itself; of several candidates the lowest number stays and is the broker.
3. A displayer refreshes its subscription every `refresh_s` and tells what it has seen; a broker sends what is
   missing. A source sends an event until a broker has stored it. So neither minds what is lost on the air.
4. A broker that hears the beacon of a senior one hands over everything it keeps, again and again until that
   is acknowledged; from then on it is a node like others. While it hands over it passes on what it is sent.
5. Who has not heard its broker for `silence_s` searches again.

Not here: how far a message carries, and who is in range: that is the radio's.
"""

from typing import NamedTuple

from sojourn.adhoc.election.messages import (
    Beacon,
    Candidacy,
    Deliver,
    Effect,
    EventId,
    Fact,
    Flood,
    HandedOver,
    Handover,
    Heard,
    Kept,
    Publish,
    Published,
    Refresh,
    Refreshed,
    Routed,
    Say,
    Search,
    Seniority,
    SetTimer,
    Show,
    Started,
    Stored,
    Subscribed,
    TimerFired,
    What,
)
from sojourn.adhoc.election.states import SERVING, State, Turn, follow
from sojourn.adhoc.election.table import BrokerTable
from sojourn.adhoc.tree.connectivity import AdhocError
from sojourn.interest.filters import Filter

HOPS_MAX = 64
FLOODS_MAX = 1024
"""Floods remembered, so that none is said twice."""


class Timing(NamedTuple):
    """When a node does what; all in seconds."""

    refresh_s: float = 2.0
    """Between two refreshes of a displayer, two beacons of a broker, two attempts of a source."""
    silences: float = 2.5
    """Refresh periods without a beacon after which the broker counts as gone."""
    lifetimes: float = 4.0
    """Refresh periods after which an entry that was not refreshed is dropped."""
    search_s: float = 0.5
    """How long to wait for a broker's answer: a few times across the network."""
    election_s: float = 0.5
    """How long a candidate waits for others."""
    pending_max: int = 10_000
    """Events a source keeps until they are stored."""


class Node:
    """Facts in, effects out."""

    def __init__(self, number: int, timing: Timing | None = None) -> None:
        self.number = number
        self.timing = timing or Timing()
        _check(self.timing)
        self.state = State.SEARCHING
        self.broker: int | None = None
        """The broker it uses: itself, another, or none."""
        self.seniority: Seniority | None = None
        """That broker's."""
        self.table: BrokerTable | None = None
        """What it keeps as a broker."""
        self.wanted: Filter | None = None
        self._since_s = 0.0
        self._seen: set[EventId] = set()
        self._untold: set[EventId] = set()
        """Seen since the last refresh that the broker answered."""
        self._told: dict[int, frozenset[EventId]] = {}
        """By refresh under way: the part of the above that it told."""
        self._whole = True
        self._refreshes = 0
        self._pending: dict[EventId, Kept] = {}
        self._ways: dict[int, int] = {}
        """By node: the neighbour from which something of it last came."""
        self._floods = 0
        self._flooded: dict[tuple[int, int], None] = {}
        self._handovers = 0
        self._wanting = False
        """Whether it has searched or has reason to."""
        self._own_seniority: Seniority = (0.0, number)
        self._now = 0.0
        self._effects: list[Effect] = []

    @property
    def serves(self) -> bool:
        """Whether it is a broker."""
        return self.state in SERVING

    def handle(self, fact: Fact, now: float) -> list[Effect]:
        """Take one fact; the effects are to be carried out in their order."""
        self._now = now
        self._effects = []
        match fact:
            case Heard(message):
                if isinstance(message, Flood):
                    self._on_flood(message)
                else:
                    self._on_routed(message)
            case TimerFired(name):
                self._on_timer(name)
            case Published(event):
                self._on_published(Kept(event, now))
            case Subscribed(wanted):
                self.wanted, self._since_s, self._whole = wanted, now, True
                self._seen.clear()
                self._untold.clear()
                self._need_broker()
            case Started():
                self._set("refresh", self.timing.refresh_s, periodic=True)
        return self._effects

    # Finding a broker -------------------------------------------------------------------------------

    def _need_broker(self) -> None:
        """There is something to say to a broker: say it, or look for one."""
        if self.broker is not None:
            self._refresh()
        elif not self._wanting:
            self._search()

    def _search(self) -> None:
        self._wanting = True
        self._flood(Search())
        self._set("search", self.timing.search_s)

    def _on_timer(self, name: str) -> None:
        if name == "refresh":
            self._set("refresh", self.timing.refresh_s, periodic=True)
            self._on_refresh_due()
        elif name == "search" and self.state is State.SEARCHING and self._wanting:
            self._turn(Turn.TIMED_OUT)
            self._flood(Candidacy())
            self._set("election", self.timing.election_s)
        elif name == "election" and self.state is State.CANDIDATE:
            self._turn(Turn.TIMED_OUT)
            self._become_broker()
        elif name == "silence" and self.state in (State.ATTACHED, State.MERGING):
            self._on_silence()

    def _on_silence(self) -> None:
        was_merging = self.state is State.MERGING
        self._turn(Turn.SILENCE)
        if was_merging:
            # The senior one is gone before it took over: go on serving, as senior as before.
            self.broker, self.seniority = self.number, self._own_seniority
            self._flood(Beacon(self._own_seniority))
            return
        self.broker = self.seniority = None
        self._wanting = False
        if self.wanted is not None or self._pending:
            self._search()

    def _become_broker(self) -> None:
        self._own_seniority = (self._now, self.number)
        self.broker, self.seniority = self.number, self._own_seniority
        self.table = BrokerTable(self.timing.lifetimes * self.timing.refresh_s)
        self._flood(Beacon(self._own_seniority))
        self._whole = True
        self._refresh()

    def _on_refresh_due(self) -> None:
        if self.state is State.BROKER and self.table is not None:
            self.table.expire(self._now)
            self._flood(Beacon(self._own_seniority))
        if self.state is State.MERGING:
            self._hand_over()
        if self.broker is not None:
            self._refresh()
        elif not self._wanting and (self.wanted is not None or self._pending):
            self._search()

    # Floods -----------------------------------------------------------------------------------------

    def _flood(self, what: Search | Candidacy | Beacon) -> None:
        self._floods += 1
        self._flooded[self.number, self._floods] = None
        self._effects.append(Say(Flood(self.number, self.number, self._floods, what)))

    def _on_flood(self, flood: Flood) -> None:
        if (flood.origin, flood.number) in self._flooded:
            return
        self._flooded[flood.origin, flood.number] = None
        if len(self._flooded) > FLOODS_MAX:
            del self._flooded[next(iter(self._flooded))]
        self._ways[flood.origin] = flood.sender
        self._effects.append(Say(flood._replace(sender=self.number)))
        what = flood.what
        if isinstance(what, Beacon):
            self._on_beacon(flood.origin, what.seniority)
        elif isinstance(what, Search):
            if self.state is State.BROKER:
                self._flood(Beacon(self._own_seniority))
        elif flood.origin < self.number:
            self._turn(Turn.RIVAL)
            if self.state is State.SEARCHING and self._wanting:
                # It will be the broker unless it falls silent; then this node searches on.
                self._set("search", self.timing.search_s + 2 * self.timing.election_s)
        elif self.state is State.CANDIDATE:
            self._flood(Candidacy())  # the other one must know that a lower number is there
        if isinstance(what, Candidacy) and self.state is State.BROKER:
            self._flood(Beacon(self._own_seniority))

    def _on_beacon(self, broker: int, seniority: Seniority) -> None:
        known = self.seniority
        if self.serves:
            assert known is not None
            if seniority < known or (broker == self.broker and self.state is State.MERGING):
                self._meet_senior(broker, seniority)
            return
        if known is not None and broker != self.broker and seniority > known:
            return  # a junior broker, which will find its senior by itself
        is_new = broker != self.broker or seniority != known
        self._turn(Turn.BEACON)
        self.broker, self.seniority = broker, seniority
        self._set("silence", self.timing.silences * self.timing.refresh_s)
        if is_new:
            self._whole = True
            self._refresh()

    def _meet_senior(self, broker: int, seniority: Seniority) -> None:
        was_merging = self.state is State.MERGING
        self._turn(Turn.SENIOR)
        self._set("silence", self.timing.silences * self.timing.refresh_s)
        is_new = broker != self.broker
        self.broker, self.seniority = broker, seniority
        if is_new or not was_merging:
            self._hand_over()
            self._whole = True

    # From node to node ------------------------------------------------------------------------------

    def _send(self, destination: int, what: What) -> None:
        if destination == self.number:
            self._on_what(self.number, what)
            return
        via = self._ways.get(destination)
        if via is not None:
            self._effects.append(Say(Routed(self.number, via, self.number, destination, HOPS_MAX, what)))

    def _on_routed(self, message: Routed) -> None:
        self._ways[message.origin] = message.sender
        if message.destination == self.number:
            self._on_what(message.origin, message.what)
            return
        via = self._ways.get(message.destination)
        if via is not None and message.hops_left > 1:
            on = message._replace(sender=self.number, to=via, hops_left=message.hops_left - 1)
            self._effects.append(Say(on))

    def _on_what(self, origin: int, what: What) -> None:
        match what:
            case Refresh() | Publish() | Handover():
                self._serve(origin, what)
            case Refreshed(number, ask_whole):
                self._on_refreshed(number, ask_whole=ask_whole)
            case Stored(ids):
                for event in ids:
                    self._pending.pop(event, None)
            case Deliver(events):
                self._show(events)
            case HandedOver(number):
                if self.state is State.MERGING and number == self._handovers:
                    self._turn(Turn.HANDED_OVER)
                    self.table = None
                    self._refresh()

    # Being a broker ---------------------------------------------------------------------------------

    def _serve(self, origin: int, what: Refresh | Publish | Handover) -> None:
        if self.state is not State.BROKER or self.table is None:
            self._pass_on(origin, what)
            return
        table = self.table
        match what:
            case Refresh():
                taken = table.refresh(origin, what, self._now)
                self._send(origin, Refreshed(what.number, not taken))
                self._deliver(origin)
            case Publish(events):
                new = table.store(events)
                self._send(origin, Stored(tuple(kept.id for kept in events)))
                if new:
                    self._deliver_all()
            case Handover(number, entries, events):
                owed = table.take_over(entries, events)
                self._send(origin, HandedOver(number))
                for displayer in owed:
                    self._deliver(displayer)

    def _pass_on(self, origin: int, what: Refresh | Publish | Handover) -> None:
        """Somebody takes this node for a broker: what can be passed on goes to the one it knows."""
        if self.broker in (None, self.number) or not isinstance(what, Publish):
            return
        via = self._ways.get(self.broker or 0)
        if via is not None:
            self._effects.append(Say(Routed(self.number, via, origin, self.broker or 0, HOPS_MAX, what)))

    def _deliver_all(self) -> None:
        assert self.table is not None
        for displayer in sorted(self.table.displayers):
            self._deliver(displayer)

    def _deliver(self, displayer: int) -> None:
        assert self.table is not None
        due = self.table.due(displayer, self._now, self.timing.refresh_s / 2)
        if due:
            self._send(displayer, Deliver(due))

    def _hand_over(self) -> None:
        assert self.table is not None
        assert self.broker is not None
        self._handovers += 1
        self._send(self.broker, Handover(self._handovers, *self.table.contents()))

    # Being a displayer or a source ------------------------------------------------------------------

    def _refresh(self) -> None:
        """Tell the broker what is wanted, seen and still to be stored."""
        if self.broker is None:
            return
        if self._pending:
            self._send(self.broker, Publish(tuple(self._pending.values())))
        if self.wanted is not None:
            self._refreshes += 1
            told = frozenset(self._seen if self._whole else self._untold)
            self._told = {self._refreshes: told}
            refresh = Refresh(self._refreshes, self.wanted, self._since_s, tuple(told), self._whole)
            self._send(self.broker, refresh)

    def _on_refreshed(self, number: int, *, ask_whole: bool) -> None:
        told = self._told.pop(number, None)
        if told is None:
            return
        if ask_whole:
            self._whole = True
            self._refresh()
        else:
            self._whole = False
            self._untold -= told

    def _on_published(self, kept: Kept) -> None:
        self._pending[kept.id] = kept
        if len(self._pending) > self.timing.pending_max:
            del self._pending[next(iter(self._pending))]
        if self.broker is not None:
            self._send(self.broker, Publish((kept,)))
        else:
            self._need_broker()

    def _show(self, events: tuple[Kept, ...]) -> None:
        for kept in events:
            if self.wanted is not None and kept.id not in self._seen:
                self._seen.add(kept.id)
                self._effects.append(Show(kept))
            self._untold.add(kept.id)
        if self.serves and self.table is not None:
            self.table.saw(self.number, [kept.id for kept in events])

    # Common -----------------------------------------------------------------------------------------

    def _turn(self, turn: Turn) -> None:
        self.state = follow(self.state, turn)
        if self.state is not State.SEARCHING:
            self._wanting = self.state is State.CANDIDATE

    def _set(self, name: str, delay_s: float, *, periodic: bool = False) -> None:
        self._effects.append(SetTimer(name, delay_s, periodic))


def _check(timing: Timing) -> None:
    for name in ("refresh_s", "silences", "lifetimes", "search_s", "election_s"):
        if not getattr(timing, name) > 0:
            raise AdhocError(f"{name} must be above 0, not {getattr(timing, name):g}.")
