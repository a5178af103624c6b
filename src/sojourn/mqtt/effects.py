"""What a fact leads to, for the driver to carry out; one object is reused."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import IntEnum
from typing import NamedTuple

from mqtt5 import ConnectPacket

from sojourn.mqtt.conditions import Conditions
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.message import Message
from sojourn.mqtt.session import Delivery, Session, Subscription


class Turn(IntEnum):
    """What became of a session or a subscription."""

    ARRIVED = 0
    """The client is here, with a new session or an old one."""
    LEFT = 1
    """The client is not here; its session is kept."""
    ENDED = 2
    """The session is no longer known; its subscriptions went before."""
    SUBSCRIBED = 3
    UNSUBSCRIBED = 4
    ADVERTISED = 5
    """The client's advertisements are now those in its session."""


class Change(NamedTuple):
    """One such turn; of a subscription if there is one."""

    turn: Turn
    session: Session
    subscription: Subscription | None = None

    def goes_on(self, following: Change | None) -> bool:
        """Whether this change of a session's subscriptions is followed by another one of the same session."""
        turns = (Turn.SUBSCRIBED, Turn.UNSUBSCRIBED)
        return (
            following is not None
            and following.session is self.session
            and self.turn in turns
            and following.turn in turns
        )


class Knock(NamedTuple):
    """A client that wants to be let in."""

    number: int
    """Its connection's number."""
    packet: ConnectPacket


class SubAckDue(NamedTuple):
    """The answer to a SUBSCRIBE, to be sent (`Core.answer`) when the subscriptions are in force."""

    number: int
    """The connection's number."""
    client_id: str
    packet: bytes


class Refused(NamedTuple):
    """Something that a client asked for and did not get."""

    what: str
    """Whether it wanted to connect, to subscribe or to publish, or sent a `packet` that nobody may."""
    why: str
    about: str
    """A topic, or a sentence."""
    client: str
    user: str
    address: str


class Effects:
    """What is to be done; lists to be carried out in order and cleared."""

    __slots__ = (
        "adopted",
        "changes",
        "collects",
        "conditions",
        "dismissals",
        "groups",
        "has_large",
        "interests",
        "is_void",
        "knocks",
        "overflowing",
        "published",
        "refusals",
        "settled",
        "sources",
        "subacks",
        "touched",
        "unread",
        "waiting",
        "weigh",
    )

    def __init__(self, *, collects: bool = False) -> None:
        self.collects = collects
        """Whether somebody routes: changes and publications are then reported, and what is published is
        delivered by whoever routes it. A broker without neighbours needs none of that."""
        self.weigh: Callable[[str], int] = lambda _topic: 0
        """What routing an event on a topic costs whoever does it (`costs.py`)."""
        self.groups: Collection[tuple[str, str]] = ()
        """Names and topic filters of the shared subscriptions that whoever routes knows of, at any broker."""
        self.conditions: Conditions | None = None
        """What their members want; None where nobody routes."""
        self.touched: list[Connection] = []
        """Connections with output to write; those that are CLOSED are to be closed after that."""
        self.knocks: list[Knock] = []
        """Clients to be admitted or refused, now or later."""
        self.unread: list[int] = []
        """Connections that were let in and had sent more before that, to be read now: `received` without
        further bytes. Not read at once, so that a journal has who was let in before what it then said."""
        self.waiting: list[int] = []
        """Connections whose turn to be read comes later, and that are not to be read from until then."""
        self.overflowing: dict[int, None] = {}
        """Connections to be closed (`overflowed`) because more waits for them than may, and is not read.
        Not closed at once: a journal must tell of it, for it does not hold all that waited."""
        self.dismissals: dict[int, tuple[int, str]] = {}
        """Connections to be closed (`close_for`) with a reason code and a sentence, for something that a
        journal does not hold: it must tell of it, too."""
        self.published: list[Message] = []
        """What local clients published, to be routed and delivered."""
        self.settled: list[tuple[Session, Delivery, str]] = []
        """Messages of QoS 1 and 2 that clients have acknowledged, or will never be sent, and why not."""
        self.has_large = False
        """Whether something large was put into an output, which is not to be copied, in this turn."""
        self.is_void = False
        """Whether the packet that was just read was refused and changed nothing, so that no journal need hold
        it: who may do nothing must not fill one."""
        self.subacks: list[SubAckDue] = []
        """Answers to SUBSCRIBEs where somebody routes, who knows when a subscription is in force elsewhere.
        Where nobody does they are written at once."""
        self.adopted: list[Session] = []
        """Sessions that came from other brokers without their clients, and so without rights of today."""
        self.changes: list[Change] = []
        """What became of sessions and subscriptions."""
        self.sources: list[Connection] = []
        """Connections of publishers that are to be told what is wanted (`sojourn-quench`)."""
        self.refusals: list[Refused] | None = None
        """What was refused, for an audit log; None where nobody keeps one."""
        self.interests: list[tuple[Subscription, int]] | None = None
        """Subscriptions that came (1) and went (-1), for whoever tells them; None where nobody does."""

    def forget(self) -> None:
        """Let go of what a driver would do; what is for other brokers stays."""
        for connection in self.touched:
            connection.output.clear()
        for done in (self.touched, self.knocks, self.unread, self.overflowing, self.dismissals, self.waiting):
            done.clear()
        self.adopted.clear()
        self.sources.clear()
        self.subacks.clear()
