"""PUBACK, PUBREC, PUBREL and PUBCOMP from clients (MQTT 5, section 4.3).

An answer to nothing is let pass, or answered with "packet identifier not found" where that is due: its client
may have a session in mind that has ended. An answer of the wrong kind is a protocol error.
"""

from __future__ import annotations

from mqtt5 import Packet, PubAckPacket, PubCompPacket, PubRecPacket, PubRecReasonCode, PubRelPacket

from sojourn.mqtt import answers
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.packets import PACKET_ID, malformed, protocol_error
from sojourn.mqtt.room import change_inflight
from sojourn.mqtt.session import Session
from sojourn.mqtt.state import State

PLAIN_PUBACK = 0x40
"""The first byte of a PUBACK; any other with that packet type has a reserved bit set."""
PUBACK_BYTES = 4
"""The length of one that says nothing but which message it answers."""


class Acknowledger:
    """Takes what clients answer, of messages to them and of their own at QoS 2."""

    def __init__(self, shared: State, deliverer: Deliverer) -> None:
        self.shared = shared
        self.effects = shared.effects
        self.deliverer = deliverer

    def took(self, connection: Connection, session: Session, packet: Packet) -> bool:
        """Take a packet if it is an answer; say whether it was one."""
        if isinstance(packet, PubAckPacket):
            self.puback(connection, session, packet.packet_id)
        elif isinstance(packet, PubRecPacket):
            self._pubrec(connection, session, packet)
        elif isinstance(packet, PubRelPacket):
            self._pubrel(connection, session, packet)
        elif isinstance(packet, PubCompPacket):
            self._pubcomp(session, packet.packet_id)
        else:
            return False
        return True

    def puback(self, connection: Connection, session: Session, number: int) -> None:
        """Take the answer to a message of QoS 1."""
        inflight = session.inflight
        delivery = inflight.get(number)
        if delivery is not None and delivery.qos == 1:
            del inflight[number]
            message = delivery.message
            size = message.weighed or message.size
            session.inflight_bytes -= size
            self.shared.inflight_bytes -= size
            connection.address_use.bytes -= size
            if self.effects.collects:
                self.effects.settled.append((session, delivery, ""))
        elif number in session.inflight:
            raise protocol_error("A message of QoS 2 is answered by PUBREC, and its PUBREL by PUBCOMP.")
        else:
            _check_id(number)

    def pubacks(
        self,
        connection: Connection,
        session: Session,
        data: bytes,
        at: int,
        end: int,
        most: int,
        kept: list[tuple[int, bytes]] | None,
    ) -> int:
        """Take answers that came one behind the other, and keep them; return where they end.

        They end before one that is wrong, too, which is for others to look at.
        """
        start = at
        inflight, size, settled = session.inflight, 0, self.effects.settled
        collects = self.effects.collects
        most = min(end - 3, at + PUBACK_BYTES * most)
        while at < most and data[at] == PLAIN_PUBACK and data[at + 1] == 2:
            number = data[at + 2] << 8 | data[at + 3]
            delivery = inflight.get(number)
            if delivery is None or delivery.qos != 1:
                break
            del inflight[number]
            message = delivery.message
            size += message.weighed or message.size  # the first is no call
            if collects:
                settled.append((session, delivery, ""))
            at += PUBACK_BYTES
        if kept is not None:
            sequence = self.shared.sequence
            kept += [(sequence, data[one : one + PUBACK_BYTES]) for one in range(start, at, PUBACK_BYTES)]
        session.inflight_bytes -= size
        self.shared.inflight_bytes -= size
        connection.address_use.bytes -= size
        return at

    def _pubrec(self, connection: Connection, session: Session, packet: PubRecPacket) -> None:
        """Take the first answer to a message of QoS 2, and release it unless the client refused it."""
        number = packet.packet_id
        _check_id(number)
        if number not in session.inflight:
            self.deliverer.write(connection, answers.pubrel_of_nothing(connection, number))
            return
        delivery = session.inflight[number]
        if delivery is not None and delivery.qos != 2:
            raise protocol_error("A message of QoS 1 is answered by PUBACK.")
        if delivery is not None:
            change_inflight(self.shared, session, -delivery.message.size)
            if self.effects.collects:
                self.effects.settled.append((session, delivery, ""))
        if int(packet.reason_code) >= int(PubRecReasonCode.UNSPECIFIED_ERROR):
            del session.inflight[number]
            return
        session.inflight[number] = None
        self.deliverer.write(connection, b"\x62\x02" + PACKET_ID[number])

    def _pubcomp(self, session: Session, number: int) -> None:
        """Take the last answer to a message of QoS 2."""
        _check_id(number)
        if number in session.inflight:
            if session.inflight[number] is not None:
                raise protocol_error("PUBCOMP answers a PUBREL, and there was none for that message.")
            del session.inflight[number]

    def _pubrel(self, connection: Connection, session: Session, packet: PubRelPacket) -> None:
        """Forget the identifier of a client's own message of QoS 2."""
        number = packet.packet_id
        _check_id(number)
        connection.unreleased.discard(number)
        if number in session.received:
            session.received.discard(number)
            self.deliverer.write(connection, b"\x70\x02" + PACKET_ID[number])
        else:
            self.deliverer.write(connection, answers.pubcomp_of_nothing(connection, number))


def _check_id(number: int) -> None:
    if not number:
        raise malformed("A packet identifier is at least 1.")
