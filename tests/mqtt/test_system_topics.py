"""`$SYS` topics: fresh at SUBSCRIBE, told again, for the broker alone to publish, and never part of `#`."""

from __future__ import annotations

import pytest
from mqtt5 import PubAckPacket

from sojourn.interest import TopicPattern
from sojourn.mqtt import system_topics
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.session import Permissions
from sojourn.mqtt.state import State
from tests.mqtt.world import Client, World


def told(client: Client) -> dict[str, str]:
    """What a client was sent, by topic."""
    return {message.topic: bytes(message.payload).decode() for message in client.messages()}


def test_values_are_those_of_the_moment() -> None:
    """At SUBSCRIBE, as retained ones, and when they are told again."""
    world = World()
    one, two = world.client(), world.client()
    one.connect("one")
    two.connect("two")
    one.subscribe("$SYS/#")
    first = one.messages()
    assert all(message.retain for message in first)
    values = {message.topic: bytes(message.payload).decode() for message in first}
    assert values.keys() == set(system_topics.TOPICS)
    assert values["$SYS/broker/clients/connected"] == "2"
    assert values["$SYS/broker/name"] == "B1"
    two.lose()
    system_topics.tell(world.core.state, world.core.deliverer, world.now)
    world.carry_out()
    again = one.messages()
    assert not any(message.retain for message in again)
    assert {message.topic: message.payload for message in again}["$SYS/broker/clients/connected"] == b"1"
    world.wait(system_topics.RECENT_S)
    three = world.client()
    three.connect("three")
    three.subscribe("$SYS/broker/clients/+")
    assert told(three).keys() == {
        f"$SYS/broker/clients/{name}" for name in ("connected", "disconnected", "total")
    }


def test_sessions_are_not_counted_for_each_topic_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be a hundred thousand of them, and a packet may have thousands of topic filters."""
    world = World()
    client = world.client()
    client.connect("client")
    counted = []
    values = system_topics.values

    def told_of(state: State) -> dict[str, str]:
        counted.append(1)
        return values(state)

    monkeypatch.setattr(system_topics, "values", told_of)
    for number in range(50):
        client.subscribe(f"$SYS/broker/none/{number}")
    assert not counted, "nobody asked for one that there is"
    came = 0
    for pattern in ("$SYS/#", "$SYS/+/#", "$SYS/+/+/#", "$SYS/broker/name"):
        client.subscribe(pattern)
        came += len(client.messages())
    assert came > 30
    assert len(counted) == 1


def test_nobody_else_publishes_or_sees_them() -> None:
    """A client may not publish there, `#` leaves them out, and permissions hold for them."""
    world = World()
    client = world.client()
    client.connect("client")
    client.subscribe("#")
    client.publish("$SYS/broker/name", b"mine", 1)
    assert int(client.next(PubAckPacket).reason_code) == 0x87
    system_topics.tell(world.core.state, world.core.deliverer, world.now)
    world.carry_out()
    assert not client.inbox
    world.admission = Admission(permissions=Permissions(subscribe=(TopicPattern.parse("open/#"),)))
    guest = world.client()
    guest.connect("guest")
    assert guest.subscribe("$SYS/#") == 0x87
    assert not guest.inbox


def test_who_is_away_misses_nothing_that_is_kept() -> None:
    """Values are not stored for a client that may come back."""
    world = World()
    client = world.client()
    client.connect("client", session_expiry_interval=600)
    client.subscribe("$SYS/#")
    client.lose()
    system_topics.tell(world.core.state, world.core.deliverer, world.now)
    assert world.core.state.queued_bytes == 0
    assert not world.core.state.counters.dropped
