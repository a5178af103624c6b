"""What a displayer that moves carries along, and what brokers tell each other of it (paper 003, 4.3).

A displayer numbers its connections and logs each: at which broker, from when to when, and how many events it
received over it. The log is uploaded with the subscriptions at every new connection. All of this is plain
data, so that any driver can carry it.
"""

from typing import NamedTuple

from sojourn.edge.properties import EventId
from sojourn.edge.queues import Queued
from sojourn.routing.messages import Publish


class Connection(NamedTuple):
    """One line of a displayer's log."""

    number: int
    """The displayer's count of its connections; larger is later."""
    broker: int
    from_s: float
    to_s: float | None
    """None while it lasts."""
    received: int
    """Events that arrived over it; they were numbered in the order they were sent."""


class Fetch(NamedTuple):
    """To `destination`: the displayer is with `asker`; hand over what you keep for it, and stop watching."""

    destination: int
    asker: int
    client: int
    number: int
    """The connection on whose behalf it asks."""
    received: tuple[tuple[int, int], ...]
    """By number of a connection at the destination: how many events arrived over it."""


class Handed(NamedTuple):
    """To `destination`: what `holder` kept for a displayer, and what it knows to have been delivered."""

    destination: int
    holder: int
    client: int
    number: int
    """The connection it was asked for; other numbers mean that it is passed on from elsewhere."""
    items: tuple[Queued, ...]
    delivered: tuple[tuple[EventId, float], ...]
    """Events that the displayer has, and when each was generated."""


class Stamped(Publish):
    """A publication that knows when its event was generated."""

    __slots__ = ("generated_s",)

    def __init__(self, item: Queued) -> None:
        super().__init__(item.event, size=item.size_bytes)
        self.generated_s = item.generated_s

    def item(self) -> Queued:
        """The same as an entry of a queue."""
        return Queued(self.event, self.generated_s, self.size)


def event_id(item: Queued) -> EventId:
    """What tells an event from all others."""
    return item.event.source, item.event.sequence
