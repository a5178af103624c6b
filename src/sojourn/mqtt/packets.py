"""Packets: cut out of a stream, checked, decoded, and the reason codes of what is wrong with them.

The codec decodes into Rust objects and refuses most of what the standard forbids, always as a ValueError; it
gives up the process's patience, with a panic, on text that is not UTF-8, and lets some things pass. So text
is checked before (`_check_text`), and the rest after (`decode`). A `PacketError` carries the reason code
that the sender is told.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import mqtt5
from mqtt5 import DisconnectReasonCode as Reason

from sojourn.mqtt.conventions import QUENCH_TOPIC

PACKET_ID: Final = tuple(bytes((number >> 8, number & 255)) for number in range(65_536))
"""Every packet identifier as the two bytes that stand for it."""

CONNECT, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 3, 4, 5, 6, 7
SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT, AUTH = 8, 10, 12, 14, 15
REST = 0
"""What a broker puts before a client's packets, to be done in their turn; MQTT has no such kind of packet."""
SECRETIVE: Final = (CONNECT, AUTH)
"""Packets that may hold a password or the like, which no store is to hold."""

BRIDGES_TOPIC: Final = "$SYS/broker/connection/"
"""Below it, brokers of other makes that bridge to this one say whether they are connected."""

_BEGINNING = b"\x10\x07\x00\x04MQTT"
"""Of a CONNECT that ends with its version, and is therefore refused."""
_OLD, MALFORMED_CONNECT, _LATER = _BEGINNING + b"\x03", _BEGINNING + b"\x05", _BEGINNING + b"\x06"
_AUTH, _MALFORMED_AUTH = b"\xf0\x02\x18\x00", b"\xf1\x00"

REFUSED_3_1_1: Final = b"\x20\x02\x00\x01"
"""CONNACK as MQTT 3 writes it: unacceptable protocol version."""

_PROTOCOL_ERRORS = (
    "Duplicate value",
    "Topic alias must be set",
    "Receive maximum",
    "Maximum packet size",
    "Subscription ID",
    "Invalid boolean",
    "Invalid RetainHandling",
)
"""How the codec begins to say what the standard calls a protocol error; all else is a malformed packet."""

ONE, TWO, FOUR, VARIABLE, STRING, BINARY, PAIR = range(7)
PROPERTIES = {
    0x01: ONE, 0x02: FOUR, 0x03: STRING, 0x08: STRING, 0x09: BINARY, 0x0B: VARIABLE, 0x11: FOUR,
    0x12: STRING, 0x13: TWO, 0x15: STRING, 0x16: BINARY, 0x17: ONE, 0x18: FOUR, 0x19: ONE,
    0x1A: STRING, 0x1C: STRING, 0x1F: STRING, 0x21: TWO, 0x22: TWO, 0x23: TWO, 0x24: ONE, 0x25: ONE,
    0x26: PAIR, 0x27: FOUR, 0x28: ONE, 0x29: ONE, 0x2A: ONE,
}  # fmt: skip
"""By identifier of a property: the form of its value."""
FIXED_BYTES = {ONE: 1, TWO: 2, FOUR: 4}


class PacketError(Exception):
    """A packet breaks the protocol; `reason` is what its sender is told."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class VersionError(Exception):
    """A CONNECT of another protocol version; `old` when its sender reads MQTT 3."""

    def __init__(self, *, old: bool) -> None:
        super().__init__("another protocol version")
        self.old = old


def malformed(text: str) -> PacketError:
    """Return the error of a packet that cannot be read."""
    return PacketError(Reason.MALFORMED_PACKET, text)


def protocol_error(text: str) -> PacketError:
    """Return the error of a packet that must not come like this."""
    return PacketError(Reason.PROTOCOL_ERROR, text)


def too_large(packet_bytes_max: int) -> PacketError:
    """Return the error of a packet with more bytes than are taken."""
    return PacketError(Reason.PACKET_TOO_LARGE, f"A packet has at most {packet_bytes_max} bytes here.")


def too_many_filters(most: int) -> PacketError:
    """Return the error of a packet with more topic filters than are taken."""
    return PacketError(Reason.QUOTA_EXCEEDED, f"A packet has at most {most} topic filters here.")


def decode(frame: bytes) -> mqtt5.Packet:
    """Return a whole packet decoded, or raise a `PacketError`, or a `VersionError` for an old CONNECT."""
    kind = frame[0] >> 4
    if kind == CONNECT:
        _check_connect(frame)
    if not frame.isascii() or kind == SUBSCRIBE:
        _check_text(frame)
    try:
        packet, _ = mqtt5.read(memoryview(frame))
    except IndexError:
        raise malformed("The packet is shorter than its fields.") from None
    except ValueError as error:
        raise _translated(str(error)) from None
    if b"\x00" in frame:
        _check_nul(packet)
    _check_message(packet)
    return packet


def without_password(frame: bytes) -> bytes:
    """Return a CONNECT or AUTH with which everything goes as with this one, but that holds no secret."""
    if frame[0] >> 4 == AUTH:
        return _auth_without_secret(frame)
    return read_connect(frame).without_password


class Connect(NamedTuple):
    """A CONNECT of version 5, decoded once; or what is wrong with it."""

    packet: mqtt5.ConnectPacket | None
    without_password: bytes
    """A packet with which everything goes as with this one, but that holds no secret."""
    error: PacketError | VersionError | None = None


def read_connect(frame: bytes) -> Connect:
    """Read a packet that says it is a CONNECT."""
    try:
        packet = decode(frame)
    except VersionError as error:
        return Connect(None, _OLD if error.old else _LATER, error)
    except PacketError as error:
        return Connect(None, MALFORMED_CONNECT, error)
    assert isinstance(packet, mqtt5.ConnectPacket), "this is for packets that say they are a CONNECT"
    return Connect(packet, _without_password(packet, frame))


def _without_password(packet: mqtt5.ConnectPacket, frame: bytes) -> bytes:
    if packet.password is None and packet.authentication_data is None:
        return frame
    return mqtt5.ConnectPacket(
        packet.client_id,
        username=packet.username,
        clean_start=packet.clean_start,
        will=packet.will,
        keep_alive=packet.keep_alive,
        session_expiry_interval=packet.session_expiry_interval,
        authentication_method=packet.authentication_method,
        authentication_data=None if packet.authentication_data is None else b"",
        request_problem_info=packet.request_problem_info,
        request_response_info=packet.request_response_info,
        receive_max=packet.receive_max,
        topic_alias_max=packet.topic_alias_max,
        max_packet_size=packet.max_packet_size,
        user_properties=packet.user_properties,
    ).write()


def secret_start(data: bytes) -> int:
    """Return where the first packet of a stream begins that may hold a secret; its length if there is none.

    What follows such a packet does not matter: after the first of a connection it is refused.
    """
    at, end = 0, len(data)
    while at < end and data[at] >> 4 not in SECRETIVE:
        try:
            size = remaining_length(data, at, end)
        except PacketError:
            return at  # it is refused too
        if size is None:
            return end
        length, body = size
        at = body + length
    return min(at, end)


def _auth_without_secret(frame: bytes) -> bytes:
    """Return an AUTH that is refused for the same reason."""
    try:
        decode(frame)
    except PacketError as error:
        return _MALFORMED_AUTH if error.reason == Reason.MALFORMED_PACKET else _AUTH
    return _AUTH


def _check_message(packet: mqtt5.Packet) -> None:
    """Refuse what a message or a will must not say, although the codec reads it."""
    said = packet.will if isinstance(packet, mqtt5.ConnectPacket) else packet
    if isinstance(said, mqtt5.PublishPacket | mqtt5.Will):
        topic = said.response_topic
        if topic is not None and not is_topic(topic):
            raise protocol_error("A response topic has at least one character and no wildcards.")
        if said.payload_format_indicator > 1:
            raise malformed("A payload format indicator is 0 or 1.")


def _translated(text: str) -> PacketError:
    if text.startswith("Topic alias must be != 0"):
        return PacketError(Reason.TOPIC_ALIAS_INVALID, "A topic alias is at least 1.")
    if text.startswith(_PROTOCOL_ERRORS):
        return protocol_error(text + ".")
    return malformed(text + ".")


def remaining_length(data: bytes, at: int, end: int) -> tuple[int, int] | None:
    """Return a packet's remaining length and where its body starts, or None when bytes are missing."""
    value = shift = 0
    for body in range(at + 1, min(at + 5, end)):
        byte = data[body]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, body + 1
        shift += 7
    if end >= at + 5:
        raise malformed("The remaining length has at most four bytes.")
    return None


def body_start(frame: bytes) -> int:
    """Return where the variable header of a packet starts."""
    at = 1
    while frame[at] >= 0x80:
        at += 1
    return at + 1


def _check_connect(frame: bytes) -> None:
    """Refuse other versions (`mqtt3.py` has turned 3.1.1 into 5), and flags that the codec lets pass."""
    at = body_start(frame)
    length = int.from_bytes(frame[at : at + 2])
    name, version = frame[at + 2 : at + 2 + length], frame[at + 2 + length : at + 3 + length]
    if name == b"MQIsdp" or (name == b"MQTT" and version in (b"\x03", b"\x83")):
        raise VersionError(old=True)
    if name != b"MQTT" or version != b"\x05":
        raise VersionError(old=False)
    if frame[0] & 0x0F:
        raise malformed("The reserved bits of CONNECT are 0.")
    if len(frame) <= at + 7:
        raise malformed("The CONNECT packet is shorter than its fields.")
    flags = frame[at + 7]
    if flags & 0x01:
        raise malformed("The reserved flag of CONNECT is 0.")
    if not flags & 0x04 and flags & 0x38:
        raise malformed("A CONNECT without a will has no will flags.")
    if flags & 0x18 == 0x18:
        raise malformed("There is no QoS 3.")


class _Walk:
    """Walks through the fields of a packet and checks that what should be text is text."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.at = body_start(frame)

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.frame):
            raise malformed("The packet is shorter than its fields.")

    def number(self) -> int:
        self.skip(2)
        return int.from_bytes(self.frame[self.at - 2 : self.at])

    def variable(self) -> int:
        value = shift = 0
        while True:
            self.skip(1)
            byte = self.frame[self.at - 1]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 21:
                raise malformed("A variable byte integer has at most four bytes.")

    def string(self) -> None:
        length = self.number()
        start = self.at
        self.skip(length)
        try:
            self.frame[start : self.at].decode()
        except UnicodeDecodeError:
            raise malformed("The packet contains text that is not UTF-8.") from None

    def properties(self) -> None:
        end = self.variable() + self.at
        if end > len(self.frame):
            raise malformed("The packet's properties are longer than the packet.")
        while self.at < end:
            form = PROPERTIES.get(self.variable())
            if form is None:
                raise malformed("The packet has a property that there is none of.")
            if form in FIXED_BYTES:
                self.skip(FIXED_BYTES[form])
            elif form == VARIABLE:
                self.variable()
            elif form == BINARY:
                self.skip(self.number())
            else:
                self.string()
                if form == PAIR:
                    self.string()


def _check_text(frame: bytes) -> None:
    """Refuse a packet in which a string is not UTF-8, or a reserved bit of a subscription is set."""
    walk = _Walk(frame)
    kind = frame[0] >> 4
    if kind == CONNECT:
        _walk_connect(walk)
    elif kind == PUBLISH:
        walk.string()
        walk.skip(2 if frame[0] & 0x06 else 0)
        walk.properties()
    elif kind in (SUBSCRIBE, UNSUBSCRIBE):
        walk.skip(2)
        walk.properties()
        while walk.at < len(frame):
            walk.string()
            if kind == SUBSCRIBE:
                walk.skip(1)
                if frame[walk.at - 1] & 0xC0:
                    raise malformed("The reserved bits of subscription options are 0.")
    elif kind in (PUBACK, PUBREC, PUBREL, PUBCOMP):
        _walk_rest(walk, 3)
    elif kind in (DISCONNECT, AUTH):
        _walk_rest(walk, 1)
    elif kind != PINGREQ:
        raise protocol_error("That packet is for a broker to send.")


def _walk_rest(walk: _Walk, before: int) -> None:
    walk.skip(min(before, len(walk.frame) - walk.at))
    if walk.at < len(walk.frame):
        walk.properties()


def _walk_connect(walk: _Walk) -> None:
    walk.string()
    flags = walk.frame[walk.at + 1] if walk.at + 1 < len(walk.frame) else 0
    walk.skip(4)
    walk.properties()
    walk.string()
    if flags & 0x04:
        walk.properties()
        walk.string()
        walk.skip(walk.number())
    if flags & 0x80:
        walk.string()


def _check_nul(packet: mqtt5.Packet) -> None:
    """Refuse U+0000 in texts, which the standard forbids and the codec lets pass."""
    texts: list[str | None] = []
    if isinstance(packet, mqtt5.PublishPacket):
        texts = [packet.topic, packet.content_type, packet.response_topic]
    elif isinstance(packet, mqtt5.ConnectPacket):
        texts = [packet.client_id, packet.username, packet.authentication_method]
        if packet.will is not None:
            texts += [packet.will.topic, packet.will.content_type, packet.will.response_topic]
            texts += [text for pair in packet.will.user_properties for text in pair]
    elif isinstance(packet, mqtt5.SubscribePacket):
        texts = [wanted.pattern for wanted in packet.topic_filters]
    elif isinstance(packet, mqtt5.UnsubscribePacket):
        texts = list(packet.patterns)
    pairs: list[tuple[str, str]] = getattr(packet, "user_properties", [])
    texts += [text for pair in pairs for text in pair]
    if any(text is not None and "\x00" in text for text in texts):
        raise malformed("The packet contains text with U+0000.")


def is_topic(topic: str) -> bool:
    """Whether a text can be the topic of a message."""
    return bool(topic) and "+" not in topic and "#" not in topic


def is_reserved(topic: str) -> bool:
    """Whether only the broker itself may publish to a topic."""
    return topic.startswith(("$SYS/", "$share/", QUENCH_TOPIC)) and not topic.startswith(BRIDGES_TOPIC)


def is_pattern(pattern: str) -> bool:
    """Whether a text is a topic filter: + fills a level, # the last one."""
    if not pattern:
        return False
    if "+" not in pattern and "#" not in pattern:
        return True
    levels = pattern.split("/")
    return all(
        (level == "+" or "+" not in level) and (level == "#" or "#" not in level) for level in levels
    ) and ("#" not in levels[:-1])
