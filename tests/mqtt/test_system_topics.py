"""`$SYS` topics: fresh at SUBSCRIBE, told again, for the broker alone to publish, and never part of `#`."""

from __future__ import annotations

import pytest
from mqtt5 import PubAckPacket

from sojourn.interest import TopicPattern
from sojourn.mqtt import system_topics
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.conventions import FILTER
from sojourn.mqtt.session import Permissions
from sojourn.mqtt.state import State
from tests.mqtt.world import Client, World


def told(client: Client) -> dict[str, str]:
    """What a client was sent, by topic."""
    return {message.topic: bytes(message.payload).decode() for message in client.messages()}


def tell(world: World) -> int:
    """Let values be told that are wanted; return in how many parts."""
    telling = system_topics.Telling(world.core.state, world.core.deliverer)
    telling.begin(world.now)
    parts = 0
    while telling.left:
        telling.go_on(world.now)
        parts += 1
    return parts


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
    tell(world)
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
    tell(world)
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
    tell(world)
    assert world.core.state.queued_bytes == 0
    assert not world.core.state.counters.dropped


def test_who_is_told_has_asked_and_passes_its_filter() -> None:
    """As with any event; who has asked several times is told once, with all the numbers of what it asked."""
    world = World()
    both, few, none = world.client(), world.client(), world.client()
    for name, client in {"both": both, "few": few, "none": none}.items():
        client.connect(name)
        client.inbox.clear()
    both.subscribe("$SYS/#", subscription_id=7)
    both.messages()
    both.subscribe("$SYS/broker/+", subscription_id=8)
    few.subscribe("$SYS/#", user_properties=[(FILTER, "topic = '$SYS/broker/name'")])
    none.subscribe("$SYS/other/#")
    for client in (both, few, none):
        client.messages()
    assert tell(world) == 1
    world.carry_out()
    several = {message.topic: sorted(message.subscription_ids) for message in both.messages()}
    assert several.keys() == set(system_topics.TOPICS)
    assert several["$SYS/broker/name"] == [7, 8]
    assert several["$SYS/broker/clients/total"] == [7]
    assert told(few).keys() == {"$SYS/broker/name"}
    assert not none.messages()
    assert tell(World()) == 0, "nobody asks"
