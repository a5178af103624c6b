"""What hostile clients say: good packets with odd values, in odd order, mutated, cut, or no packets at all.

Everything is drawn from a generator that it is given, so that a seed repeats it. Topics, client identifiers
and properties are the strangers' own: an event of theirs carries no identity, and nobody honest has their
name, so that the oracle can tell what honest clients are promised from what strangers do to each other.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import mqtt5
from mqtt5 import (
    ConnectPacket,
    DisconnectPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    RetainHandling,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
    Will,
)

from sojourn.mqtt import conventions

NAMES = tuple(f"stranger-{number}" for number in range(8))
"""Few, so that strangers take over each other's sessions."""
LEVELS = ("z", "zz", "", "$z", "a b", "ü", "0", "very" * 40, "\ue000", "z.z", "'", "\\", "%")
ODD_TOPICS = (
    "",
    "/",
    "#",
    "+",
    "z/#",
    "$SYS/z",
    "$sojourn/z",
    "$share/z/z",
    "z\x00z",
    "z/" * 300,
    "z" * 5_000,
)
LONG_FILTERS = (
    " OR ".join(f"(a{n} > {n} AND b{n} < {n})" for n in range(40)),
    " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(14)),
    "(" * 200 + "x = 1" + ")" * 200,
    "x IN (" + ", ".join(map(str, range(300))) + ")",
)
"""They take long to read, so they are few."""
FILTERS = (
    "x > 3",
    "x >",
    "NOT (x = 1 OR y = 'z')",
    "topic LIKE 'z/#'",
    "x BETWEEN 1 AND 5 AND kind IN ('a', 'b')",
    "x = 1e999",
    "x = 'z\ud7ff'",
    "\u202e x = 1",
    "",
)
ODD_VALUES = (
    "",
    "1",
    "-1",
    "nan",
    "1e400",
    "9" * 400,
    "{}",
    '{"z": 1e999}',
    "z" * 3_000,
    "\u0085",
    "B0",
    "true",
)
KEYS = (
    conventions.FILTER,
    conventions.POLICY,
    conventions.ADVERTISE,
    conventions.PREVIOUS,
    conventions.NUMBERED,
    conventions.NUMBER,
    conventions.MARKS,
    conventions.QUENCH,
    conventions.SOURCE,
    conventions.SEQUENCE,
    conventions.BROKER,
    "z",
    "z.z",
    "",
)
PAYLOADS = (
    b"",
    b"z",
    b"{",
    b'{"z": 1, "y": {"z": [1, 2]}}',
    b'{"topic": "t/0"}',
    b"\x00" * 300,
    b"[" * 2_000,
)

Draw = random.Random


def topic(draw: Draw) -> str:
    """A topic, mostly one that may be published to."""
    if draw.random() < 0.1:
        return draw.choice(ODD_TOPICS)
    return "/".join(["z", *(draw.choice(LEVELS) for _ in range(draw.randrange(4)))])


def pattern(draw: Draw) -> str:
    """A topic filter, mostly one that is allowed."""
    if draw.random() < 0.1:
        return draw.choice((*ODD_TOPICS, "z/+z", "z/#/z", "$share//z", "$share/z/", "$share/z+/z"))
    levels = ["z", *(draw.choice((*LEVELS, "+", "+")) for _ in range(draw.randrange(4)))]
    return "/".join([*levels, "#"] if draw.random() < 0.3 else levels)


def properties(draw: Draw) -> list[tuple[str, str]]:
    """User properties: none, conventions with odd values, or very many."""
    kind = draw.random()
    if kind < 0.4:
        return []
    if kind < 0.43:
        return [("z", "z")] * 400
    return [
        (draw.choice(KEYS), draw.choice(ODD_VALUES) if draw.random() < 0.6 else condition(draw))
        for _ in range(draw.randrange(1, 4))
    ]


def condition(draw: Draw) -> str:
    """A filter, good or not."""
    return draw.choice(FILTERS) if draw.random() < 0.97 else draw.choice(LONG_FILTERS)


def connect(draw: Draw) -> bytes:
    """A CONNECT of version 5, or of 3.1.1."""
    name = (
        draw.choice(NAMES) if draw.random() < 0.9 else draw.choice(("", "stranger" * 200, "stranger\u0085"))
    )
    if draw.random() < 0.15:
        flags = draw.choice((0x02, 0x00, 0x00, 0xC2, 0x06, 0x01))
        body = b"\x00\x04MQTT\x04" + bytes((flags, 0, draw.randrange(60)))
        return b"\x10" + _sized(body + struct.pack(">H", len(name.encode()[:100])) + name.encode()[:100])
    will = None
    if draw.random() < 0.3:
        will = Will(
            topic(draw),
            payload=draw.choice(PAYLOADS),
            qos=QoS(draw.randrange(3)),
            retain=draw.random() < 0.3,
            will_delay_interval=draw.choice((0, 1, 30, 2**32 - 1)),
            user_properties=properties(draw),
        )
    return ConnectPacket(
        name,
        clean_start=draw.random() < 0.3,
        will=will,
        keep_alive=draw.choice((0, 1, 5, 65_535)),
        session_expiry_interval=draw.choice((0, 1, 30, 2**32 - 1)),
        receive_max=draw.choice((1, 2, 65_535)),
        topic_alias_max=draw.choice((0, 1, 65_535)),
        max_packet_size=draw.choice((None, None, 10, 60, 2**28)),
        request_problem_info=draw.random() < 0.5,
        user_properties=properties(draw),
    ).write()


def publish(draw: Draw) -> bytes:
    """A PUBLISH."""
    qos = draw.randrange(3)
    alias = draw.choice((None, None, None, 1, 2, 100, 65_535))
    return PublishPacket(
        "" if alias is not None and draw.random() < 0.5 else topic(draw),
        draw.choice(PAYLOADS),
        qos=QoS(qos),
        retain=draw.random() < 0.1,
        packet_id=draw.choice((1, 2, 3, 65_535)) if qos else None,
        duplicate=bool(qos) and draw.random() < 0.2,
        topic_alias=alias,
        message_expiry_interval=draw.choice((None, None, 0, 1, 2**32 - 1)),
        response_topic=draw.choice((None, None, "z")),
        user_properties=properties(draw),
    ).write()


def subscribe(draw: Draw) -> bytes:
    """A SUBSCRIBE, now and then with very many filters."""
    count = draw.choice((1, 1, 1, 2, 5, 40, 150)) if draw.random() < 0.3 else 1
    wanted = [
        TopicFilter(
            pattern(draw) if count < 40 else f"z/{number}/+",
            max_qos=QoS(draw.randrange(3)),
            no_local=draw.random() < 0.2,
            retain_as_published=draw.random() < 0.3,
            retain_handling=RetainHandling(draw.randrange(3)),
        )
        for number in range(count)
    ]
    said = [(conventions.FILTER, condition(draw))] if draw.random() < 0.4 and count < 3 else properties(draw)
    number = draw.choice((None, None, 1, 268_435_455))
    return SubscribePacket(draw.randrange(1, 4), wanted, subscription_id=number, user_properties=said).write()


def unsubscribe(draw: Draw) -> bytes:
    """An UNSUBSCRIBE."""
    return UnsubscribePacket(
        draw.randrange(1, 4), [pattern(draw) for _ in range(draw.choice((1, 2, 100)))]
    ).write()


def answer(draw: Draw) -> bytes:
    """An answer to something that was sent, or was not."""
    kind = draw.choice((PubAckPacket, PubRecPacket, PubRelPacket, PubCompPacket))
    return kind(draw.choice((1, 2, 3, 4, 5, 65_535))).write()


def out_of_order(draw: Draw) -> bytes:
    """What a client does not say, or not here."""
    return draw.choice(
        (
            b"\x20\x03\x00\x00\x00",
            b"\x90\x04\x00\x01\x00\x00",
            b"\xd0\x00",
            b"\xf0\x00",
            b"\xc0\x00",
            b"\xc0\x01\x00",
            b"\x30\xff\xff\xff\xff\x7f",
            b"\xe0\x00",
            b"\x00\x00",
            connect(draw),
            DisconnectPacket(session_expiry_interval=draw.choice((0, 5, 2**32 - 1))).write(),
            mqtt5.AuthPacket().write(),
        )
    )


_KINDS: tuple[tuple[int, Callable[[Draw], bytes]], ...] = (
    (40, publish),
    (18, subscribe),
    (6, unsubscribe),
    (14, answer),
    (6, out_of_order),
)
_WEIGHTS = [weight for weight, _ in _KINDS]
_MAKERS = [make for _, make in _KINDS]


def good(draw: Draw) -> bytes:
    """A packet that the codec can write; some values that it refuses to write are left out."""
    try:
        return draw.choices(_MAKERS, _WEIGHTS)[0](draw)
    except ValueError:
        return b"\xc0\x00"


def mutated(draw: Draw, packet: bytes) -> bytes:
    """A packet with some bytes changed, added, removed or repeated."""
    data = bytearray(packet)
    for _ in range(draw.randrange(1, 5)):
        where = draw.randrange(len(data)) if data else 0
        kind = draw.randrange(4)
        if kind == 0 and data:
            data[where] = draw.randrange(256)
        elif kind == 1:
            data[where:where] = draw.randbytes(draw.randrange(1, 6))
        elif kind == 2 and data:
            del data[where : where + draw.randrange(1, 6)]
        else:
            data += data[where : where + 8]
    return bytes(data) or b"\x00"


def said(draw: Draw) -> bytes:
    """Something that a stranger says on a connection."""
    kind = draw.random()
    if kind < 0.6:
        return good(draw)
    if kind < 0.8:
        return mutated(draw, good(draw))
    if kind < 0.9:
        return b"".join(good(draw) for _ in range(draw.randrange(2, 12)))
    if kind < 0.97:
        whole = good(draw)
        return whole[: draw.randrange(1, len(whole) + 1)]
    return draw.randbytes(draw.randrange(1, 200))


def _sized(body: bytes) -> bytes:
    length, left = bytearray(), len(body)
    while True:
        left, digit = left >> 7, left & 0x7F
        length.append(digit | (0x80 if left else 0))
        if not left:
            return bytes(length) + body
