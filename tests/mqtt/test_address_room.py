"""The clients of one address have a share of the subscriptions and of the room for messages, not all."""

from __future__ import annotations

import random

import mqtt5
import pytest
from mqtt5 import (
    PubAckPacket,
    PublishPacket,
    PubRecPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
)

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.room import ADDRESS_FULL, FULL
from sojourn.mqtt.session import Session
from tests.mqtt.address_uses import uses, uses_by_hand
from tests.mqtt.world import Client, World, again

SIZE = len(PublishPacket("t/x", bytes(100), qos=QoS.AT_LEAST_ONCE, packet_id=1).write())
"""Bytes of the messages here, to topics of three letters."""
STEPS = 400


def client(world: World, name: str, address: str, topic: str | None = None, qos: int = 1) -> Client:
    """Let a client in whose session outlives its connection, with a subscription if there is a topic."""
    found = world.client(address)
    found.connect(name, session_expiry_interval=1_000, clean_start=False)
    if topic is not None:
        assert found.subscribe(topic, qos) == qos
    return found


def session(world: World, name: str) -> Session:
    """The session of a client."""
    return world.core.state.sessions[name]


def test_an_address_has_so_many_subscriptions_and_leaves_others_theirs() -> None:
    """Beyond that its clients are refused, also a second one; what they have may be changed."""
    world = World(Limits(subscriptions_address_max=3))
    one, two, other = (client(world, name, name[0]) for name in ("a1", "a2", "b1"))
    assert [one.subscribe(topic) for topic in "xy"] == [2, 2]
    assert [two.subscribe(topic) for topic in "xyx"] == [2, 0x97, 2]
    assert one.subscribe("z") == 0x97
    assert one.subscribe("y", 1) == 1
    assert [other.subscribe(topic) for topic in "xyzu"] == [2, 2, 2, 0x97]
    assert world.core.state.counters.refused == {"subscribe address_quota_exceeded": 3}
    assert uses(world.core) == uses_by_hand(world.core)


def test_who_unsubscribes_leaves_or_moves_makes_room_for_the_address() -> None:
    """A session takes its subscriptions along to the address that its client comes back from."""
    world = World(Limits(subscriptions_address_max=2))
    one, two = (client(world, name, "a") for name in ("one", "two"))
    assert [one.subscribe(topic) for topic in "xy"] == [2, 2]
    assert two.subscribe("x") == 0x97
    one.send(UnsubscribePacket(9, ["x"]))
    assert [two.subscribe(topic) for topic in "xy"] == [2, 0x97]
    moved = client(world, "one", "b")  # while its old connection still seems to be there
    assert one.closed
    assert two.subscribe("y") == 2
    assert [moved.subscribe(topic) for topic in "xz"] == [2, 0x97]
    moved.lose()
    assert uses(world.core) == {"a": (1, 2, 0), "b": (0, 0, 0)}
    back = client(world, "one", "a")
    assert uses(world.core) == {"a": (2, 4, 0)}, "nobody loses what it had"
    assert back.subscribe("u") == 0x97
    assert back.subscribe("x", 1) == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_an_address_that_answers_nothing_leaves_others_their_room(qos: int) -> None:
    """What its clients get beyond its share is dropped and counted; others get everything."""
    world = World(Limits(queue_bytes_address_max=5 * SIZE))
    publisher = client(world, "p", "p")
    idle = [client(world, f"a{number}", "a", "t/#", qos) for number in range(2)]
    busy = client(world, "b", "b", "t/#", qos)
    for number in range(5):
        publisher.publish("t/x", bytes(100), qos, number + 1)
    assert uses(world.core)["a"] == (2, 2, 5 * SIZE)
    assert len(busy.messages()) == 5
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 5}
    answer = idle[0].next(PublishPacket).packet_id or 0
    idle[0].send(PubAckPacket(answer) if qos == 1 else PubRecPacket(answer))
    assert uses(world.core)["a"] == (2, 2, 4 * SIZE)
    publisher.publish("t/x", bytes(100), qos, 6)
    assert uses(world.core) == uses_by_hand(world.core)
    assert uses(world.core)["a"] == (2, 2, 5 * SIZE), "an answer makes room for one more"


def test_others_are_stored_for_while_an_address_has_more_than_its_share() -> None:
    """A slow client and an absent one of other addresses, up to the limit of all."""
    world = World(Limits(queue_bytes_address_max=3 * SIZE, queue_bytes_max_all=10 * SIZE))
    publisher = client(world, "p", "p")
    client(world, "a1", "a", "t/a")
    slow, absent = (client(world, name, name[0], "t/b") for name in ("b", "c"))
    world.core.blocked(slow.number)
    absent.lose()
    for number in range(10):
        publisher.publish("t/a", bytes(100), 1, number + 1)
    assert uses(world.core)["a"] == (1, 1, 3 * SIZE)
    for number in range(3):
        publisher.publish("t/b", bytes(100), 1, number + 1)
    assert [len(session(world, name).queue) for name in "bc"] == [3, 3]
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 7}
    publisher.publish("t/b", bytes(100), 1, 4)
    assert slow.closed, "a client that does not read is told when its address has no room"
    assert int(slow.next(mqtt5.DisconnectPacket).reason_code) == 0x97
    assert len(session(world, "c").queue) == 3, "nor has the absent one's"
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 9}
    client(world, "d", "d", "t/d").lose()
    for number in range(4):
        publisher.publish("t/d", bytes(100), 1, number + 1)
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 9, FULL: 3}
    assert sum((world.core.state.queued_bytes, world.core.state.inflight_bytes)) == 10 * SIZE


def test_messages_that_wait_are_counted_however_short_they_are() -> None:
    """Each takes room besides its bytes; of one address, and of all."""
    world = World(Limits(queue_messages_address_max=3, queue_messages_max_all=5))
    publisher = client(world, "p", "p")
    for name, address in (("a1", "a"), ("a2", "a"), ("b", "b"), ("c", "c")):
        client(world, name, address, f"t/{name}").lose()
    for name, waiting, why in (("a1", 2, {}), ("a2", 1, {ADDRESS_FULL: 1}), ("b", 2, {ADDRESS_FULL: 1})):
        for number in range(2):
            publisher.publish(f"t/{name}", b"", 1, number + 1)
        assert len(session(world, name).queue) == waiting
        assert world.core.state.counters.dropped == why
    publisher.publish("t/c", b"", 1, 9)
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 1, FULL: 1}
    assert uses(world.core) == uses_by_hand(world.core)
    back = client(world, "a1", "c")
    assert len(back.messages()) == 2
    publisher.publish("t/c", b"", 1, 9)
    assert len(session(world, "c").queue) == 1, "what was sent makes room for what waits"
    assert uses(world.core) == uses_by_hand(world.core)
    assert uses(again(world.core)) == uses_by_hand(again(world.core))


def test_one_message_at_a_time_goes_whatever_the_address_holds() -> None:
    """A client that answers is served, though others behind the same address hold all its room."""
    world = World(Limits(queue_bytes_address_max=2 * SIZE))
    publisher = client(world, "p", "p")
    client(world, "idle", "a", "t/a")
    busy = client(world, "busy", "a", "t/b")
    for number in range(4):
        publisher.publish("t/a", bytes(100), 1, number + 1)
    for number in range(3):
        publisher.publish("t/b", bytes(100), 1, number + 1)
        busy.send(PubAckPacket(busy.next(PublishPacket).packet_id or 0))
    assert uses(world.core)["a"] == (2, 2, 2 * SIZE)


def test_who_comes_back_brings_what_waited_and_frees_where_it_was() -> None:
    """Bytes count for the address of the last connection, also while there is none."""
    world = World(Limits(queue_bytes_address_max=4 * SIZE))
    publisher = client(world, "p", "p")
    first = client(world, "c", "a", "t/#")
    neighbour = client(world, "n", "a", "t/n")
    for number in range(3):
        publisher.publish("t/x", bytes(100), 1, number + 1)
    first.lose()
    assert uses(world.core)["a"] == (1, 1, 3 * SIZE)
    for number in range(3):
        publisher.publish("t/x", bytes(100), 1, number + 1)
    second = client(world, "c", "b")
    assert len(second.messages()) == 4
    assert uses(world.core)["a"] == (1, 1, 0)
    assert uses(world.core)["b"] == (1, 1, 4 * SIZE)
    publisher.publish("t/x", bytes(100), 1, 9)
    publisher.publish("t/n", bytes(100), 1, 10)
    assert len(neighbour.messages()) == 1
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 4}
    assert uses(world.core) == uses_by_hand(world.core)


def test_absent_clients_of_one_address_leave_others_their_room() -> None:
    """However many sessions it leaves behind: its share is the same, and what others get is stored."""
    world = World(Limits(queue_bytes_max=4 * SIZE, queue_bytes_address_max=8 * SIZE))
    publisher = client(world, "p", "p")
    for number in range(8):
        client(world, f"a{number}", "a", f"t/{number}").lose()
        for _ in range(4):
            publisher.publish(f"t/{number}", bytes(100), 1, 1)
    client(world, "b", "b", "t/b").lose()
    for _ in range(4):
        publisher.publish("t/b", bytes(100), 1, 1)
    assert uses(world.core) == uses_by_hand(world.core)
    assert uses(world.core)["a"] == (0, 0, 8 * SIZE)
    assert len(session(world, "b").queue) == 4
    assert world.core.state.counters.dropped == {ADDRESS_FULL: 24}


def test_quality_0_that_waits_takes_room_of_the_address_too() -> None:
    """Until its client is gone."""
    world = World(Limits(queue_bytes_address_max=3 * SIZE))
    publisher, slow = client(world, "p", "p"), client(world, "s", "a", "t/#", 0)
    world.core.blocked(slow.number)
    for _ in range(5):
        publisher.publish("t/x", bytes(102))
    assert uses(world.core)["a"] == (1, 1, 3 * SIZE)
    assert not slow.closed
    slow.lose()
    assert uses(world.core)["a"] == (0, 0, 0)
    assert uses(world.core) == uses_by_hand(world.core)


def test_addresses_without_sessions_are_forgotten() -> None:
    """Whether their clients were let in or not."""
    world = World()
    for number in range(20):
        one = client(world, "c", f"a{number}", "t/#")
        assert [*uses(world.core)] == [f"a{number}"]
    world.client("stranger").lose()
    one.lose()
    assert uses(world.core) == {"a19": (0, 0, 0)}
    world.wait(1_001)
    assert uses(world.core) == {}


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_each_address_is_counted_as_by_hand_and_again_from_a_snapshot(seed: int) -> None:
    """Comings, goings, take-overs, slow readers, answers and subscriptions, in any order."""
    draw = random.Random(seed)
    limits = Limits(
        queue_bytes_address_max=8 * SIZE, subscriptions_address_max=2, queue_bytes_max_all=30 * SIZE
    )
    world = World(limits)
    publisher = client(world, "p", "p")
    here: dict[str, Client] = {}
    for step in range(STEPS):
        name = draw.choice(("c1", "c2", "c3", "c4"))
        one = here.get(name)
        act = draw.choice(("come", "lose", "subscribe", "unsubscribe", "block", "drain", "answer", "publish"))
        if act == "come" or one is None or one.closed:
            one = here[name] = world.client(draw.choice("abc"))
            expiry, is_clean = draw.choice((0, 1_000, 1_000)), draw.random() < 0.2
            one.connect(name, session_expiry_interval=expiry, clean_start=is_clean)
        elif act == "lose":
            here.pop(name).lose()
        elif act == "subscribe":
            wanted = TopicFilter(draw.choice(("t/x", "t/y", "t/#")), max_qos=QoS(draw.randrange(3)))
            one.send(SubscribePacket(step + 1, [wanted]))
        elif act == "unsubscribe":
            one.send(UnsubscribePacket(step + 1, [draw.choice(("t/x", "t/y", "t/#"))]))
        elif act == "block":
            world.core.blocked(one.number)
        elif act == "drain":
            world.core.drained(one.number, world.now)
            world.carry_out()
        elif act == "answer":
            for message in one.messages():
                if int(message.qos):
                    number = message.packet_id or 0
                    one.send(PubAckPacket(number) if int(message.qos) == 1 else PubRecPacket(number))
        for _ in range(draw.randrange(3)):
            publisher.publish(draw.choice(("t/x", "t/y")), bytes(100), draw.randrange(3), step + 1)
            publisher.inbox.clear()
        assert uses(world.core) == uses_by_hand(world.core), f"step {step}: {act}"
    counters = world.core.state.counters
    assert counters.dropped[ADDRESS_FULL] > 0
    assert counters.refused["subscribe address_quota_exceeded"] > 0
    assert uses(again(world.core)) == uses(world.core)
