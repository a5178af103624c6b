"""Long SUBSCRIBEs and UNSUBSCRIBEs are cut into parts, so that others have their turn in between.

Each part is a packet of its own: it is read in its turn, and noted in the journal when it is taken in, so
that what happens in between happens again in the same order. The client sent one packet and gets one answer,
after the last part (`Connection.parts_left`). What a client may not have anyway, because it is beyond the
number of subscriptions of one client, is answered without having been looked at.
"""

from __future__ import annotations

from mqtt5 import SubAckReasonCode, SubscribePacket, UnsubscribePacket

from sojourn.mqtt.connection import Connection
from sojourn.mqtt.conventions import FILTER
from sojourn.mqtt.packets import decode

PART = 32
"""Topic filters of a part."""
FILTERED_PART = 2
"""The same where a filter goes along, which takes longer to compare."""
CUT_BYTES_MIN = 128
"""Shorter packets are not looked at: they cannot have many."""


def cut(connection: Connection, frame: bytes, most: int) -> bytes | None:
    """Return the parts of a packet, one after the other, or None if it is short enough."""
    packet = decode(frame)
    parts: list[bytes]
    if isinstance(packet, SubscribePacket):
        filters = packet.topic_filters
        has_filter = any(key == FILTER for key, _ in packet.user_properties)
        part = FILTERED_PART if has_filter else PART
        if len(filters) <= part or not packet.packet_id:
            return None
        beyond = max(0, len(filters) - most)
        connection.part_codes_beyond = [int(SubAckReasonCode.QUOTA_EXCEEDED)] * beyond
        parts = [
            SubscribePacket(
                packet.packet_id,
                filters[at : min(at + part, most)],
                subscription_id=packet.subscription_id,
                user_properties=packet.user_properties,
            ).write()
            for at in range(0, min(most, len(filters)), part)
        ]
    elif isinstance(packet, UnsubscribePacket):
        patterns = packet.patterns
        if len(patterns) <= PART or not packet.packet_id:
            return None
        connection.part_codes_beyond = []
        parts = [
            UnsubscribePacket(packet.packet_id, patterns[at : at + PART]).write()
            for at in range(0, len(patterns), PART)
        ]
    else:
        return None
    connection.parts_left = len(parts)
    return b"".join(parts)


def gather(
    connection: Connection, codes: list[int], reasons: list[str]
) -> tuple[list[int], list[str]] | None:
    """Take the codes of a packet; return all that its client is told now, or None while parts are left."""
    if not connection.parts_left:
        return codes, reasons
    connection.parts_left -= 1
    connection.part_codes += codes
    connection.part_reasons += reasons
    if connection.parts_left:
        return None
    codes, reasons = connection.part_codes + connection.part_codes_beyond, connection.part_reasons
    connection.part_codes, connection.part_codes_beyond, connection.part_reasons = [], [], []
    return codes, reasons
