"""One broker as a server: a FIFO queue before the core, and the links behind it.

The core handles a fact when its service begins, and what it sends leaves when its service ends. Nobody can
tell this from handling at the end, since a broker serves one fact after the other, and it lets the price of
the work depend on what the work turned out to be.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from sojourn.mobility.broker import Broker
from sojourn.routing.messages import Message

Port = tuple["Site", int]
"""A receiving broker, and the bit that the sender has there."""
Fan = tuple[tuple[Port, ...], tuple[int, ...], tuple[tuple[Port, ...], ...]]
"""Where a message to several neighbours goes: all ports, the links to them, and each port alone."""
Job = tuple[float, int, Any]
"""When it was received, the sender's bit (0 for a fact of our own), and the message or fact."""


class Site:
    """A broker in the world, with its queue and its load."""

    __slots__ = (
        "broker",
        "busy_s",
        "busy_with",
        "fans",
        "handled",
        "links",
        "number",
        "queue",
        "queue_area",
        "queue_at_s",
        "queue_max",
        "receivers",
        "sends",
        "sites",
        "timers",
    )

    def __init__(self, number: int, broker: Broker) -> None:
        self.number = number
        self.broker = broker
        # Two short ways into the core, for the loop over messages.
        self.receivers: tuple[Callable[[Any, int], None], ...] = broker.receivers
        self.sends: list[tuple[int, Message]] = broker.effects.sends
        self.fans: dict[int, Fan] = {}
        """By mask of neighbours: where a message to them goes."""
        self.links: dict[int, int] = {}
        """By neighbouring broker: the number of the link to it."""
        self.sites: list[Site] = []
        self.queue: deque[Job] = deque()
        self.busy_with: Job | None = None
        self.timers: set[tuple[int, int]] = set()
        """The broker's timers that run."""
        self.handled = 0
        self.busy_s = 0.0
        self.queue_area = 0.0
        self.queue_at_s = 0.0
        self.queue_max = 0

    def join(self, sites: list["Site"], first_link: int) -> int:
        """Take links to all neighbours, numbered from `first_link`; say which number is free next."""
        self.sites = sites
        for neighbour in self.broker.router.neighbours.brokers:
            self.links[neighbour] = first_link
            first_link += 1
        return first_link

    def fan(self, mask: int) -> Fan:
        """Where a message to the neighbours of a mask goes."""
        known = self.fans.get(mask)
        if known is None:
            names = self.broker.router.neighbours.named(mask)
            sites = [self.sites[name] for name in names]
            ports = tuple((site, site.broker.router.neighbours.bit(self.number)) for site in sites)
            links = tuple(self.links[name] for name in names)
            known = self.fans[mask] = (ports, links, tuple((port,) for port in ports))
        return known

    def note_queue(self, now: float) -> None:
        """Account for the queue's length up to now; call it before the length changes."""
        length = len(self.queue)
        self.queue_area += length * (now - self.queue_at_s)
        self.queue_at_s = now

    def begin_measuring(self, now: float) -> None:
        """Forget the load of the warm-up."""
        self.handled = 0
        self.busy_s = 0.0
        self.queue_area = 0.0
        self.queue_at_s = now
        self.queue_max = len(self.queue)
