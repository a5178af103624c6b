"""CONNECT to DISCONNECT: sessions are found, taken over, resumed and ended; wills; what time brings.

A CONNECT that is well formed is a *knock*: the driver looks at name and password, perhaps asks another
broker for the session, and calls `admit` or `refuse`, at once or later. What the client sends in between
waits. A session ends when its time has run out, when its client starts clean, or with its connection if it
was to be kept for no time; a will is published when its delay has passed or its session ends, whichever comes
first, and not if the client was back before (MQTT 5, sections 3.1.2.5 and 3.1.3.2.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mqtt5 import ConnAckPacket, ConnectPacket, DisconnectPacket
from mqtt5 import ConnAckReasonCode as ConnectCode
from mqtt5 import DisconnectReasonCode as Reason

from sojourn.mqtt import answers
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.connection import State as Phase
from sojourn.mqtt.content import (
    excessive_content,
    property_values,
    stated_attributes,
    subscriber_event,
    unclear_content,
)
from sojourn.mqtt.conventions import ADVERTISE, BROKER, DROPPED, NUMBERED, PREVIOUS, QUENCH
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.effects import Change, Knock, Turn
from sojourn.mqtt.message import Message
from sojourn.mqtt.packets import REFUSED_3_1_1, decode, protocol_error
from sojourn.mqtt.parties import party_of
from sojourn.mqtt.rights import Reviewer, may_publish_message, why_not
from sojourn.mqtt.room import NoRoom, is_beyond_wills, no_room_for_will, replace_queue
from sojourn.mqtt.session import NEVER, Session
from sojourn.mqtt.session_state import SessionState, fill_session, message_of, session_state
from sojourn.mqtt.state import Due, State
from sojourn.mqtt.subscribing import Subscriber
from sojourn.mqtt.wills import is_will_topic, read_will

_CONNECT_CODES = {
    int(Reason.MALFORMED_PACKET): ConnectCode.MALFORMED_PACKET,
    int(Reason.PROTOCOL_ERROR): ConnectCode.PROTOCOL_ERROR,
    int(Reason.QUOTA_EXCEEDED): ConnectCode.QUOTA_EXCEEDED,
}


class Handshake:
    """Begins and ends connections and sessions."""

    def __init__(self, shared: State, deliverer: Deliverer, subscriber: Subscriber) -> None:
        self.shared = shared
        self.deliverer = deliverer
        self.subscriber = subscriber
        self.reviewer = Reviewer(subscriber, deliverer)
        self.wills: list[Message] = []
        """Wills that are due; the core publishes them."""

    # Coming ------------------------------------------------------------------------------------------

    def knock(self, connection: Connection, packet: ConnectPacket, frame: bytes, now: float) -> None:
        """Take a CONNECT: refuse what no driver could admit, and ask the driver about the rest.

        Only the driver is told the password; `frame`, which is kept until the driver has answered, has none.
        """
        limits = self.shared.limits
        will = packet.will
        connection.said = packet.client_id, packet.username or ""
        connection.problem_information = packet.request_problem_info
        connection.packet_bytes_max = packet.max_packet_size or 0
        if packet.authentication_method is not None:
            text = "There is no enhanced authentication here; send a user name and a password."
            self.refuse(connection, ConnectCode.BAD_AUTHENTICATION_METHOD, text)
        elif packet.authentication_data is not None:
            text = "There is authentication data without a method."
            self.refuse(connection, ConnectCode.PROTOCOL_ERROR, text)
        elif connection.is_old and not packet.client_id and not packet.clean_start:
            text = "A client without an identifier starts clean (MQTT 3.1.1, section 3.1.3.1)."
            self.refuse(connection, ConnectCode.CLIENT_ID_NOT_VALID, text)
        elif len(packet.client_id.encode()) > limits.client_id_bytes_max:
            text = f"A client identifier has at most {limits.client_id_bytes_max} bytes."
            self.refuse(connection, ConnectCode.CLIENT_ID_NOT_VALID, text)
        elif self.shared.bans.concerns(packet.client_id, (packet.username,), connection.peer):
            self.refuse(connection, ConnectCode.BANNED, "You are banned here.")
        elif will is not None and not is_will_topic(will.topic):
            text = "The will's topic is empty, too deep or reserved, or has a wildcard."
            self.refuse(connection, ConnectCode.TOPIC_NAME_INVALID, text)
        elif (excess := excessive_content(packet, limits)) is not None:
            self.refuse(connection, ConnectCode.QUOTA_EXCEEDED, excess)
        elif (lack := self._no_room_for_will(connection, packet, packet.client_id)) is not None:
            self.refuse(connection, ConnectCode.QUOTA_EXCEEDED, lack.text, why=lack.why)
        elif len(self.shared.connections) > limits.connections_max:
            text = f"There are {limits.connections_max} connections already; try again later."
            self.refuse(connection, ConnectCode.SERVER_BUSY, text)
        elif not connection.takes(len(self._connack(packet, connection.fresh_id).write())):
            self.close_silently(connection)  # it could not be told that it is let in
        else:
            connection.state = Phase.KNOCKING
            connection.connect = frame
            connection.deadline_s = now + limits.connect_timeout_s
            self.shared.remind(connection.deadline_s, Due.CONNECT, connection.number)
            self.shared.effects.knocks.append(Knock(connection.number, packet))

    def _no_room_for_will(
        self, connection: Connection, packet: ConnectPacket, client_id: str
    ) -> NoRoom | None:
        if packet.will is None:
            return None
        size = read_will(packet.will, client_id, 0.0, reads_policy=False).message.size
        return no_room_for_will(self.shared, client_id, connection.party, size)

    def refuse(
        self,
        connection: Connection,
        code: ConnectCode,
        text: str,
        reference: str | None = None,
        *,
        why: str | None = None,
    ) -> None:
        """Answer a CONNECT with a refusal, and close; `reference` names the server to use instead.

        It is counted as what the code is called, unless there is another name for it.
        """
        why = why or code.name.lower()
        self.shared.counters.refused[why] += 1
        self.shared.note_refusal("connect", why, text, connection)
        self._write(connection, answers.refusal(connection, code, text, reference))
        self.close_silently(connection)

    def _write(self, connection: Connection, packet: bytes | None) -> None:
        """Tell a client something, if there are words for it."""
        if packet is not None:
            self.deliverer.write(connection, packet)

    def refuse_broken(self, connection: Connection, reason: Reason, text: str) -> None:
        """Answer a CONNECT that cannot be read."""
        self.refuse(connection, _CONNECT_CODES.get(int(reason), ConnectCode.UNSPECIFIED_ERROR), text)

    def refuse_version(self, connection: Connection, *, old: bool) -> None:
        """Answer a CONNECT of another version of the protocol; `old` if its sender reads MQTT 3."""
        if old:
            self.shared.counters.refused["unsupported_protocol_version"] += 1
            self.deliverer.write(connection, REFUSED_3_1_1)
            connection.state = Phase.CLOSED
        else:
            text = "Only MQTT 5 and 3.1.1 are spoken here."
            self.refuse(connection, ConnectCode.UNSUPPORTED_PROTOCOL_VERSION, text)

    def admit(self, connection: Connection, admission: Admission, now: float) -> None:
        """Let a client in: find or make its session, answer, and send what waited for it."""
        if connection.connect is None or connection.state is not Phase.KNOCKING:
            return  # it has gone in the meantime
        packet = decode(connection.connect)
        assert isinstance(packet, ConnectPacket)
        connection.connect = None
        client_id = packet.client_id or connection.fresh_id
        names = admission.username, admission.owner
        if self.shared.bans.concerns(client_id, names, connection.peer):
            self.refuse(connection, ConnectCode.BANNED, "You are banned here.")
            return
        unclear = unclear_content(packet, in_network=self.shared.effects.collects)
        if unclear is not None:
            self.refuse(connection, ConnectCode.IMPLEMENTATION_SPECIFIC_ERROR, unclear)
            return
        refusal = self._refusal(client_id, packet, admission, now)
        if refusal is not None:
            self.refuse(connection, ConnectCode.NOT_AUTHORIZED, refusal)
            return
        lack = self._no_room_for_will(connection, packet, client_id)  # others were let in since it knocked
        if lack is not None:
            self.refuse(connection, ConnectCode.QUOTA_EXCEEDED, lack.text, why=lack.why)
            return
        session, is_old = self._find(client_id, packet, admission.state, now)
        if session is None:
            text = f"There are {self.shared.limits.sessions_max} sessions already; try again later."
            self.refuse(connection, ConnectCode.QUOTA_EXCEEDED, text)
            return
        self._settle_connection(connection, packet)
        if admission.until_s is not None:
            connection.until_s = admission.until_s
            self.shared.remind(admission.until_s, Due.RIGHTS, connection.number)
        self._settle_session(session, packet, admission, now)
        session.connection, connection.session = connection, session
        self.shared.address_uses.came(connection, session)
        connection.state = Phase.OPEN
        self._welcome(connection, session, packet, is_old=is_old)
        if self.shared.effects.collects:
            self.shared.effects.changes.append(Change(Turn.ARRIVED, session))
        if session.thin_at:
            self.deliverer.thin(session, now, is_back=True)
        self.deliverer.resend(session, now)

    def _refusal(self, client_id: str, packet: ConnectPacket, admission: Admission, now: float) -> str | None:
        """Why a client may not have what it asks for, whoever it proved to be; None if it may."""
        if packet.will is not None:
            will = read_will(packet.will, client_id, now)
            if not may_publish_message(admission.permissions, will.message):
                return "You may not publish your will."
        session = self.shared.sessions.get(client_id)
        here = None if session is None or is_over(session, now) else session
        return why_not(admission, here, now) or why_not(admission, admission.state, now)

    def _find(
        self, client_id: str, packet: ConnectPacket, state: SessionState | None, now: float
    ) -> tuple[Session | None, bool]:
        shared = self.shared
        session = shared.sessions.get(client_id)
        owned_s = now
        if session is not None:
            owned_s = now if is_over(session, now) else session.owned_s
            if session.connection is not None:
                text = "The same client connected again."
                self.dismiss(session.connection, Reason.SESSION_TAKEN_OVER, text, now)
            if not session.ended and (packet.clean_start or is_over(session, now)):
                self.end(session, now)
            if not session.ended:
                self.discard(state, now)
                return session, True
        if len(shared.sessions) >= shared.limits.sessions_max:
            return None, False
        session = shared.sessions[client_id] = Session(client_id, now)
        session.owned_s = owned_s
        if state is not None and not packet.clean_start:
            fill_session(session, state, self.subscriber, now)
            shared.address_uses.kept(session)
            return session, True
        self.discard(state, now)
        return session, False

    def adopt(self, state: SessionState, now: float) -> Session | None:
        """Make a session of plain data, without a connection; None if the client has another here."""
        if state.client_id in self.shared.sessions:
            self.discard(state, now)
            return None
        session = self.shared.sessions[state.client_id] = Session(state.client_id, now)
        fill_session(session, state, self.subscriber, now)
        self.shared.address_uses.kept(session)
        session.expiry = self._expiry(session.expiry)
        if session.expiry != NEVER:
            session.expires_s = now + session.expiry
        if session.will is not None:
            left_s = state.will_left_s
            session.will_s = now + min(session.will.delay_s if left_s is None else left_s, session.expiry)
        if is_beyond_wills(self.shared, session):
            self.shared.counters.refused["will quota_exceeded"] += 1
            self.publish_will(session)  # early, as it cannot be kept: better than never
        self.remind(session)
        return session

    def discard(self, state: SessionState | None, now: float) -> None:
        """End a session that came from another broker and is not gone on with: its will is due."""
        if state is not None and state.will is not None:
            self._publish(message_of(state.will.message, now), state)

    def export(self, session: Session, now: float) -> SessionState:
        """Return a session as plain data for another broker, which has its client now.

        The will goes along with what is left of its delay, which begins now if the client seemed to be here:
        its connection is as good as closed. One that is due already is published here (MQTT 5, section
        3.1.2.5). Either way the session here has none any more.
        """
        left_s = None
        if session.will is not None:
            until_s = now + min(session.will.delay_s, session.expiry)
            left_s = (until_s if session.will_s is None else session.will_s) - now
            if left_s <= 0:
                self.publish_will(session)
        state = session_state(session, now, left_s if session.will is not None else None)
        self.shared.change_will(session, None)
        session.will_s = None
        return state

    def _settle_connection(self, connection: Connection, packet: ConnectPacket) -> None:
        limits = self.shared.limits
        connection.window = min(packet.receive_max, limits.inflight_max)
        connection.aliases_out_max = min(packet.topic_alias_max, limits.topic_alias_max)
        connection.numbered = "1" in property_values(packet.user_properties, NUMBERED)
        # A client of MQTT 3.1.1 cannot be told another one.
        asked = packet.keep_alive
        connection.keep_alive_s = asked if connection.is_old else self._keep_alive(asked)
        if connection.keep_alive_s:
            self.shared.remind(
                connection.seen_s + 1.5 * connection.keep_alive_s, Due.KEEP_ALIVE, connection.number
            )

    def _settle_session(
        self, session: Session, packet: ConnectPacket, admission: Admission, now: float
    ) -> None:
        session.expiry = self._expiry(packet.session_expiry_interval)
        session.expires_s = session.will_s = None
        will = read_will(packet.will, session.client_id, now) if packet.will is not None else None
        self.shared.change_will(session, will)
        session.username = admission.username
        if admission.owner is not None:
            session.owner = admission.owner
        before, session.permissions = session.permissions, admission.permissions
        if (before, admission.permissions, admission.state) != (None, None, None):
            self.reviewer.review(session)  # what waits may be of subscriptions that it has no more
        stated = stated_attributes(packet.user_properties) if admission.may_state else {}
        # What a client says of itself is never about its name.
        named = {"client": session.client_id, "user": admission.username}
        session.stated = dict(stated) | named | dict(admission.attributes)
        session.attributes = subscriber_event(session.stated)
        previous = property_values(packet.user_properties, PREVIOUS)
        session.previous = previous[0] if previous else None
        advertisements = property_values(packet.user_properties, ADVERTISE)
        session.advertisements = tuple(advertisements[: self.shared.limits.advertisements_max])
        if self.shared.effects.collects and session.advertisements:
            self.shared.effects.changes.append(Change(Turn.ADVERTISED, session))

    def _expiry(self, asked: int) -> int:
        return min(asked, self.shared.session_expiry_max)  # `NEVER` is the longest of all

    def _keep_alive(self, asked: int) -> int:
        limit = self.shared.limits.keep_alive_max_s
        return limit if asked > limit > 0 else asked

    def _welcome(
        self, connection: Connection, session: Session, packet: ConnectPacket, *, is_old: bool
    ) -> None:
        """Tell a client that it is let in; and with whom it is, if there is room for that."""
        properties = [(BROKER, self.shared.name)]
        if self.shared.quenches and "1" in property_values(packet.user_properties, QUENCH):
            properties.append((QUENCH, "1"))
            self.shared.effects.sources.append(connection)
        if session.missed:
            properties.append((DROPPED, str(session.missed)))
            session.missed = 0
        longer, shorter = (
            self._connack(packet, session.client_id, is_old=is_old, properties=told)
            for told in (properties, [])
        )
        self._write(connection, answers.welcome(connection, longer, shorter))

    def _connack(
        self,
        packet: ConnectPacket,
        client_id: str,
        *,
        is_old: bool = False,
        properties: Sequence[tuple[str, str]] = (),
    ) -> ConnAckPacket:
        """Return the answer to a CONNECT: what differs from what was asked, and what the broker allows."""
        limits = self.shared.limits
        expiry = self._expiry(packet.session_expiry_interval)
        keep_alive = self._keep_alive(packet.keep_alive)
        return ConnAckPacket(
            session_present=is_old,
            session_expiry_interval=expiry if expiry != packet.session_expiry_interval else None,
            assigned_client_id=None if packet.client_id else client_id,
            server_keep_alive=keep_alive if keep_alive != packet.keep_alive else None,
            receive_max=limits.receive_max,
            topic_alias_max=limits.topic_alias_max,
            max_packet_size=limits.packet_bytes_max,
            shared_subscription_available=self.shared.shared_subscriptions,
            user_properties=list(properties),
        )

    # Going -------------------------------------------------------------------------------------------

    def close(self, connection: Connection, reason: Reason, text: str, reference: str | None = None) -> None:
        """Tell a client why it is disconnected, and read nothing of it any more."""
        if connection.state is Phase.OPEN:
            self._write(connection, answers.goodbye(connection, reason, text, reference))
        self.close_silently(connection)

    def dismiss(
        self, connection: Connection, reason: Reason, text: str, now: float, reference: str | None = None
    ) -> None:
        """Close a connection, and part its session from it."""
        self.close(connection, reason, text, reference)
        if connection.session is not None:
            self.detach(connection.session, now)

    def disconnected(
        self, connection: Connection, session: Session, packet: DisconnectPacket, now: float
    ) -> None:
        """Take a client's DISCONNECT."""
        expiry = packet.session_expiry_interval
        if packet.server_reference is not None:
            raise protocol_error("A server reference is for a broker to send.")
        if expiry is not None:
            if expiry and not session.expiry:
                raise protocol_error("A session that was to end with its connection cannot be kept.")
            session.expiry = self._expiry(expiry)
        if packet.reason_code == Reason.NORMAL_DISCONNECTION:
            self.shared.change_will(session, None)
        self.close_silently(connection)
        self.detach(session, now)

    def close_silently(self, connection: Connection) -> None:
        """Read nothing of a connection any more, and let the driver close it."""
        if connection.state is not Phase.CLOSED:
            connection.state = Phase.CLOSED
            connection.direct = False
            if not connection.output:
                self.shared.effects.touched.append(connection)

    def detach(self, session: Session, now: float, *, keeps_will: bool = False) -> None:
        """Part a session from its connection; a client that is back in time cancels its will.

        `keeps_will`: the broker stops, and the delay of a will does not run while nobody could come back.
        """
        connection = session.connection
        if connection is None:
            return
        self.shared.address_uses.left(connection, session)
        connection.session = None
        connection.direct = False
        session.connection = None
        self.deliverer.thinning.forget(session)
        session.unsent.clear()
        # What waited at QoS 0 was for this connection only.
        if any(delivery.qos == 0 for delivery in session.queue):
            self._forget_unsure(session)
        if not session.expiry:
            self.end(session, now)
            return
        if session.expiry != NEVER:
            session.expires_s = now + session.expiry
            self.remind(session)
        if session.will is not None:
            delay = min(session.will.delay_s, session.expiry)
            if delay == 0:
                self.publish_will(session)
            elif not keeps_will:
                session.will_s = now + delay
                self.remind(session)
        if self.shared.effects.collects:
            self.shared.effects.changes.append(Change(Turn.LEFT, session))

    def _forget_unsure(self, session: Session) -> None:
        kept = [delivery for delivery in session.queue if delivery.qos]
        self.shared.counters.dropped["absent"] += len(session.queue) - len(kept)
        replace_queue(self.shared, session, kept)

    def end(self, session: Session, now: float) -> None:
        """Forget a session; its will is due now if it has not been published."""
        assert session.connection is None, "a session ends after its connection"
        if session.will is not None:
            self.publish_will(session)
        for subscription in list(session.subscriptions.values()):
            self.subscriber.remove(subscription)
        self.shared.address_uses.ended(session)
        self.shared.queued_bytes -= session.queued_bytes
        self.shared.queued -= len(session.queue)
        lost = sum(delivery.qos > 0 and delivery.message.expires_s > now for delivery in session.queue)
        if lost:
            self.shared.counters.dropped["session ended"] += lost
        session.queue.clear()
        self.shared.inflight_bytes -= session.inflight_bytes
        session.inflight.clear()
        session.queued_bytes = session.inflight_bytes = session.expiry = 0
        session.ended = True
        del self.shared.sessions[session.client_id]
        if self.shared.effects.collects:
            self.shared.effects.changes.append(Change(Turn.ENDED, session))

    def publish_will(self, session: Session) -> None:
        """Have a will published that is due."""
        assert session.will is not None
        self._publish(session.will.message, session)
        self.shared.change_will(session, None)
        session.will_s = None

    def _publish(self, will: Message, whose: Session | SessionState) -> None:
        address, bans = whose.address or "", self.shared.bans
        if bans.hush and bans.concerns(whose.client_id, (whose.username, whose.owner), address):
            self.shared.counters.refused["will banned"] += 1
            return
        will.party = party_of(address)
        self.wills.append(will)

    def remind(self, session: Session) -> None:
        """Note when to look at a session; one note is enough, however often its client comes and goes."""
        moment_s = min(session.expires_s or math.inf, session.will_s or math.inf)
        if moment_s < (session.reminded_s or math.inf):
            session.reminded_s = moment_s
            self.shared.remind(moment_s, Due.SESSION, session.client_id)


def is_over(session: Session, now: float) -> bool:
    """Whether a session's time has run out, although nobody has looked since."""
    return session.expires_s is not None and session.expires_s <= now
