"""What sessions and the broker's core tell each other while clients come, subscribe, publish and go.

| what happens | what the core is told |
| --- | --- |
| a client published | the event, by the short way; what comes back as deliveries goes to the sessions |
| it arrived, subscribed | `SubscriberArrived`, `SubscriberChanged` |
| it acknowledged, left | what it consumed, by the short way too; `SubscriberLost` |
| its session ended | `SubscriberGone` |

A session that ends with its connection does not roam: its subscriptions are made and withdrawn, no more. One
that is resumed for the last time does: there may be events stored for it.

Not here: where a session is that is not here (`arrivals.py`), and how messages travel (`links.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sojourn.broker.carried import Carried
from sojourn.broker.effects import COPY_FULL, Note
from sojourn.broker.event_routing import EventRouting
from sojourn.broker.links import Links
from sojourn.broker.membership import NOBODY, Membership, is_spared
from sojourn.broker.roamers import Handoff, Roamer, Timers
from sojourn.broker.scheme import foresight_of, mobility_core
from sojourn.broker.settings import Settings
from sojourn.broker.sharing import Shares
from sojourn.mobility import facts
from sojourn.mobility.queues import FULL, GIVEN_UP, PARTY_FULL
from sojourn.mobility.stays import State as Stay
from sojourn.mqtt.content import interest_of
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Change, Turn
from sojourn.mqtt.message import Message
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.session import Session
from sojourn.routing.effects import Deliver, Dropped, Effects

UNTOLD = "neighbour had not said what it wants"
"""Why an event was not sent to a neighbour that may have wanted it: too much waited for it already."""


class Clients:
    """The clients with sessions at one broker, and the core that routes for them and follows them."""

    def __init__(self, settings: Settings, core: Core, links: Links) -> None:
        self.core = core
        self.links = links
        self.names = links.names
        core.effects.collects = True
        self.broker = mobility_core(settings, links)
        self.broker.router.withdraw_in_parts(settings.at_once.withdrawn)
        self.broker.subscribers.give_in_parts(settings.at_once.given)
        self.follows = self.broker.subscribers.scheme.follows
        """Whether sessions move with their clients; with durable subscriptions every broker keeps its own."""
        self.traces = settings.traces
        self.notes: list[Note] = []
        """What a trace or a page wants to know, for the end of the turn."""
        self.roamers: dict[int, Roamer] = {}
        self.giving: set[int] = set()
        """Clients whose session is leaving for another broker at this moment."""
        self.seen: dict[str, int] = {}
        """By source: the last of its events that came from a neighbour, but for those of QoS 0 that are not
        retained. They come in order, so one that is not later came before: a neighbour that had forgotten it
        sends it twice."""
        self.drops: Counter[str] = Counter()
        self.stored_unsure: list[int] = []
        """Numbers of events of QoS 0 that were published here and are stored for somebody: facts to remember,
        for what brokers hand one another, and number, depends on them."""
        self.handoff_count = 0
        self.interests_changed = False
        """Whether the router's subscriptions may have changed since whoever follows them looked."""
        self.timers = Timers()
        self.shares = Shares(core, links, self.broker.router, self.drops, settings.at_once.picked_again)
        self.members = Membership(self)
        self.events = EventRouting(self)
        core.effects.weigh = self.events.weigh
        core.effects.groups, core.effects.conditions = self.shares.groups, self.shares.conditions
        self.report, self.deliver = self.events.report, self.events.deliver
        """Tell the cores what the session core's last call led to; hand an event to clients."""
        if settings.routing.mode == "content":
            self.broker.router.client_advertises(NOBODY, links.interests.anything)
            self.carry_out(self.broker.effects, 0.0)

    def foresee(self, settings: Settings) -> None:
        """Go by what was learnt of where clients go, if anything was."""
        self.broker.foresee(foresight_of(settings))

    def rebuild(self) -> None:
        """Find out again which members of groups are connected here, for the day when they are others."""
        for client, roamer in self.roamers.items():
            session = self.core.state.sessions.get(self.names.client_name(client))
            if session is not None and roamer.arrived:
                numbers = [(one, self.members.interest_of(one)) for one in session.shares()]
                roamer.numbers = {one: number for one, number in numbers if number is not None}

    def note(self, kind: str, *what: Any) -> None:
        """Say something that a trace or a page wants to know."""
        self.notes.append(Note(kind, what))

    def tell_trace(self, kind: str, *what: Any) -> None:
        """Say something that only a trace wants to know."""
        if self.traces:
            self.note(kind, *what)

    # Clients -------------------------------------------------------------------------------------------

    def changed(self, change: Change, now: float, *, is_last: bool) -> None:
        """Take in a change; what a client wants is told once for all that it changes at once."""
        session = change.session
        client = self.names.client_number(session.client_id)
        roamer = self.roamers.get(client)
        if roamer is None:
            return
        match change.turn:
            case Turn.ARRIVED:
                self.arrive(client, session, roamer, now)
            case Turn.SUBSCRIBED | Turn.UNSUBSCRIBED:
                self._trace_interest(change, roamer, client, now)
                if is_last and roamer.arrived and client not in self.giving:
                    self._wants(client, session, roamer, now)
            case Turn.ADVERTISED:
                self._advertise(client, session, now)
            case Turn.LEFT:
                self.core.forget_queue(session)
                if roamer.arrived:
                    session.left_s = now
                    self.lost(client, roamer, now)
            case Turn.ENDED:
                self._ended(client, roamer, now)

    def arrive(self, client: int, session: Session, roamer: Roamer, now: float) -> None:
        """Tell the core that a client is here."""
        roamer.roams = session.expiry > 0 or roamer.resumes
        roamer.arrived = True
        roamer.since = now
        if self.traces:
            self.note("came", session.client_id, dict(session.stated), now)
        if not roamer.roams:
            self._wants(client, session, roamer, now)
            return
        self.members.is_here(client, session, now)
        wanted = roamer.held = self._interests_of(session, roamer)
        # What is in flight is sent again by the session core itself, so it is outstanding from the start.
        for delivery in session.inflight.values():
            if delivery is not None and not delivery.kept:
                roamer.note(delivery.message, settled=False)
        came = facts.SubscriberArrived(client, roamer.epoch, wanted, roamer.previous, roamer.marks)
        party = None if session.address is None else party_of(session.address)
        came = came._replace(stays_here=True, party=party, last_epoch=roamer.last_epoch)
        self.tell(came, now)

    def _wants(self, client: int, session: Session, roamer: Roamer, now: float) -> None:
        before, known = roamer.held, roamer.numbers
        wanted = roamer.held = self._interests_of(session, roamer)
        for message in self.members.withdraw(known, roamer, session):
            roamer.acknowledge(message)
            self.events.advance(client, roamer, message.source)
        self.members.is_here(client, session, now)
        if roamer.roams:
            self.tell(facts.SubscriberChanged(client, roamer.epoch, wanted), now)
            return
        old, new = set(before), set(wanted)
        for interest in wanted:
            if interest not in old:
                self.tell(facts.ClientSubscribed(client, interest), now)
        for interest in before:
            if interest not in new:
                self.tell(facts.ClientUnsubscribed(client, interest), now)

    def _trace_interest(self, change: Change, roamer: Roamer, client: int, now: float) -> None:
        """Note that an interest began or ended; not that it came from, or went to, another broker."""
        one = change.subscription
        is_over = change.turn is Turn.UNSUBSCRIBED
        is_news = client not in self.giving and (is_over or roamer.arrived)
        if self.traces and one is not None and is_news and not one.share:
            text = str(interest_of(one.pattern, one.filter))
            self.note("wants", change.session.client_id, text, one.since_s, now if is_over else None)

    def _interests_of(self, session: Session, roamer: Roamer) -> tuple[int, ...]:
        """The interests of all subscriptions; only those are read that are new, as the rest is held."""
        known = roamer.numbers
        roamer.numbers = {
            one: number
            for one in session.subscriptions.values()
            if (number := known[one] if one in known else self.members.interest_of(one)) is not None
        }
        return tuple(dict.fromkeys(roamer.numbers.values()))

    def _advertise(self, client: int, session: Session, now: float) -> None:
        numbers = tuple(self.names.advertisement_number(text) for text in session.advertisements)
        self.tell(facts.ClientArrived(client, numbers), now)

    def lost(self, client: int, roamer: Roamer, now: float) -> None:
        """Tell the core that a client's connection is gone."""
        self._leave_to_session(client, roamer)
        roamer.arrived = False
        roamer.outstanding.clear()
        if self.traces:
            self.note("went", self.names.client_name(client), now)
        self.members.is_here(client, None, now)
        if roamer.roams:
            self.tell(facts.SubscriberLost(client, roamer.epoch), now)
        if self._advertises(client):
            self.tell(facts.ClientLeft(client, came_from=roamer.previous), now)

    def _leave_to_session(self, client: int, roamer: Roamer) -> None:
        """Report as consumed what was handed over and is done with, or is in the session to be sent again.

        Otherwise what came after an event without an answer would be handed over a second time at the next
        broker, although it was acknowledged, or was never to be sent twice.
        """
        session = self.core.state.sessions.get(self.names.client_name(client))
        if session is None or not roamer.roams:
            return
        found = [one.message for one in session.inflight.values() if one is not None and not one.kept]
        taken = {(message.source, message.sequence) for message in found}
        for source, last in list(roamer.safe_with(taken)):
            self.broker.subscribers.consumed(client, source, last)

    def _advertises(self, client: int) -> bool:
        """Whether a client is here as a publisher; a tree that outlives its connection has its own time."""
        stay = self.broker.stays.get(client)
        return stay is not None and stay.state in (Stay.PRESENT, Stay.HOME)

    def _ended(self, client: int, roamer: Roamer, now: float) -> None:
        if client in self.giving:
            return
        del self.roamers[client]
        self.members.is_here(client, None, now)
        if self.traces:
            self.note("went", self.names.client_name(client), now)
        if roamer.roams:
            self.tell(facts.SubscriberGone(client, roamer.epoch), now)
        for interest in () if roamer.roams else roamer.held:
            self.tell(facts.ClientUnsubscribed(client, interest), now)
        if self._advertises(client):
            self.tell(facts.ClientGone(client), now)

    # Facts in, effects out -----------------------------------------------------------------------------

    def tell(self, fact: facts.Fact, now: float) -> None:
        """Tell the core a fact, and do what follows from it."""
        self.interests_changed = True
        if self.members.reports:
            self.members.flush(now)
        self.carry_out(self.broker.handle(fact, now), now)

    def carry_out(self, effects: Effects, now: float) -> None:
        """Do what the core asks for."""
        sends, deliveries, ready = effects.sends[:], effects.deliveries[:], effects.ready[:]
        drops, closes, ends = effects.drops[:], effects.closes[:], effects.ends[:]
        begun = effects.begun[:]
        guesses = effects.guesses[:]
        for timer in effects.timers:
            self.timers.set(timer, now)
        for cancel in effects.cancels:
            self.timers.cancel(cancel)
        effects.clear()
        self._send(sends, guesses, now)
        for client in begun:
            self._hold(client)
        thinned = [one.client for one in ready if self._hold(one.client)]
        for clients, publication in deliveries:
            assert isinstance(publication, Carried), "live brokers carry MQTT messages"
            self.deliver(clients, publication.message, now)
        if begun or self.broker.subscribers.is_giving:
            self._thin_parts(deliveries, now)
        for client in thinned:
            self._thin(client, now)
        for drop in drops:
            self.dropped(drop, now)
        for one in ready:
            self._ready(one, now)
        for close in closes:
            self._close(close.client, close.epoch, now)
        for end in ends:
            roamer = self.roamers.get(end.client)
            if roamer is not None and roamer.epoch == end.epoch:
                self.core.custody.end_session(self.names.client_name(end.client), now)
        self.members.follow(now)

    def _send(self, sends: list[tuple[int, Any]], guesses: list[tuple[int, Any]], now: float) -> None:
        """Send messages to neighbours, and events to those that may want them."""
        for mask, message in sends:
            self.links.send(mask, message, now)
        for mask, event in guesses:
            refused = self.links.send_guess(mask, event, now)
            if refused:  # a zero that an event of QoS 0 left behind would not be there after a restart
                self.drops[UNTOLD] += refused

    def dropped(self, drop: Dropped, now: float) -> None:
        """Count an event that a client does not get; one that does not read for so long is closed."""
        if drop.reason == GIVEN_UP and is_spared(drop.publication, now):
            return
        self.drops[COPY_FULL if drop.by_copy else drop.reason] += 1
        self.members.dropped(drop)
        name = self.names.client_name(drop.client)
        if self.traces and isinstance(drop.publication, Carried):
            self.note("dropped", name, drop.publication.message, drop.reason, now)
        if drop.reason in (FULL, PARTY_FULL) and not drop.by_copy and isinstance(drop.publication, Carried):
            self.core.custody.missed(name, drop.publication.message, overflows=drop.reason == FULL)

    def _hold(self, client: int) -> bool:
        """Hold back what was stored for a client whose subscriptions do not want all of that."""
        name = self.names.client_name(client)
        session = self.core.state.sessions.get(name)
        if session is None or not session.thin_at or session.connection is None:
            return False
        self.core.custody.hold(name)
        return True

    def _thin(self, client: int, now: float) -> None:
        """Send of what was held back what the client's subscriptions keep; the rest is done with."""
        name = self.names.client_name(client)
        self._done_without(client, name, self.core.custody.thin(name, now), now)
        self.core.custody.release(name, now)

    def _thin_parts(self, deliveries: list[Deliver], now: float) -> None:
        """Look at what clients were given of what is given them in parts, and is held back."""
        for client in dict.fromkeys(client for clients, _ in deliveries for client in clients):
            name = self.names.client_name(client)
            session = self.core.state.sessions.get(name)
            if session is not None and session.held and session.thin_at:
                self._done_without(client, name, self.core.custody.thin_part(name), now)

    def _done_without(self, client: int, name: str, gone: list[tuple[Message, str]], now: float) -> None:
        """Be done with events that a client does not want."""
        roamer = self.roamers.get(client)
        for message, reason in gone:
            self.members.settled(message, reason)
            if self.traces:
                self.note("dropped", name, message, reason, now)
            if roamer is not None:
                roamer.acknowledge(message)
                self.events.advance(client, roamer, message.source)

    def _ready(self, one: Any, now: float) -> None:
        roamer = self.roamers.get(one.client)
        if roamer is None or roamer.epoch != one.epoch:
            return
        if not one.complete:
            self._rejoin(one.client, now)
        if roamer.previous is None or roamer.previous == self.links.number:
            return
        self.handoff_count += 1
        how = facts.How(one.how).name.lower()
        client, origin = self.names.client_name(one.client), self.links.names_of[roamer.previous]
        if self.traces:
            session = self.core.state.sessions.get(client)
            left_s = session.left_s if session is not None else None
            self.note("moved", client, origin, left_s, roamer.since, now, how)
        self.note("handed_off", Handoff(client, origin, roamer.since, now, how, one.complete))

    def _rejoin(self, client: int, now: float) -> None:
        """Have a client's groups choose anew for events that may have gone to where its session is no more.

        Whoever picked it for them learns that this member has ended, as its address is there no more.
        """
        name = self.names.client_name(client)
        if name in self.core.state.sessions and self.core.custody.rejoin(name):
            self.report(now)

    def _close(self, client: int, epoch: int, now: float) -> None:
        """The client is with another broker, in a session that has nothing to do with the one here.

        Nobody will ask for what is stored for this one. Otherwise it had been given to the other broker, and
        would not be here any more.
        """
        roamer = self.roamers.get(client)
        if roamer is not None and roamer.epoch == epoch:
            self.giving.add(client)
            self.core.custody.end_session(self.names.client_name(client), now)
            self.report(now)
            self.giving.discard(client)
            self.roamers.pop(client, None)
            stored = self.broker.subscribers.stored_for(client, epoch)
            self.tell(facts.SubscriberGone(client, epoch, lost=len(stored)), now)
