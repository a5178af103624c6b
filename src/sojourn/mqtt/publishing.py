"""PUBLISH from clients: checked, answered, retained, numbered, delivered.

`publish_plain` takes the commonest packet (a topic seen before, no properties or only user properties, not
retained) without decoding it. It says no whenever anything is out of the ordinary, and `publish` takes the
decoded packet instead.
"""

from __future__ import annotations

import mqtt5
from mqtt5 import DisconnectReasonCode as Reason
from mqtt5 import PubAckReasonCode, PublishPacket

from sojourn.interest import Policy, TopicError
from sojourn.interest.topics import check_topic
from sojourn.mqtt import answers, costs
from sojourn.mqtt.connection import ALIASED_CHARS_MAX, Connection, have_room
from sojourn.mqtt.content import (
    ContentError,
    advertised_bytes_max,
    check_advertisements,
    check_tellable,
    parse_policy,
    property_values,
)
from sojourn.mqtt.conventions import (
    ADVERTISE_TOPIC,
    NUMBER,
    POLICY,
    number_of,
    without_numbers_of_others,
)
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.effects import Change, Turn
from sojourn.mqtt.message import PLAIN, Message, Properties, expires_at, write_publish
from sojourn.mqtt.packets import PACKET_ID, PacketError, is_reserved, malformed, protocol_error
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.readings import meets
from sojourn.mqtt.rights import may_publish
from sojourn.mqtt.room import ADDRESS_QUOTA
from sojourn.mqtt.session import Session
from sojourn.mqtt.state import State
from sojourn.mqtt.topic_tree import Route

UNRELEASED_TIMES = 10
"""How many times as many messages of QoS 2 as a client may send at once its session remembers: clients of
MQTT 3.1.1 are not told how many they may, and others leave some behind with every connection."""
_OWN_NAMES = frozenset(name.encode() for name in (NUMBER, POLICY))


class _RefusedError(Exception):
    """A publish is refused with a code and a sentence; the session goes on."""

    def __init__(self, code: PubAckReasonCode, text: str, why: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.why = why or code.name.lower()
        """Under which name it is counted."""


class Publisher:
    """Takes what clients publish."""

    def __init__(self, shared: State, deliverer: Deliverer) -> None:
        self.shared = shared
        self.deliverer = deliverer
        self._publisher = self._origin = self._source = ""
        """Whose event was numbered last, under which origin, and as which source: the next is often its."""

    def publish_plain(
        self, connection: Connection, session: Session, data: bytes, at: int, body: int, stop: int, now: float
    ) -> int:
        """Take a packet of the commonest kind; return what it cost (`costs.py`), or 0 if it is not one."""
        first = data[at]
        qos = first & 0x06
        if first & 0x09 or qos > 2 or session.permissions is not None or stop - body < 5:
            return 0
        topic_end = body + 2 + (data[body] << 8 | data[body + 1])
        properties_at = topic_end + 2 if qos else topic_end
        if properties_at >= stop:
            return 0
        shared = self.shared
        route = shared.tree.by_bytes.get(data[body + 2 : topic_end])
        if route is None:
            return 0
        payload_at = properties_at + 1
        properties = PLAIN
        if size := data[properties_at]:
            payload_at += size
            found = _user_properties(data, properties_at + 1, payload_at) if payload_at <= stop else None
            if found is None:
                return 0
            properties = found
        if qos:
            number = data[topic_end] << 8 | data[topic_end + 1]
            if not number or shared.refusing is not None:
                return 0
        message = Message(
            route.topic,
            data[at:stop],
            payload_at - at,
            topic_end - at,
            qos >> 1,
            now,
            session.client_id,
            properties=properties,
        )
        if qos:  # answered first: a client that gets its own messages need not tell them from the answer
            output = connection.output
            if not output:
                shared.effects.touched.append(connection)
            output.append(b"\x40\x02" + PACKET_ID[number])
        return self._accept(message, route, now)

    def publish(
        self, connection: Connection, session: Session, packet: PublishPacket, frame: bytes, now: float
    ) -> int:
        """Take a decoded packet, and answer it; return what it cost (`costs.py`)."""
        cost = costs.of_decoded(len(packet.user_properties), len(frame))
        qos = int(packet.qos)
        if packet.duplicate and not qos:
            raise malformed("A message of QoS 0 is never a duplicate.")
        if packet.subscription_ids:
            raise protocol_error("Subscription identifiers are for a broker to send.")
        number = packet.packet_id or 0
        if qos and not number:
            raise protocol_error("A message of QoS 1 or 2 has a packet identifier of at least 1.")
        topic = self._topic(connection, packet)
        if qos == 2:
            self._check_quota(connection, session, number)
            if number in session.received:
                connection.unreleased.add(number)
                self.deliverer.write(connection, b"\x50\x02" + PACKET_ID[number])
                return cost
        was = self.shared.sequence, session.last_number
        retained, changes = self.shared.retained, self.shared.retained.changes
        try:
            message = self._take(session, packet, topic, frame, now)
        except _RefusedError as refusal:
            is_same = was == (self.shared.sequence, session.last_number) and packet.topic_alias is None
            self.shared.counters.refused[f"publish {refusal.why}"] += 1
            self.shared.note_refusal("publish", refusal.why, topic, connection)
            self._answer(connection, qos, number, refusal)
            # Last: the answer may be that the connection ends, and then this packet is part of how it did.
            # Of the others, events of QoS 0, it is known later whether they are kept.
            self.shared.effects.is_void = is_same and bool(qos or packet.retain)
            return costs.REFUSED + costs.BURIED * (retained.changes - changes)
        cost += costs.BURIED * max(0, retained.changes - changes - 1)  # but for the message itself
        if qos == 2:
            session.received.add(number)
            connection.unreleased.add(number)
        self._answer(connection, qos, number, None)
        if message is None:
            return costs.ADVERTISE if topic == ADVERTISE_TOPIC else cost
        tree = self.shared.tree
        before = tree.looked
        route = tree.route(topic)
        if message.policy is not None:
            alternatives = len(message.policy.condition.conjunctions)
            cost += costs.of_policy(message.payload_at, alternatives, route.cost)
        return cost + (tree.looked - before) // costs.PLACES + self._accept(message, route, now)

    def _check_quota(self, connection: Connection, session: Session, number: int) -> None:
        """Refuse more messages of QoS 2 at once than the client was told it may send.

        Those of QoS 1 are answered as they are read, so that none of them is ever unanswered. What another
        connection of the session left unreleased does not count (MQTT 5, section 4.9), unless it is a lot.
        """
        receive_max = self.shared.limits.receive_max
        is_further, most = number not in session.received, UNRELEASED_TIMES * receive_max
        if is_further and len(session.received) >= most:
            raise PacketError(Reason.RECEIVE_MAX_EXCEEDED, f"At most {most} of a session may be unreleased.")
        unreleased = connection.unreleased
        if connection.is_old:
            return  # it was told no limit, and has no more than 65,535 identifiers
        if len(unreleased) >= receive_max and number not in unreleased:
            raise PacketError(Reason.RECEIVE_MAX_EXCEEDED, f"At most {receive_max} may be unanswered.")

    def _topic(self, connection: Connection, packet: PublishPacket) -> str:
        """Return the topic of a packet, by its alias if it has no other."""
        topic, alias = packet.topic, packet.topic_alias
        if alias is not None:
            if alias > self.shared.limits.topic_alias_max:
                raise PacketError(
                    Reason.TOPIC_ALIAS_INVALID,
                    f"A topic alias is at most {self.shared.limits.topic_alias_max} here.",
                )
            if not topic:
                known = connection.aliases_in.get(alias)
                if known is None:
                    raise protocol_error("That topic alias stands for nothing yet.")
                return known
        if "+" in topic or "#" in topic:
            raise PacketError(Reason.TOPIC_NAME_INVALID, "A topic to publish to has no wildcards.")
        if alias is not None:
            self._set_alias(connection, alias, topic)
        return topic

    @staticmethod
    def _set_alias(connection: Connection, alias: int, topic: str) -> None:
        """Let a number stand for a topic, which is kept for as long as the connection lasts."""
        aliases = connection.aliases_in
        if aliases.get(alias) != topic:
            aliases.pop(alias, None)
            if not have_room(aliases.values(), topic):
                text = f"Topics with an alias have at most {ALIASED_CHARS_MAX} characters together here."
                raise PacketError(Reason.QUOTA_EXCEEDED, text)
            aliases[alias] = topic

    def _take(
        self, session: Session, packet: PublishPacket, topic: str, frame: bytes, now: float
    ) -> Message | None:
        """Check what a client may not do, and retain the message; return it unless it was for the broker."""
        if is_reserved(topic) or not may_publish(session.permissions, topic):
            raise _RefusedError(PubAckReasonCode.NOT_AUTHORIZED, f"You may not publish to {topic[:80]!r}.")
        if self.shared.refusing is not None and (int(packet.qos) or packet.retain):
            raise _RefusedError(PubAckReasonCode.QUOTA_EXCEEDED, self.shared.refusing)
        try:
            check_topic(topic)
        except TopicError as error:
            raise _RefusedError(PubAckReasonCode.TOPIC_NAME_INVALID, str(error)) from None
        if topic == ADVERTISE_TOPIC:
            self._advertise(session, packet.payload)
            return None
        if self._came_before(session, packet):
            return None
        message = _message(packet, topic, frame, session.client_id, self._policy(packet), now)
        allowed = session.permissions.publish_if if session.permissions is not None else None
        if allowed is not None and not meets(allowed, message):
            raise _RefusedError(PubAckReasonCode.NOT_AUTHORIZED, "You may not publish such attributes.")
        message.event = None  # it was made before the message had its number
        if message.retain:
            self._number(message, now)  # first: its number decides which of two messages is retained
            message.party = party_of(session.address or "")
            if not self.shared.retained.has_share_for(message, self.shared.limits):
                text = (
                    "Clients of your address have as many retained messages, or bytes of them, as they may."
                )
                raise _RefusedError(PubAckReasonCode.QUOTA_EXCEEDED, text, ADDRESS_QUOTA)
            if not self.shared.retained.keep(message):
                raise _RefusedError(
                    PubAckReasonCode.QUOTA_EXCEEDED, "There is no room for retained messages."
                )
        return message

    def _came_before(self, session: Session, packet: PublishPacket) -> bool:
        """Whether a client sends an event again, perhaps at another broker, that it numbered itself.

        Events that no journal holds are counted by themselves. Otherwise a broker that was killed would judge
        later events by another number than before, and its sessions would not be what they were; and an
        event of QoS 1 that could not be sent at once would be taken for old after one of QoS 0. All that is
        lost with a broker's life is the number of the last event of QoS 0: if that is sent again it counts
        as new once, and subscribers who look at its number know it.
        """
        is_sure = bool(int(packet.qos) or packet.retain)
        for text in property_values(packet.user_properties, NUMBER):
            publisher, _, digits = text.rpartition(":")
            number = number_of(digits) if publisher == session.client_id else None
            if number is not None:
                if number <= session.last_number or (not is_sure and number <= session.last_unsure):
                    self.shared.counters.refused["repeated"] += 1
                    return True
                if is_sure:
                    session.last_number = number
                else:
                    session.last_unsure = number
        return False

    def _policy(self, packet: PublishPacket) -> Policy | None:
        texts = property_values(packet.user_properties, POLICY)
        if not texts:
            return None
        if len(texts) > 1 or len(texts[0].encode()) > self.shared.limits.filter_bytes_max:
            raise _RefusedError(
                PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
                f"A message has one policy of at most {self.shared.limits.filter_bytes_max} bytes.",
            )
        try:
            policy = parse_policy(texts[0])
            if self.shared.effects.collects:
                check_tellable(policy)
        except ContentError as error:
            raise _RefusedError(PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        return policy

    def _advertise(self, session: Session, payload: bytes) -> None:
        """Add the advertisements in a payload, one a line, to the client's; none at all withdraws them."""
        limits = self.shared.limits
        try:
            texts = [line.strip() for line in payload.decode().splitlines() if line.strip()]
            if len(texts) > limits.advertisements_max or len(payload) > advertised_bytes_max(limits):
                raise _RefusedError(
                    PubAckReasonCode.QUOTA_EXCEEDED,
                    f"At most {limits.advertisements_max} advertisements, of {advertised_bytes_max(limits)} "
                    "bytes together, are made at once.",
                )
            advertisements = tuple(dict.fromkeys((*session.advertisements, *texts))) if texts else ()
            self._check_room_to_advertise(advertisements)
            # All of them: whoever changes some has all read again, by brokers that have forgotten them.
            check_advertisements(advertisements, in_network=self.shared.effects.collects)
        except (ContentError, UnicodeDecodeError) as error:
            raise _RefusedError(PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        session.advertisements = advertisements
        if self.shared.effects.collects:
            self.shared.effects.changes.append(Change(Turn.ADVERTISED, session))

    def _check_room_to_advertise(self, advertisements: tuple[str, ...]) -> None:
        limits = self.shared.limits
        most, bytes_max = limits.advertisements_max, advertised_bytes_max(limits)
        if len(advertisements) > most or sum(len(one.encode()) for one in advertisements) > bytes_max:
            raise _RefusedError(
                PubAckReasonCode.QUOTA_EXCEEDED,
                f"A client has at most {most} advertisements, of {bytes_max} bytes together.",
            )

    def _number(self, message: Message, now: float) -> None:
        """Give a message its number, which grows, also over restarts and from broker to broker.

        A source is a publisher at one broker: its events take one way to each subscriber, so that their
        numbers arrive in order. A publisher that moves is several: events of two brokers may overtake.
        """
        shared, publisher = self.shared, message.publisher
        if publisher is not self._publisher or shared.origin is not self._origin:
            self._publisher, self._origin = publisher, shared.origin
            self._source = f"{publisher}@{shared.origin}"
        message.source = self._source
        if now == shared.numbered_s:  # as below; without a call, as every event passes here
            shared.sequence = message.sequence = shared.sequence + 1
        else:
            message.sequence = self.next_sequence(now)

    def next_sequence(self, now: float) -> int:
        """Return the number of a further event: a date in microseconds, later than all before it."""
        shared = self.shared
        if now == shared.numbered_s:  # what came together is numbered on
            shared.sequence += 1
        else:
            shared.numbered_s = now
            micros = int(now * 1e6)
            shared.sequence = micros if micros > shared.sequence else shared.sequence + 1
        return shared.sequence

    def _accept(self, message: Message, route: Route, now: float) -> int:
        """Number, count and deliver a message, or have it routed; return what that costs."""
        shared = self.shared
        if not message.retain:  # else it is numbered already
            self._number(message, now)
        shared.counters.received += 1
        counted = shared.topics.rows.get(message.topic)
        if counted is None:
            shared.topics.begin(message.topic, now)
        else:
            counted[0] += 1
            counted[1] = now
        effects = shared.effects
        if effects.collects:
            effects.published.append(message)
            return route.cost + effects.weigh(message.topic)
        self.deliverer.deliver(message, route, now)
        return route.cost

    def publish_own(self, message: Message, now: float) -> None:
        """Publish a will: its time to live begins now.

        One that is to be retained and is beyond its party's share leaves its topic without a value, at all
        brokers: the one before is known to be old.
        """
        party = message.party
        message = Message(
            message.topic,
            message.frame,
            message.payload_at,
            message.id_at,
            message.qos,
            now,
            message.publisher,
            retain=message.retain,
            properties=message.properties,
            expiry=message.expiry,
            expires_s=expires_at(now, message.expiry),
            policy=message.policy,
            party=party,
        )
        if message.retain:
            self._number(message, now)
            if self.shared.retained.has_share_for(message, self.shared.limits):
                self.retain(message)
            else:
                self.shared.retained.end(message)
                self.shared.counters.refused[f"publish {ADDRESS_QUOTA}"] += 1
        self._accept(message, self.shared.tree.route(message.topic), now)

    def deliver(self, message: Message, now: float) -> None:
        """Hand on an event that another broker published, and retain it if it is to be."""
        if message.retain:
            if not message.sequence:
                self._number(message, now)
            self.retain(message)
        self.deliverer.deliver(message, self.shared.tree.route(message.topic), now)

    def retain(self, message: Message) -> bool:
        """Keep an event for later subscribers, or forget its topic if it is empty, unless it is old.

        Return whether it was news: later than what was known of its topic. If there is no room it is counted
        as refused, and the topic is left without a value rather than with one that is known to be old.
        """
        shared = self.shared
        # What is published here from now on is later for all brokers, also where clocks disagree.
        shared.sequence = max(shared.sequence, message.sequence)
        if not shared.retained.is_news(message):
            return False
        if not shared.retained.keep(message):
            shared.retained.forget(message.topic)
            shared.counters.refused["publish"] += 1
        return True

    def _answer(self, connection: Connection, qos: int, number: int, refusal: _RefusedError | None) -> None:
        if not qos:
            return
        if refusal is None:
            self.deliverer.write(connection, (b"\x40\x02" if qos == 1 else b"\x50\x02") + PACKET_ID[number])
            return
        answer = answers.publish_refused(connection, qos, number, refusal.code, refusal.text)
        self.deliverer.write(connection, answer)


def _user_properties(data: bytes, at: int, end: int) -> Properties | None:
    """Read user properties, or return None where there is anything else or anything wrong."""
    if end - at >= 0x80:
        return None  # the length took more than the one byte that was looked at
    pairs = []
    while at < end:
        if data[at] != 0x26 or at + 5 > end:
            return None
        value_at = at + 5 + data[at + 2]
        if data[at + 1] or value_at > end or data[value_at - 2]:
            return None
        name = data[at + 3 : value_at - 2]
        at = value_at + data[value_at - 1]
        text = data[value_at:at]
        # What is of meaning to the broker itself, and what may be no text at all, goes the long way.
        if name in _OWN_NAMES or not name.isascii() or not text.isascii() or b"\0" in name or b"\0" in text:
            return None
        pairs.append((name.decode(), text.decode()))
    return Properties(0, None, None, None, tuple(pairs)) if at == end else None


def _message(
    packet: mqtt5.PublishPacket, topic: str, frame: bytes, publisher: str, policy: Policy | None, now: float
) -> Message:
    """Make the message of a packet; its own bytes serve unless they name an alias, or another's number."""
    qos = int(packet.qos)
    payload = packet.payload
    said = without_numbers_of_others(packet.user_properties, publisher)
    properties = Properties(
        packet.payload_format_indicator,
        packet.content_type,
        packet.response_topic,
        packet.correlation_data,
        said,
    )
    expiry = packet.message_expiry_interval
    is_unaltered = len(said) == len(packet.user_properties)
    if packet.topic_alias is not None or packet.duplicate or not is_unaltered:
        frame, id_at, payload_at = write_publish(
            topic, payload, qos=qos, retain=packet.retain, expiry=expiry, properties=properties
        )
    else:
        body = 2
        while frame[body - 1] >= 0x80:
            body += 1
        id_at, payload_at = body + 2 + (frame[body] << 8 | frame[body + 1]), len(frame) - len(payload)
    if payload_at == id_at + (3 if qos else 1):
        properties = PLAIN  # as `publish_plain` has it: which of the two is asked depends on a cache
    return Message(
        topic,
        frame,
        payload_at,
        id_at,
        qos,
        now,
        publisher,
        retain=packet.retain,
        properties=properties,
        expiry=expiry,
        expires_s=expires_at(now, expiry),
        policy=policy,
    )
