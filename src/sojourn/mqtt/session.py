"""What is kept for a client: subscriptions, what is on its way, what waits, its will."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sojourn.edge.queues import QueuePolicy
from sojourn.interest import Event, Filter, TopicPattern
from sojourn.interest.values import Scalar
from sojourn.mqtt.message import Message

if TYPE_CHECKING:
    from sojourn.mqtt.connection import Connection
    from sojourn.mqtt.room import AddressUse

NEVER = 0xFFFF_FFFF
"""The session expiry interval that means: keep it for good."""
RENEWED_S = 2e-6
"""How much later a member of a group is said to have joined that is to have another address."""


class Delivery(msgspec.Struct, frozen=True):
    """A message on its way to a client; shared by all who get it in the same form."""

    message: Message
    qos: int
    retain: bool = False
    identifiers: tuple[int, ...] = ()
    kept: bool = False
    """Whether it is a copy of a retained event, sent for a new subscription: who has it need not have what
    its publisher sent before, nor the event itself where that is on its way too."""


class Subscription:
    """One subscription of one session."""

    __slots__ = (
        "filter",
        "filter_text",
        "identifiers",
        "no_local",
        "pattern",
        "policy",
        "qos",
        "retain_as_published",
        "retain_handling",
        "session",
        "share",
        "since_s",
        "text",
    )

    def __init__(  # noqa: PLR0913  (one argument an option)
        self,
        session: Session,
        text: str,
        *,
        qos: int,
        share: str = "",
        pattern: str = "",
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
        identifier: int | None = None,
        filter_text: str | None = None,
        condition: Filter | None = None,
        since_s: float = 0.0,
        policy: QueuePolicy | None = None,
    ) -> None:
        self.session = session
        self.text = text
        """The topic filter as the client wrote it: the name of the subscription."""
        self.share = share
        self.pattern = pattern or text
        """The topic filter without the name of the share."""
        self.qos = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.retain_handling = retain_handling
        self.identifiers: tuple[int, ...] = () if identifier is None else (identifier,)
        self.since_s = since_s
        """When it was made, for traces."""
        self.filter_text = filter_text
        self.filter = condition
        self.policy = policy
        """What it wants of the events that its client missed; None for all."""

    def with_condition(self, condition: Filter | None) -> Subscription:
        """Return the same subscription with another condition, as entered by other rights."""
        return self._like(condition, self.since_s)

    def renewed(self) -> Subscription:
        """Return the same subscription as another member of its group (`members.py`).

        It was made a moment later, so that it has another address. Hardly later: the group is to get what was
        published since.
        """
        return self._like(self.filter, self.since_s + RENEWED_S)

    def _like(self, condition: Filter | None, since_s: float) -> Subscription:
        return Subscription(
            self.session,
            self.text,
            qos=self.qos,
            share=self.share,
            pattern=self.pattern,
            no_local=self.no_local,
            retain_as_published=self.retain_as_published,
            retain_handling=self.retain_handling,
            identifier=self.identifiers[0] if self.identifiers else None,
            filter_text=self.filter_text,
            condition=condition,
            since_s=since_s,
            policy=self.policy,
        )


class Will(NamedTuple):
    """What is published when a client is gone without a word."""

    message: Message
    delay_s: int


class Permissions(NamedTuple):
    """What a client may do; None allows everything."""

    publish: tuple[TopicPattern, ...] | None = None
    """Topics it may publish to."""
    subscribe: tuple[TopicPattern, ...] | None = None
    """Topics it may subscribe to: a topic filter must lie inside one of them."""
    publish_if: Filter | None = None
    """What the attributes of its messages must satisfy."""
    subscribe_if: Filter | None = None
    """What the attributes of messages must satisfy for it to see them."""


class Session:
    """What is kept for one client identifier."""

    __slots__ = (
        "address",
        "address_use",
        "advertisements",
        "attributes",
        "client_id",
        "connection",
        "ended",
        "expires_s",
        "expiry",
        "filters",
        "held",
        "inflight",
        "inflight_bytes",
        "last_number",
        "last_unsure",
        "left_s",
        "levels",
        "missed",
        "next_id",
        "owned_s",
        "owner",
        "permissions",
        "previous",
        "queue",
        "queued_bytes",
        "received",
        "reminded_s",
        "started_s",
        "stated",
        "subscriptions",
        "thin_at",
        "unsent",
        "username",
        "will",
        "will_s",
    )

    def __init__(self, client_id: str, started_s: float) -> None:  # noqa: PLR0915  (one a field)
        self.client_id = client_id
        self.started_s = started_s
        self.connection: Connection | None = None
        self.address: str | None = None
        """Where its client came from last; None where that was not known when it was stored."""
        self.address_use: AddressUse | None = None
        """What the clients of that address take, this one among them (`room.py`)."""
        self.ended = False
        """Whether it is no longer known; whoever still holds it lets it go."""
        self.expiry = 0
        """Seconds that it is kept without a connection; `NEVER` for ever."""
        self.expires_s: float | None = None
        """When it ends; None while the client is here, or when it is kept for good."""
        self.held = False
        """Whether messages wait although the client is here, because others must come first (a hand-off)."""
        self.thin_at = 0
        """How many messages may wait before they are thinned by subscriptions' policies; 0 without any."""
        self.username = ""
        self.owner: str | None = None
        """Whose it is: a name that was proved, or nobody in particular (`rights.py`); None where that was not
        known when it was stored."""
        self.owned_s = started_s
        """Since when it is that owner's, here or at other brokers."""
        self.permissions: Permissions | None = None
        """What the client may publish and subscribe to; None for everything."""
        self.attributes = Event({})
        """What access policies are asked about."""
        self.stated: Mapping[str, Scalar] = {}
        """The same as it was given."""
        self.previous: str | None = None
        """The broker that the client says it was at before."""
        self.advertisements: tuple[str, ...] = ()
        self.subscriptions: dict[str, Subscription] = {}
        self.filters = 0
        """How many of them carry a filter."""
        self.levels = 0
        """Of the topic filters of all of them together (`room.levels_of`)."""
        self.inflight: dict[int, Delivery | None] = {}
        """By packet identifier, in the order they were sent; None once only the PUBCOMP is missing."""
        self.inflight_bytes = 0
        self.unsent: deque[int] = deque()
        """Of those, which still have to be sent again on the present connection."""
        self.queue: deque[Delivery] = deque()
        self.queued_bytes = 0
        self.missed = 0
        """Events of QoS 1 and 2 for which there was no room since its client was last told so."""
        self.received: set[int] = set()
        """Packet identifiers of QoS 2 messages that came and were not released yet."""
        self.next_id = 1
        self.left_s: float | None = None
        """When its client left, here or at the broker that it came from; for traces."""
        self.last_number = 0
        """The last of the numbers that the client gives its own events (`conventions.py`)."""
        self.last_unsure = 0
        """The same of its events of QoS 0, which no journal holds."""
        self.will: Will | None = None
        self.will_s: float | None = None
        """When the will is due, the client being gone."""
        self.reminded_s: float | None = None
        """When it is looked at next, if that is noted already."""

    @property
    def will_bytes(self) -> int:
        """Bytes of its will."""
        return self.will.message.size if self.will is not None else 0

    def owned_since(self, since_s: float | None) -> None:
        """Note since when its owner had another session of this name, if that is known, and was earlier."""
        if since_s:
            self.owned_s = min(self.owned_s, since_s)

    def shares(self) -> list[Subscription]:
        """Its shared subscriptions."""
        return [one for one in self.subscriptions.values() if one.share]

    def take_id(self) -> int:
        """Return a packet identifier that is not in use, the one that was freed the longest ago."""
        number = self.next_id
        inflight = self.inflight
        while number in inflight:
            number = number + 1 if number < 65_535 else 1
        self.next_id = number + 1 if number < 65_535 else 1
        return number

    @property
    def on_their_way(self) -> int:
        """QoS 1 and 2 messages that the present connection has been sent and not answered."""
        return len(self.inflight) - len(self.unsent)


def waits_for_nothing(session: Session, connection: Connection) -> bool:
    """Whether a message may go to a client of MQTT 3.1.1 at once, before nothing that waits."""
    return not (session.queue or session.unsent or session.held or connection.blocked)
