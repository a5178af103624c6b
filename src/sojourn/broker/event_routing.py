"""The way of an event through one broker: from a client here or a neighbour, to clients here and neighbours.

Events that came together take it together (`runs.py`), as far as they go the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from sojourn.broker.carried import Carried
from sojourn.broker.effects import REPEATED
from sojourn.broker.messages import Retain, Spread
from sojourn.broker.roamers import Roamer
from sojourn.broker.runs import runs_of
from sojourn.mqtt.message import Message
from sojourn.mqtt.session import Delivery, Session
from sojourn.routing.messages import Kind
from sojourn.routing.neighbours import LOCAL

if TYPE_CHECKING:
    from sojourn.broker.clients import Clients


class EventRouting:
    """Routes events at one broker, and has done what follows."""

    def __init__(self, clients: Clients) -> None:
        self._clients, self._links = clients, clients.links
        self._broker = clients.broker
        self._route = clients.broker.receivers[Kind.PUBLISH]
        self._consumed = clients.broker.subscribers.consumed

    # Of clients here -----------------------------------------------------------------------------------

    def report(self, now: float) -> None:
        """Tell the cores what the session core's last call led to."""
        effects = self._clients.core.effects
        while effects.changes or effects.published or effects.settled:
            if effects.settled:  # before changes: a client may answer and leave in one breath
                settled = effects.settled[:]
                effects.settled.clear()
                for session, delivery, why_not in settled:
                    self._settled(session, delivery, why_not, now)
                if self._clients.members.reports:
                    self._clients.members.follow(now)
            if effects.changes:
                changes = effects.changes[:]
                effects.changes.clear()
                for change, following in zip_longest(changes, changes[1:]):
                    self._clients.changed(change, now, is_last=not change.goes_on(following))
            if effects.published:
                published = effects.published[:]
                effects.published.clear()
                if len(published) == 1:
                    self._publish(published[0], now)
                else:
                    self._publish_all(published, now)

    def weigh(self, topic: str) -> int:
        """What routing an event of a client here is going to cost (`mqtt/costs.py`)."""
        interests, shares = self._links.interests, self._clients.shares
        cost = 0 if topic in interests.by_topic else interests.cost_of(topic)
        return cost + shares.cost_of(topic) if shares.groups else cost

    def _publish_all(self, published: Sequence[Message], now: float) -> None:
        """Route what a client here published together."""
        clients = self._clients
        for run in runs_of(published):
            if len(run) == 1 or clients.shares.groups or self._broker.router.untold:
                for message in run:
                    self._publish(message, now)
            else:
                self._publish_run(run, now)

    def _publish(self, message: Message, now: float) -> None:
        """Route an event of a client here."""
        clients, publication = self._clients, Carried(message)
        if clients.traces:
            clients.note("published", message, now)
        if message.retain:
            self._retain(publication, now)
        else:
            self._take(publication, LOCAL, now)
        picked: list[Carried] = []
        if clients.shares.groups or self._broker.router.untold:
            picked += clients.shares.pick(message, now)
            self.route(picked, now)
        if not message.qos:
            store = self._broker.subscribers.store
            if publication in store or any(one in store for one in picked):
                clients.stored_unsure.append(message.sequence)

    def _publish_run(self, run: Sequence[Message], now: float) -> None:
        clients = self._clients
        if clients.traces:
            for message in run:
                clients.note("published", message, now)
        publications = [Carried(message) for message in run]
        self._take_run(publications, LOCAL, now)
        if not run[0].qos:
            store = self._broker.subscribers.store
            clients.stored_unsure += [one.sequence for one in publications if one in store]

    def _retain(self, publication: Carried, now: float) -> None:
        """Let every broker know an event that is to be retained, or that none is kept for its topic."""
        message = publication.message
        told = self._clients.core.state.retained.told(message, now)
        if told is message or message.payload_at == len(message.frame):
            self.spread(publication, None, now)
        else:  # a will beyond its party's share is an event like any other, and ends what was kept
            self._links.flood(Retain((Carried(told),)), None, now)
            self._take(publication, LOCAL, now)

    def spread(self, publication: Carried, sender: int | None, now: float) -> None:
        """Send an event that is retained to all brokers, and give it to the clients here that want it."""
        self._links.flood(Spread((publication,)), sender, now, publication.message)
        self._take(publication, self._links.neighbours.everyone, now)

    def route(self, publications: Iterable[Carried], now: float) -> None:
        """Route events that this broker sends to members of groups."""
        for publication in publications:
            self._take(publication, LOCAL, now)

    # Of neighbours -------------------------------------------------------------------------------------

    def arrived(self, publication: Carried, bit: int, now: float) -> None:
        """Route an event of a neighbour, for which a bit stands, unless it came before."""
        message = publication.message
        if not message.qos or not self.came_before(message):
            self._take(publication, bit, now)

    def run_arrived(self, publications: Sequence[Carried], bit: int, now: float) -> None:
        """Route a run of a neighbour, but for what came before."""
        if publications[0].message.qos:
            publications = [one for one in publications if not self.came_before(one.message)]
        if self._broker.router.untold:
            for publication in publications:
                self._take(publication, bit, now)
        elif publications:
            self._take_run(publications, bit, now)

    def came_before(self, message: Message) -> bool:
        """Whether an event of a neighbour is one that came, or is older than one; else it has come now."""
        clients = self._clients
        if message.sequence <= clients.seen.get(message.source, 0):
            clients.drops[REPEATED] += 1
            return True
        clients.seen[message.source] = message.sequence
        return False

    # What follows --------------------------------------------------------------------------------------

    def _take(self, publication: Carried, bit: int, now: float, *, is_routed: bool = False) -> None:
        """Have an event routed, by the short way, and do what follows."""
        if not is_routed:
            self._route(publication, bit)
        clients, effects = self._clients, self._broker.effects
        if effects.guesses or effects.drops:
            clients.carry_out(effects, now)
            return
        sends, deliveries = effects.sends[:], effects.deliveries[:]
        effects.sends.clear()
        effects.deliveries.clear()
        for mask, _ in sends:
            self._links.send(mask, publication, now)
        for receivers, _ in deliveries:
            self.deliver(receivers, publication.message, now)
        if clients.members.reports:
            clients.members.follow(now)

    def _take_run(self, run: Sequence[Carried], bit: int, now: float) -> None:
        """Have a run routed: by its first event where the topic alone decides for all, else one by one."""
        effects, first = self._broker.effects, run[0]
        self._route(first, bit)
        is_decided = first.topic in self._links.interests.by_topic and not self._broker.subscribers.looks
        if not is_decided:
            self._take_each(run, bit, now)
            return
        sends, deliveries = effects.sends[:], effects.deliveries[:]
        effects.sends.clear()
        effects.deliveries.clear()
        for mask, _ in sends:
            self._links.send_run(mask, run, now)
        for receivers, _ in deliveries:
            for publication in run:
                self.deliver(receivers, publication.message, now)

    def _take_each(self, run: Sequence[Carried], bit: int, now: float) -> None:
        """Do what follows from the routing of a run's first event, and route the others one by one.

        Those in a row that go to the same neighbours are sent together, as they are where the topic decides.
        """
        effects = self._broker.effects
        towards, together = 0, list(run[:0])
        for publication in run:
            if publication is not run[0]:
                self._route(publication, bit)
            mask = 0
            for one, _ in effects.sends:
                mask |= one
            effects.sends.clear()
            if together and mask != towards:
                self._links.send_run(towards, together, now)
                together = []
            if mask:
                together.append(publication)
            towards = mask
            self._take(publication, bit, now, is_routed=True)
        if together:
            self._links.send_run(towards, together, now)

    # To clients here -----------------------------------------------------------------------------------

    def deliver(self, receivers: Iterable[int], message: Message, now: float) -> None:
        """Hand an event to clients, and note that it is on its way to them."""
        clients, source, sequence = self._clients, message.source, message.sequence
        here: list[tuple[int, Roamer]] = []
        sessions: list[Session] = []
        for client in dict.fromkeys(receivers):
            roamer = clients.roamers.get(client)
            if roamer is None or not roamer.arrived or sequence in roamer.outstanding.get(source, ()):
                continue  # what is in flight the session core sends again
            session = roamer.session
            if session is None or session.ended:
                session = roamer.session = clients.core.state.sessions.get(clients.names.client_name(client))
            if session is None or session.connection is None:
                continue  # its session came when it had gone again: what is stored for it stays so
            here.append((client, roamer))
            sessions.append(session)
        levels = clients.core.deliverer.deliver_to_each(message, sessions, now) if sessions else ()
        for (client, roamer), session, qos in zip(here, sessions, levels, strict=True):
            if qos == 0 and clients.traces and not message.address:
                clients.note("delivered", session.client_id, message, now)
            if qos <= 0 and message.address:
                clients.members.handed(session, message, qos)
            if not roamer.roams:
                continue
            # At QoS 0 it was handed to the connection, or it is not wanted after all: no answer will come.
            if source in roamer.outstanding:
                roamer.note(message, settled=qos <= 0)
                if qos <= 0:
                    self.advance(client, roamer, source)
            elif qos > 0:
                roamer.outstanding[source] = {sequence: False}
            else:
                self._consumed(client, source, sequence)

    def _settled(self, session: Session, delivery: Delivery, why_not: str, now: float) -> None:
        message = delivery.message
        if message.address:
            self._clients.members.settled(message, why_not)
        elif self._clients.traces and why_not:
            self._clients.note("dropped", session.client_id, message, why_not, now)
        elif self._clients.traces:
            self._clients.note("delivered", session.client_id, message, now)
        client = self._clients.names.client_number(session.client_id)
        roamer = self._clients.roamers.get(client)
        if roamer is not None and not delivery.kept:
            roamer.acknowledge(message)
            self.advance(client, roamer, message.source)

    def advance(self, client: int, roamer: Roamer, source: str) -> None:
        """Report as consumed what was acknowledged without a gap."""
        last = roamer.consumed(source)
        if last is not None and roamer.arrived:
            self._consumed(client, source, last)
