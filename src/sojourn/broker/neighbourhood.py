"""A broker's neighbours: which brokers there are, the channels to those next to it, what goes out.

A broker's number is its place in the configuration. Messages with a destination go hop by hop along the
overlay that all brokers compute alike; questions, retained events and reports are flooded over it.

State is plain and can be pickled with everything it holds; time and bytes come in as arguments.
"""

from __future__ import annotations

from typing import Any

from sojourn.broker.channel import Channel
from sojourn.broker.names import LiveInterests, Names
from sojourn.broker.settings import Settings
from sojourn.broker.wire import Retain, Status, Wire
from sojourn.broker.witnesses import Watcher
from sojourn.mobility.finding import Find, Found
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay

STATUS_QUEUE_BYTES = 1 << 20
"""A link with more than that waiting is spared the brokers' reports."""

DOWN_S = 3.0
"""Who has been out of reach for so long is not waited for; a broker that is restarted is back before that."""


class Neighbourhood:
    """The brokers around one, seen from it."""

    def __init__(self, settings: Settings, life: str) -> None:
        self.settings = settings
        name = self.name = settings.name
        self.names_of = list(settings.brokers)
        self.numbers = {broker: number for number, broker in enumerate(self.names_of)}
        self.number = self.numbers[name]
        graph: list[list[int]] = [[] for _ in self.names_of]
        for one, other in settings.links:
            graph[self.numbers[one]].append(self.numbers[other])
            graph[self.numbers[other]].append(self.numbers[one])
        self.overlay = Overlay(graph)
        near = self.overlay.neighbours[self.number]
        self.interests = LiveInterests(covering=settings.routing.covering)
        self.names = Names(self.interests)
        self.wire = Wire(self.names, len(self.names_of))
        self.channels = {self.names_of[peer]: Channel(name, self.names_of[peer], life) for peer in near}
        self.neighbours = Neighbours(near)
        self.down_since: dict[str, float] = {}
        """By neighbour that there is no connection to: since when."""
        self.watcher: Watcher | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the watcher, which belongs to one life of the process."""
        return self.__dict__ | {"watcher": None}

    def linked(self, peer: str, now: float, *, up: bool) -> None:
        """A connection to a neighbour is there, or gone."""
        if up:
            self.down_since.pop(peer, None)
        else:
            self.down_since.setdefault(peer, now)

    def _out_of_reach(self, now: float) -> dict[int, float]:
        """The brokers on the far side of a link that has been down for a while, and since when."""
        down = {peer: since_s for peer, since_s in self.down_since.items() if now - since_s >= DOWN_S}
        away = {self.numbers[peer]: since_s for peer, since_s in down.items()}
        if not away:
            return {}
        others = (number for number in range(len(self.names_of)) if number != self.number)
        hops = ((number, self.overlay.next_hop(self.number, number)) for number in others)
        return {number: away[hop] for number, hop in hops if hop in away}

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

    def _forward(self, message: Find | Found, now: float) -> None:
        hop = self.overlay.next_hop(self.number, message.destination)
        self.channels[self.names_of[hop]].put(self.wire.encode(message, now))

    def _flood(self, message: Find | Found | Retain, sender: int | None, now: float) -> None:
        body = self.wire.encode(message, now)
        for peer in self.neighbours.brokers:
            if peer != sender:
                self.channels[self.names_of[peer]].put(body)
