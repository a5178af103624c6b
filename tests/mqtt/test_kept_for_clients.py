"""What is kept for a client while it is connected, or for its session, has its limits, whatever it is."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, PublishPacket, PubRecPacket, QoS, UnsubscribePacket

from sojourn.mqtt.connection import ALIASED_CHARS_MAX
from sojourn.mqtt.content import NAME_CHARS_MAX, STATED_CHARS_MAX, advertised_bytes_max
from sojourn.mqtt.conventions import ADVERTISE_TOPIC, FILTER, KEEP
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.publishing import UNRELEASED_TIMES
from sojourn.mqtt.queue_policies import ATTRIBUTE_CHARS_MAX
from tests.mqtt.address_uses import uses, uses_by_hand
from tests.mqtt.world import Client, World, again


def client(world: World, name: str, address: str = "", **options: object) -> Client:
    """Let a client in whose session outlives its connection."""
    found = world.client(address)
    answer = found.connect(name, session_expiry_interval=1_000, clean_start=False, **options)
    assert not int(answer.reason_code)
    return found


# Shared subscriptions ------------------------------------------------------------------------------------


def test_a_client_is_in_some_groups() -> None:
    """Every event on a topic costs as much as there are groups that want it."""
    world = World(Limits(shared_subscriptions_max=2))
    one = client(world, "one")
    assert [one.subscribe(f"$share/{name}/t", 1) for name in "abca"] == [1, 1, 0x97, 1]
    assert one.subscribe("t", 1) == 1
    one.send(UnsubscribePacket(9, ["$share/a/t"]))
    one.inbox.clear()
    assert one.subscribe("$share/c/t", 1) == 1
    assert client(world, "two").subscribe("$share/a/t", 1) == 1


def test_an_address_begins_some_groups_and_leaves_others_theirs() -> None:
    """Who joins a group that its address is in already may, here or away, and after a restart too."""
    world = World(Limits(groups_max_all=3, groups_address_max=2))
    one, two, other = (client(world, name, name[0]) for name in ("a1", "a2", "b1"))
    assert [one.subscribe(f"$share/{name}/t", 1) for name in "xyz"] == [1, 1, 0x97]
    one.lose()
    world.core = again(world.core)
    two, other = client(world, "a2", "a"), client(world, "b1", "b")
    assert [two.subscribe(f"$share/{name}/t", 1) for name in "xyz"] == [1, 1, 0x97]
    assert [other.subscribe(f"$share/{name}/t", 1) for name in "xzu"] == [1, 1, 0x97]
    assert client(world, "c1", "c").subscribe("$share/u/t", 1) == 0x97, "that would be one too many of all"
    assert uses(world.core) == uses_by_hand(world.core)
    moved = client(world, "a1", "b")
    assert uses(world.core) == uses_by_hand(world.core)
    moved.send(UnsubscribePacket(9, ["$share/y/t"]))
    two.send(UnsubscribePacket(9, ["$share/y/t"]))
    two.inbox.clear()
    assert two.subscribe("$share/u/t", 1) == 1
    assert uses(world.core) == uses_by_hand(world.core)


# Filters -------------------------------------------------------------------------------------------------


def test_filters_over_attributes_count_by_their_length() -> None:
    """Each comparison takes memory at every broker, and time whenever its client moves."""
    world = World(Limits(subscription_levels_max=100))
    one = client(world, "one")
    long = {"user_properties": [(FILTER, " AND ".join(f"n{number} > 1" for number in range(12)))]}
    short = {"user_properties": [(FILTER, "n > 1")]}
    assert [one.subscribe(topic, 1, **long) for topic in "ab"] == [1, 0x97]
    assert [one.subscribe(topic, 1, **short) for topic in "bc"] == [1, 1]
    assert one.subscribe("b", 1, **long) == 0x97, "what takes the place of another counts for what it is more"
    assert one.subscribe("a", 1, **long) == 1
    assert one.subscribe("a", 1, **short) == 1
    assert one.subscribe("b", 1, **long) == 1
    assert uses(world.core) == uses_by_hand(world.core)
    assert uses(again(world.core)) == uses_by_hand(again(world.core))


def test_what_a_queue_is_kept_by_is_short() -> None:
    """Every subscription has its own."""
    one = client(World(), "one")
    codes = [
        one.subscribe(f"t/{size}", 1, user_properties=[(KEEP, "last:" + "k" * size)])
        for size in (ATTRIBUTE_CHARS_MAX, ATTRIBUTE_CHARS_MAX + 1)
    ]
    assert codes == [1, 0x83]


# Advertisements ------------------------------------------------------------------------------------------


def test_advertisements_of_a_client_are_short_together() -> None:
    """When one more comes all may have to be read again, so what was made earlier counts too."""
    world = World(Limits(filter_bytes_max=40))
    one = client(world, "one")
    text = "topic LIKE 'a-rather-long-topic/{:04}/#'"
    most = advertised_bytes_max(world.core.state.limits) // len(text.format(0))
    codes = []
    for number in range(most + 2):
        one.publish(ADVERTISE_TOPIC, text.format(number).encode(), 1, 1)
        codes.append(int(one.next(mqtt5.PubAckPacket).reason_code))
    assert codes == [0] * most + [0x97] * 2
    one.publish(ADVERTISE_TOPIC, b"", 1, 1)
    one.publish(ADVERTISE_TOPIC, text.format(9).encode(), 1, 1)
    assert [int(one.next(mqtt5.PubAckPacket).reason_code) for _ in range(2)] == [0, 0]


# Aliases -------------------------------------------------------------------------------------------------


def test_topics_with_an_alias_are_short_together() -> None:
    """They are kept for as long as a connection lasts, of clients too that may publish to none of them."""
    world = World()
    one = client(world, "one")
    half = ALIASED_CHARS_MAX // 2
    for alias, topic in ((1, "a" * half), (2, "b" * half), (1, "c" * half), (2, "b" * half)):
        one.publish(topic, b"x", topic_alias=alias)
        assert not one.closed
    one.publish("d", b"x", topic_alias=3)
    assert int(one.next(mqtt5.DisconnectPacket).reason_code) == 0x97


def test_towards_a_client_longer_topics_have_none() -> None:
    """It gets them whole each time."""
    world = World()
    one, other = client(world, "one", topic_alias_max=10), client(world, "other")
    one.subscribe("#", 0)
    for topic in ("a", "b" * ALIASED_CHARS_MAX, "a", "b" * ALIASED_CHARS_MAX, "c"):
        other.publish(topic)
    found = [(message.topic[:1], message.topic_alias) for message in one.messages()]
    assert found == [("a", 1), ("b", None), ("", 1), ("b", None), ("c", 2)]


# Sessions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"username": "u" * (NAME_CHARS_MAX + 1)},
        {"user_properties": [("sojourn-attribute-a", "x" * (STATED_CHARS_MAX // 2))] * 2},
    ],
)
def test_what_a_client_says_of_itself_is_short(options: dict[str, object]) -> None:
    """It stays with the session, also while the client is away."""
    world = World()
    one = world.client()
    one.send(ConnectPacket("one", clean_start=True, **options))  # type: ignore[arg-type]  # options of a packet, by name
    assert int(one.next(ConnAckPacket).reason_code) == 0x97
    assert not world.core.state.sessions


def test_events_half_sent_are_few_over_all_connections_of_a_session() -> None:
    """Each connection may leave some behind, and the next ones count them once they are many."""
    world = World(Limits(receive_max=5))
    most = UNRELEASED_TIMES * 5
    for at in range(0, most, 5):
        one = client(world, "one")
        for number in range(at + 1, at + 6):
            one.publish("t", b"x", 2, number)
            one.next(PubRecPacket)
        one.lose()
    one = client(world, "one")
    one.publish("t", b"x", 2, 1)  # again
    one.next(PubRecPacket)
    one.send(PublishPacket("t", b"x", qos=QoS.EXACTLY_ONCE, packet_id=most + 1))
    assert int(one.next(mqtt5.DisconnectPacket).reason_code) == 0x93
    assert len(world.core.state.sessions["one"].received) == most
