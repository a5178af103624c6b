"""Who owns a session, what its client may publish and see, and what follows when that changes.

A session belongs to its *owner*: the name that was proved when it began, by password, token or certificate,
or nobody in particular (`ANONYMOUS`). Whoever else comes with the same client identifier is refused. A
session from a store or a broker that knew no owners is whoever's who comes with the user name it had.

Rights are those of the last admission, or of a review (`Reviewer`). Then

- subscriptions that are not allowed any more end, and the others hold to the condition that is allowed now;
- what waits for the client and may not be seen is dropped, and so is what would be sent again;
- a will that may not be published is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sojourn.interest import Filter, TopicPattern
from sojourn.mqtt.content import ContentError, event_of, parse_filter
from sojourn.mqtt.message import Message
from sojourn.mqtt.readings import meets
from sojourn.mqtt.session import Permissions, Session, Subscription

if TYPE_CHECKING:
    from sojourn.mqtt.delivery import Deliverer
    from sojourn.mqtt.subscribing import Subscriber

ANONYMOUS = ""
"""The owner of sessions of clients that proved no name."""
FOREIGN = "This client identifier belongs to somebody else; choose another."
RUN_OUT = "What you proved your name by has run out meanwhile; connect with a fresh one."
NOT_ALLOWED = "not allowed"
"""Why a client does not get what it may not see."""
NOTHING = Permissions(publish=(), subscribe=())
"""What somebody may do who is not known any more."""


class Owned(Protocol):
    """A session, or what came of one from elsewhere."""

    @property
    def owner(self) -> str | None:
        """Whose it is; None where nobody knew yet."""

    @property
    def username(self) -> str:
        """The user name that its last connection had."""


class Claimant(Protocol):
    """Who wants a session."""

    @property
    def owner(self) -> str | None:
        """The name that it proved; None where nobody looks at names."""

    @property
    def username(self) -> str:
        """The user name that it comes with."""

    @property
    def until_s(self) -> float | None:
        """When what it proved its name by runs out; None for never."""


def is_owner(claimant: Claimant, session: Owned) -> bool:
    """Whether a session is for who comes to have it."""
    if claimant.owner is None:
        return True  # simulated clients, and journals from before there were owners
    if session.owner is None:
        return session.username == claimant.username
    return session.owner == claimant.owner


def why_not(claimant: Claimant, session: Owned | None, now: float) -> str | None:
    """Why somebody who proved a name does not get in after all, or gets no session; None if it does."""
    if claimant.until_s is not None and claimant.until_s <= now:
        return RUN_OUT
    return None if session is None or is_owner(claimant, session) else FOREIGN


def may_publish(permissions: Permissions | None, topic: str) -> bool:
    """Whether a client may publish to a topic."""
    allowed = permissions.publish if permissions is not None else None
    return allowed is None or any(pattern.matches(topic) for pattern in allowed)


def may_publish_message(permissions: Permissions | None, message: Message) -> bool:
    """Whether a client may publish a message, its attributes included."""
    if permissions is None:
        return True
    if not may_publish(permissions, message.topic):
        return False
    return permissions.publish_if is None or meets(permissions.publish_if, message)


def may_subscribe(permissions: Permissions | None, levels: TopicPattern) -> bool:
    """Whether a client may subscribe to a topic filter: it must lie inside one that is allowed."""
    allowed = permissions.subscribe if permissions is not None else None
    return allowed is None or any(pattern.contains(levels) for pattern in allowed)


def may_subscribe_to_something(permissions: Permissions | None) -> bool:
    """Whether there is any topic filter that a client may subscribe to."""
    return permissions is None or permissions.subscribe is None or bool(permissions.subscribe)


def may_see(permissions: Permissions | None, message: Message) -> bool:
    """Whether a client may be sent a message."""
    if permissions is None:
        return True
    allowed = permissions.subscribe
    if allowed is not None and not any(pattern.matches(message.topic) for pattern in allowed):
        return False
    return permissions.subscribe_if is None or permissions.subscribe_if.matches(event_of(message))


def may_see_all(permissions: Permissions | None) -> bool:
    """Whether a client may subscribe to anything, and so may know what others subscribe to."""
    return permissions is None or (permissions.subscribe is None and permissions.subscribe_if is None)


def narrowed(condition: Filter | None, permissions: Permissions | None) -> Filter | None:
    """Return the condition of a subscription together with what its client may see."""
    allowed = permissions.subscribe_if if permissions is not None else None
    if allowed is None:
        return condition
    return allowed if condition is None else parse_filter(f"({allowed}) AND ({condition})")


class Reviewer:
    """Makes sessions keep to rights that may be others than before."""

    def __init__(self, subscriber: Subscriber, deliverer: Deliverer) -> None:
        self._subscriber, self._deliverer = subscriber, deliverer

    def review(self, session: Session) -> None:
        """Let everything in a session keep to its permissions."""
        permissions = session.permissions
        for one in list(session.subscriptions.values()):
            self._review_subscription(one, permissions)
        if permissions is not None:
            self._deliverer.withhold(session, lambda message: may_see(permissions, message), NOT_ALLOWED)
            if session.will is not None and not may_publish_message(permissions, session.will.message):
                self._deliverer.shared.change_will(session, None)
                session.will_s = None

    def _review_subscription(self, one: Subscription, permissions: Permissions | None) -> None:
        if not may_subscribe(permissions, TopicPattern.parse(one.pattern)):
            self._subscriber.remove(one)
            return
        try:
            wanted = narrowed(None if one.filter_text is None else parse_filter(one.filter_text), permissions)
        except ContentError:  # together they are more than one filter may be
            self._subscriber.remove(one)
            return
        if wanted != one.filter:
            self._subscriber.enter(one.with_condition(wanted))
