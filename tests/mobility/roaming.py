"""A network of brokers that serve one moving subscriber, and a record of all that they say about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.holdings import Holding
from sojourn.mobility.policies import Policy
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Close, Dropped, Ended, Ready
from sojourn.routing.messages import Handoff, Publish
from sojourn.routing.neighbours import Neighbours
from tests.routing.network import Network

S = 7


class Watched(Network):
    """Brokers over flooded events; a source's events are numbered from 0."""

    def __init__(self, graph: Sequence[Sequence[int]], scheme: Scheme) -> None:
        super().__init__(graph)
        self.scheme = scheme
        self.brokers = [self.new_broker(number) for number in range(len(graph))]
        self.got: list[tuple[str, int]] = []
        """What S was given, in order."""
        self.ready: list[Ready] = []
        self.drops: list[Dropped] = []
        self.closes: list[Close] = []
        self.ends: list[Ended] = []
        self.last: dict[str, int] = {}

    def new_broker(self, number: int) -> Broker:
        """A broker that knows nothing."""
        return Broker(
            number,
            Neighbours(self.overlay.neighbours[number]),
            self.interests,
            Policy(),
            self.overlay.next_hop,
            scheme=self.scheme,
            flooding=True,
        )

    def forward(self, broker: int) -> None:
        """Carry out a broker's effects, and note what it says."""
        effects = self.brokers[broker].effects
        self.ready += effects.ready
        self.drops += effects.drops
        self.closes += effects.closes
        self.ends += effects.ends
        for delivery in effects.deliveries:
            event = delivery.publication.event
            self.got += [(event.source, event.sequence) for client in delivery.clients if client == S]
        super().forward(broker)

    def arrive(
        self,
        broker: int,
        epoch: int,
        previous: int | None = None,
        *,
        settles: bool = True,
        marks: dict[str, int] | None = None,
        **more: Any,
    ) -> None:
        """S connects, and the network settles or not."""
        given = {"subscriptions": (self.interests.sub(1),), **more}
        self.feed(broker, facts.SubscriberArrived(S, epoch, previous=previous, marks=marks or {}, **given))
        if settles:
            self.settle()

    def lose(self, broker: int, epoch: int) -> None:
        """S is lost and the network settles."""
        self.feed(broker, facts.SubscriberLost(S, epoch))
        self.settle()

    def say(self, source: str = "p", broker: int = 0, *, size: int = 0, settles: bool = True) -> Publish:
        """One more event of a source that S wants."""
        number = self.last[source] = self.last.get(source, -1) + 1
        publication = Publish(Event({"n": 1}, source=source, sequence=number), size=size)
        self.feed(broker, facts.ClientPublished(publication))
        if settles:
            self.settle()
        return publication

    def consume(self, broker: int, sequence: int, source: str = "p") -> None:
        """S says what it has consumed."""
        self.feed(broker, facts.Consumed(S, source, sequence))

    def holding(self, broker: int) -> Holding:
        """What counts of what a broker holds for S."""
        return self.brokers[broker].subscribers.main[S]

    def timer(self, broker: int) -> tuple[int, int, int]:
        """The one timer that runs at a broker."""
        (found,) = [key for key in self.timers if key[0] == broker]
        return found

    def under_way(self, link: tuple[int, int], kind: type[Handoff]) -> list[Any]:
        """The messages of a kind that wait on a link."""
        return [message for message in self.links[link] if isinstance(message, kind)]

    def dropped(self) -> list[tuple[str, int, str]]:
        """Source, number and reason of each event that was reported as dropped."""
        return [
            (one.publication.event.source, one.publication.event.sequence, one.reason) for one in self.drops
        ]
