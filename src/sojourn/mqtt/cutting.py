"""Long SUBSCRIBEs and UNSUBSCRIBEs are cut into parts, so that others have their turn in between.

Each part is a packet of its own: it is read in its turn, and noted in the journal when it is taken in, so
that what happens in between happens again in the same order. The client sent one packet and gets one answer,
after the last part (`Connection.parts_left`). What a client may not have anyway, because it is beyond the
number of subscriptions of one client, is answered without having been looked at; of those with a filter that
is beyond the number of filters.

A part has of the user properties what its topic filters need, and no more: what else a client says would be
kept, noted and decoded as often as there are parts. Parts of a client that has gone are let go (`let_go`): it
was promised nothing before its answer. What it sent after them is read all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mqtt5 import DisconnectReasonCode as Reason
from mqtt5 import SubAckReasonCode, SubscribePacket, UnsubscribePacket

from sojourn.mqtt.connection import Connection
from sojourn.mqtt.conventions import BUDGET, EXPIRY, FILTER, KEEP
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.members import SHARE
from sojourn.mqtt.mqtt3 import written_length
from sojourn.mqtt.packets import (
    REST,
    SUBSCRIBE,
    UNSUBSCRIBE,
    PacketError,
    decode,
    malformed,
    remaining_length,
)
from sojourn.mqtt.rights import may_subscribe_to_something
from sojourn.mqtt.room import levels_of

SUBSCRIBES = (SUBSCRIBE, UNSUBSCRIBE, REST)
"""The kinds of packets that are looked at here."""
PART = 32
"""Topic filters of a part."""
LEVELS_A_PART = 1_024
"""Levels that the topic filters of a part have, unless a single one has more."""
FILTERED_PART = 2
"""The same where a filter goes along, which takes longer to compare."""
SHARED_PART = 8
"""The same where there are shared subscriptions, of which every broker is told twice."""
RETAINED_A_PART = 10_000
"""Retained messages that a part with wildcards may ask for, unless a single topic filter asks for more."""
FILTER_TEXTS = 4
"""What goes with each part is no longer than so many of the longest filters, or its client has to go."""
CUT_BYTES_MIN = 128
"""Shorter packets are not looked at: they cannot have many, unless it is wildcards over retained messages."""
_OWN = (FILTER, KEEP, EXPIRY, BUDGET)
"""The user properties of a SUBSCRIBE that say something of its subscriptions."""


def own_properties(packet: SubscribePacket) -> list[tuple[str, str]]:
    """Return what a SUBSCRIBE says of its subscriptions, read once."""
    return [pair for pair in packet.user_properties if pair[0] in _OWN]


def _is_rest(connection: Connection, frame: bytes) -> bool:
    """Whether a packet was put there by the broker; one that says so and comes of a client is refused."""
    if frame[0] >> 4 != REST or connection.session is None:
        return False
    if not connection.greets:
        raise malformed("There is no such packet.")
    connection.greets -= 1
    return True


def cut(connection: Connection, frame: bytes, limits: Limits, retained: int) -> bytes | None:
    """Return the parts of a packet, one after the other, or None if it is short enough.

    `retained` is how many retained messages there are, of which each wildcard may ask for all.
    """
    is_short = len(frame) <= CUT_BYTES_MIN and retained * PART <= RETAINED_A_PART
    if _is_rest(connection, frame) or is_short:
        return None
    packet = decode(frame)
    parts: list[bytes]
    if isinstance(packet, SubscribePacket):
        filters = packet.topic_filters
        said, most = own_properties(packet), limits.subscriptions_max
        texts = [text for name, text in said if name == FILTER]
        part = _part_of([one.pattern for one in filters])
        if texts:
            most = min(most, limits.filters_max)
            # What is too long, or nobody's to have, is refused without having been compared.
            is_read = len(texts) == 1 and len(texts[0].encode()) <= limits.filter_bytes_max
            session = connection.session
            if is_read and session is not None and may_subscribe_to_something(session.permissions):
                part = FILTERED_PART
        if any("+" in one.pattern or "#" in one.pattern for one in filters):
            part = max(1, min(part, RETAINED_A_PART // max(1, retained)))
        most = min(most, len(filters))
        ends = _ends([levels_of(one.pattern) for one in filters[:most]], part)
        if (len(ends) < 2 and len(filters) <= part) or not packet.packet_id:
            return None
        if connection.is_gone:
            return b""
        bytes_max = FILTER_TEXTS * limits.filter_bytes_max
        if sum(len(text.encode()) for _, text in said) > bytes_max:
            text = f"What so many topic filters have in common has at most {bytes_max} bytes here."
            raise PacketError(Reason.QUOTA_EXCEEDED, text)
        connection.part_codes_beyond = [int(SubAckReasonCode.QUOTA_EXCEEDED)] * (len(filters) - most)
        parts = [
            SubscribePacket(
                packet.packet_id,
                filters[at:end],
                subscription_id=packet.subscription_id,
                user_properties=said,
            ).write()
            for at, end in pairwise([0, *ends])
        ]
    elif isinstance(packet, UnsubscribePacket):
        patterns = packet.patterns
        ends = _ends([levels_of(one) for one in patterns], _part_of(patterns))
        if len(ends) < 2 or not packet.packet_id:
            return None
        if connection.is_gone:
            return b""
        connection.part_codes_beyond = []
        parts = [_written_unsubscribe(packet.packet_id, patterns[at:end]) for at, end in pairwise([0, *ends])]
    else:
        return None
    connection.parts_left = len(parts)
    return b"".join(parts)


def _written_unsubscribe(packet_id: int, patterns: Sequence[str]) -> bytes:
    """Return an UNSUBSCRIBE. The codec reads topic filters that are none, but does not write them.

    They are answered one by one, when their part is read.
    """
    texts = [text.encode() for text in patterns]
    body = b"".join([packet_id.to_bytes(2), b"\0", *(len(text).to_bytes(2) + text for text in texts)])
    return bytes((UNSUBSCRIBE << 4 | 2,)) + written_length(len(body)) + body


def _part_of(patterns: Sequence[str]) -> int:
    """How many of these topic filters a part has at most."""
    return SHARED_PART if any(one.startswith(SHARE) for one in patterns) else PART


def _ends(levels: list[int], most: int) -> list[int]:
    """Where parts end, given the levels of each topic filter, and how many a part has at most."""
    found: list[int] = []
    count = total = 0
    for at, more in enumerate(levels):
        if count and (count == most or total + more > LEVELS_A_PART):
            found.append(at)
            count = total = 0
        count += 1
        total += more
    return [*found, len(levels)] if levels else []


def let_go(connection: Connection) -> None:
    """Forget the parts that wait of a connection which is gone, and those that would still be cut."""
    connection.is_gone = True
    if connection.parts_left and connection.pieces:
        data, start = connection.pieces[0], connection.offset
        while data[start] >> 4 == REST:  # which was promised, unlike the parts behind it
            size = remaining_length(data, start, len(data))
            assert size is not None, "rests wait whole"
            start = size[1] + size[0]
        at = start
        for _ in range(connection.parts_left):
            size = remaining_length(data, at, len(data))
            assert size is not None, "parts wait whole"
            length, body = size
            at = body + length
        connection.pieces[0] = data[connection.offset : start] + data[at:]
        connection.offset = 0
        connection.have -= at - start
        connection.translated = max(0, connection.translated - (at - start))
    connection.parts_left = 0
    connection.part_codes, connection.part_codes_beyond, connection.part_reasons = [], [], []


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
