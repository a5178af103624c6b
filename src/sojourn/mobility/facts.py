"""What a broker's driver tells it: past-tense facts about messages, clients and timers."""

from typing import NamedTuple

from sojourn.routing.messages import NO_CAUSE, Message, Publish


class Received(NamedTuple):
    """A message came from a neighbouring broker."""

    message: Message
    sender: int


class ClientArrived(NamedTuple):
    """A publisher connected and named all its advertisements."""

    client: int
    advertisements: tuple[int, ...]
    cause: int = NO_CAUSE
    proxies: tuple[int, ...] = ()
    """The brokers that are to keep its tree; given at its first arrival, and empty afterwards."""


class ClientLeft(NamedTuple):
    """A publisher lost its connection and is expected at another broker, or anywhere."""

    client: int
    cause: int = NO_CAUSE
    expected_at: int | None = None


class ClientGone(NamedTuple):
    """A connected publisher said goodbye for good."""

    client: int
    cause: int = NO_CAUSE
    home: int | None = None
    """The broker that enrolled its proxies, if it has any: the one it first connected to."""


class ClientSubscribed(NamedTuple):
    """A local client made a subscription."""

    client: int
    subscription: int
    cause: int = NO_CAUSE


class ClientUnsubscribed(NamedTuple):
    """A local client withdrew a subscription, or left."""

    client: int
    subscription: int
    cause: int = NO_CAUSE


class ClientPublished(NamedTuple):
    """A local client sent an event."""

    publication: Publish


class TimerFired(NamedTuple):
    """A timer that the broker set has run out."""

    client: int
    token: int


Fact = (
    Received
    | ClientArrived
    | ClientLeft
    | ClientGone
    | ClientSubscribed
    | ClientUnsubscribed
    | ClientPublished
    | TimerFired
)
