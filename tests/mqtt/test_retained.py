"""Retained values: the same at every broker in the end, and none holds room when its time has run out."""

from __future__ import annotations

import itertools
from typing import ClassVar, SupportsIndex

import pytest
from mqtt5 import PubAckPacket, PublishPacket, QoS, SubscribePacket, TopicFilter, Will

from sojourn.mqtt import delivery
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message, new_message
from sojourn.mqtt.retained import (
    BURIED_AT_ONCE,
    BURIED_FOR_ROOM,
    DEPTH_MAX,
    SPARE_EXPIRIES,
    TOMBSTONE_S,
    TOMBSTONES_MAX,
    Retained,
)
from sojourn.mqtt.room import change_queued, why_full
from tests.counting import counted
from tests.mqtt.world import World, again
from tests.retained_values import values_of


def value(
    payload: bytes,
    sequence: int,
    source: str = "s",
    *,
    topic: str = "t",
    now: float = 1_000.0,
    expiry: int | None = None,
) -> Message:
    """A numbered message as another broker tells it."""
    message = new_message(topic, payload, qos=0, now=now, retain=True, expiry=expiry)
    message.sequence, message.source = sequence, source
    return message


def network(name: str = "B1", limits: Limits | None = None) -> World:
    """A broker that has others."""
    world = World(limits, name)
    world.core.effects.collects = True
    return world


def kept(world: World, topic: str = "t") -> bytes | None:
    """The value that a broker keeps."""
    message = world.core.state.retained.get(topic)
    return None if message is None else message.payload


def nodes_of(retained: Retained) -> int:
    """How many nodes the tree of topics has."""
    nodes, count = [retained._root], 0
    while nodes:
        node = nodes.pop()
        count += 1
        nodes += node.below.values()
    return count


def test_deep_topics_take_no_more_of_the_tree_than_others() -> None:
    """4,000 topics of 254 levels once took a million nodes, which nobody counted, and 0.8 s to pass by."""
    retained = Retained(1_000, 1_000_000)
    topics = [f"{number}/" + "/".join("a" * 253) for number in range(100)]
    for number, topic in enumerate(topics):
        assert retained.keep(value(b"x", number + 1, topic=topic))
    assert nodes_of(retained) <= 1 + DEPTH_MAX * len(topics)
    for pattern in ("+/#", "#", "+/" * 253 + "+", "+/" * DEPTH_MAX + "#", "+/" * 20 + "#", "+/" * 253 + "#"):
        assert [one.topic for one in retained.matching(pattern, 1_000.0)] == topics, pattern
    for pattern in (
        "+/b/#",
        "+/" * 252 + "+",
        "+/" * 254 + "+",
        "+/" * (DEPTH_MAX - 1) + "+",
        "+/" * 12 + "b/#",
    ):
        assert retained.matching(pattern, 1_000.0) == [], pattern
    assert [one.topic for one in retained.matching("7/#", 1_000.0)] == [topics[7]]
    for topic in topics:
        retained.forget(topic)
    assert nodes_of(retained) == 1


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("last", [b"second", b""])
def test_values_published_at_two_brokers_at_once_agree(qos: int, last: bytes) -> None:
    """Each hears of the other's after its own; both keep the same, be it a value or none."""
    worlds = [network("B1"), network("B2")]
    for world, payload in zip(worlds, (b"first", last), strict=True):
        client = world.client()
        client.connect("client")
        client.publish("t", payload, qos, retain=True)
    told = [world.core.effects.published[0] for world in worlds]
    news = [worlds[0].core.retain(told[1]), worlds[1].core.retain(told[0])]
    assert sorted(news) == [False, True], "one of them is later for both"
    assert kept(worlds[0]) == kept(worlds[1]) == (last or None)


def test_any_order_leads_to_the_same_values() -> None:
    """Values, an empty one and repetitions, in every order of arrival."""
    told = [value(b"old", 5), value(b"b", 7, "b"), value(b"a", 7, "a"), value(b"", 6), value(b"old", 5)]
    ends = set()
    for order in itertools.permutations(told):
        world = network()
        for message in order:
            world.core.retain(message)
        ends.add(kept(world))
    assert ends == {b"b"}


def test_an_old_value_does_not_come_back_after_an_empty_one() -> None:
    """It is known to be old, also after a restart; a later one is taken."""
    world = network()
    assert world.core.retain(value(b"old", 1_000_000_000))
    assert world.core.retain(value(b"", 1_000_000_002))
    world.core = again(world.core)
    assert not world.core.retain(value(b"late", 1_000_000_001))
    assert kept(world) is None
    assert world.core.state.retained.tombstones == 1
    assert world.core.retain(value(b"new", 1_000_000_003))
    assert kept(world) == b"new"
    assert world.core.state.retained.tombstones == 0


def test_what_is_published_here_is_later_than_what_was_heard() -> None:
    """Also where the other broker's clock is ahead: the number goes on from there."""
    world = network()
    ahead = int((world.now + 60) * 1e6)
    assert world.core.retain(value(b"theirs", ahead))
    client = world.client()
    client.connect("client")
    client.publish("t", b"ours", retain=True)
    assert kept(world) == b"ours"
    (told,) = world.core.effects.published
    assert told.sequence > ahead
    assert told.source == "client@B1"
    other = network("B2")
    other.core.retain(value(b"theirs", ahead))
    assert other.core.retain(told)


@pytest.mark.parametrize("qos", [0, 1])
def test_a_retained_will_is_numbered_like_any_event(qos: int) -> None:
    """So that all brokers agree on whether it is the last."""
    world = network()
    client = world.client()
    client.connect("client", will=Will("t", payload=b"gone", qos=QoS(qos), retain=True))
    ahead = int((world.now + 60) * 1e6)
    world.core.retain(value(b"theirs", ahead))
    client.lose()
    assert kept(world) == b"gone"
    (told,) = world.core.effects.published
    assert world.core.state.retained.get("t").sequence == told.sequence > ahead  # type: ignore[union-attr]  # it is there


def test_numbers_are_the_same_when_packets_are_told_again() -> None:
    """Retained values keep their keys over a restart, events of QoS 0 in between or not."""
    world = network()
    world.core.kept = []
    client = world.client()
    client.connect("client")
    admitted = len(world.core.take_kept())
    assert admitted == 1
    world.core.retain(value(b"theirs", int((world.now + 60) * 1e6)))
    for number in range(5):
        client.publish("unsure", b"%d" % number)
        client.publish(f"t/{number}", b"x", number % 2, retain=True)
    live = [(one.topic, one.sequence) for one in values_of(world.core.state.retained, world.now)]
    packets = world.core.take_kept()
    again = network()
    client = again.client()
    client.connect("client")
    again.core.retain(value(b"theirs", int((world.now + 60) * 1e6)))
    again.core.received_again(client.number, packets, again.now)
    assert [(one.topic, one.sequence) for one in values_of(again.core.state.retained, again.now)] == live


def test_brokers_exchange_all_they_know() -> None:
    """Values and their ends in the order of their keys; whoever has them already hears no news."""
    here, there = network(), network("B2")
    for number in range(4):
        here.core.retain(value(b"%d" % number, 1_000_000_010 - number, topic=f"t/{number}"))
    here.core.retain(value(b"", 1_000_000_020, topic="t/2"))
    there.core.retain(value(b"stale", 1_000_000_000, topic="t/2"))
    told = list(values_of(here.core.state.retained, here.now))
    assert [one.topic for one in told] == ["t/3", "t/1", "t/0", "t/2"]
    assert all(one.retain for one in told)
    assert [one.payload for one in told] == [b"3", b"1", b"0", b""]
    assert all(there.core.retain(one) for one in told)
    assert not any(there.core.retain(one) for one in values_of(here.core.state.retained, here.now))
    assert not any(here.core.retain(one) for one in values_of(there.core.state.retained, here.now))
    assert [kept(there, f"t/{number}") for number in range(4)] == [b"0", b"1", None, b"3"]


def test_telling_all_values_may_be_interrupted() -> None:
    """What changes before its turn is told as it is by then."""
    world = network()
    for number in range(3):
        world.core.retain(value(b"x", 1_000_000_000 + number, topic=f"t/{number}"))
    retained = world.core.state.retained
    topics = retained.topics(world.now)
    world.core.retain(value(b"", 1_000_000_010, topic="t/1"))
    world.core.retain(value(b"new", 1_000_000_011, topic="t/2"))
    told = [retained.value(topic, world.now) for topic in topics]
    assert [one and (one.payload, one.sequence) for one in told] == [
        (b"x", 1_000_000_000),
        (b"", 1_000_000_010),
        (b"new", 1_000_000_011),
    ]
    assert retained.value("t/3", world.now) is None


def test_expired_values_hold_no_room() -> None:
    """A broker full of values whose time has run out takes new ones, and bytes are counted right."""
    world = World(Limits(retained_messages_max=3))
    client = world.client()
    client.connect("client")

    def publish(topic: str, **options: int) -> int:
        client.publish(topic, b"x", 1, retain=True, **options)
        return int(client.next(PubAckPacket).reason_code)

    assert [publish(f"short/{number}", message_expiry_interval=10) for number in range(3)] == [0, 0, 0]
    assert publish("long") == 0x97
    world.wait(10)
    assert [publish(f"long/{number}") for number in range(4)] == [0, 0, 0, 0x97]
    retained = world.core.state.retained
    assert retained.count == 3
    assert retained.bytes == sum(one.size for one in values_of(retained, world.now) if one.payload)


class Topic(str):
    """A topic that notes when its levels are told apart."""

    __slots__ = ()
    splits: ClassVar[list[str]] = []

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """Split it."""
        self.splits.append(self)
        return super().split(sep, maxsplit)


def test_levels_that_may_be_anything_are_not_looked_at() -> None:
    """However many levels topics have: one filter over many of them would hold the broker for seconds."""
    retained = Retained(1_000, 1_000_000)
    for number in range(100):
        topic = Topic("/".join(["a"] * 8 + [""] * 240) + f"/{number}")
        assert retained.keep(value(b"x", number + 1, topic=topic))
    Topic.splits.clear()
    for end, count in (("nobody", 0), ("+", 100), ("7", 1), ("+/#", 100), ("+/+/#", 0), ("+/b/+", 0)):
        pattern = "/".join(["+"] * (248 - end.count("b/+"))) + "/" + end
        assert len(retained.matching(pattern, 1_000.0)) == count, end
    assert not Topic.splits
    assert len(retained.matching("/".join([*"a" * 8, *["+"] * 200, "", *["+"] * 39, "7"]), 1_000.0)) == 1
    assert len(Topic.splits) == 1


def expiring(count: int, limits: Limits) -> Retained:
    """Messages whose time runs out at one moment, before 1010, all of one party."""
    retained = Retained(limits.retained_messages_max, limits.retained_bytes_max)
    for number in range(count):
        message = value(b"x", 1_000_000_000 + number, topic=f"t/{number}", expiry=5)
        message.party = "p"
        assert retained.has_share_for(message, limits)
        assert retained.keep(message)
    return retained


def test_what_expires_at_one_moment_is_not_buried_in_one_turn() -> None:
    """It is found by nobody all the same, told as ended, and buried in the end."""
    count = 1_000
    retained = expiring(count, Limits())
    before = retained.changes
    assert len(retained.matching("#", 1_004.0)) == count
    for pattern in ("#", "t/#", "+/+", "t/999"):
        assert not retained.matching(pattern, 1_010.0)
    assert retained.keep(value(b"y", 1_010_000_000, topic="u", now=1_010.0))
    assert retained.changes - before <= 5 * BURIED_AT_ONCE + 1
    told = values_of(retained, 1_010.0)
    assert [one.payload for one in told] == [b""] * count + [b"y"]
    assert retained.count > count // 2
    assert not retained.is_news(value(b"x", 1_000_000_998, topic="t/999", now=1_010.0))
    for _ in range(count // BURIED_AT_ONCE):
        assert [one.topic for one in retained.matching("#", 1_010.0)] == ["u"]
    assert (retained.count, retained.tombstones) == (1, count)


def test_nobody_is_refused_for_the_sake_of_what_has_expired() -> None:
    """Also where it takes more room than is made at once, of the broker or of one party."""
    count = 3 * BURIED_FOR_ROOM
    size = sum(one.size for one in expiring(count, Limits()).kept())
    for limits in (
        Limits(retained_messages_max=count),
        Limits(retained_bytes_max=size),
        Limits(retained_messages_address_max=count),
        Limits(retained_bytes_address_max=size),
    ):
        retained = expiring(count, limits)
        before = retained.changes
        large = value(bytes(size - 100), 1_010_000_000, topic="large", now=1_010.0)
        large.party = "p"
        assert retained.has_share_for(large, limits)
        assert retained.keep(large)
        assert retained.changes - before <= 2 * (BURIED_FOR_ROOM + BURIED_AT_ONCE) + 1
        larger = value(bytes(size), 1_010_000_001, topic="larger", now=1_010.0)
        larger.party = "p"
        is_kept = retained.has_share_for(larger, limits) and retained.keep(larger)
        assert is_kept == (size not in (limits.retained_bytes_max, limits.retained_bytes_address_max))


def test_an_expired_value_leaves_its_key() -> None:
    """Else a broker that hears of an older one after it would keep that, and others would not."""
    world = network()
    world.core.retain(value(b"short", 1_000_000_002, expiry=5))
    world.now += 6
    assert [one.payload for one in values_of(world.core.state.retained, world.now)] == [b""]
    assert not world.core.retain(value(b"older", 1_000_000_001, now=world.now))
    assert kept(world) is None


def test_a_later_value_for_which_there_is_no_room_ends_the_earlier() -> None:
    """It is counted and passed on as news; a value that is known to be old is worse than none."""
    world = network(limits=Limits(retained_bytes_max=100))
    assert world.core.retain(value(b"small", 1_000_000_001))
    assert world.core.retain(value(bytes(200), 1_000_000_002))
    assert kept(world) is None
    assert world.core.state.counters.refused["publish"] == 1
    assert world.core.state.retained.bytes == 0


def test_tombstones_are_bounded_in_number_and_time() -> None:
    """They take no room from values; the earliest go first, and all of them after a day."""
    retained = Retained(1, 100)
    first = 1_000_000_000
    for number in range(TOMBSTONES_MAX + 10):
        assert retained.keep(value(b"", first + number, topic=f"t/{number}"))
    assert retained.tombstones == TOMBSTONES_MAX
    assert retained.is_news(value(b"x", first - 1, topic="t/9"))
    assert not retained.is_news(value(b"x", first - 1, topic="t/10"))
    assert (retained.count, retained.bytes) == (0, 0)
    assert retained.keep(value(b"x", first - 1, topic="u"))
    later = 1_001.0 + TOMBSTONE_S
    assert [one.topic for one in values_of(retained, later)] == ["u"]
    retained.keep(value(b"", int(later * 1e6), topic="v", now=later))
    assert retained.tombstones == 1


def test_tombstones_of_long_topics_are_bounded_too() -> None:
    """The longest topics that there are, in no time."""
    retained = Retained(1, 100)
    for number in range(1_000):
        retained.keep(value(b"", 1_000_000_000 + number, topic=f"{number}".rjust(65_000, "x")))
    assert 400 < retained.tombstones < 600


def test_replacing_a_value_that_expires_costs_no_memory() -> None:
    """A sensor that says how long each value holds."""
    retained = Retained(10, 10_000)
    for number in range(5 * SPARE_EXPIRIES):
        assert retained.keep(value(b"x", 1_000_000_000 + number, expiry=1_000))
    assert len(retained._expiring) <= SPARE_EXPIRIES + 2
    assert retained.count == 1
    assert not retained.matching("t", 2_001.0)


def test_retained_messages_come_in_the_order_of_their_numbers() -> None:
    """Whatever became of the tree in between: packet identifiers depend on it, and a journal on them."""
    world = World()
    client = world.client()
    client.connect("client")
    for topic in ("b", "a", "c"):
        client.publish(topic, b"old", 1, retain=True)
    client.publish("b", b"new", 1, retain=True)
    world.core = again(world.core)
    client.inbox.clear()
    client.subscribe("#")
    assert [client.next(PublishPacket).topic for _ in range(3)] == ["a", "c", "b"]


@pytest.mark.parametrize("bytes_max", [100_000, 4_000])
def test_what_waits_of_many_retained_messages_is_entered_at_once(
    bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room is looked for once and not for each; where there is too little, as many wait as find some."""
    monkeypatch.setattr(delivery, "AT_ONCE_MAX", 10)
    world = World(Limits(queue_bytes_max=bytes_max))
    for number in range(300):
        message = value(b"x" * 10, number + 1, topic=f"t/{number % 7}/{number:03}")
        assert world.core.retain(message)
    reader = world.client()
    reader.connect("reader")
    looked: list[tuple[object, ...]] = []
    monkeypatch.setattr(delivery, "why_full", counted(why_full, looked))
    for pattern in ("#", "t/#", "t/+/+"):
        reader.send(SubscribePacket(1, [TopicFilter(pattern, max_qos=QoS.AT_MOST_ONCE)]))
        session = world.core.state.sessions["reader"]
        size = sum(one.message.size for one in session.queue)
        assert session.queued_bytes == world.core.state.queued_bytes == size <= bytes_max
        numbers = [one.message.sequence for one in session.queue]
        assert numbers == [*range(11, 11 + len(numbers))]
        assert len(numbers) == (290 if bytes_max > 10_000 else bytes_max // session.queue[0].message.size)
        assert len(looked) <= (1 if bytes_max > 10_000 else 300)
        looked.clear()
        change_queued(world.core.state, session, -size, -len(session.queue))
        session.queue.clear()
