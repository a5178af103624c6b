"""What a broker's driver tells it: past-tense facts about messages, clients and timers."""

from enum import IntEnum
from typing import NamedTuple

from sojourn.routing.messages import NO_CAUSE, Marks, Message, Publish

NO_EPOCH = -1
"""An epoch that no connection has."""


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
    """Where it goes, if somebody knows; else what was learnt decides (`prediction.py`)."""
    came_from: int | None = None
    """The broker that it was at before."""


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


class SubscriberArrived(NamedTuple):
    """A subscriber that moves connected.

    `epoch` grows with every connection of the client, wherever it is; a driver whose clients do not count
    takes the clock. `previous` is the last broker known to have taken the client in, perhaps this one.
    """

    client: int
    epoch: int
    subscriptions: tuple[int, ...] | None
    """All it wants; None if its old broker has to be asked, as in the reactive scheme of paper 001. A client
    that changed its mind says so once more when it arrives, since its old broker may not have heard."""
    previous: int | None = None
    marks: Marks | None = None
    """What it has consumed. A client that says so gets each event once; others rely on `Consumed`."""
    cause: int = NO_CAUSE
    stays_here: bool = False
    """It was redirected already, or insists: serve it here."""
    party: str | None = None
    """On whose account events are stored for it (`accounts.py`); None for nobody's."""
    last_epoch: int | None = None
    """Of its last connection to `previous`: a copy that another connection had activated is out of date.
    None if nobody can say; `NO_EPOCH` if no copy here is to be relied on."""


class SubscriberLost(NamedTuple):
    """A subscriber's connection of that epoch is gone: it missed its pings, or said that it moves out."""

    client: int
    epoch: int
    cause: int = NO_CAUSE


class SubscriberChanged(NamedTuple):
    """A connected subscriber now wants exactly these subscriptions."""

    client: int
    epoch: int
    subscriptions: tuple[int, ...]
    cause: int = NO_CAUSE


class SubscriberGone(NamedTuple):
    """A connected subscriber unsubscribed from everything, for good."""

    client: int
    epoch: int
    cause: int = NO_CAUSE
    lost: int = 0
    """How many of the events stored for it, the oldest, it did not mean to miss: it was given up."""


class Consumed(NamedTuple):
    """A connected subscriber has consumed a source's events up to this one."""

    client: int
    source: str
    sequence: int


class CopiesDoubted(NamedTuple):
    """Some broker has forgotten what it did last: no active copy here is known to be wanted, or whole."""


class How(IntEnum):
    """How a subscriber that arrived came by its events (`effects.Ready.how`)."""

    FIRST = 0
    """It had no broker before."""
    SAME = 1
    """It came back to the broker it had left."""
    COPY = 2
    """An active copy waited for it: the pro-active scheme at work."""
    FETCHED = 3
    """They were fetched from the old broker: the reactive scheme, and the first crossing of an edge."""


Fact = (
    Received
    | ClientArrived
    | ClientLeft
    | ClientGone
    | ClientSubscribed
    | ClientUnsubscribed
    | ClientPublished
    | TimerFired
    | SubscriberArrived
    | SubscriberLost
    | SubscriberChanged
    | SubscriberGone
    | Consumed
    | CopiesDoubted
)
