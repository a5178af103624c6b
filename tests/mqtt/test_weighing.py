"""What a packet has too many of is counted before anything is decoded, whoever sends it."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import ConnAckPacket, ConnectPacket, DisconnectPacket, PublishPacket

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.mqtt3 import written_length
from sojourn.mqtt.packets import PacketError, remaining_length
from sojourn.mqtt.weighing import weigh
from tests.counting import counted
from tests.mqtt.test_parts import SAMPLES
from tests.mqtt.world import World

MANY = 1_025
TINY = b"\x26\0\0\0\0"
"""A user property without a name or a value."""
LATER = {
    "PUBLISH": (0x30, b"\0\1t", b"x"),
    "PUBLISH of QoS 1": (0x32, b"\0\1t\0\1", b"x"),
    "SUBSCRIBE": (0x82, b"\0\1", b"\0\1t\0"),
    "UNSUBSCRIBE": (0xA2, b"\0\1", b"\0\1t"),
    "PUBACK": (0x40, b"\0\1\0", b""),
    "PUBREC": (0x50, b"\0\1\0", b""),
    "PUBREL": (0x62, b"\0\1\0", b""),
    "PUBCOMP": (0x70, b"\0\1\0", b""),
    "DISCONNECT": (0xE0, b"\0", b""),
}
"""By name: the first byte of a packet, and what comes before and after its properties."""


def packet_of(first: int, before: bytes, properties: bytes, after: bytes) -> bytes:
    """A packet with some properties."""
    body = before + written_length(len(properties)) + properties + after
    return bytes((first,)) + written_length(len(body)) + body


def connect_of(properties: bytes = b"", will: bytes | None = None) -> bytes:
    """A CONNECT with some properties, and perhaps a will with some."""
    flags = 0x02 if will is None else 0x06
    after = b"\0\1c" + (b"" if will is None else written_length(len(will)) + will + b"\0\1w\0\1x")
    return packet_of(0x10, b"\0\4MQTT\5" + bytes((flags,)) + b"\0\0", properties, after)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes]]:
    """The packets that were decoded."""
    calls: list[tuple[bytes]] = []
    monkeypatch.setattr(mqtt5, "read", counted(mqtt5.read, calls))
    return calls


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("repeated", [TINY, b"\x0b\1", b"\x01\0"], ids=["user", "identifier", "forbidden"])
def test_who_sends_too_many_properties_is_told_and_disconnected(
    name: str, repeated: bytes, decoded: list[tuple[bytes]]
) -> None:
    """Nothing of the packet is decoded; the refusal is counted and audited."""
    world = World()
    world.core.effects.refusals = []
    client = world.client()
    client.connect("c")
    first, before, after = LATER[name]
    decoded.clear()
    frame = packet_of(first, before, repeated * (2 * MANY), after)
    client.send(frame)
    assert (frame,) not in decoded
    assert client.next(DisconnectPacket).reason_code == 0x97
    assert client.closed
    assert world.core.state.counters.refused["quota_exceeded"] == 1
    (refusal,) = world.core.effects.refusals
    assert (refusal.what, refusal.why, refusal.client) == ("packet", "quota_exceeded", "c")


@pytest.mark.parametrize(
    "frame",
    [connect_of(TINY * MANY), connect_of(will=TINY * MANY), connect_of(TINY, TINY * MANY)],
    ids=["own", "will", "both"],
)
def test_a_connect_with_too_many_properties_is_refused_before_anybody_looks_at_a_password(
    frame: bytes, decoded: list[tuple[bytes]]
) -> None:
    """It is not decoded, and nobody is asked to compare anything."""
    world = World()
    client = world.client()
    world.core.received(client.number, frame, world.now)
    assert not world.core.effects.knocks
    assert decoded == []
    world.carry_out()
    assert client.next(ConnAckPacket).reason_code == 0x97
    assert client.closed


@pytest.mark.parametrize("name", [name for name in LATER if name.endswith(("SUBSCRIBE", "H", "1"))])
def test_as_many_properties_as_allowed_are_taken(name: str) -> None:
    """And so is a CONNECT with as many for itself, and as many for its will."""
    world = World()
    client = world.client()
    client.send(connect_of(TINY * (MANY - 1), TINY * (MANY - 1)))
    assert client.next(ConnAckPacket).reason_code == 0
    first, before, after = LATER[name]
    client.send(packet_of(first, before, TINY * (MANY - 1), after))
    assert not client.closed


@pytest.mark.parametrize("first", [0x82, 0xA2])
def test_who_sends_too_many_topic_filters_is_told_and_disconnected(
    first: int, decoded: list[tuple[bytes]]
) -> None:
    """As many as a packet may have are answered one by one; with one more none is decoded."""
    world = World(Limits(topic_filters_max=100))
    client = world.client()
    client.connect("c")
    one = b"\0\1t\0" if first == 0x82 else b"\0\1t"
    client.send(packet_of(first, b"\0\1", b"", one * 100))
    answer: Any = client.inbox.popleft()
    assert len(answer.reason_codes) == 100
    decoded.clear()
    frame = packet_of(first, b"\0\1", b"", one * 101)
    client.send(frame)
    assert (frame,) not in decoded
    assert client.next(DisconnectPacket).reason_code == 0x97


def test_a_connect_that_is_too_large_is_not_even_waited_for() -> None:
    """Its first bytes tell; a large event may follow a small CONNECT at once."""
    world = World(Limits(connect_bytes_max=1_000))
    stranger, client = world.client(), world.client()
    stranger.send(b"\x10" + written_length(2_000))
    assert stranger.closed
    assert world.core.state.counters.refused["packet_too_large"] == 1
    client.send(ConnectPacket("c", clean_start=True).write() + PublishPacket("t", bytes(5_000)).write())
    assert client.next(ConnAckPacket).reason_code == 0
    assert world.core.state.counters.received == 1


@given(st.sampled_from(SAMPLES), st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_packets_are_weighed_wherever_they_are_cut(packet: Any, cut: int, limit: int) -> None:
    """What was read is never refused within the limits, and what is shorter than its fields does no harm."""
    frame = packet.write()
    size = remaining_length(frame, 0, len(frame))
    assert size is not None
    weigh(frame, 0, size[1], len(frame), Limits())
    strict = Limits(user_properties_max=limit, topic_filters_max=max(1, limit))
    shorter = frame[: max(size[1], len(frame) - cut)]
    try:
        weigh(shorter, 0, size[1], len(shorter), strict)
    except PacketError:
        assert limit < 2, "no sample has more"
