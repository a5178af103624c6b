"""Drives roaming subscribers: they connect, answer pings, lose their links and turn up elsewhere.

A link breaks without a word. Its broker misses pings, and only then is told that the client is lost; by then
the client may be with another broker. A client that is back at the same broker in time was never away. What
a client tells a new broker is what it knows itself: who served it last, and how far it got with each source.
Clients acknowledge every message; brokers book that together, now and then and when they lose a client.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sojourn.mobility import facts
from sojourn.sim.roaming.clients import INFINITY, NOWHERE, Client
from sojourn.sim.roaming.run import Sojourn
from sojourn.sim.servers import Site

if TYPE_CHECKING:
    from sojourn.sim.roaming.world import RoamingWorld

SETTLE_S = 1.0
"""What a first subscription may take to reach all brokers; what is published meanwhile is not owed yet."""


class Subscribers:
    """All subscribers of a world."""

    def __init__(self, world: "RoamingWorld", phases: list[float]) -> None:
        self._world = world
        self._phases = phases
        """By client: where between two pings it is, as a share of the interval."""
        self.broken = 0
        """Links that broke so far; their numbers are the causes of what follows."""

    def start(self) -> None:
        """Have everybody connect where it is at time 0, or comes to next."""
        for client in self._world.clients:
            stay = self._recall(client)
            if stay is not None:
                self._world.clock.plan(stay.from_s, self._connect, (client, stay))

    def _recall(self, client: Client) -> Sojourn | None:
        """The stay that a client is in, or comes to, at time 0; durable brokers remember those before it."""
        visited: dict[int, None] = {}
        for stay in client.path:
            if stay.to_s > 0:
                if self._world.scenario.scheme == "durable":
                    visited.pop(stay.broker, None)
                    self._visit(client, visited)
                return stay._replace(from_s=max(0.0, stay.from_s))
            visited.pop(stay.broker, None)
            visited[stay.broker] = None
        return None

    def _visit(self, client: Client, visited: Iterable[int]) -> None:
        """Tell brokers, at time 0, that a client had been there and left again."""
        for broker in visited:
            client.first_asked_s = self._world.clock.now
            client.epoch += 1
            arrived = facts.SubscriberArrived(client.number, client.epoch, (client.sub,), client.previous)
            client.previous = client.last = broker
            for fact in (arrived, facts.SubscriberLost(client.number, client.epoch)):
                self._world.submit(self._world.sites[broker], 0, fact)

    def _plan_stay(self, client: Client) -> None:
        """Have a client connect where its path takes it next."""
        stay = next(client.path, None)
        if stay is not None and self._world.clock.now < self._world.end_s:
            self._world.clock.plan(max(stay.from_s, self._world.clock.now), self._connect, (client, stay))

    def _connect(self, which: tuple[Client, Sojourn]) -> None:
        """A client's radio finds a broker; it asks to be served."""
        client, stay = which
        now = self._world.clock.now
        client.until_s = stay.to_s if stay.to_s < self._world.end_s else INFINITY
        if stay.to_s < self._world.end_s:
            self._world.clock.plan(stay.to_s, self._break, client)
        client.requested_s = client.asked_s = now
        client.first_asked_s = min(client.first_asked_s, now)
        client.changed = client.last is not None and client.last != stay.broker
        if client.changed:
            self._world.tally.note_move(client, client.last, stay.broker)
        self._request(client, stay.broker, stays_here=False)

    def _request(self, client: Client, broker: int, *, stays_here: bool) -> None:
        now = self._world.clock.now
        client.epoch += 1
        client.broker = client.last = broker
        client.link = NOWHERE
        client.connected_s = client.free_s = client.arrival_s = now
        asks_old_broker = self._world.scenario.scheme == "reactive" and client.previous is not None
        fact = facts.SubscriberArrived(
            client.number,
            client.epoch,
            None if asks_old_broker else (client.sub,),
            client.previous,
            self._marks(client),
            2 * client.move,
            stays_here,
        )
        if self._world.observer is not None:
            self._world.observer(now, ("arrived", client.number, broker))
        arrival = now + self._world.radio.control_s
        self._world.clock.plan(arrival, self._world.sent_up, (self._world.sites[broker], fact))

    def _marks(self, client: Client) -> dict[str, int] | None:
        """What a client says it has consumed; durable brokers have nobody to tell it to."""
        if self._world.scenario.scheme == "durable":
            return None
        return {self._world.publishers[at].source: mark for at, mark in enumerate(client.marks) if mark >= 0}

    def linked(self, site: Site, fact: facts.SubscriberArrived) -> None:
        """A broker has taken a client in: what it sends from now on goes over the new connection."""
        client = self._world.clients[fact.client]
        if client.epoch == fact.epoch and client.broker == site.number:
            client.link = site.number
            if client.owed_s == INFINITY:
                client.owed_s = self._world.clock.now + SETTLE_S

    def accepted(self, site: Site, fact: facts.SubscriberArrived, redirected: int | None) -> None:
        """A broker has handled a client's arrival, or asked it to go to another one."""
        client = self._world.clients[fact.client]
        if client.epoch != fact.epoch or self._world.clock.now + self._world.radio.delay_s >= client.until_s:
            return
        if redirected is not None:
            self._world.tally.redirects += 1
            self._request(client, redirected, stays_here=True)
            return
        client.previous = site.number
        client.acked = [-1] * len(client.acked)
        first = self._world.scenario.acknowledge_s * (0.5 + 0.5 * self._phases[client.number])
        self._world.clock.plan(self._world.clock.now + first, self._acknowledge, (client, client.epoch))

    def _acknowledge(self, which: tuple[Client, int]) -> None:
        """A connected client's broker books what the client has acknowledged since last time."""
        client, epoch = which
        now = self._world.clock.now
        if client.epoch != epoch or now >= client.until_s:
            return
        self._book(client, self._world.sites[client.broker])
        if now < self._world.end_s:
            self._world.clock.plan(now + self._world.scenario.acknowledge_s, self._acknowledge, which)

    def _book(self, client: Client, site: Site) -> None:
        for at, mark in enumerate(client.marks):
            if mark > client.acked[at]:
                client.acked[at] = mark
                source = self._world.publishers[at].source
                self._world.submit(site, 0, facts.Consumed(client.number, source, mark))

    def _break(self, client: Client) -> None:
        """A client's link breaks; its broker will notice when pings stay unanswered."""
        now, broker, scenario = self._world.clock.now, client.broker, self._world.scenario
        self._world.tally.note_left(client, broker, now)
        self.broken += 1
        client.move = self.broken
        client.broker = client.link = NOWHERE
        client.until_s = client.requested_s = -1.0
        client.left_s = now
        if self._world.observer is not None:
            self._world.observer(now, ("left", client.number, broker))
        # The last answered ping lies up to one interval back.
        since = (now / scenario.ping_s + self._phases[client.number]) % 1.0
        silence_s = scenario.ping_s * (scenario.pings_missed + 1 - since)
        fact = facts.SubscriberLost(client.number, client.epoch, 2 * client.move)
        self._world.clock.plan(now + silence_s, self._missed_pings, (client, self._world.sites[broker], fact))
        self._plan_stay(client)

    def _missed_pings(self, which: tuple[Client, Site, facts.SubscriberLost]) -> None:
        client, site, fact = which
        if client.epoch == fact.epoch:
            self._book(client, site)  # what it had acknowledged before the link broke
        # Back at the same broker it answers pings again, on a connection that the broker knows of.
        if client.broker != site.number or client.epoch == fact.epoch:
            self._world.submit(site, 0, fact)
