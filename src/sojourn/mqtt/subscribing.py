"""SUBSCRIBE and UNSUBSCRIBE.

A subscription is named by its topic filter, so a second one with the same name takes the first one's place,
filter included. A refused topic filter changes nothing, and the others of the same packet stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqtt5 import SubAckReasonCode as SubCode
from mqtt5 import SubscribePacket, TopicFilter, UnsubscribePacket
from mqtt5 import UnsubAckReasonCode as UnsubCode

from sojourn.interest import Filter, TopicError, TopicPattern
from sojourn.mqtt import answers, costs
from sojourn.mqtt.changing import Changes
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.content import (
    ContentError,
    check_tellable,
    interest_of,
    is_tellable,
    parse_filter,
    property_values,
)
from sojourn.mqtt.conventions import FILTER
from sojourn.mqtt.cutting import gather, own_properties
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.effects import Change, SubAckDue, Turn
from sojourn.mqtt.greeting import Greeter
from sojourn.mqtt.members import SHARE, address_of, here_at
from sojourn.mqtt.packets import is_pattern, protocol_error
from sojourn.mqtt.queue_policies import THIN_AT, read_policy
from sojourn.mqtt.rights import may_subscribe, narrowed
from sojourn.mqtt.room import (
    levels_of,
    no_room_for_condition,
    no_room_for_share,
    no_room_for_subscription,
)
from sojourn.mqtt.session import Session, Subscription
from sojourn.mqtt.state import State

GRANTED = (
    SubCode.GRANTED_QOS_AT_MOST_ONCE,
    SubCode.GRANTED_QOS_AT_LEAST_ONCE,
    SubCode.GRANTED_QOS_EXACTLY_ONCE,
)


REASONS_MAX = 5
"""Refusals of one packet that are explained."""
TOO_OFTEN = "rate_exceeded"
"""Under which name it is counted that somebody changes its subscriptions too often."""
BROKERS_MAX = 1_000_000
"""More than there are brokers in a network."""


class _RefusedError(Exception):
    """A topic filter is refused with a code and a sentence."""

    def __init__(self, code: SubCode, text: str, why: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.why = why or code.name.lower()
        """Under which name it is counted."""


class Subscriber:
    """Enters and removes subscriptions."""

    def __init__(self, shared: State, deliverer: Deliverer) -> None:
        self.shared = shared
        self.deliverer = deliverer
        self.greeter = Greeter(shared, deliverer)
        self.changes = Changes()

    def subscribe(
        self, connection: Connection, session: Session, packet: SubscribePacket, now: float
    ) -> None:
        """Answer a SUBSCRIBE, or let whoever routes do so, and send the retained messages it asks for."""
        if not packet.topic_filters or not packet.packet_id:
            raise protocol_error("A SUBSCRIBE has a packet identifier and at least one topic filter.")
        self.greeter.sent = self.greeter.told = 0
        too_often = self.changes.why_not(connection, len(packet.topic_filters), self.shared.limits, now)
        if too_often is not None:
            self._refuse_all(connection, session, packet, too_often)
            return
        codes: list[SubCode] = []
        reasons: list[str] = []
        greetings: list[tuple[Subscription, bool]] = []
        most, said = self.shared.limits.subscriptions_max, own_properties(packet)
        codes_beyond = [SubCode.QUOTA_EXCEEDED] * (len(packet.topic_filters) - most)
        for wanted in packet.topic_filters[:most]:
            if wanted.no_local and wanted.pattern.startswith(SHARE):
                raise protocol_error("A shared subscription cannot be no-local.")
            try:
                subscription = self._read(connection, session, wanted, packet.subscription_id, said, now)
            except _RefusedError as refusal:
                codes.append(refusal.code)
                if len(reasons) < REASONS_MAX:
                    reasons.append(refusal.text)
                self.shared.counters.refused[f"subscribe {refusal.why}"] += 1
                self.shared.note_refusal("subscribe", refusal.why, wanted.pattern, connection)
                continue
            codes.append(GRANTED[subscription.qos])
            greetings.append((subscription, self.enter(subscription)))
        is_void = bool(codes) and not greetings and SubCode.QUOTA_EXCEEDED not in codes
        codes += codes_beyond
        is_last = connection.parts_left == 1  # of a packet that was cut without what is beyond the limit
        self._count_beyond(connection, len(codes_beyond) + is_last * len(connection.part_codes_beyond))
        told = gather(connection, [int(code) for code in codes], reasons)
        if told is not None:
            self._answer(connection, session, packet.packet_id, *told)
        for subscription, is_new in greetings:
            if not subscription.share and (
                subscription.retain_handling == 0 or (subscription.retain_handling == 1 and is_new)
            ):
                self.greeter.greet(subscription, now)
        self.shared.effects.is_void = is_void

    def _refuse_all(
        self, connection: Connection, session: Session, packet: SubscribePacket, text: str
    ) -> None:
        """Refuse a SUBSCRIBE, or a part of one, of a client that changes its subscriptions too often."""
        count = len(packet.topic_filters)
        self.shared.counters.refused[f"subscribe {TOO_OFTEN}"] += count
        self.shared.note_refusal("subscribe", TOO_OFTEN, packet.topic_filters[0].pattern, connection)
        told = gather(connection, [int(SubCode.QUOTA_EXCEEDED)] * count, [text])
        if told is not None:
            assert packet.packet_id, "it was looked at"
            self._answer(connection, session, packet.packet_id, *told)
        self.shared.effects.is_void = True

    def _count_beyond(self, connection: Connection, count: int) -> None:
        """Count topic filters that were not looked at, as one client may not have so many."""
        if count:
            self.shared.counters.refused["subscribe quota_exceeded"] += count
            self.shared.note_refusal("subscribe", "quota_exceeded", f"{count} further ones", connection)

    def _answer(
        self, connection: Connection, session: Session, number: int, codes: list[int], reasons: list[str]
    ) -> None:
        """Answer a SUBSCRIBE, or have it answered when the subscriptions are in force."""
        reason = " ".join(reasons[:REASONS_MAX]) if reasons else None
        answer = answers.suback(connection, number, [SubCode(code) for code in codes], reason)
        if self.shared.effects.collects:
            self.shared.effects.subacks.append(SubAckDue(connection.number, session.client_id, answer))
        else:
            self.deliverer.write(connection, answer)

    def unsubscribe(self, connection: Connection, session: Session, packet: UnsubscribePacket) -> None:
        """Answer an UNSUBSCRIBE."""
        if not packet.patterns or not packet.packet_id:
            raise protocol_error("An UNSUBSCRIBE has a packet identifier and at least one topic filter.")
        self.greeter.sent = self.greeter.told = 0
        codes: list[UnsubCode] = []
        for text in packet.patterns:
            if text in session.subscriptions:
                self.remove(session.subscriptions[text])
                codes.append(UnsubCode.SUCCESS)
            elif is_pattern(text):
                codes.append(UnsubCode.NO_SUBSCRIPTION_EXISTED)
            else:
                codes.append(UnsubCode.TOPIC_FILTER_INVALID)
        is_void = UnsubCode.SUCCESS not in codes
        told = gather(connection, [int(code) for code in codes], [])
        if told is not None:
            codes = [UnsubCode(code) for code in told[0]]
            self.deliverer.write(connection, answers.unsuback(connection, packet.packet_id, codes))
        self.shared.effects.is_void = is_void

    @property
    def cost(self) -> int:
        """What the last packet cost (`costs.py`)."""
        return costs.of_subscribe(self.shared.retained.count, self.greeter.sent, self.greeter.told)

    def enter(self, subscription: Subscription) -> bool:
        """Enter a subscription; say whether there was none of its name."""
        session, shared = subscription.session, self.shared
        self.deliverer.thinning.changed(session)
        previous = session.subscriptions.get(subscription.text)
        if previous is not None:
            self._count(previous, -1)
        self._count(subscription, 1)
        if subscription.filter is not None:
            subscription.filter = shared.filters.add(subscription.filter)
            session.filters += 1
        if previous is not None and previous.filter is not None:
            shared.filters.remove(previous.filter)
            session.filters -= 1
        session.subscriptions[subscription.text] = subscription
        if subscription.policy is not None and not session.thin_at:
            session.thin_at = THIN_AT
        shared.tree.add(subscription)
        if shared.effects.interests is not None:
            if previous is not None:
                shared.effects.interests.append((previous, -1))
            shared.effects.interests.append((subscription, 1))
        if shared.effects.collects:
            if previous is not None:
                shared.effects.changes.append(Change(Turn.UNSUBSCRIBED, session, previous))
            shared.effects.changes.append(Change(Turn.SUBSCRIBED, session, subscription))
        return previous is None

    def remove(self, subscription: Subscription) -> None:
        """Take a subscription out."""
        session, shared = subscription.session, self.shared
        self.deliverer.thinning.changed(session)
        del session.subscriptions[subscription.text]
        self._count(subscription, -1)
        shared.tree.remove(subscription)
        if shared.effects.interests is not None:
            shared.effects.interests.append((subscription, -1))
        if subscription.filter is not None:
            shared.filters.remove(subscription.filter)
            session.filters -= 1
        if shared.effects.collects:
            shared.effects.changes.append(Change(Turn.UNSUBSCRIBED, session, subscription))

    def _count(self, subscription: Subscription, change: int) -> None:
        """Count a subscription more or less, of all and of the client's address if it is connected."""
        shared, session = self.shared, subscription.session
        levels = change * levels_of(subscription.text, subscription.filter_text)
        shared.subscriptions += change
        shared.levels += levels
        session.levels += levels
        if subscription.share and session.address_use is not None:
            session.address_use.count_share(subscription, change)
        if session.connection is not None:
            use = session.connection.address_use
            use.subscriptions += change
            use.levels += levels

    def _read(
        self,
        connection: Connection,
        session: Session,
        wanted: TopicFilter,
        identifier: int | None,
        said: Sequence[tuple[str, str]],
        now: float,
    ) -> Subscription:
        text = wanted.pattern
        share, pattern = self._split(text)
        if not is_pattern(pattern):
            raise _RefusedError(
                SubCode.TOPIC_FILTER_INVALID, f"In {text[:80]!r}, + must fill a level and # the last one."
            )
        try:
            levels = TopicPattern.parse(pattern)
        except TopicError as error:
            raise _RefusedError(SubCode.TOPIC_FILTER_INVALID, str(error)) from None
        if not may_subscribe(session.permissions, levels):  # first: nothing is read for who may not have it
            raise _RefusedError(SubCode.NOT_AUTHORIZED, f"You may not subscribe to {text[:80]!r}.")
        filter_text, condition = self._condition(session, said)
        try:
            if self.shared.effects.collects and not is_tellable(pattern, condition):
                check_tellable(interest_of(pattern, condition))
            policy = read_policy(said)
        except ContentError as error:
            raise _RefusedError(SubCode.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        previous = session.subscriptions.get(text)
        if share and previous is not None and previous.filter == condition:
            now = previous.since_s  # the same member of its group as before
        one = Subscription(
            session,
            text,
            qos=int(wanted.max_qos),
            share=share,
            pattern=pattern,
            no_local=wanted.no_local,
            retain_as_published=wanted.retain_as_published,
            retain_handling=int(wanted.retain_handling),
            identifier=identifier,
            filter_text=filter_text,
            condition=condition,
            since_s=now,
            policy=policy,
        )
        self._check_room(connection, one)
        if share and self.shared.effects.collects:
            self._check_address(one)
        return one

    def _check_address(self, one: Subscription) -> None:
        """Refuse a member of a group whose address other brokers could not read."""
        try:
            check_tellable(interest_of(here_at(address_of(one), BROKERS_MAX), None))
        except ContentError:
            raise _RefusedError(
                SubCode.IMPLEMENTATION_SPECIFIC_ERROR,
                "Client identifier, topic filter and filter are too long together for a shared subscription.",
            ) from None

    def _split(self, text: str) -> tuple[str, str]:
        """Return the name of the share, if any, and the topic filter."""
        if not text.startswith(SHARE):
            return "", text
        if not self.shared.shared_subscriptions:
            raise _RefusedError(
                SubCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED, "Shared subscriptions are not supported here."
            )
        share, slash, pattern = text.removeprefix(SHARE).partition("/")
        is_named = share and slash and "+" not in share and "#" not in share
        if not is_named or not pattern or pattern.startswith(SHARE):
            raise _RefusedError(
                SubCode.TOPIC_FILTER_INVALID, "A shared subscription reads $share/NAME/TOPIC-FILTER."
            )
        return share, pattern

    def _condition(
        self, session: Session, said: Sequence[tuple[str, str]]
    ) -> tuple[str | None, Filter | None]:
        texts = property_values(said, FILTER)
        if len(texts) > 1:
            raise _RefusedError(
                SubCode.IMPLEMENTATION_SPECIFIC_ERROR, "A SUBSCRIBE has one filter; join several with OR."
            )
        text = texts[0] if texts else None
        if text is not None and len(text.encode()) > self.shared.limits.filter_bytes_max:
            raise _RefusedError(
                SubCode.QUOTA_EXCEEDED, f"A filter has at most {self.shared.limits.filter_bytes_max} bytes."
            )
        try:
            condition = narrowed(parse_filter(text) if text is not None else None, session.permissions)
        except ContentError as error:
            raise _RefusedError(SubCode.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        return text, condition

    def _check_room(self, connection: Connection, one: Subscription) -> None:
        """Refuse what there is no room for beside what its client has, and others have."""
        shared, session = self.shared, one.session
        previous, levels = session.subscriptions.get(one.text), levels_of(one.text, one.filter_text)
        if previous is not None:
            levels -= levels_of(previous.text, previous.filter_text)
        lack = None
        if previous is None or levels > 0:
            use = connection.address_use
            lack = no_room_for_subscription(shared, session, use, int(previous is None), levels)
        if lack is None and previous is None and one.share:
            lack = no_room_for_share(shared, one)
        if lack is None and one.share and (previous is None or previous.filter != one.filter):
            lack = no_room_for_condition(shared, one)
        if lack is not None:
            raise _RefusedError(SubCode.QUOTA_EXCEEDED, lack.text, lack.why)
        is_further = one.filter is not None and (previous is None or previous.filter is None)
        most = shared.limits.filters_max
        if is_further and session.filters >= most:
            raise _RefusedError(SubCode.QUOTA_EXCEEDED, f"A client has at most {most} filters.")
