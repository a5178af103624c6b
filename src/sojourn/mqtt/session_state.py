"""A session as plain data: for a hand-off to another broker, or to be kept.

Everything that the standard calls session state is here, in-flight QoS 1 and 2 messages with their packet
identifiers included. Messages that wait in several places are listed once and referred to by position. Times
are given as what is left of them, since two brokers need not agree what time it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import astuple

from sojourn.edge.queues import QueuePolicy
from sojourn.interest.values import Scalar
from sojourn.mqtt.content import parse_filter, parse_policy, subscriber_event
from sojourn.mqtt.conventions import POLICY
from sojourn.mqtt.message import Message, Properties, new_message
from sojourn.mqtt.session import Delivery, Session, Subscription, Will

if TYPE_CHECKING:
    from sojourn.mqtt.subscribing import Subscriber

SENT, RELEASED = 0, 1


class MessageState(msgspec.Struct, frozen=True, array_like=True):
    """One message."""

    topic: str
    payload: bytes
    qos: int
    retain: bool = False
    publisher: str = ""
    source: str = ""
    sequence: int = 0
    expiry_left_s: float | None = None
    properties: tuple[int, str | None, str | None, bytes | None, list[tuple[str, str]]] | None = None
    address: str = ""


class SubscriptionState(msgspec.Struct, frozen=True, array_like=True):
    """One subscription."""

    text: str
    qos: int
    share: str = ""
    pattern: str = ""
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int | None = None
    filter: str | None = None
    """The filter in normal form, permissions included."""
    filter_text: str | None = None
    since_s: float = 0.0
    policy: QueuePolicy | None = None


class DeliveryState(msgspec.Struct, frozen=True, array_like=True):
    """A message on its way to the client: its position in `messages`, or -1 once it was released."""

    message: int
    qos: int = 0
    retain: bool = False
    identifiers: tuple[int, ...] = ()
    packet_id: int = 0
    """0 for one that waits and was not sent yet."""
    kept: bool = False


class WillState(msgspec.Struct, frozen=True, array_like=True):
    """A will that was not published yet."""

    message: MessageState
    delay_s: int


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    """One session."""

    client_id: str
    expiry: int
    username: str = ""
    attributes: dict[str, Scalar] = {}
    advertisements: tuple[str, ...] = ()
    subscriptions: tuple[SubscriptionState, ...] = ()
    messages: tuple[MessageState, ...] = ()
    inflight: tuple[DeliveryState, ...] = ()
    queue: tuple[DeliveryState, ...] = ()
    received: tuple[int, ...] = ()
    next_id: int = 1
    last_number: int = 0
    left_s: float | None = None
    will: WillState | None = None
    will_left_s: float | None = None
    """What is left of the will's delay."""
    last_unsure: int = 0
    owner: str | None = None
    owned_s: float = 0.0
    epoch: int = 0
    """The connection under which it was last at the broker that gave it; 0 where nobody counts."""
    address: str | None = None
    """Where its client came from last."""
    stored: int = 0
    """How many events the broker that gave it had stored for it."""
    missed: int = 0


def message_state(message: Message, now: float) -> MessageState:
    """Return a message as plain data."""
    said = astuple(message.properties)
    return MessageState(
        message.topic,
        message.payload,
        message.qos,
        message.retain,
        message.publisher,
        message.source,
        message.sequence,
        None if message.expiry is None else max(0.0, message.expires_s - now),
        (*said[:4], list(said[4])) if any(said) else None,
        message.address,
    )


def message_of(state: MessageState, now: float) -> Message:
    """Return the message that plain data stands for."""
    given = state.properties
    properties = Properties(*given[:4], tuple(given[4])) if given is not None else Properties()
    policy = next((text for name, text in properties.user if name == POLICY), None)
    left = state.expiry_left_s
    message = new_message(
        state.topic,
        state.payload,
        qos=state.qos,
        now=now,
        publisher=state.publisher,
        retain=state.retain,
        expiry=None if left is None else max(1, round(left)),
        properties=properties,
        policy=parse_policy(policy) if policy is not None else None,
    )
    if left is not None:
        message.expires_s = now + left
    message.source, message.sequence, message.address = state.source, state.sequence, state.address
    return message


def session_state(session: Session, now: float, will_left_s: float | None) -> SessionState:
    """Return a session as plain data; its will, if it has one, is due in `will_left_s`."""
    positions: dict[int, int] = {}
    messages: list[MessageState] = []

    def position(message: Message) -> int:
        if id(message) not in positions:
            positions[id(message)] = len(messages)
            messages.append(message_state(message, now))
        return positions[id(message)]

    inflight = tuple(
        DeliveryState(-1, packet_id=number) if one is None else _delivery_state(one, number, position)
        for number, one in session.inflight.items()
    )
    queue = tuple(_delivery_state(one, 0, position) for one in session.queue if one.qos)
    will = session.will
    return SessionState(
        session.client_id,
        session.expiry,
        session.username,
        dict(session.stated),
        session.advertisements,
        tuple(_subscription_state(one) for one in session.subscriptions.values()),
        tuple(messages),
        inflight,
        queue,
        tuple(sorted(session.received)),
        session.next_id,
        session.last_number,
        session.left_s,
        WillState(message_state(will.message, now), will.delay_s) if will is not None else None,
        will_left_s,
        session.last_unsure,
        session.owner,
        session.owned_s,
        address=session.address,
        missed=session.missed,
    )


def _delivery_state(delivery: Delivery, number: int, position: Callable[[Message], int]) -> DeliveryState:
    return DeliveryState(
        position(delivery.message), delivery.qos, delivery.retain, delivery.identifiers, number, delivery.kept
    )


def _subscription_state(one: Subscription) -> SubscriptionState:
    return SubscriptionState(
        one.text,
        one.qos,
        one.share,
        one.pattern,
        one.no_local,
        one.retain_as_published,
        one.retain_handling,
        one.identifiers[0] if one.identifiers else None,
        None if one.filter is None else str(one.filter),
        one.filter_text,
        one.since_s,
        one.policy,
    )


def fill_session(session: Session, state: SessionState, subscriber: Subscriber, now: float) -> None:
    """Give a new session everything that plain data says."""
    session.expiry = state.expiry
    session.username = state.username
    session.owner = state.owner
    session.owned_s = state.owned_s or now
    session.address = state.address
    session.stated = state.attributes
    session.attributes = subscriber_event(state.attributes)
    session.advertisements = state.advertisements
    for one in state.subscriptions:
        subscriber.enter(
            Subscription(
                session,
                one.text,
                qos=one.qos,
                share=one.share,
                pattern=one.pattern,
                no_local=one.no_local,
                retain_as_published=one.retain_as_published,
                retain_handling=one.retain_handling,
                identifier=one.identifier,
                filter_text=one.filter_text,
                condition=None if one.filter is None else parse_filter(one.filter),
                since_s=one.since_s,
                policy=one.policy,
            )
        )
    messages = [message_of(message, now) for message in state.messages]
    for sent in state.inflight:
        if sent.message < 0:
            session.inflight[sent.packet_id] = None
            continue
        message = messages[sent.message]
        session.inflight[sent.packet_id] = Delivery(
            message, sent.qos, sent.retain, sent.identifiers, sent.kept
        )
        session.inflight_bytes += message.size
        subscriber.shared.inflight_bytes += message.size
    for waiting in state.queue:
        message = messages[waiting.message]
        session.queue.append(
            Delivery(message, waiting.qos, waiting.retain, waiting.identifiers, waiting.kept)
        )
        session.queued_bytes += message.size
        subscriber.shared.queued_bytes += message.size
        subscriber.shared.queued += 1
    session.received.update(state.received)
    session.next_id = state.next_id
    session.last_number, session.last_unsure = state.last_number, state.last_unsure
    session.left_s = state.left_s
    session.missed = state.missed
    if state.will is not None:
        will = Will(message_of(state.will.message, now), state.will.delay_s)
        subscriber.shared.change_will(session, will)
