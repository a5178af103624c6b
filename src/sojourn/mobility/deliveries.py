"""Each event's way to subscribers: delivered to those who are ready, stored for those who are not.

Where clients acknowledge what they get, an event is stored for whoever is ready too, until it is consumed.
One that does not fit a subscriber's queue is not delivered to it either: if the client left before it had
consumed it, the event would be lost and nobody would know. The drop says so at once.

The budget of the whole broker and the share of a party (`accounts.py`) are another matter: who is ready gets
an event that finds no room there, and only loses the second chance. Otherwise subscribers that are away could
silence those that are not.
"""

from sojourn.mobility.copies import State
from sojourn.mobility.facts import Consumed
from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.queues import FULL, Queues
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Deliver
from sojourn.routing.messages import Publish
from sojourn.routing.router import Router


class Deliveries:
    """The events that arrive at one broker by themselves."""

    __slots__ = (
        "_bytes_max",
        "_event_bytes",
        "_events_max",
        "_fed",
        "_keeps",
        "_queues",
        "_ready",
        "_router",
        "_shelf",
        "stored",
    )

    def __init__(self, scheme: Scheme, router: Router, shelf: Shelf, queues: Queues) -> None:
        self._router = router
        self._ready = router.effects.deliveries
        self._shelf = shelf
        self._fed = shelf.fed
        self._queues = queues
        self._keeps = scheme.acknowledged
        self._bytes_max = scheme.queue_bytes_each_max
        self._events_max = scheme.queue_events_max
        self._event_bytes = scheme.event_bytes
        self.stored = 0
        """In how many queues the last event was put, for whoever charges for it."""

    def publish(self, message: Publish, bit: int) -> None:
        """Route an event; deliver it to those who are ready, store it for those who are not."""
        self._router.publish(message, bit)
        self.stored = 0
        ready = self._ready
        if self._shelf.watched and ready and ready[-1].publication is message:
            self._part(ready.pop().clients, message)

    def _part(self, clients: tuple[int, ...], message: Publish) -> None:
        keeps, fed = self._keeps, self._fed
        size = 0  # an event is only weighed where it has to be stored, and once
        bytes_max, events_max = self._bytes_max, self._events_max
        here: list[int] = []
        kept: list[Holding] = []
        for key in clients:
            holding = fed.get(key)
            if holding is None or holding.is_open:
                here.append(key)
                continue
            if holding.ready:
                if holding.checks and not self._is_news(holding, message):
                    continue
                if not keeps:
                    here.append(holding.client)
                    continue
            size = size or message.size or self._event_bytes
            is_full = holding.bytes + size > bytes_max or len(holding.queue) >= events_max
            if is_full and not self._queues.make_room(holding, size):
                self._queues.refuse(holding, (message,), FULL)
                continue
            if holding.ready:
                here.append(holding.client)
            kept.append(holding)
        if here:
            self._ready.append(Deliver(tuple(here), message))
        if kept:
            kept = self._queues.within_shares(kept, message, size)
        if kept and self._queues.put(kept, message, size):
            self.stored = len(kept)
        elif kept:
            self._refuse(kept, message)

    def _is_news(self, holding: Holding, message: Publish) -> bool:
        """Whether the client lacks an event; a source's first one beyond its ceiling lifts the ceiling."""
        source = message.source
        ceiling, late = holding.ceiling, holding.late
        last = ceiling.get(source)
        if last is not None:
            if message.sequence <= last:
                return False
            del ceiling[source]
        if late is not None:
            late.note((message,), holding.marks)
        elif not ceiling:
            holding.checks = False
            if not self._keeps:
                self._shelf.set_open(holding, is_open=True)
        return True

    def _refuse(self, holdings: list[Holding], message: Publish) -> None:
        """There is no room for an event: who is not ready will not get it from here."""
        for holding in holdings:
            if not holding.ready:
                self._queues.refuse(holding, (message,), FULL)

    def on_consumed(self, fact: Consumed) -> None:
        """A connected client has events: they are stored no longer."""
        self.consumed(fact.client, fact.source, fact.sequence)

    def consumed(self, client: int, source: str, sequence: int) -> None:
        """A connected client has a source's events up to this one: they are stored no longer."""
        holding = self._shelf.main.get(client)
        if holding is not None and holding.state is State.PRESENT:
            self._queues.consume(holding, source, sequence)
