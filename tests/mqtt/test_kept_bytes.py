"""Limits in bytes count what an event takes where it is kept; its packet may be a small part of that."""

from __future__ import annotations

import gc
import tracemalloc

import mqtt5
import pytest

from sojourn.broker.carried import Carried, carried, event_frame
from sojourn.mqtt.content import parse_policy
from sojourn.mqtt.conventions import POLICY
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message, Properties, new_message
from tests.mqtt.test_room import held_bytes
from tests.mqtt.world import World, again

SHORT = [("é", "é")] * 1_000
WIDE = "x" * 59_999 + "\U0001f600"
ALTERNATIVES = " OR ".join(f"role{number} = {number}" for number in range(60))


def retained(topic: str, **said: object) -> tuple[World, Message]:
    """Publish an event that a core keeps; return it as it is kept."""
    world = World()
    client = world.client()
    client.connect("publisher")
    client.send(mqtt5.PublishPacket(topic, b"x", retain=True, **said))  # type: ignore[arg-type]  # any field
    (message,) = world.core.state.retained.kept()
    return world, message


@pytest.mark.parametrize(
    ("topic", "said", "least"),
    [
        ("t", {"user_properties": SHORT}, 150_000),
        (WIDE, {}, 240_000),
        ("t", {"response_topic": WIDE}, 240_000),
        ("t", {"content_type": WIDE}, 240_000),
        ("t", {"user_properties": [("n", WIDE)]}, 240_000),
        ("t", {"user_properties": [(POLICY, ALTERNATIVES)]}, 25_000),
    ],
)
def test_an_event_counts_as_what_it_takes(topic: str, said: dict[str, object], least: int) -> None:
    """It counted as its packet, which may be a fortieth; at another broker and after a restart as much."""
    world, message = retained(topic, **said)
    assert least <= message.size < 2 * least
    (stored,) = again(world.core).state.retained.kept()
    told = carried(event_frame(Carried(message), world.now), world.now)
    assert stored.size == told.message.size == told.size == message.size
    assert world.core.state.retained.bytes == message.size


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("properties", [Properties(), Properties(payload_format=1)])
def test_a_plain_event_counts_as_its_packet(qos: int, properties: Properties) -> None:
    """And with it one that says nothing in its properties."""
    for message in new_message("a/b", bytes(100), qos=qos, now=0.0, properties=properties), retained("t")[1]:
        assert message.size == len(message.frame)


def test_what_waits_takes_little_more_than_its_limit() -> None:
    """Events with many properties took 28 times as much; what is in flight is counted as it was."""
    limit = 8 << 20
    world = World(Limits(queue_bytes_max=limit))
    publisher, subscriber = world.client(), world.client()
    publisher.connect("publisher")
    subscriber.connect("subscriber", receive_max=5)
    subscriber.subscribe("t", 1)
    gc.collect()
    tracemalloc.start()
    for number in range(1, 101):
        publisher.publish("t", b"x", 1, number, user_properties=SHORT)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert world.core.state.counters.dropped["queue full"] > 0
    assert limit / 2 < sum(held_bytes(world)) <= limit
    assert taken < 3 * limit
    for packet in subscriber.messages():
        subscriber.send(mqtt5.PubAckPacket(packet.packet_id or 0))
    held_bytes(world)


def test_a_policy_counts_by_its_alternatives() -> None:
    """It is kept as it was read, which may be much more than its text."""
    text = " AND ".join(f"(a{number} = 1 OR b{number} = 1)" for number in range(5))
    properties = Properties(user=((POLICY, text),))
    plain = new_message("t", b"", qos=0, now=0.0, properties=properties)
    message = new_message("t", b"", qos=0, now=0.0, properties=properties, policy=parse_policy(text))
    assert message.size - plain.size > 32 * 250
