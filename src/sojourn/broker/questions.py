"""What people may ask a live broker about its clients, filters and topics, and the answers.

A question names no broker: each broker answers for itself, and whoever asked puts the answers together
(`live/page/asking.py`). Lists come in the order of their keys and begin after a key, so that the first rows
of all brokers together are the first rows of the network, and the last key of a page begins the next one.

No answer holds a payload, a password or what a client proved itself with.
"""

from __future__ import annotations

import msgspec

ROWS_MAX = 200
"""Rows of one answer, whatever was asked for."""
TEXT_MAX = 1_024
"""Characters of a name, topic or filter that are told."""
TRAIL_MAX = 200
"""Hand-offs of one client that are told: the last ones."""


class AskClients(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="clients"):
    """Which clients have sessions here, in order of their names."""

    needle: str = ""
    """What the name contains, whatever the case."""
    after: str = ""
    """The list begins behind this name."""
    state: str = ""
    """`here` for those that are connected, `away` for the others; empty for all."""
    rows: int = 50


class AskClient(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="client"):
    """What is known of one client."""

    client: str


class AskFilters(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="filters"):
    """What clients here subscribe to, in order of topic filter and content filter."""

    needle: str = ""
    after: tuple[str, str] = ("", "")
    rows: int = 50


class AskTopics(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="topics"):
    """What is published here, the busiest topics first."""

    needle: str = ""
    rows: int = 100


class AskWho(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="who"):
    """Who here would get this event, if it were published."""

    topic: str
    payload: str = ""
    policy: str = ""
    """Who may see it, as publishers say it; empty for everybody."""
    qos: int = 1
    rows: int = 100


Question = AskClients | AskClient | AskFilters | AskTopics | AskWho


class ClientRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A client in a list."""

    client: str
    here: bool
    since_s: float | None
    """Since when it is connected, or away; None where that is not known."""
    user: str
    subscriptions: int
    waiting: int
    waiting_bytes: int


class ClientsFound(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Clients, and how many there are."""

    rows: list[ClientRow]
    count: int
    """Sessions that fit the question, shown or not."""
    looked: int
    sessions: int
    """Sessions here; where fewer were looked at, the list is not whole."""


class SubscriptionRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One subscription of a client."""

    topic: str
    filter: str
    qos: int
    since_s: float
    missed: str
    """What it wants of the events that its client missed."""


class Wait(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What waits for one client at one broker."""

    events: int
    bytes: int
    oldest_s: float | None
    """When the oldest came here."""
    topics: list[tuple[str, int]]
    """The commonest topics among the oldest of them."""
    unanswered: int = 0
    """Of them: sent, and not acknowledged by the client yet."""


class SessionFound(msgspec.Struct, frozen=True, kw_only=True):
    """A client's session, at the broker that has it."""

    here: bool
    since_s: float | None
    started_s: float
    expiry_s: int | None
    """How long it is kept without a connection; None for good."""
    expires_s: float | None
    user: str
    address: str
    heard_s: float | None
    keep_alive_s: int
    reads: bool
    """Whether it takes what it is sent as fast as that comes."""
    came_from: str
    subscriptions: list[SubscriptionRow]
    subscriptions_count: int
    advertisements: list[str]
    waiting: Wait


class ClientFound(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker knows of a client."""

    session: SessionFound | None
    copy: str
    """`passive` or `active` where a copy is kept ahead of the client, `leaving` where it has left, or empty.
    """
    copy_waiting: Wait | None


class FilterRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One topic filter with its content filter."""

    topic: str
    filter: str
    subscribers: int
    since_s: float
    """When the first of them began."""


class FiltersFound(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Filters, and how many subscriptions were looked at."""

    rows: list[FilterRow]
    count: int
    looked: int
    sessions: int


class TopicRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A topic that clients published to here."""

    topic: str
    events: int
    last_s: float
    retained_bytes: int | None
    """The size of the event that is kept for later subscribers; None where there is none."""


class TopicsFound(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Topics, and what was not counted by topic."""

    rows: list[TopicRow]
    count: int
    beyond: int
    """Events on topics that there was no room to count."""
    since_s: float
    """When counting began."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A client that an event is for."""

    client: str
    how: str
    """`now`, `kept` until it comes back, `missed` for it is away, or `policy` where it may not see it."""
    topic: str
    filter: str
    qos: int
    share: str = ""
    """The share that it is a member of, one of which gets the event."""


class WhoFound(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Who would get an event."""

    rows: list[Receiver]
    counts: dict[str, int]
    """By `how`: clients, shown or not."""
    attributes: list[str]
    """The names of the event's attributes, as this broker reads it."""


Found = ClientsFound | ClientFound | FiltersFound | TopicsFound | WhoFound
