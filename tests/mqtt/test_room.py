"""What waits and what is in flight has a limit together; in a network the store that moves has it instead."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import PubAckPacket, PubCompPacket, PublishPacket, PubRecPacket, QoS, SubscribePacket, TopicFilter

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import new_message
from tests.mqtt.address_uses import uses, uses_by_hand
from tests.mqtt.test_core import pair, through_bytes
from tests.mqtt.world import Client, World

SIZE = len(PublishPacket("t", bytes(100), qos=QoS.AT_LEAST_ONCE, packet_id=1).write())
"""Bytes of the messages here."""


def held_bytes(world: World) -> tuple[int, int]:
    """Bytes that wait, and bytes in flight, of all clients; after a look whether the sum is right."""
    state = world.core.state
    sessions = state.sessions.values()
    assert state.queued_bytes == sum(one.queued_bytes for one in sessions)
    assert state.inflight_bytes == sum(one.inflight_bytes for one in sessions)
    for session in sessions:
        assert session.queued_bytes == sum(one.message.size for one in session.queue)
        sent = [one for one in session.inflight.values() if one is not None]
        assert session.inflight_bytes == sum(one.message.size for one in sent)
    assert uses(world.core) == uses_by_hand(world.core)
    return state.queued_bytes, state.inflight_bytes


@pytest.mark.parametrize("limits", [Limits(queue_bytes_max=5 * SIZE), Limits(queue_bytes_max_all=5 * SIZE)])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("window", [3, 100])
def test_what_is_in_flight_takes_room(limits: Limits, qos: int, window: int) -> None:
    """A client that reads and never answers holds no more than one that is away; answers make room."""
    world = World(limits)
    publisher, subscriber = pair(world, receive_max=window)
    for number in range(10):
        publisher.publish("t", bytes(100), qos, number + 1)
    sent = min(window, 5)
    assert held_bytes(world) == ((5 - sent) * SIZE, sent * SIZE)
    assert world.core.state.counters.dropped["queue full"] == 5
    first = subscriber.next(PublishPacket).packet_id or 0
    subscriber.send(PubAckPacket(first) if qos == 1 else PubRecPacket(first))
    if qos == 2:
        subscriber.send(PubCompPacket(first))
    publisher.publish("t", bytes(100), qos, 50)
    assert sum(held_bytes(world)) == 5 * SIZE
    assert world.core.state.counters.dropped["queue full"] == 5


def test_one_message_at_a_time_always_goes() -> None:
    """One that is larger than the limit, or while others hold all the room, reaches a client that answers."""
    world = World(Limits(queue_bytes_max=2 * SIZE, queue_bytes_max_all=2 * SIZE))
    publisher, idle = pair(world)
    for number in range(2):
        publisher.publish("t", bytes(100), 1, number + 1)
    assert len(idle.messages()) == 2
    busy = world.client()
    busy.connect("busy")
    busy.subscribe("large/#")
    for number in range(3):
        publisher.publish("large", bytes(1_000), 1, number + 1)
        busy.send(PubAckPacket(busy.next(PublishPacket).packet_id or 0))
    assert not idle.messages()
    assert held_bytes(world) == (0, 2 * SIZE)


def test_room_is_counted_through_all_that_happens_to_a_session() -> None:
    """Answers, refusals, a lost connection, a hand-over, a client that takes only small packets, the end."""
    world, there = World(), World(name="B2")
    publisher, subscriber = pair(world, receive_max=5)
    for number in range(9):
        publisher.publish("t", bytes(100), 1 + number % 2, number + 1)
    assert held_bytes(world) == (4 * SIZE, 5 * SIZE)
    got = subscriber.messages()
    subscriber.send(PubAckPacket(got[0].packet_id or 0))
    subscriber.send(PubRecPacket(got[1].packet_id or 0))
    refusal = mqtt5.PubRecReasonCode.UNSPECIFIED_ERROR
    subscriber.send(PubRecPacket(got[3].packet_id or 0, reason_code=refusal))
    assert held_bytes(world) == (2 * SIZE, 4 * SIZE)
    subscriber.lose()
    assert sum(held_bytes(world)) == 6 * SIZE
    state = world.core.custody.export_session("subscriber", world.now)
    assert state is not None
    there.core.custody.adopt(through_bytes(state), there.now)
    world.core.custody.end_session("subscriber", world.now)
    assert held_bytes(world) == (0, 0)
    assert sum(held_bytes(there)) == 6 * SIZE
    again = there.client()
    again.connect("subscriber", clean_start=False, max_packet_size=60)
    assert held_bytes(there) == (0, 0)


def stored_pair(limits: Limits) -> tuple[World, Client]:
    """A broker with others, and a client that subscribed to everything."""
    world = World(limits)
    world.core.effects.collects = True
    client = world.client()
    client.connect("c", session_expiry_interval=100, receive_max=10)
    client.subscribe("#")
    return world, client


def deliver(world: World, payload: bytes, qos: int) -> int:
    """Hand an event to the client, as whoever routes does."""
    return world.core.custody.deliver_to("c", new_message("t", payload, qos=qos, now=world.now), world.now)


def test_a_network_s_sessions_drop_nothing_that_is_stored() -> None:
    """All of it is sent at once or as the client answers, in order, whatever the limits of a queue are."""
    world, client = stored_pair(Limits(queue_bytes_max=500, queue_bytes_max_all=500, queue_messages_max=5))
    for number in range(100):
        assert deliver(world, b"%d" % number + bytes(100), 1) == 1
    got: list[int] = []
    for _ in range(100):
        world.carry_out()
        for message in client.messages():
            got.append(int(message.payload.rstrip(b"\0")))
            client.send(PubAckPacket(message.packet_id or 0))
    assert got == list(range(100))
    assert world.core.state.counters.dropped["queue full"] == 0
    assert not client.closed
    assert held_bytes(world) == (0, 0)


def test_quality_0_obeys_the_limits_in_a_network_too() -> None:
    """It is stored for nobody, and finds no room beside what is."""
    world, client = stored_pair(Limits(queue_bytes_max=1_000))
    for _ in range(20):
        deliver(world, bytes(100), 1)
    for _ in range(5):
        deliver(world, b"unsure", 0)
    assert world.core.state.counters.dropped["queue full"] == 5
    assert len(world.core.state.sessions["c"].queue) == 10
    assert not client.closed


def test_retained_messages_obey_the_limits_in_a_network_too() -> None:
    """Nobody stores them for the client: it could ask for them again and again and answer none."""
    world, client = stored_pair(Limits(queue_messages_max=20))
    for number in range(10):
        message = new_message(f"kept/{number}", b"x", qos=1, now=world.now, retain=True)
        message.sequence = number + 1
        world.core.retain(message)
    for number in range(10):
        client.send(SubscribePacket(number + 1, [TopicFilter("kept/#")]))
    assert len(world.core.state.sessions["c"].queue) == 20
    assert world.core.state.counters.dropped["queue full"] > 0


@pytest.mark.parametrize("collects", [False, True])
def test_a_connection_that_does_not_read_is_closed_when_too_much_waits(*, collects: bool) -> None:
    """Whoever stores what waits; a slow client that reads is not."""
    world, client = stored_pair(Limits(queue_bytes_max=1_000))
    world.core.effects.collects = collects
    for _ in range(5):
        deliver(world, bytes(100), 1)
    world.core.blocked(client.number)
    for _ in range(4):
        deliver(world, bytes(100), 1)
        assert not world.core.effects.overflowing
    deliver(world, bytes(100), 1)
    assert list(world.core.effects.overflowing) == [client.number]
    world.carry_out()
    assert client.closed
    ended = [one for one in client.inbox if isinstance(one, mqtt5.DisconnectPacket)]
    assert [int(one.reason_code) for one in ended] == [0x97]
    assert len(world.core.state.sessions["c"].queue) == (5 if collects else 4)
