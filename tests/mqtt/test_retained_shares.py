"""The clients of one address have a share of the retained messages, not all; others keep room for theirs."""

from __future__ import annotations

import random

import pytest
from mqtt5 import PubAckPacket, PublishPacket, QoS, Will

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message, new_message
from tests.mqtt.test_retained import kept, network, value
from tests.mqtt.world import Client, World, again
from tests.retained_values import values_of

QUOTA = 0x97
FEW = Limits(retained_messages_max=10, retained_messages_address_max=4)
SIZE = len(PublishPacket("t/0", bytes(100), qos=QoS.AT_LEAST_ONCE, packet_id=1, retain=True).write())
SMALL = Limits(retained_bytes_max=10 * SIZE, retained_bytes_address_max=4 * SIZE)
REFUSED = "publish address_quota_exceeded"
STEPS = 400


def client(world: World, name: str, address: str) -> Client:
    """A client that is there."""
    found = world.client(address)
    assert found.connect(name).reason_code == 0
    return found


def retain(who: Client, topic: str, payload: bytes = bytes(100), **options: int) -> int:
    """Publish to be retained; return the code."""
    who.publish(topic, payload, 1, retain=True, **options)
    return int(who.next(PubAckPacket).reason_code)


def shares(world: World) -> dict[str, tuple[int, int]]:
    """What each address has, as the core counts it."""
    return {party: tuple(one) for party, one in world.core.state.retained.shares.by_party.items()}  # type: ignore[misc]  # a row of two


def by_hand(world: World) -> dict[str, tuple[int, int]]:
    """The same of every message."""
    found: dict[str, tuple[int, int]] = {}
    for message in world.core.state.retained.kept():
        if message.party:
            count, size = found.get(message.party, (0, 0))
            found[message.party] = count + 1, size + message.size
    return found


@pytest.mark.parametrize("limits", [FEW, SMALL])
def test_an_address_has_a_share_and_leaves_others_theirs(limits: Limits) -> None:
    """Of topics and of bytes: all its clients together; that is counted, and the audit is told."""
    world = World(limits)
    world.core.effects.refusals = []
    one, two, honest = (client(world, name, name[0]) for name in ("a1", "a2", "b1"))
    assert [retain(one, f"t/{number}") for number in range(3)] == [0, 0, 0]
    assert [retain(two, f"t/{number}") for number in range(3, 7)] == [0, QUOTA, QUOTA, QUOTA]
    assert [retain(honest, f"u/{number}") for number in range(5)] == [0, 0, 0, 0, QUOTA]
    assert world.core.state.counters.refused == {REFUSED: 4}
    first = world.core.effects.refusals[0]
    assert (first.why, first.about, first.address) == ("address_quota_exceeded", "t/4", "a")
    assert shares(world) == by_hand(world) == {"a": (4, 4 * SIZE), "b": (4, 4 * SIZE)}


def test_who_replaces_its_own_or_ends_a_topic_may_go_on() -> None:
    """Also where a limit was narrowed; what is larger than before needs room."""
    world = World(FEW)
    one = client(world, "a1", "a")
    for number in range(4):
        retain(one, f"t/{number}")
    assert retain(one, "t/0", bytes(50)) == 0
    world.core.reconfigure(Limits(retained_messages_address_max=1, retained_bytes_address_max=100), None)
    assert retain(one, "t/1") == 0
    assert retain(one, "t/2", bytes(101)) == QUOTA
    assert retain(one, "t/9", b"") == 0
    assert [retain(one, f"t/{number}", b"") for number in range(4)] == [0] * 4
    assert shares(world) == {}
    assert retain(one, "t/0", b"x") == 0


def test_a_topic_counts_for_who_published_to_it_last() -> None:
    """Who takes over another's topic takes its room, and gives back the other's."""
    world = World(FEW)
    one, two = client(world, "a1", "a"), client(world, "b1", "b")
    for number in range(4):
        retain(one, f"t/{number}")
    assert retain(two, "t/0") == 0
    assert shares(world) == {"a": (3, 3 * SIZE), "b": (1, SIZE)}
    assert retain(one, "u") == 0
    assert retain(one, "t/0") == QUOTA
    assert retain(two, "u", b"") == 0
    assert retain(one, "t/0") == 0
    assert shares(world) == {"a": (4, 4 * SIZE)}


def test_values_whose_time_ran_out_take_no_share() -> None:
    """Nobody has looked since."""
    world = World(FEW)
    one = client(world, "a1", "a")
    assert [retain(one, f"t/{n}", message_expiry_interval=5) for n in range(5)] == [0, 0, 0, 0, QUOTA]
    world.now += 6
    assert [retain(one, f"u/{number}") for number in range(5)] == [0, 0, 0, 0, QUOTA]
    assert shares(world) == by_hand(world)


def test_what_was_retained_at_other_brokers_counts_here_too() -> None:
    """It is kept whatever its address has, so that all brokers agree; here that address has no more room."""
    world = network(limits=FEW)
    for number in range(6):
        theirs = value(b"x", 1_000_000_000 + number, topic=f"t/{number}")
        theirs.party = "a"
        assert world.core.retain(theirs)
    assert world.core.state.retained.count == 6
    assert retain(client(world, "a1", "a"), "u") == QUOTA
    assert retain(client(world, "b1", "b"), "u") == 0
    world.core = again(world.core)
    assert retain(client(world, "a2", "a"), "u/2") == QUOTA


def test_values_of_nobody_count_for_nobody() -> None:
    """Such as those from a store that knew no addresses."""
    world = network(limits=FEW)
    for number in range(6):
        world.core.retain(value(b"x", 1_000_000_000 + number, topic=f"t/{number}"))
    assert shares(world) == {}
    assert [retain(client(world, "a", "a"), f"u/{number}") for number in range(4)] == [0] * 4


def dies(world: World, topic: str, payload: bytes, address: str = "a") -> None:
    """A client comes with a will that is to be retained, and is gone."""
    one = world.client(address)
    one.connect("dying", will=Will(topic, payload=payload, retain=True, qos=QoS.AT_LEAST_ONCE))
    one.lose()


def test_wills_take_the_share_of_the_address_that_their_client_came_from() -> None:
    """Otherwise a client could retain as much as it likes by dying."""
    world = World(FEW)
    watcher = client(world, "watcher", "w")
    watcher.subscribe("#")
    for number in range(6):
        dies(world, f"t/{number}", b"gone")
    assert len(watcher.messages()) == 6, "they are published all the same"
    assert shares(world) == by_hand(world)
    assert shares(world)["a"][0] == 4
    assert world.core.state.counters.refused == {REFUSED: 2}


def test_a_will_that_finds_no_share_ends_the_value_before_at_every_broker() -> None:
    """Which is known to be old: the client that was said to be there is gone."""
    here, there = network(limits=SMALL), network("B2")
    device, flood = client(here, "device", "a"), client(here, "flood", "a")
    assert retain(device, "status", b"here") == 0
    for number in range(3):
        assert retain(flood, f"t/{number}") == 0
    assert retain(flood, "t/3", bytes(60)) == 0
    dies(here, "status", bytes(90))
    assert kept(here, "status") is None
    retained = here.core.state.retained
    told = [retained.told(message, here.now) for message in here.core.effects.published]
    assert [there.core.retain(message) for message in told] == [True] * 6
    assert kept(there, "status") is None
    assert len(here.core.effects.published[-1].payload) == 90, "subscribers get it as it is"
    assert [one.topic for one in values_of(there.core.state.retained, there.now)] == [
        one.topic for one in values_of(here.core.state.retained, here.now)
    ]


def test_a_will_that_came_with_a_session_counts_for_its_address() -> None:
    """The one of a client that left one broker and is given up at another."""
    here, there = network(limits=FEW), network("B2", FEW)
    one = here.client("a")
    one.connect(
        "dying",
        will=Will("t", payload=b"gone", retain=True, will_delay_interval=5),
        session_expiry_interval=100,
    )
    one.lose()
    state = here.core.custody.export_session("dying", here.now)
    assert state is not None
    there.core.custody.adopt(state, there.now)
    there.wait(10)
    assert kept(there) == b"gone"
    assert [*shares(there)] == ["a"]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_shares_are_counted_as_by_hand_and_again_from_a_snapshot(seed: int) -> None:
    """Values, ends, expiries, wills and what other brokers say."""
    draw = random.Random(seed)
    world = World(Limits(retained_messages_max=14, retained_messages_address_max=6))
    writers = {address: client(world, address, address) for address in "abc"}
    for step in range(STEPS):
        topic, address = f"t/{draw.randrange(20)}", draw.choice("aab")
        act = draw.choice(("publish", "publish", "publish", "end", "short", "hear", "die", "wait"))
        if act == "publish":
            retain(writers[address], topic, bytes(draw.randrange(1, 200)))
        elif act == "end":
            retain(writers[address], topic, b"")
        elif act == "short":
            retain(writers[address], topic, message_expiry_interval=draw.randrange(1, 10))
        elif act == "hear":
            heard: Message = new_message(topic, bytes(draw.randrange(99)), qos=0, now=world.now, retain=True)
            heard.sequence, heard.party = int(world.now * 1e6) + draw.randrange(-9, 9), draw.choice("abc")
            world.core.retain(heard)
        elif act == "die":
            dies(world, topic, b"gone", address)
        else:
            world.now += draw.randrange(3)
        assert shares(world) == by_hand(world), f"step {step}: {act}"
    assert world.core.state.counters.refused[REFUSED] > 0
    before = shares(world)
    world.core = again(world.core)
    assert shares(world) == before
