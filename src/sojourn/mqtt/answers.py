"""What a client is told, in the words of its version of MQTT, and in no more bytes than it takes.

Where MQTT 3.1.1 has no words for something there is no packet: whoever asked for one closes the connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mqtt5 import (
    ConnAckPacket,
    DisconnectPacket,
    PubAckPacket,
    PubAckReasonCode,
    PubCompPacket,
    PubCompReasonCode,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
    PubRelReasonCode,
    SubAckPacket,
    UnsubAckPacket,
)
from mqtt5 import ConnAckReasonCode as ConnectCode
from mqtt5 import DisconnectReasonCode as Reason
from mqtt5 import SubAckReasonCode as SubCode
from mqtt5 import UnsubAckReasonCode as UnsubCode

from sojourn.mqtt import mqtt3
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.packets import PACKET_ID, PacketError

REASON_CHARACTERS_MAX = 2_000
CONNACK_3_1_1 = 2
"""How long one is in MQTT 3.1.1, where it has no properties; in version 5 it is longer."""
UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff\\ufdd0-\\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]+"
)
"""What clients may take for a malformed packet (MQTT 5, section 1.5.4), and other ends of lines."""


def reason_string(text: str) -> str:
    """Return a sentence as the one line that goes into a packet; every reason string is made here."""
    return UNPRINTABLE.sub(" ", text).strip()[:REASON_CHARACTERS_MAX]


def fitting(connection: Connection, *packets: bytes) -> bytes | None:
    """Return the first of some packets that the client takes."""
    return next((one for one in packets if connection.takes(len(one))), None)


def welcome(connection: Connection, *packets: ConnAckPacket) -> bytes | None:
    """Return the answer that lets a client in: the first of these that it takes."""
    if connection.is_old:
        return mqtt3.connack(is_old=packets[0].session_present)
    return fitting(connection, *(one.write() for one in packets))


def refusal(connection: Connection, code: ConnectCode, text: str, reference: str | None) -> bytes | None:
    """Return the answer that refuses a CONNECT; `reference` names the server to use instead."""
    if connection.is_old:
        number = mqtt3.CONNECT_CODES.get(int(code))
        return None if number is None else mqtt3.connack(code=number)
    return fitting(
        connection,
        ConnAckPacket(reason_code=code, reason_str=reason_string(text), server_reference=reference).write(),
        ConnAckPacket(reason_code=code).write(),
    )


def instead_of(packets: bytes, code: ConnectCode, text: str) -> bytes | None:
    """Return the refusal for a client whose answer to CONNECT was to begin these bytes; None if none does."""
    if not packets.startswith(b"\x20"):
        return None
    if packets[1] == CONNACK_3_1_1:
        return mqtt3.connack(code=mqtt3.CONNECT_CODES[int(code)])
    return ConnAckPacket(reason_code=code, reason_str=reason_string(text)).write()


def goodbye(connection: Connection, reason: Reason, text: str, reference: str | None) -> bytes | None:
    """Return the DISCONNECT that says why a connection ends."""
    if connection.is_old:
        return None
    return fitting(
        connection,
        DisconnectPacket(
            reason_code=reason, reason_str=reason_string(text), server_reference=reference
        ).write(),
        DisconnectPacket(reason_code=reason).write(),
    )


def suback(connection: Connection, number: int, codes: list[SubCode], reason: str | None) -> bytes:
    """Return the answer to a SUBSCRIBE."""
    if connection.is_old:
        return mqtt3.suback(number, [int(code) for code in codes])
    if reason is not None and connection.problem_information:
        packet = SubAckPacket(number, codes, reason_str=reason_string(reason)).write()
        if connection.takes(len(packet)):
            return packet
    return SubAckPacket(number, codes).write()


def unsuback(connection: Connection, number: int, codes: Sequence[UnsubCode]) -> bytes:
    """Return the answer to an UNSUBSCRIBE."""
    if connection.is_old:
        return mqtt3.unsuback(number)
    return UnsubAckPacket(number, list(codes)).write()


def publish_refused(
    connection: Connection, qos: int, number: int, code: PubAckReasonCode, text: str
) -> bytes:
    """Return the answer that refuses a PUBLISH of QoS 1 or 2.

    A client of MQTT 3.1.1 cannot be told: an answer would be a promise, so its connection is closed
    (MQTT 3.1.1, section 3.3.5).
    """
    if connection.is_old:
        raise PacketError(Reason(int(code)), text)
    reasons = (reason_string(text), None) if connection.problem_information else (None,)
    for reason in reasons:
        if qos == 1:
            answer = PubAckPacket(number, reason_code=code, reason_str=reason).write()
        else:
            answer = PubRecPacket(number, reason_code=PubRecReasonCode(int(code)), reason_str=reason).write()
        if connection.takes(len(answer)):
            break
    return answer


def pubrel_of_nothing(connection: Connection, number: int) -> bytes:
    """Return the PUBREL that answers the PUBREC of a message which is not on its way."""
    if connection.is_old:
        return b"\x62\x02" + PACKET_ID[number]
    return PubRelPacket(number, reason_code=PubRelReasonCode.PACKET_ID_NOT_FOUND).write()


def pubcomp_of_nothing(connection: Connection, number: int) -> bytes:
    """Return the PUBCOMP that answers the PUBREL of a message which did not come."""
    if connection.is_old:
        return b"\x70\x02" + PACKET_ID[number]
    return PubCompPacket(number, reason_code=PubCompReasonCode.PACKET_ID_NOT_FOUND).write()
