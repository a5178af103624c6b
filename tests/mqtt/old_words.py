"""MQTT 3.1.1 as its standard writes it, for tests: packets out of parts, and parts out of packets.

Written from the standard alone and without a word of the broker's own code, so that both are not wrong alike.
"""

from __future__ import annotations

from typing import NamedTuple

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 2, 3, 4, 5, 6, 7
SUBACK, UNSUBACK, PINGRESP, DISCONNECT = 9, 11, 13, 14


def text(value: str | bytes) -> bytes:
    """A string or some bytes with their length before them."""
    data = value.encode() if isinstance(value, str) else value
    return len(data).to_bytes(2, "big") + data


def packet(first: int, body: bytes = b"") -> bytes:
    """A packet of a first byte and what follows the length."""
    length, left = b"", len(body)
    while True:
        left, digit = divmod(left, 128) if left >= 128 else (0, left)
        length += bytes((digit | 0x80 if left else digit,))
        if not left:
            return bytes((first,)) + length + body


def connect(
    client_id: str = "",
    *,
    clean: bool = True,
    keep_alive: int = 0,
    will: tuple[str, bytes, int, bool] | None = None,
    username: str | None = None,
    password: bytes | None = None,
    name: str = "MQTT",
    level: int = 4,
) -> bytes:
    """A CONNECT; a will is topic, payload, QoS and whether it is retained."""
    flags = clean << 1 | (username is not None) << 7 | (password is not None) << 6
    rest = text(client_id)
    if will is not None:
        flags |= 0x04 | will[2] << 3 | will[3] << 5
        rest += text(will[0]) + text(will[1])
    rest += b"".join(text(one) for one in (username, password) if one is not None)
    return packet(0x10, text(name) + bytes((level, flags)) + keep_alive.to_bytes(2, "big") + rest)


def publish(
    topic: str,
    payload: bytes = b"",
    qos: int = 0,
    number: int = 1,
    *,
    retain: bool = False,
    dup: bool = False,
) -> bytes:
    """A PUBLISH."""
    identifier = number.to_bytes(2, "big") if qos else b""
    return packet(0x30 | dup << 3 | qos << 1 | retain, text(topic) + identifier + payload)


def subscribe(*wanted: tuple[str, int], number: int = 1) -> bytes:
    """A SUBSCRIBE to topic filters with their QoS."""
    return packet(
        0x82, number.to_bytes(2, "big") + b"".join(text(one) + bytes((qos,)) for one, qos in wanted)
    )


def unsubscribe(*patterns: str, number: int = 1) -> bytes:
    """An UNSUBSCRIBE."""
    return packet(0xA2, number.to_bytes(2, "big") + b"".join(text(one) for one in patterns))


def answer(kind: int, number: int) -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP."""
    return packet(kind << 4 | (2 if kind == PUBREL else 0), number.to_bytes(2, "big"))


PINGREQ, LEAVE = packet(0xC0), packet(0xE0)


class Read(NamedTuple):
    """What a packet from a broker says."""

    kind: int
    codes: tuple[int, ...] = ()
    """Of a CONNACK: session present and the code; of a SUBACK: the codes."""
    number: int = 0
    topic: str = ""
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False


def read(data: bytes) -> tuple[Read, int] | None:
    """The first packet of some bytes and how many it took, or None if it is not whole."""
    length = shift = 0
    for at in range(1, min(5, len(data))):
        length |= (data[at] & 0x7F) << shift
        shift += 7
        if data[at] < 0x80:
            break
    else:
        return None
    start, end = at + 1, at + 1 + length
    if len(data) < end:
        return None
    return _read_body(data[0], data[start:end]), end


def _read_body(first: int, body: bytes) -> Read:
    kind = first >> 4
    if kind == CONNACK:
        assert len(body) == 2
        return Read(kind, (body[0], body[1]))
    if kind == PUBLISH:
        qos = first >> 1 & 3
        end = 2 + int.from_bytes(body[:2], "big")
        number = int.from_bytes(body[end : end + 2], "big") if qos else 0
        return Read(
            kind,
            number=number,
            topic=body[2:end].decode(),
            payload=body[end + (2 if qos else 0) :],
            qos=qos,
            retain=bool(first & 1),
            dup=bool(first & 8),
        )
    if kind == PINGRESP:
        assert body == b""
        return Read(kind)
    assert kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK), f"no packet of a broker: {kind}"
    assert kind == SUBACK or len(body) == 2
    return Read(kind, tuple(body[2:]), int.from_bytes(body[:2], "big"))


class Inbox:
    """What came on a connection, packet by packet."""

    def __init__(self) -> None:
        self.packets: list[Read] = []
        self._rest = b""

    def feed(self, data: bytes) -> list[Read]:
        """Take bytes; return the packets that are whole now."""
        self._rest += data
        came = []
        while self._rest and (found := read(self._rest)) is not None:
            came.append(found[0])
            self._rest = self._rest[found[1] :]
        self.packets += came
        return came

    def take(self, kind: int) -> list[Read]:
        """Take all packets of a kind out."""
        found = [one for one in self.packets if one.kind == kind]
        self.packets = [one for one in self.packets if one.kind != kind]
        return found
