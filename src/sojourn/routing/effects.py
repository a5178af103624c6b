"""What a broker asks its driver to do.

One `Effects` object belongs to a broker and is reused: the driver carries out what is in it and clears it
before the next fact. Neighbours stand in it as a mask with one bit a neighbour (see `neighbours.py`), so
that telling a hundred neighbours is one entry.
"""

from typing import NamedTuple

from sojourn.routing.messages import Message, Publish


class Send(NamedTuple):
    """Send one message to every neighbour of a mask."""

    to: int
    message: Message


class Deliver(NamedTuple):
    """Hand an event to local clients, once each."""

    clients: tuple[int, ...]
    publication: Publish


class SetTimer(NamedTuple):
    """Feed `TimerFired(client, token)` back after `delay_s`."""

    client: int
    token: int
    delay_s: float


class CancelTimer(NamedTuple):
    """Forget that timer; a broker also survives one that fires all the same."""

    client: int
    token: int


class Dropped(NamedTuple):
    """An event will not reach a client from this broker."""

    client: int
    publication: Publish
    reason: str
    """`queue full`, `timeout`, `came too late` or `session given up`."""
    by_copy: bool = False
    """Whether a copy had no room: the broker that controls it says itself what the client misses."""


class Ready(NamedTuple):
    """A client that arrived has all its events: those stored were delivered, new ones follow at once."""

    client: int
    epoch: int
    how: int
    """One of `mobility.facts.How`."""
    complete: bool
    """False where nobody knew the client any more, or a broker did not answer in time."""


class Redirect(NamedTuple):
    """Ask a client that arrived to connect to another broker instead; nothing was done for it here."""

    client: int
    broker: int


class Close(NamedTuple):
    """End a client's connection of that epoch: it is with another broker."""

    client: int
    epoch: int


class Ended(NamedTuple):
    """Everything kept for a subscriber is gone, since it was away for too long: its session is to end too."""

    client: int
    epoch: int
    """Of its last connection here; a later one is another matter."""


class Effects:
    """The reused lists of what is to be done, in order within each list."""

    __slots__ = (
        "begun",
        "cancels",
        "closes",
        "deliveries",
        "drops",
        "ends",
        "guesses",
        "ready",
        "redirects",
        "sends",
        "timers",
    )

    def __init__(self) -> None:
        self.sends: list[tuple[int, Message]] = []
        """`Send`s as plain pairs, since they are built a hundred thousand times a second."""
        self.guesses: list[tuple[int, Publish]] = []
        """Events for neighbours that have not said what they want; to be sent as long as there is room."""
        self.deliveries: list[Deliver] = []
        self.timers: list[SetTimer] = []
        self.cancels: list[CancelTimer] = []
        self.drops: list[Dropped] = []
        self.begun: list[int] = []
        """Clients that are given what was stored for them in parts; they are ready after the last."""
        self.ready: list[Ready] = []
        self.redirects: list[Redirect] = []
        self.closes: list[Close] = []
        self.ends: list[Ended] = []

    def clear(self) -> None:
        """Empty every list, after the driver has done what they say."""
        self.sends.clear()
        self.deliveries.clear()
        self.timers.clear()
        self.cancels.clear()
        if self.guesses:
            self.guesses.clear()
        if self.drops:
            self.drops.clear()
        if self.begun:
            self.begun.clear()
        if self.ready:
            self.ready.clear()
        if self.redirects:
            self.redirects.clear()
        if self.closes:
            self.closes.clear()
        if self.ends:
            self.ends.clear()
