"""MQTT 3.1.1 in terms of MQTT 5: its packets as those of version 5, and answers that it understands.

The versions differ in little that a broker sees: version 5 put properties into most packets and codes into
all answers. So a packet of 3.1.1 is turned into the bytes of the one of version 5 that says the same, and
everything behind that knows one version: sessions, journals, other brokers. A CONNECT is kept as it came
(without its password), for it says which version the connection speaks.

| 3.1.1 | here |
| --- | --- |
| clean session | a clean start of a session that ends with its connection |
| no clean session | no clean start; the session is kept for `Limits.old_session_expiry_s` |
| CONNACK 1 to 5 | what comes nearest to a code of version 5 (`CONNECT_CODES`); else a closed connection |
| SUBACK 0x80 | every refusal of a topic filter |
| nothing | DISCONNECT, refusals of a PUBLISH: the connection is closed |

Other brokers that bridge to this one say so in their CONNECT (`is_bridge`). MQTT 3.1 is refused elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from mqtt5 import ConnAckReasonCode as ConnectCode

from sojourn.mqtt import packets
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.packets import (
    CONNECT,
    DISCONNECT,
    PACKET_ID,
    PINGREQ,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBSCRIBE,
    UNSUBSCRIBE,
    PacketError,
    body_start,
    malformed,
    protocol_error,
    remaining_length,
    too_many_filters,
)

_LEVEL, _BRIDGE_LEVEL = b"\x04", b"\x84"
"""What a CONNECT of 3.1.1 says of its version, and what that of a bridge says."""
_NO_LOCAL, _RETAIN_AS_PUBLISHED = 0x04, 0x08
_NAME = b"\x00\x04MQTT"
_LONGEST = 0xFFFF_FFFF
_SHORT_LENGTHS = tuple(bytes((value,)) for value in range(0x80))
_CLEAN, _WILL, _PASSWORD, _USERNAME = 0x02, 0x04, 0x40, 0x80

CONNECT_CODES: Final = {
    int(ConnectCode.UNSUPPORTED_PROTOCOL_VERSION): 1,
    int(ConnectCode.CLIENT_ID_NOT_VALID): 2,
    int(ConnectCode.SERVER_UNAVAILABLE): 3,
    int(ConnectCode.SERVER_BUSY): 3,
    int(ConnectCode.QUOTA_EXCEEDED): 3,
    int(ConnectCode.USE_ANOTHER_SERVER): 3,
    int(ConnectCode.SERVER_MOVED): 3,
    int(ConnectCode.CONNECTION_RATE_EXCEEDED): 3,
    int(ConnectCode.BAD_USER_NAME_OR_PASSWORD): 4,
    int(ConnectCode.NOT_AUTHORIZED): 5,
    int(ConnectCode.BANNED): 5,
}
"""Of a CONNACK: what 3.1.1 can say of it."""
_REFUSED = 0x80


# What clients send ---------------------------------------------------------------------------------------


def is_connect(frame: bytes) -> bool:
    """Whether a packet is a CONNECT of MQTT 3.1.1, in order or not."""
    at = body_start(frame)
    level = frame[at + 6 : at + 7]
    return frame[0] >> 4 == CONNECT and frame[at : at + 6] == _NAME and level in (_LEVEL, _BRIDGE_LEVEL)


def is_bridge(frame: bytes) -> bool:
    """Whether a CONNECT of 3.1.1 is of another broker, by the highest bit of its version.

    Mosquitto's bridges set it, as others do. They want nothing of their own back, and the retain flag as it
    was published: what version 5 has options for. Without that a bridge for both ways would be an echo.
    """
    at = body_start(frame)
    return frame[at + 6 : at + 7] == _BRIDGE_LEVEL


def connect_of(frame: bytes, expiry_s: int) -> bytes:
    """Return a CONNECT of 3.1.1 as one of version 5; `expiry_s` is for sessions that are not clean."""
    before, flags, fields = _cut_connect(frame)
    properties = b"\x00" if flags & _CLEAN else b"\x05\x11" + min(expiry_s, _LONGEST).to_bytes(4)
    will = b"\x00" if flags & _WILL else b""
    body = _NAME + b"\x05" + before + properties + fields[0] + will + b"".join(fields[1:])
    return b"\x10" + written_length(len(body)) + body


def without_password(frame: bytes) -> bytes:
    """Return a CONNECT of any version, or AUTH, with which all goes as with this one, without a secret."""
    if not is_connect(frame):
        return packets.without_password(frame)
    try:
        before, flags, fields = _cut_connect(frame)
    except PacketError:
        return packets.MALFORMED_CONNECT
    if not flags & _PASSWORD:
        return frame
    level = _BRIDGE_LEVEL if is_bridge(frame) else _LEVEL
    body = _NAME + level + bytes((flags & ~_PASSWORD,)) + before[1:] + b"".join(fields[:-1])
    return b"\x10" + written_length(len(body)) + body


def _cut_connect(frame: bytes) -> tuple[bytes, int, list[bytes]]:
    """Return the flags with the keep-alive, the flags alone, and the fields of the payload."""
    at = body_start(frame) + 7
    if frame[0] & 0x0F:
        raise malformed("The reserved bits of CONNECT are 0.")
    if len(frame) < at + 3:
        raise malformed("The CONNECT packet is shorter than its fields.")
    before, flags = frame[at : at + 3], frame[at]
    if flags & _PASSWORD and not flags & _USERNAME:
        raise malformed("A CONNECT of MQTT 3.1.1 has no password without a user name.")
    count = 1 + 2 * bool(flags & _WILL) + bool(flags & _USERNAME) + bool(flags & _PASSWORD)
    fields = []
    at += 3
    for _ in range(count):
        end = at + 2 + int.from_bytes(frame[at : at + 2])
        if end > len(frame) or at + 2 > len(frame):
            raise malformed("The CONNECT packet is shorter than its fields.")
        fields.append(frame[at:end])
        at = end
    if at != len(frame):
        raise malformed("The CONNECT packet is longer than its fields.")
    return before, flags, fields


class Came(NamedTuple):
    """What some bytes of a client hold."""

    packets: bytes
    """All whole packets, as version 5 writes them."""
    taken: int
    """How many of the bytes they took."""
    needed: int
    """How many must be there after those before there is another packet."""
    error: PacketError | None
    """What is wrong with the packet after them, if anything is."""
    has_more: bool = False
    """Whether the bytes after them were not looked at."""


def packets_of(data: bytes, start: int, limits: Limits, packets_max: int, *, of_bridge: bool = False) -> Came:
    """Turn whole packets of 3.1.1, from a place in some bytes on, into those of version 5.

    So many at the most: the rest has its turn (`Came.has_more`).
    """
    done = bytearray()
    at, end = start, len(data)
    needed, left = 2, packets_max
    try:
        while end - at >= 2:
            if left <= 0:
                return Came(bytes(done), at - start, 0, None, has_more=True)
            left -= 1
            length, body = data[at + 1], at + 2
            if length >= 0x80:
                size = remaining_length(data, at, end)
                if size is None:
                    needed = end - at + 1
                    break
                length, body = size
            stop = body + length
            if stop - at > limits.packet_bytes_max:
                raise packets.too_large(limits.packet_bytes_max)
            if stop > end:
                needed = stop - at
                break
            packet = _packet(data, at, body, stop, limits.topic_filters_max)
            done += _of_bridge(packet) if of_bridge and packet[0] >> 4 == SUBSCRIBE else packet
            at = stop
    except PacketError as error:
        return Came(bytes(done), at - start, 0, error)
    return Came(bytes(done), at - start, needed, None)


def _packet(data: bytes, at: int, body: int, stop: int, filters_max: int) -> bytes:
    """Return one whole packet, other than a CONNECT, as version 5 writes it."""
    kind = data[at] >> 4
    if kind == PUBLISH:
        if stop - body < 2:
            raise malformed("The packet is shorter than its fields.")
        properties_at = body + (data[body] << 8 | data[body + 1]) + (4 if data[at] & 0x06 else 2)
        if properties_at > stop:
            raise malformed("The packet is shorter than its fields.")
        return _with_properties(data, at, body, properties_at, stop)
    if kind in (PUBACK, PUBREC, PUBREL, PUBCOMP):
        if stop - body != 2:
            raise malformed("An answer to a message is a packet identifier and nothing else.")
    elif kind in (SUBSCRIBE, UNSUBSCRIBE):
        _check_filters(data, body + 2, stop, filters_max, with_options=kind == SUBSCRIBE)
        return _with_properties(data, at, body, body + 2, stop)
    elif kind in (PINGREQ, DISCONNECT):
        if stop != body or data[at] & 0x0F:
            raise malformed("A packet without content has a content, or a reserved bit is set.")
    elif kind == CONNECT:
        raise protocol_error("A connection has one CONNECT.")
    else:
        raise protocol_error("That packet is for a broker to send, or of another version.")
    return data[at:stop]


def _with_properties(data: bytes, at: int, body: int, properties_at: int, stop: int) -> bytes:
    """Return a packet with no properties where version 5 has some."""
    length = written_length(stop - body + 1)
    return data[at : at + 1] + length + data[body:properties_at] + b"\x00" + data[properties_at:stop]


def _check_filters(data: bytes, at: int, stop: int, most: int, *, with_options: bool) -> None:
    """Refuse subscriptions with bits that only version 5 knows; what else is wrong is found later.

    Of more than a packet may have none is looked at any more.
    """
    if at > stop:
        raise malformed("The packet is shorter than its fields.")
    count = 0
    while with_options and at + 2 <= stop:
        count += 1
        if count > most:
            raise too_many_filters(most)
        at += 3 + int.from_bytes(data[at : at + 2])
        if at <= stop and data[at - 1] > 2:
            raise malformed("A subscription of MQTT 3.1.1 has a QoS of 0, 1 or 2 and nothing else.")


def _of_bridge(subscribe: bytes) -> bytes:
    """Return a SUBSCRIBE of version 5 with the options that bridges want, but for shared subscriptions."""
    packet = bytearray(subscribe)
    at = body_start(subscribe) + 3
    while at < len(packet):
        end = at + 2 + int.from_bytes(packet[at : at + 2])
        if end >= len(packet):
            break  # it is shorter than its fields, which is found later
        is_shared = packet[at + 2 : end].startswith(b"$share/")
        packet[end] |= _RETAIN_AS_PUBLISHED if is_shared else _RETAIN_AS_PUBLISHED | _NO_LOCAL
        at = end + 1
    return bytes(packet)


# What clients are sent -----------------------------------------------------------------------------------


def connack(*, is_old: bool = False, code: int = 0) -> bytes:
    """Return the answer to a CONNECT; `is_old` says that there is a session."""
    return bytes((0x20, 2, is_old, code))


def suback(number: int, codes: Sequence[int]) -> bytes:
    """Return the answer to a SUBSCRIBE."""
    told = bytes(min(_REFUSED, code) for code in codes)
    return b"\x90" + written_length(2 + len(told)) + PACKET_ID[number] + told


def unsuback(number: int) -> bytes:
    """Return the answer to an UNSUBSCRIBE."""
    return b"\xb0\x02" + PACKET_ID[number]


def publish_head(topic: str, qos: int, payload_bytes: int, *, retain: bool) -> bytes:
    """Return a PUBLISH as far as its packet identifier, or its payload at QoS 0."""
    name = topic.encode()
    length = written_length(2 + len(name) + (2 if qos else 0) + payload_bytes)
    return bytes((0x30 | qos << 1 | retain,)) + length + len(name).to_bytes(2) + name


def written_length(value: int) -> bytes:
    """Return a remaining length as it is written."""
    if value < 0x80:
        return _SHORT_LENGTHS[value]
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
