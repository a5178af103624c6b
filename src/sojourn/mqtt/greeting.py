"""Retained events for whoever has just subscribed: some at once, the rest in turn with what others ask for.

Whether a retained event is for a subscriber may take long to find out: its fields are read for a filter, its
policy is asked about the subscriber. And all of them may be very much. So a *greeting* goes on for `WORK` at
once, and those of a SUBSCRIBE, or of a part of one, for as many bytes as a client may leave unread
(`output_bytes_max`). What is left of it is noted
in a packet of the broker's own, which is put before what else came of the client, read in its turn and kept
in the journal like those of the client (`Rest`). So what happens in between happens again in the same order.
Its turn comes when the client has read what it was sent (`input.py`).
No client can send such a packet: its kind is none of MQTT's, and only as many are taken as were put there.

A greeting that goes on looks for the events anew, unless none has changed since. It gives those that were
there when it began: what is retained later reaches the subscriber as any event does. The rest of a greeting
ends with the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat, starmap
from typing import NamedTuple

import msgspec

from sojourn.mqtt import system_topics
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.message import Message
from sojourn.mqtt.mqtt3 import written_length
from sojourn.mqtt.packets import body_start, malformed
from sojourn.mqtt.retained import Place, place_of
from sojourn.mqtt.session import Delivery, Session, Subscription
from sojourn.mqtt.state import State

WORK = 128 << 10
"""What is done at once, in bytes that are read for a filter; the event that exceeds it is the last."""
READ_MIN = 256
"""What reading an event for a filter counts for at least."""
ALTERNATIVE = 32
"""What each alternative of a policy counts for."""
PLAIN = 64
"""What an event counts for that is not read: it is sent, or waits."""
MANY = 10_000
"""To find so many takes as long as may be taken at once: none of them is sent before the next turn."""
BEFORE_ALL: Place = (-1, "", "")
NO_GREETING = 2
"""The retain handling of who wants no retained events upon subscribing."""


class Rest(msgspec.Struct, frozen=True, array_like=True):
    """What is left of a greeting."""

    text: str
    """The subscription's own text."""
    after: Place
    """The last retained event that was looked at."""
    until: Place
    """The last one that there was when the greeting began."""
    since_s: float
    """When that was."""

    def packet(self) -> bytes:
        """Return it as a packet."""
        body = msgspec.msgpack.encode(self)
        return b"\0" + written_length(len(body)) + body


class Found(NamedTuple):
    """The retained events that a connection's greeting goes on with."""

    changes: int
    """How often retained events had changed when they were looked for."""
    text: str
    messages: list[Message]
    at: int
    """How many were looked at."""


_read_rest = msgspec.msgpack.Decoder(Rest).decode


class Greeter:
    """Sends retained events to subscribers."""

    def __init__(self, shared: State, deliverer: Deliverer) -> None:
        self.shared, self.deliverer = shared, deliverer
        self.cuts = False
        """Whether long greetings go on later; if not, all is done at once."""
        self.sent = 0
        """Bytes that were sent for the packet that is read."""
        self.told = 0
        """`$SYS` topics that were told for it."""

    def greet(self, subscription: Subscription, now: float) -> None:
        """Begin to send the retained events that a new subscription asks for."""
        messages = self.shared.retained.matching(subscription.pattern, now)
        if messages:
            self._go_on(subscription, messages, 0, place_of(messages[-1]), now, now, is_new=True)
        told = system_topics.messages(self.shared, subscription.pattern, now)
        self.told += len(told)
        self._hand(subscription, told, now)

    def go_on(self, connection: Connection, session: Session, frame: bytes, now: float) -> None:
        """Go on with a greeting, unless its subscription has ended or was made anew."""
        try:
            rest = _read_rest(frame[body_start(frame) :])
        except msgspec.MsgspecError:
            raise malformed("There is no such packet.") from None
        if not self.cuts:
            raise malformed("There is no such packet.")
        self.sent = self.told = 0
        found, connection.greeting = connection.greeting, None
        subscription = session.subscriptions.get(rest.text)
        if subscription is None or subscription.since_s > rest.since_s:
            return
        retained = self.shared.retained
        if found is not None and found[:2] == (retained.changes, rest.text):
            messages, at = found.messages, found.at
        elif found is not None and found.text == rest.text:  # which is quicker than to look for them anew
            messages, at = [one for one in found.messages[found.at :] if retained.get(one.topic) is one], 0
        else:
            messages, at = retained.matching(subscription.pattern, now), 0
            messages = [
                one
                for one in messages
                if rest.after < place_of(one) <= rest.until and one.arrived_s <= rest.since_s
            ]
        self._go_on(subscription, messages, at, rest.until, rest.since_s, now)

    def _go_on(
        self,
        subscription: Subscription,
        messages: list[Message],
        at: int,
        until: Place,
        since_s: float,
        now: float,
        *,
        is_new: bool = False,
    ) -> None:
        """Look at as many as may be at once, and note the rest."""
        end, connection = len(messages), subscription.session.connection
        if self.cuts and connection is not None:
            is_put_off = is_new and (len(messages) > MANY or self._left <= 0 or connection.blocked)
            end = at if is_put_off else self._end(messages, at, is_read=subscription.filter is not None)
            sent = sum([len(one.frame) for one in messages[at:end]])
            self.sent += sent
            connection.put_out += sent
            self.shared.put_out += sent
        self._hand(subscription, messages[at:end] if end - at < len(messages) else messages, now)
        if end < len(messages):
            assert connection is not None, "who is not here is given all at once"
            last = place_of(messages[end - 1]) if end else BEFORE_ALL
            connection.rests.append(Rest(subscription.text, last, until, since_s).packet())
            if connection.greeting is None:
                connection.greeting = Found(self.shared.retained.changes, subscription.text, messages, end)

    @property
    def _left(self) -> int:
        """Bytes that may still be sent for the packet that is read."""
        return self.shared.limits.output_bytes_max - self.sent

    def _end(self, messages: list[Message], at: int, *, is_read: bool) -> int:
        """Where to end for now, having begun at a place."""
        left, bytes_left = WORK, self._left
        while at < len(messages) and left > 0 and bytes_left > 0:
            message = messages[at]
            size = len(message.frame)
            bytes_left -= size
            left -= max(READ_MIN, size) if is_read else PLAIN
            if message.policy is not None:
                left -= ALTERNATIVE * len(message.policy.condition.conjunctions)
            at += 1
        return at

    def greet_late(self, message: Message, here_since: Callable[[Session], float | None], now: float) -> None:
        """Send a value that this broker lacked to those connected who subscribed to it here meanwhile.

        Who subscribed elsewhere, before its session came here, was given the value there or later.
        """
        for session, found in self.shared.tree.route(message.topic).by_session.items():
            since_s = here_since(session) if session.connection is not None else None
            if since_s is None:
                continue
            for one in found:
                if one.since_s >= since_s and one.retain_handling < NO_GREETING:
                    self._hand(one, [message], now)

    def _hand(self, subscription: Subscription, messages: list[Message], now: float) -> None:
        """Send retained events to a subscriber, those that it wants and may have."""
        session, condition = subscription.session, subscription.filter
        if subscription.no_local:
            messages = [one for one in messages if one.publisher != session.client_id]
        if condition is not None:
            messages = [one for one in messages if self.shared.filters.passes(one, condition)]
        most, permits = subscription.qos, self.deliverer.permits
        seen = [one for one in messages if one.policy is None or permits(one, session)]
        qos = [min(most, one.qos) for one in seen]
        yes, identifiers = repeat(True), repeat(subscription.identifiers)  # noqa: FBT003  (that is quick)
        fields = zip(seen, qos, yes, identifiers, yes, strict=False)
        self.deliverer.hand_all(session, [*starmap(Delivery, fields)], now)


def put_before(connection: Connection, data: bytes, *, goes_on: bool) -> bytes:
    """Return what came of a client with what is left of its greetings before it.

    What is told again, and does not go on, has these rests among what is told.
    """
    rests, connection.rests = connection.rests, []
    if not goes_on:
        return data
    connection.greets += len(rests)
    return b"".join(rests) + data
