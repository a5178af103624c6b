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
   Where brokers are to coordinate instead (`Meeting`), both stay and exchange events (`upstream.py`).
5. Who has not heard its broker for `silence_s` searches again.
6. Who reaches the fixed network becomes the broker, offers it all events that it keeps, and keeps what it is
   told there.
7. What must outlive the process is noted (`Keep`) before anybody is told; `recall` takes the notes back. A
   broker that died comes back as one, and hands over or is handed over to like any other.

Not here: how far a message carries, and who is in range: that is the radio's.
"""

from collections.abc import Iterable, Iterator
from itertools import count

from sojourn.adhoc.election.messages import (
    Beacon,
    Began,
    Candidacy,
    Deliver,
    Effect,
    EventId,
    Fact,
    FixedLost,
    FixedReached,
    FixedTold,
    FixedTook,
    Flood,
    HandedOver,
    Handover,
    Heard,
    Keep,
    Kept,
    Note,
    Offer,
    Publish,
    Published,
    Refresh,
    Refreshed,
    Routed,
    Say,
    Search,
    SeenTo,
    Seniority,
    SetTimer,
    Shown,
    Started,
    Stored,
    Subscribed,
    TimerFired,
    Took,
    What,
)
from sojourn.adhoc.election.office import Office
from sojourn.adhoc.election.states import SERVING, Occasion, Role, follow
from sojourn.adhoc.election.table import BrokerTable
from sojourn.adhoc.election.timing import Meeting, Timing
from sojourn.adhoc.election.upstream import Upstream
from sojourn.adhoc.election.user import User

HOPS_MAX = 64
FLOODS_MAX = 1024
"""Floods remembered, so that none is said twice."""


LIFE = 1 << 32
"""A node counts from here in its next life, so that nobody takes what it says for what it said before."""
AT_FIXED_S = -1.0
"""Elected at this moment counts who reaches the fixed network: before everybody else."""


class Node:
    """Facts in, effects out."""

    def __init__(self, number: int, timing: Timing | None = None, notes: Iterable[Note] = ()) -> None:
        """`notes` are those of its earlier lives."""
        self.number = number
        self.timing = timing or Timing()
        self.timing.check()
        self.state = Role.SEARCHING
        self.broker: int | None = None
        """The broker it uses: itself, another, or none."""
        self.seniority: Seniority | None = None
        """That broker's."""
        self._office = Office(number, self.timing.lifetimes * self.timing.refresh_s)
        self.upstream: Upstream | None = None
        """The senior broker that it coordinates with."""
        self.reaches_fixed = False
        self.life = 0
        self.user = User(self.timing.pending_max)
        self._ways: dict[int, int] = {}
        """By node: the neighbour from which something of it last came."""
        self._flooded: dict[tuple[int, int], None] = {}
        self._offered: set[EventId] = set()
        """What the fixed network was offered since it is in reach."""
        self._wanting = False
        """Whether it has searched or has reason to."""
        self._now = 0.0
        self._effects: list[Effect] = []
        for note in notes:
            if isinstance(note, Began):
                self.life = note.life
            self._office.recall(note)
            self.user.recall(note)
        if self.table is not None:
            self.state, self.broker, self.seniority = Role.BROKER, number, self._office.elected
        self.life += 1
        self._floods = self._handovers = (self.life - 1) * LIFE
        self._exchanges = count((self.life - 1) * LIFE + 1)
        self.user.begin((self.life - 1) * LIFE)

    def memory(self) -> Iterator[Note]:
        """Notes that lead to what it knows, without those that were overtaken."""
        yield Began(self.life)
        yield from self._office.memory()
        yield from self.user.memory()

    @property
    def table(self) -> BrokerTable | None:
        """What it keeps as a broker."""
        return self._office.table

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
            case Published(event, body, is_shown):
                self._on_published(Kept(event, now, body=body), is_shown=is_shown)
            case Subscribed(wanted, since_s):
                self._effects += self.user.subscribe(wanted, now if since_s is None else since_s)
                self._need_broker()
            case Shown(number):
                self._effects += self.user.shown(number)
            case FixedReached() | FixedLost() | FixedTold() | FixedTook():
                self._on_fixed(fact)
            case Started():
                self._on_started()
        return self._effects

    def _on_started(self) -> None:
        self._effects.append(Keep(Began(self.life)))
        self._set("refresh", self.timing.refresh_s, periodic=True)
        self._effects += self.user.show_again()
        if self.state is Role.BROKER:
            self._flood(Beacon(self._own_seniority))
        elif self.user.is_busy:
            self._need_broker()

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
        elif name == "search" and self.state is Role.SEARCHING and self._wanting:
            self._turn(Occasion.TIMED_OUT)
            self._flood(Candidacy())
            self._set("election", self.timing.election_s)
        elif name == "election" and self.state is Role.CANDIDATE:
            self._turn(Occasion.TIMED_OUT)
            self._become_broker()
        elif name == "silence" and self.state in (Role.ATTACHED, Role.MERGING):
            self._on_silence()
        elif name == "upstream":
            self.upstream = None

    def _on_silence(self) -> None:
        was_merging = self.state is Role.MERGING
        self._turn(Occasion.SILENCE)
        if was_merging:
            # The senior one is gone before it took over: go on serving, as senior as before.
            self.broker, self.seniority = self.number, self._own_seniority
            self._flood(Beacon(self._own_seniority))
            return
        self.broker = self.seniority = None
        self._wanting = False
        if self.user.is_busy:
            self._search()

    @property
    def _own_seniority(self) -> Seniority:
        return (AT_FIXED_S, self.number) if self.reaches_fixed else self._office.elected

    def _become_broker(self) -> None:
        """Serve from now on, with what it keeps if it was a broker until now."""
        self._effects += self._office.take_up(self._now)
        self.broker, self.seniority = self.number, self._own_seniority
        self._flood(Beacon(self._own_seniority))
        self.user.is_whole = True
        self._refresh()

    def _on_refresh_due(self) -> None:
        if self.state is Role.BROKER and self.table is not None:
            self.table.expire(self._now)
            self._flood(Beacon(self._own_seniority))
        if self.state is Role.MERGING:
            self._hand_over()
        if self.broker is not None:
            self._refresh()
        elif not self._wanting and self.user.is_busy:
            self._search()
        self._exchange()

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
            if self.state is Role.BROKER:
                self._flood(Beacon(self._own_seniority))
        elif flood.origin < self.number:
            self._turn(Occasion.RIVAL)
            if self.state is Role.SEARCHING and self._wanting:
                # It will be the broker unless it falls silent; then this node searches on.
                self._set("search", self.timing.search_s + 2 * self.timing.election_s)
        elif self.state is Role.CANDIDATE:
            self._flood(Candidacy())  # the other one must know that a lower number is there
        if isinstance(what, Candidacy) and self.state is Role.BROKER:
            self._flood(Beacon(self._own_seniority))

    def _on_beacon(self, broker: int, seniority: Seniority) -> None:
        known = self.seniority
        if self.serves:
            assert known is not None
            if seniority < known or (broker == self.broker and self.state is Role.MERGING):
                self._meet_senior(broker, seniority)
            return
        if self.reaches_fixed and seniority[0] > AT_FIXED_S:
            self._serve_fixed()  # that one reaches it no more, or never did
            return
        stays = self.timing.meeting is Meeting.COORDINATE
        if known is not None and broker != self.broker and (stays or seniority > known):
            return  # a junior broker, which will find its senior by itself; or one that coordinates with ours
        is_new = broker != self.broker or seniority != known
        self._turn(Occasion.BEACON)
        self.broker, self.seniority = broker, seniority
        self._set("silence", self.timing.silences * self.timing.refresh_s)
        if is_new:
            self.user.is_whole = True
            self._refresh()

    def _meet_senior(self, broker: int, seniority: Seniority) -> None:
        if self.timing.meeting is Meeting.COORDINATE:
            self._coordinate(broker, seniority)
            return
        was_merging = self.state is Role.MERGING
        self._turn(Occasion.SENIOR)
        self._set("silence", self.timing.silences * self.timing.refresh_s)
        is_new = broker != self.broker
        self.broker, self.seniority = broker, seniority
        if is_new or not was_merging:
            self._hand_over()
            self.user.is_whole = True

    def _coordinate(self, broker: int, seniority: Seniority) -> None:
        if self.upstream is None or seniority < self.upstream.seniority:
            self.upstream = Upstream(broker, seniority, self._exchanges)
            self._exchange()
        if self.upstream.broker == broker:
            self.upstream.seniority = seniority
            self._set("upstream", self.timing.silences * self.timing.refresh_s)

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
                if self.upstream is not None and origin == self.upstream.broker:
                    if self.upstream.refreshed(number, ask_whole=ask_whole):
                        self._exchange()
                elif self.user.refreshed(number, ask_whole=ask_whole):
                    self._refresh()
            case Stored(ids):
                if self.upstream is not None and origin == self.upstream.broker:
                    self.upstream.stored(ids)
                else:
                    self._effects += self.user.stored(ids)
            case Deliver(events):
                self._on_delivered(origin, events)
            case HandedOver(number):
                if self.state is Role.MERGING and number == self._handovers:
                    self._turn(Occasion.HANDED_OVER)
                    self._effects += self._office.give_away()
                    self._refresh()

    def _on_delivered(self, origin: int, events: tuple[Kept, ...]) -> None:
        if self.upstream is not None and origin == self.upstream.broker and self.table is not None:
            self._take(self.upstream.delivered(events))
            return
        self._effects += self.user.show(events)
        if self.table is not None:
            self.table.saw(self.number, [kept.id for kept in events if not self.user.lacks(kept)])

    # Being a broker ---------------------------------------------------------------------------------

    def _serve(self, origin: int, what: Refresh | Publish | Handover) -> None:
        if self.state is not Role.BROKER or self.table is None:
            self._pass_on(origin, what)
            return
        table = self.table
        match what:
            case Refresh():
                taken = table.refresh(origin, what, self._now)
                self._send(origin, Refreshed(what.number, not taken))
                self._deliver(origin)
            case Publish(events):
                self._take(events, origin)
            case Handover(number, entries, events):
                new, owed = table.take_over(entries, events)
                self._effects += [Keep(Took(kept)) for kept in new]
                self._send(origin, HandedOver(number))
                for displayer in owed:
                    self._deliver(displayer)
                self._offer()

    def _take(self, events: Iterable[Kept], origin: int | None = None) -> None:
        """Keep events, tell who sent them, and pass them to who wants them."""
        came = list(events)
        new, notes = self._office.store(came)
        self._effects += notes
        if origin is not None:
            self._send(origin, Stored(tuple(kept.id for kept in came)))
        if new:
            self._deliver_all()
            self._offer()
            if self.upstream is not None and origin != self.upstream.broker:
                self._exchange()

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

    def _exchange(self) -> None:
        """Tell the broker that this one coordinates with what is new here."""
        if self.upstream is not None and self.table is not None and self.state is Role.BROKER:
            for word in self.upstream.words(self.table.contents()[1]):
                self._send(self.upstream.broker, word)

    # The fixed network ------------------------------------------------------------------------------

    def _on_fixed(self, fact: FixedReached | FixedLost | FixedTold | FixedTook) -> None:
        match fact:
            case FixedReached():
                self.reaches_fixed = True
                self._offered.clear()
                self._serve_fixed()
            case FixedLost():
                self.reaches_fixed = False
                if self.state is Role.BROKER:
                    self.seniority = self._office.elected
            case FixedTold(event, body):
                kept = Kept(event, self._now, is_seen_to=True, body=body)
                if self.state is Role.BROKER:
                    self._take([kept])
                else:
                    self._on_published(kept, is_shown=False)
            case FixedTook(event):
                self._offered.discard(event)
                if self.table is not None and self.table.see_to(event):
                    self._effects.append(Keep(SeenTo((event,))))

    def _serve_fixed(self) -> None:
        self._turn(Occasion.FIXED)
        self.upstream = None
        self._become_broker()
        self._offer()

    def _offer(self) -> None:
        if self.reaches_fixed and self.state is Role.BROKER and self.table is not None:
            new = [kept for kept in self.table.unseen_to() if kept.id not in self._offered]
            self._offered.update(kept.id for kept in new)
            self._effects += [Offer(kept) for kept in new]

    # Being a displayer or a source ------------------------------------------------------------------

    def _refresh(self) -> None:
        """Tell the broker what is wanted, seen and still to be stored."""
        if self.broker is not None:
            for word in self.user.words():
                self._send(self.broker, word)

    def _on_published(self, kept: Kept, *, is_shown: bool) -> None:
        noted = self.user.publish(kept, is_shown=is_shown)
        if noted is None:
            return
        self._effects += noted
        if self.broker is not None:
            self._send(self.broker, Publish((kept,)))
        else:
            self._need_broker()

    # Common -----------------------------------------------------------------------------------------

    def _turn(self, turn: Occasion) -> None:
        self.state = follow(self.state, turn)
        if self.state is not Role.SEARCHING:
            self._wanting = self.state is Role.CANDIDATE

    def _set(self, name: str, delay_s: float, *, periodic: bool = False) -> None:
        self._effects.append(SetTimer(name, delay_s, periodic))
