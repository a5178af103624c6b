"""Clients of MQTT 3.1.1 meet the limits of those of 5: told in a code of theirs or closed, and counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter, Will

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.room import ADDRESS_FULL, FULL
from tests.mqtt import old_words as old
from tests.mqtt.test_mqtt3 import OldClient
from tests.mqtt.world import Client, World

Act = Callable[[World, bool], Client]
"""Lets a client of an old version or a new one run into a limit; returns the client."""


def come(world: World, name: str, *, is_old: bool, will: bytes | None = None) -> Client:
    """Let a client knock; its session is kept."""
    client: Client
    if is_old:
        client = OldClient(world)
        last = None if will is None else ("w", will, 0, False)
        client.send(old.connect(name, clean=False, will=last))
    else:
        client = world.client()
        last_words = None if will is None else Will(topic="w", payload=will)
        client.send(ConnectPacket(name, clean_start=False, session_expiry_interval=600, will=last_words))
    return client


def publish(client: Client, payload: bytes, number: int) -> None:
    """Publish at QoS 1, in the client's version."""
    if isinstance(client, OldClient):
        client.send(old.publish("t", payload, 1, number))
    else:
        client.send(PublishPacket("t", payload, qos=QoS.AT_LEAST_ONCE, packet_id=number))


def subscribe(client: Client, *patterns: str) -> None:
    """Subscribe at QoS 1, in the client's version."""
    if isinstance(client, OldClient):
        client.send(old.subscribe(*((pattern, 1) for pattern in patterns)))
    else:
        wanted = [TopicFilter(pattern, max_qos=QoS.AT_LEAST_ONCE) for pattern in patterns]
        client.send(SubscribePacket(1, wanted))


def one_too_many(world: World, is_old: bool) -> Client:
    """A second connection, or a second session."""
    come(world, "first", is_old=is_old)
    return come(world, "second", is_old=is_old)


def long_will(world: World, is_old: bool) -> Client:
    """A will beyond the room for those of all clients."""
    return come(world, "c", is_old=is_old, will=bytes(200))


def too_many_subscriptions(world: World, is_old: bool) -> Client:
    """One more than a client, its address, or all may have."""
    client = come(world, "c", is_old=is_old)
    subscribe(client, "a", "b", "c")
    return client


def too_large(world: World, is_old: bool) -> Client:
    """A packet that is larger than any may be."""
    client = come(world, "c", is_old=is_old)
    publish(client, bytes(2_000), 1)
    return client


def too_often(world: World, is_old: bool) -> Client:
    """More events in a second than a client may publish."""
    client = come(world, "c", is_old=is_old)
    for number in range(1, 10):
        publish(client, b"", number)
    return client


def unfinished(world: World, is_old: bool) -> Client:
    """The beginning of a packet, and more of it than an address may leave unfinished."""
    client = come(world, "c", is_old=is_old)
    client.send(old.publish("t", bytes(900), 1, 1)[:600])
    return client


def too_slow(world: World, is_old: bool) -> Client:
    """The beginning of a packet, and no end."""
    client = come(world, "c", is_old=is_old)
    client.send(old.publish("t", bytes(900), 1, 1)[:600])
    world.wait(11)
    for number, (code, text) in world.core.effects.dismissals.items():
        world.core.close_for(number, code, text, world.now)
    world.carry_out()
    return client


def unanswered(world: World, is_old: bool) -> Client:
    """More bytes than may be on their way to one client, or to those of its address."""
    client = come(world, "c", is_old=is_old)
    subscribe(client, "t")
    writer = world.client("elsewhere")
    writer.connect("writer")
    for number in range(1, 6):
        writer.publish("t", bytes(100), 1, number)
    return client


def unread(world: World, is_old: bool) -> Client:
    """More bytes than may wait for a client that does not read."""
    client = come(world, "c", is_old=is_old)
    subscribe(client, "t")
    world.core.blocked(client.number)
    writer = world.client("elsewhere")
    writer.connect("writer")
    for number in range(1, 6):
        writer.publish("t", bytes(100), 1, number)
    return client


QUOTAS: dict[str, tuple[Limits, Act, str, list[int]]] = {
    "connections": (Limits(connections_max=1), one_too_many, "server_busy", [3]),
    "sessions": (Limits(sessions_max=1), one_too_many, "quota_exceeded", [3]),
    "wills": (Limits(will_bytes_max_all=100), long_will, "quota_exceeded", [3]),
    "subscriptions": (
        Limits(subscriptions_max=2),
        too_many_subscriptions,
        "subscribe quota_exceeded",
        [1, 1, 0x80],
    ),
    "subscriptions of an address": (
        Limits(subscriptions_address_max=2),
        too_many_subscriptions,
        "subscribe address_quota_exceeded",
        [1, 1, 0x80],
    ),
    "subscriptions of all": (
        Limits(subscriptions_max_all=2),
        too_many_subscriptions,
        "subscribe quota_exceeded",
        [1, 1, 0x80],
    ),
    "levels": (
        Limits(subscription_levels_max=2),
        too_many_subscriptions,
        "subscribe quota_exceeded",
        [1, 1, 0x80],
    ),
    "levels of an address": (
        Limits(subscription_levels_address_max=2),
        too_many_subscriptions,
        "subscribe address_quota_exceeded",
        [1, 1, 0x80],
    ),
    "levels of all": (
        Limits(subscription_levels_max_all=2),
        too_many_subscriptions,
        "subscribe quota_exceeded",
        [1, 1, 0x80],
    ),
    "packet": (Limits(packet_bytes_max=1_000), too_large, "packet_too_large", []),
    "events": (Limits(publishes_per_s_max=2), too_often, "message_rate_too_high", []),
    "unfinished": (Limits(input_bytes_address_max=500), unfinished, "quota_exceeded", []),
    "unfinished of all": (Limits(input_bytes_max_all=500), unfinished, "quota_exceeded", []),
    "slow packet": (Limits(packet_timeout_s=10), too_slow, "quota_exceeded", []),
    "unread": (Limits(queue_bytes_max=250), unread, "quota_exceeded", []),
    "unread of an address": (Limits(queue_bytes_address_max=250), unread, "quota_exceeded", []),
}
"""By limit: what leads to it, how it is counted, and the codes of the last answer; none for no answer."""


@pytest.mark.parametrize("name", QUOTAS)
def test_a_limit_is_counted_alike_for_both_versions_and_told_in_words_of_each(name: str) -> None:
    """One of 3.1.1 gets the code that it has for it, or finds its connection closed without a word."""
    limits, act, counted, codes = QUOTAS[name]
    refused = []
    for is_old in (False, True):
        world = World(limits)
        client = act(world, is_old)
        refused.append(dict(world.core.state.counters.refused))
        if not isinstance(client, OldClient):
            continue
        answers = client.old.packets
        if codes == [3]:
            assert [one.codes for one in answers] == [(0, 3)]
            assert client.closed
        elif codes:
            assert answers[-1].codes == tuple(codes)
            assert not client.closed
        else:
            assert client.closed
            assert all(one.kind in (old.CONNACK, old.SUBACK, old.PUBACK, old.PUBLISH) for one in answers)
    assert refused[0] == refused[1]
    assert refused[1] == {counted: 1}


@pytest.mark.parametrize(
    ("limits", "why"),
    [(Limits(queue_bytes_max=250), FULL), (Limits(queue_bytes_address_max=250), ADDRESS_FULL)],
)
@pytest.mark.parametrize("is_old", [False, True])
def test_bytes_in_flight_have_limits_for_both_versions(limits: Limits, why: str, *, is_old: bool) -> None:
    """What is beyond is dropped and counted; who is there and reads stays."""
    world = World(limits)
    client = unanswered(world, is_old)
    assert not client.closed
    assert world.core.state.counters.dropped == {why: 3}
    assert world.core.state.sessions["c"].inflight_bytes <= 250


@pytest.mark.parametrize("is_old", [False, True])
def test_filters_beyond_the_limit_of_a_long_packet_are_counted_too(*, is_old: bool) -> None:
    """Also where it is taken in parts, and those were never looked at."""
    world = World(Limits(subscriptions_max=150))
    client = come(world, "c", is_old=is_old)
    world.core.begin_turn()
    subscribe(client, *(f"t/{number}" for number in range(170)))
    while (connection := world.core.take_turn(world.now)) is not None:
        world.core.received(connection.number, b"", world.now)
    assert len(world.core.state.sessions["c"].subscriptions) == 150
    assert world.core.state.counters.refused == {"subscribe quota_exceeded": 20}
