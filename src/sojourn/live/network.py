"""A broker among others: the routing and mobility cores tied to MQTT sessions and to the links.

The session core knows clients and packets, `mobility.Broker` knows where events go and what follows a client
that moves, the finder knows where a session is. This file only translates between them:

| what happens | what the cores are told |
| --- | --- |
| a client published | `ClientPublished`; what comes back as deliveries goes to the sessions |
| a client is admitted | its session is found (here, elsewhere, nowhere), then `SubscriberArrived` |
| it subscribed, acknowledged, left | `SubscriberChanged`, `Consumed`, `SubscriberLost` |
| its session ended | `SubscriberGone` |
| a frame came | its message, to the finder or the broker |

A session that ends with its connection does not roam: its subscriptions are made and withdrawn, no more.

State is plain and can be pickled with everything it holds; time and bytes come in as arguments.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from mqtt5 import ConnAckReasonCode as ConnectCode

from sojourn.live.channel import Channel, Position
from sojourn.live.config import Config
from sojourn.live.names import LiveInterests, Names, interest_of
from sojourn.live.roamers import Handoff, Roamer, Timers, Waiting, read_marks
from sojourn.live.status import Watcher
from sojourn.live.tracing import Tracer
from sojourn.live.wire import RETAIN, STATUS, Carried, Retain, Status, Wire
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.finding import EVERYBODY, FIND, FOUND, Find, Finder, Found
from sojourn.mobility.policies import Policy
from sojourn.mobility.schemes import Scheme
from sojourn.mqtt import conventions
from sojourn.mqtt.content import property_values
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Change, Turn
from sojourn.mqtt.handshake import Admission
from sojourn.mqtt.message import Message
from sojourn.mqtt.packets import decode
from sojourn.mqtt.session import Session
from sojourn.mqtt.session_state import SessionState
from sojourn.routing.effects import Effects
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay

EPOCHS_A_SECOND = 1_000
"""A connection is dated in milliseconds: finer dates would leave versions no room in 64 bits."""
NOBODY = 0
"""The client that stands for the broker itself."""
CHANGES_NO_INTERESTS = (facts.ClientPublished, facts.Consumed)
"""The commonest facts, which leave all subscriptions as they are."""
STATUS_QUEUE_BYTES = 1 << 20
"""A link with more than that waiting is spared the brokers' reports."""


class Network:
    """One broker's place among its neighbours."""

    def __init__(self, config: Config, name: str, core: Core, life: str) -> None:
        self.name = name
        self.names_of = [broker.name for broker in config.brokers]
        self.numbers = {broker: number for number, broker in enumerate(self.names_of)}
        self.number = self.numbers[name]
        graph: list[list[int]] = [[] for _ in self.names_of]
        for one, other in config.links:
            graph[self.numbers[one]].append(self.numbers[other])
            graph[self.numbers[other]].append(self.numbers[one])
        self.overlay = Overlay(graph)
        near = self.overlay.neighbours[self.number]
        self.core = core
        core.effects.collects = True
        self.interests = LiveInterests(covering=config.routing.covering)
        self.names = Names(self.interests)
        self.wire = Wire(self.names, len(self.names_of))
        self.channels = {self.names_of[peer]: Channel(name, self.names_of[peer], life) for peer in near}
        self.neighbours = Neighbours(near)
        self.broker = Broker(
            self.number,
            self.neighbours,
            self.interests,
            Policy.named(config.mobility.publishers),
            self.overlay.next_hop,
            scheme=Scheme.named(
                config.mobility.subscribers, timeout_s=config.mobility.timeout_s, event_bytes=1024
            ),
            flooding=config.routing.mode == "flooding",
        )
        self.follows = self.broker.subscribers.scheme.follows
        """Whether sessions move with their clients; with durable subscriptions every broker keeps its own."""
        self.tracer: Tracer | None = None
        self.watcher: Watcher | None = None
        self.finder = Finder(self.number, len(self.names_of))
        self.roamers: dict[int, Roamer] = {}
        self.waiting: dict[int, Waiting] = {}
        self.giving: set[int] = set()
        self.drops: Counter[str] = Counter()
        self.handoff_count = 0
        self.interests_changed = False
        """Whether the router's subscriptions may have changed since whoever follows them looked."""
        self.timers = Timers()
        if config.routing.mode == "content":
            self.broker.router.client_advertises(NOBODY, self.interests.anything)
            self._carry_out(self.broker.effects, 0.0)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the tracer and the watcher, which belong to one life of the process."""
        return self.__dict__ | {"tracer": None, "watcher": None}

    # Clients -------------------------------------------------------------------------------------------

    def admit(self, number: int, admission: Admission, now: float) -> None:
        """Let in a client whose name and password are in order, once its session is found."""
        connection = self.core.state.connections.get(number)
        if connection is None or connection.connect is None:
            return
        packet: Any = decode(connection.connect)
        client_id = packet.client_id or connection.fresh_id
        client = self.names.client_number(client_id)
        known = self.roamers.get(client)
        epoch = max(int(now * EPOCHS_A_SECOND), known.epoch + 1 if known is not None else 0)
        marks = read_marks(property_values(packet.user_properties, conventions.MARKS))
        named = property_values(packet.user_properties, conventions.PREVIOUS)
        previous = self.numbers.get(named[0]) if named else None
        waiting = Waiting(number, admission, epoch, previous, marks)
        if packet.clean_start and client_id in self.core.state.sessions:
            self.core.end_session(client_id, now, publishes_will=True)
            self.report(now)
        if client_id in self.core.state.sessions:
            self._enter(client, waiting, self.number, None, now)
        elif not packet.client_id or not self.follows:
            self._enter(client, waiting, None, None, now)
        elif packet.clean_start:
            # Wherever there is a session, it ends; nobody waits for that.
            self.finder.seek(client, epoch, None, now)
            self._enter(client, waiting, None, None, now)
        else:
            self.waiting[client] = waiting
            self.finder.seek(client, epoch, previous, now)
        self._follow_finder(now)

    def _enter(
        self, client: int, waiting: Waiting, previous: int | None, state: SessionState | None, now: float
    ) -> None:
        if waiting.connection not in self.core.state.connections:
            if state is not None:
                self._adopt(client, waiting.epoch, previous, state, now)
            return
        self._expect(client, waiting, previous, now)
        admission = waiting.admission
        if state is not None:
            admission = Admission(
                username=admission.username,
                attributes=admission.attributes,
                may_state=admission.may_state,
                permissions=admission.permissions,
                state=state,
            )
        self.core.admit(waiting.connection, admission, now)
        self.report(now)

    def _expect(self, client: int, waiting: Waiting, previous: int | None, now: float) -> None:
        """Note under which epoch the client that is about to be admitted comes."""
        old = self.roamers.get(client)
        fresh = Roamer(waiting.epoch, previous, waiting.marks, now)
        if old is not None and previous == self.number:
            # The session is here; the old connection, if there still is one, ends first under its own epoch.
            if old.arrived:
                self._lost(client, old, now)
            fresh.held = old.held
        elif old is not None and old.arrived:
            self._lost(client, old, now)
        self.roamers[client] = fresh

    def _adopt(self, client: int, epoch: int, previous: int | None, state: SessionState, now: float) -> None:
        """Keep a session whose client has gone again before its session came."""
        if state.client_id in self.core.state.sessions:
            return
        roamer = self.roamers[client] = Roamer(epoch, previous, None, now)
        session = self.core.adopt(state, now)
        self.report(now)
        self._arrive(client, session, roamer, now)
        self._lost(client, roamer, now)

    def report(self, now: float) -> None:
        """Tell the cores what the session core's last call led to."""
        effects = self.core.effects
        while effects.changes or effects.published or effects.settled:
            if effects.settled:  # before changes: a client may answer and leave in one breath
                settled = effects.settled[:]
                effects.settled.clear()
                for session, message in settled:
                    self._settled(session, message, now)
            if effects.changes:
                changes = effects.changes[:]
                effects.changes.clear()
                for change in changes:
                    self._changed(change, now)
            if effects.published:
                published = effects.published[:]
                effects.published.clear()
                for message in published:
                    self._publish(message, now)
        self._follow_finder(now)

    def _changed(self, change: Change, now: float) -> None:
        session = change.session
        client = self.names.client_number(session.client_id)
        roamer = self.roamers.get(client)
        if roamer is None:
            return
        match change.turn:
            case Turn.ARRIVED:
                self._arrive(client, session, roamer, now)
            case Turn.SUBSCRIBED | Turn.UNSUBSCRIBED:
                self._trace_interest(change, roamer, client, now)
                if roamer.arrived and client not in self.giving:
                    self._wants(client, session, roamer, now)
            case Turn.ADVERTISED:
                self._advertise(client, session, now)
            case Turn.LEFT:
                self.core.forget_queue(session)
                if roamer.arrived:
                    session.left_s = now
                    self._lost(client, roamer, now)
            case Turn.ENDED:
                self._ended(client, roamer, now)

    def _arrive(self, client: int, session: Session, roamer: Roamer, now: float) -> None:
        roamer.roams = session.expiry > 0
        roamer.arrived = True
        roamer.since = now
        if self.tracer is not None:
            self.tracer.came(session.client_id, dict(session.stated), now)
        wanted = self._interests_of(session)
        if not roamer.roams:
            self._wants(client, session, roamer, now)
            return
        roamer.held = wanted
        # What is in flight is sent again by the session core itself, so it is outstanding from the start.
        for delivery in session.inflight.values():
            if delivery is not None:
                roamer.note(delivery.message, settled=False)
        self._tell(
            facts.SubscriberArrived(
                client, roamer.epoch, wanted, roamer.previous, roamer.marks, stays_here=True
            ),
            now,
        )

    def _wants(self, client: int, session: Session, roamer: Roamer, now: float) -> None:
        wanted = self._interests_of(session)
        if roamer.roams:
            roamer.held = wanted
            self._tell(facts.SubscriberChanged(client, roamer.epoch, wanted), now)
            return
        before, roamer.held = roamer.held, wanted
        for interest in wanted:
            if interest not in before:
                self._tell(facts.ClientSubscribed(client, interest), now)
        for interest in before:
            if interest not in wanted:
                self._tell(facts.ClientUnsubscribed(client, interest), now)

    def _trace_interest(self, change: Change, roamer: Roamer, client: int, now: float) -> None:
        """Note that an interest began or ended; not that it came from, or went to, another broker."""
        one = change.subscription
        is_over = change.turn is Turn.UNSUBSCRIBED
        is_news = client not in self.giving and (is_over or roamer.arrived)
        if self.tracer is not None and one is not None and is_news:
            text = str(interest_of(one.pattern, one.filter))
            self.tracer.wants(change.session.client_id, text, one.since_s, now if is_over else None)

    def _interests_of(self, session: Session) -> tuple[int, ...]:
        found = {
            self.interests.subscription(interest_of(one.pattern, one.filter)): None
            for one in session.subscriptions.values()
        }
        return tuple(found)

    def _advertise(self, client: int, session: Session, now: float) -> None:
        numbers = tuple(self.names.advertisement_number(text) for text in session.advertisements)
        self._tell(facts.ClientArrived(client, numbers), now)

    def _lost(self, client: int, roamer: Roamer, now: float) -> None:
        roamer.arrived = False
        roamer.outstanding.clear()
        if self.tracer is not None:
            self.tracer.went(self.names.client_name(client), now)
        if roamer.roams:
            self._tell(facts.SubscriberLost(client, roamer.epoch), now)
        if client in self.broker.stays:
            self._tell(facts.ClientLeft(client), now)

    def _ended(self, client: int, roamer: Roamer, now: float) -> None:
        if client in self.giving:
            return
        del self.roamers[client]
        if self.tracer is not None:
            self.tracer.went(self.names.client_name(client), now)
        if roamer.roams:
            self._tell(facts.SubscriberGone(client, roamer.epoch), now)
        for interest in () if roamer.roams else roamer.held:
            self._tell(facts.ClientUnsubscribed(client, interest), now)
        if client in self.broker.stays:
            self._tell(facts.ClientGone(client), now)

    # Events --------------------------------------------------------------------------------------------

    def _publish(self, message: Message, now: float) -> None:
        publication = Carried(message)
        if self.tracer is not None:
            self.tracer.published(message, now)
        if message.retain:
            self._flood(Retain((publication,)), None, now)
        self._tell(facts.ClientPublished(publication), now)

    def _deliver(self, client: int, message: Message, now: float) -> None:
        roamer = self.roamers.get(client)
        if roamer is None or not roamer.arrived:
            return
        if roamer.has(message):
            return  # it is in flight, and the session core sends it again
        name = self.names.client_name(client)
        qos = self.core.deliver_to(name, message, now)
        if qos == 0 and self.tracer is not None:
            self.tracer.delivered(name, message, now)
        if not roamer.roams:
            return
        # At QoS 0 it was handed to the connection, or it is not wanted after all: no answer will come.
        roamer.note(message, settled=qos <= 0)
        if qos <= 0:
            self._advance(client, roamer, message.source, now)

    def _settled(self, session: Session, message: Message, now: float) -> None:
        if self.tracer is not None:
            self.tracer.delivered(session.client_id, message, now)
        client = self.names.client_number(session.client_id)
        roamer = self.roamers.get(client)
        if roamer is not None:
            roamer.acknowledge(message)
            self._advance(client, roamer, message.source, now)

    def _advance(self, client: int, roamer: Roamer, source: str, now: float) -> None:
        """Report as consumed what was acknowledged without a gap."""
        last = roamer.consumed(source)
        if last is not None and roamer.arrived:
            self._tell(facts.Consumed(client, source, last), now)

    # Other brokers -------------------------------------------------------------------------------------

    def frame_arrived(self, peer: str, position: Position, body: bytes, now: float) -> None:
        """Take in a frame of a neighbour."""
        sender = self.numbers[peer]
        message = self.wire.decode(body, now)
        if message.kind == FIND:
            self._on_find(message, sender, now)
        elif message.kind == FOUND:
            if message.destination == self.number:
                self.finder.answered(message, now)
            else:
                self._forward(message, now)
        elif message.kind == RETAIN:
            for publication in message.publications:
                self.core.retain(publication.message)
            self._flood(message, sender, now)
        elif message.kind == STATUS:
            self._on_status(message, sender, now)
        else:
            self._tell(facts.Received(message, sender), now)
        self.channels[peer].took(position)
        self._follow_finder(now)

    def tell_status(self, report: bytes, now: float) -> None:
        """Let every broker know how this one is doing."""
        self._pass_status(Status(self.number, report), None, now)

    def _on_status(self, message: Status, sender: int, now: float) -> None:
        if self.watcher is not None and 0 <= message.sender != self.number:
            self.watcher.heard(self.names_of[message.sender], message.report, now)
        self._pass_status(message, sender, now)

    def _pass_status(self, message: Status, sender: int | None, now: float) -> None:
        body = self.wire.encode(message, now)
        for peer in self.neighbours.brokers:
            channel = self.channels[self.names_of[peer]]
            # A link that is down or behind is spared: the next report says more than this one.
            if peer != sender and channel.open and channel.queued < STATUS_QUEUE_BYTES:
                channel.put(body, volatile=True)

    def _on_find(self, message: Find, sender: int, now: float) -> None:
        if message.destination == EVERYBODY:
            self._flood(message, sender, now)
        elif message.destination != self.number:
            self._forward(message, now)
            return
        client = message.client
        roamer = self.roamers.get(client)
        is_here = roamer is not None and self.names.client_name(client) in self.core.state.sessions
        self.finder.asked(message, roamer.epoch if roamer is not None and is_here else None)

    def _follow_finder(self, now: float) -> None:
        finder = self.finder
        while finder.gives or finder.sends or finder.results:
            gives, finder.gives = finder.gives, []
            for give in gives:
                self._give(give.client, give.epoch, give.to, now)
            sends, finder.sends = finder.sends, []
            for message in sends:
                if message.destination == EVERYBODY:
                    self._flood(message, None, now)
                else:
                    self._forward(message, now)
            results, finder.results = finder.results, []
            for result in results:
                self._found(result, now)

    def _give(self, client: int, epoch: int, to: int, now: float) -> None:
        """Hand a session to the broker that its client is with now."""
        client_id = self.names.client_name(client)
        roamer = self.roamers[client]
        session = self.core.state.sessions[client_id]
        self.core.forget_queue(session)  # the mobility core has those events, and brings them along
        if roamer.arrived:
            session.left_s = now
        state = self.core.export_session(client_id, now)
        self.giving.add(client)
        if roamer.arrived:
            self._lost(client, roamer, now)
        self.core.end_session(client_id, now)
        self.report(now)
        self.giving.discard(client)
        del self.roamers[client]
        self.finder.give(client, epoch, to, msgspec.msgpack.encode(state), roamer.epoch)

    def _found(self, result: Any, now: float) -> None:
        waiting = self.waiting.get(result.client)
        state = None
        if result.state is not None:
            try:
                state = msgspec.msgpack.decode(result.state, type=SessionState)
            except msgspec.MsgspecError:
                self.drops["unreadable session"] += 1
        if waiting is None or waiting.epoch != result.epoch:
            if state is not None:
                self._adopt(result.client, result.epoch, result.holder, state, now)
            return
        del self.waiting[result.client]
        if result.superseded:
            self.core.refuse(
                waiting.connection, ConnectCode.SERVER_BUSY, "The same client is connected to another broker."
            )
            return
        previous = result.holder if state is not None else waiting.previous
        self._enter(result.client, waiting, previous, state, now)

    def _forward(self, message: Find | Found, now: float) -> None:
        hop = self.overlay.next_hop(self.number, message.destination)
        self.channels[self.names_of[hop]].put(self.wire.encode(message, now))

    def _flood(self, message: Find | Found | Retain, sender: int | None, now: float) -> None:
        body = self.wire.encode(message, now)
        for peer in self.neighbours.brokers:
            if peer != sender:
                self.channels[self.names_of[peer]].put(body)

    # Facts in, effects out -----------------------------------------------------------------------------

    def _tell(self, fact: facts.Fact, now: float) -> None:
        if not isinstance(fact, CHANGES_NO_INTERESTS):
            self.interests_changed = True
        self._carry_out(self.broker.handle(fact, now), now)

    def _carry_out(self, effects: Effects, now: float) -> None:
        sends, deliveries, ready = effects.sends[:], effects.deliveries[:], effects.ready[:]
        drops, closes = effects.drops[:], effects.closes[:]
        for timer in effects.timers:
            self.timers.set(timer, now)
        for cancel in effects.cancels:
            self.timers.cancel(cancel)
        effects.clear()
        for mask, message in sends:
            body = self.wire.encode(message, now)
            volatile = isinstance(message, Carried) and not message.message.qos
            for peer in self.neighbours.named(mask):
                self.channels[self.names_of[peer]].put(body, volatile=volatile)
        thinned = [one.client for one in ready if self._hold(one.client)]
        for clients, publication in deliveries:
            assert isinstance(publication, Carried), "live brokers carry MQTT messages"
            for client in clients:
                self._deliver(client, publication.message, now)
        for client in thinned:
            self._thin(client, now)
        for drop in drops:
            self.drops[drop.reason] += 1
            if self.tracer is not None and isinstance(drop.publication, Carried):
                name = self.names.client_name(drop.client)
                self.tracer.dropped(name, drop.publication.message, drop.reason, now)
        for one in ready:
            self._ready(one, now)
        for close in closes:
            self._close(close.client, close.epoch, now)

    def _hold(self, client: int) -> bool:
        """Hold back what was stored for a client whose subscriptions do not want all of that."""
        name = self.names.client_name(client)
        session = self.core.state.sessions.get(name)
        if session is None or not session.thin_at or session.connection is None:
            return False
        self.core.hold(name)
        return True

    def _thin(self, client: int, now: float) -> None:
        """Send of what was held back what the client's subscriptions keep; the rest is done with."""
        name, roamer = self.names.client_name(client), self.roamers.get(client)
        for message, reason in self.core.thin(name, now):
            if self.tracer is not None:
                self.tracer.dropped(name, message, reason, now)
            if roamer is not None:
                roamer.acknowledge(message)
                self._advance(client, roamer, message.source, now)
        self.core.release(name, now)

    def _ready(self, one: Any, now: float) -> None:
        roamer = self.roamers.get(one.client)
        if roamer is None or roamer.epoch != one.epoch:
            return
        if roamer.previous is None or roamer.previous == self.number:
            return
        self.handoff_count += 1
        how = facts.How(one.how).name.lower()
        client, origin = self.names.client_name(one.client), self.names_of[roamer.previous]
        if self.tracer is not None:
            session = self.core.state.sessions.get(client)
            left_s = session.left_s if session is not None else None
            self.tracer.moved(client, origin, left_s, roamer.since, now, how)
        if self.watcher is not None:
            self.watcher.handed_off(Handoff(client, origin, roamer.since, now, how, one.complete))

    def _close(self, client: int, epoch: int, now: float) -> None:
        """The client is with another broker; its session went there or will not be asked for."""
        roamer = self.roamers.get(client)
        if roamer is not None and roamer.epoch == epoch:
            self.giving.add(client)
            self.core.end_session(self.names.client_name(client), now)
            self.report(now)
            self.giving.discard(client)
            self.roamers.pop(client, None)

    # Time ----------------------------------------------------------------------------------------------

    def next_moment(self) -> float | None:
        """When `time_passed` has something to do, at the latest."""
        moments = [self.finder.next_moment(), self.timers.next_moment()]
        return min((moment for moment in moments if moment is not None), default=None)

    def time_passed(self, now: float) -> None:
        """Let timers run out."""
        while (due := self.timers.due(now)) is not None:
            self._tell(facts.TimerFired(*due), now)
        self.finder.time_passed(now)
        self._follow_finder(now)
        self.report(now)

    def restarted(self, life: str, now: float) -> None:
        """The broker was killed and is back from its journal: no connection is left."""
        for channel in self.channels.values():
            channel.reborn(life)
        for number in list(self.core.state.connections):
            self.core.lost(number, now)
        self.waiting.clear()
        self.report(now)
