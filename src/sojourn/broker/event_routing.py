"""The way of an event through one broker: from a client here or a neighbour, to clients here and neighbours.

Events that came together take it together (`runs.py`), as far as they go the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sojourn.broker.effects import REPEATED
from sojourn.broker.event_frames import Carried
from sojourn.broker.messages import Retain, Spread
from sojourn.broker.runs import runs_of
from sojourn.mqtt.message import Message
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

    # Of clients here -----------------------------------------------------------------------------------

    def publish(self, published: Sequence[Message], now: float) -> None:
        """Route what clients here published."""
        if len(published) == 1:
            self._publish(published[0], now)
            return
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

    def _take(self, publication: Carried, bit: int, now: float) -> None:
        """Have an event routed, by the short way, and do what follows."""
        self._route(publication, bit)
        self._follow(publication, now)

    def _follow(self, publication: Carried, now: float) -> None:
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
            clients.deliver(receivers, publication.message, now)
        if clients.members.reports:
            clients.members.follow(now)

    def _take_run(self, run: Sequence[Carried], bit: int, now: float) -> None:
        """Have a run routed: by its first event where the topic alone decides for all, else one by one."""
        clients, effects, first = self._clients, self._broker.effects, run[0]
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
                clients.deliver(receivers, publication.message, now)

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
            self._follow(publication, now)
        if together:
            self._links.send_run(towards, together, now)
