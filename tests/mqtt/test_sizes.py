"""Texts of strange characters and topics of many levels raise nothing, and can be kept and handed over."""

from __future__ import annotations

import mqtt5
import msgspec
import pytest
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    PubAckPacket,
    PublishPacket,
    QoS,
    UnsubAckPacket,
    UnsubscribePacket,
    Will,
)

from sojourn.mqtt.message import new_message
from sojourn.mqtt.retained import Retained
from sojourn.mqtt.session import Session, Subscription
from sojourn.mqtt.topic_tree import TopicTree
from tests.mqtt.world import World, again
from tests.retained_values import values_of

LEVELS = 30_000
DEEP = "/".join(["a"] * LEVELS)
STRANGE = ["\x01\x1f\x7f\x9f", "\ufeff\uffff\ufdd0\U0010ffff", "\ud7ff\ue000", "\u202e\u0300", "é" * 500]


@pytest.mark.parametrize("collects", [False, True])
@pytest.mark.parametrize("text", STRANGE)
def test_strange_texts_are_served_like_any(text: str, *, collects: bool) -> None:
    """As client identifier, topic, user property, attribute and will; through a snapshot and a hand-over."""
    world = World()
    world.core.effects.collects = collects
    client = world.client()
    said = [(text, text), (f"sojourn-attribute-{text}", text), ("sojourn-previous", text)]
    will = Will(f"{text}/will", payload=b"x", retain=True, will_delay_interval=5, user_properties=said)
    client.connect(
        text, session_expiry_interval=9, user_properties=[*said, ("sojourn-numbered", "1")], will=will
    )
    assert client.subscribe(f"{text}/#") == 2
    client.publish(f"{text}/t", text.encode(), 1, retain=True, user_properties=said)
    assert int(client.next(PubAckPacket).reason_code) == 0
    for message in world.core.effects.published:
        world.core.custody.deliver_to(text, message, world.now)
    world.carry_out()
    (got,) = client.messages()
    assert (got.topic, got.user_properties[0]) == (f"{text}/t", (text, text))
    world.core = again(world.core)
    assert [one.topic for one in values_of(world.core.state.retained, world.now)] == [f"{text}/t"]
    state = world.core.custody.export_session(text, world.now)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state))[0] == text


@pytest.mark.parametrize("half", [b"\xed\xa0\x80", b"\xed\xbf\xbf"])
@pytest.mark.parametrize("place", [b"abc", b"def", b"ghi"])
def test_half_a_surrogate_pair_is_malformed(half: bytes, place: bytes) -> None:
    """In a topic and in user properties, and in a client identifier."""
    world = World()
    client = world.client()
    client.connect("c")
    packet = PublishPacket("abc", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=1, user_properties=[("def", "ghi")])
    client.send(packet.write().replace(place, half))
    assert int(client.next(mqtt5.DisconnectPacket).reason_code) == 0x81
    other = world.client()
    other.send(ConnectPacket(place.decode(), user_properties=[("d", "e")]).write().replace(place, half))
    assert int(other.next(ConnAckPacket).reason_code) == 0x81


@pytest.mark.parametrize("collects", [False, True])
def test_a_packet_with_a_topic_of_many_levels_is_refused(*, collects: bool) -> None:
    """A retained PUBLISH, a SUBSCRIBE with wildcards or without, a will; the client is told why."""
    world = World()
    world.core.effects.collects = collects
    client = world.client()
    client.connect("c")
    client.publish(DEEP, b"x", 1, retain=True)
    assert int(client.next(PubAckPacket).reason_code) == 0x90
    for pattern in (DEEP, DEEP + "/#", "/".join(["+"] * LEVELS), f"$share/s/{DEEP}"):
        assert client.subscribe(pattern) >= 0x80
        client.send(UnsubscribePacket(1, [pattern]))
        assert int(client.next(UnsubAckPacket).reason_codes[0]) == 0x11
    client.publish(DEEP, b"x", retain=True)
    assert not client.inbox
    dying = world.client()
    assert int(dying.connect("dying", will=Will(DEEP, payload=b"x", retain=True)).reason_code) == 0x90
    again(world.core)


def test_topics_of_as_many_levels_as_are_allowed_survive_a_snapshot() -> None:
    """What is stored is flat: no depth of a topic is too much for a snapshot."""
    world = World()
    client = world.client()
    client.connect("c")
    topic = "/".join(["a"] * 250)
    client.publish(topic, b"x", 1, retain=True)
    client.inbox.clear()
    for pattern in (f"{topic}/#", "/".join(["+"] * 250), "/".join(["a"] * 100) + "/+/b"):
        assert client.subscribe(pattern) == 2
        client.inbox.clear()
    world.core = again(world.core)
    client.publish(topic, b"y", 1)
    assert client.payloads() == [b"y"]
    client.send(UnsubscribePacket(1, [f"{topic}/#", "/".join(["+"] * 250), "/".join(["a"] * 100) + "/+/b"]))
    assert [int(code) for code in client.next(UnsubAckPacket).reason_codes] == [0, 0, 0]
    assert not world.core.state.tree._root.below


def test_a_retained_topic_of_many_levels_from_another_broker() -> None:
    """It is kept, found, told and forgotten."""
    retained = Retained(10, 1_000_000)
    message = new_message(DEEP, b"x", qos=1, now=1_000.0, retain=True)
    message.sequence = 1_000_000_000
    assert retained.keep(message)
    for pattern in ("#", DEEP, DEEP + "/#", "/".join(["+"] * LEVELS)):
        assert [one.topic for one in retained.matching(pattern, 1_000.0)] == [DEEP]
    empty = new_message(DEEP, b"", qos=1, now=1_000.0, retain=True)
    empty.sequence = message.sequence + 1
    assert retained.keep(empty)
    assert not retained.matching("#", 1_000.0)
    assert [one.topic for one in values_of(retained, 1_000.0)] == [DEEP]
    assert not retained._root.below


def test_a_tree_of_subscriptions_of_many_levels() -> None:
    """It finds, is made again, and lets go; the same order of subscribers before and after."""
    tree = TopicTree()
    sessions = [Session(f"s{number}", 0.0) for number in range(3)]
    patterns = [DEEP + "/#", "/".join(["+"] * LEVELS), DEEP[:-1] + "+"]
    held = [Subscription(session, text, qos=0) for session, text in zip(sessions, patterns, strict=True)]
    for one in held:
        tree.add(one)
    found = [one.client_id for one in tree.route(DEEP).by_session]
    assert sorted(found) == ["s0", "s1", "s2"]
    restored = TopicTree()
    restored.restore(list(tree.subscriptions()), [])
    assert [one.client_id for one in restored.route(DEEP).by_session] == found
    for one in held:
        tree.remove(one)
    assert not tree.route(DEEP).by_session
    assert not tree._root.below
