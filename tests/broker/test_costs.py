"""A slice is an amount of work, not of packets: who sends dear ones is read fewer of them at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from mqtt5 import PublishPacket, SubscribePacket, TopicFilter

from sojourn.broker import facts, live_broker
from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt import conventions
from tests.broker.alone import Alone, events
from tests.live.hall import Hall, line

COUNT = 40


def advertisement(number: int) -> PublishPacket:
    """Ten advertisements, or the withdrawal of those before."""
    lines = [f"topic LIKE '+/a{number}/{one}/#' AND v > {one}" for one in range(10 if number % 2 else 0)]
    return PublishPacket(conventions.ADVERTISE_TOPIC, "\n".join(lines).encode())


def guarded(number: int) -> PublishPacket:
    """An event with a policy of 64 alternatives."""
    policy = " AND ".join(f"(a{number}_{one} = 1 OR b{number}_{one} = 2)" for one in range(6))
    return PublishPacket("p/x", b"x", user_properties=[(conventions.POLICY, policy)])


def deep(number: int) -> PublishPacket:
    """An event on a fresh topic of many levels."""
    return PublishPacket("a/" * 255 + str(number), b"x")


def plain(_number: int) -> PublishPacket:
    """An event that is like the others."""
    return PublishPacket("sh/x", b"x")


def described(_number: int) -> PublishPacket:
    """An event with many user properties."""
    return PublishPacket("p/x", b"x", user_properties=[("", "")] * 1_000)


def refused(_number: int) -> PublishPacket:
    """An event with a policy that cannot be read."""
    return PublishPacket("p/x", b"x", user_properties=[(conventions.POLICY, "(" * 50)])


GROUPS = [f"$share/g{number}/sh/x" for number in range(100)]
DEEP = ["+/" * depth + "#" for depth in range(1, 250, 9)]
DEAR: list[tuple[str, list[str], Callable[[int], PublishPacket], int]] = [
    ("advertisements", [], advertisement, 1),
    ("policies", [], guarded, 1),
    ("properties", [], described, 1),
    ("refusals", [], refused, 1),
    ("deep topics", DEEP, deep, 10),
    ("groups", GROUPS, plain, 12),
]
BY_NAME = pytest.mark.parametrize(
    ("wanted", "packet", "most"), [case[1:] for case in DEAR], ids=[case[0] for case in DEAR]
)


def taken_by_slices(broker: LiveBroker, connection: int, packets: list[bytes], now: float) -> list[int]:
    """How many of the packets that a client sends at once each slice takes."""
    ends = [0]
    for packet in packets:
        ends.append(ends[-1] + len(packet))
    places = [0]
    fact: facts.Fact = facts.ClientSent(connection, b"".join(packets))
    while not places[1:] or broker.has_slices:
        broker.handle(fact, now)
        fact = facts.ReadyForMore()
        left = broker.core.state.connections[connection].have
        places.append(ends.index(ends[-1] - left))
    return [after - before for before, after in itertools.pairwise(places)]


@BY_NAME
def test_few_dear_packets_are_a_slice(
    wanted: list[str], packet: Callable[[int], PublishPacket], most: int
) -> None:
    """A broker alone takes all of them in the end, and no more than some at once."""
    hall = Alone()
    number = hall.client("dear")
    if wanted:
        hall.send(number, SubscribePacket(1, [TopicFilter(one) for one in wanted]))
        hall.settle()
    packets = [packet(one).write() for one in range(COUNT)]
    taken = taken_by_slices(hall.broker, number, packets, hall.now)
    assert sum(taken) == COUNT
    assert max(taken) <= most


@BY_NAME
def test_few_dear_packets_are_a_slice_in_a_network(
    wanted: list[str], packet: Callable[[int], PublishPacket], most: int
) -> None:
    """The same where events are routed after the packets of a slice were read; more so for groups."""
    hall = Hall(line(2))
    dear = hall.visit(0, "dear")
    hall.settle()
    if wanted:
        dear.send(SubscribePacket(1, [TopicFilter(one) for one in wanted]))
        hall.settle()
    packets = [packet(one).write() for one in range(COUNT)]
    taken = taken_by_slices(hall.desks[0].broker, dear.number, packets, hall.now)
    assert sum(taken) == COUNT
    assert max(taken) <= (1 if wanted is GROUPS else most)


def test_groups_elsewhere_make_an_event_dear_as_well() -> None:
    """Who publishes pays for all groups of the network, whichever broker their members are at."""
    hall = Hall(line(2))
    member, writer = hall.visit(1, "member"), hall.visit(0, "writer")
    hall.settle()
    packets = [plain(0).write()] * COUNT
    broker = hall.desks[0].broker
    assert taken_by_slices(broker, writer.number, packets, hall.now) == [COUNT]
    member.send(SubscribePacket(1, [TopicFilter(one) for one in GROUPS]))
    hall.settle()
    assert taken_by_slices(broker, writer.number, packets, hall.now) == [1] * COUNT


def test_a_turn_has_one_packet_of_advertisements() -> None:
    """No matter whether it is read as it comes or in its turn; a second would take as long again."""
    hall = Alone()
    number = hall.client("dear")
    packets = [advertisement(one).write() for one in range(1, 6)]
    hall.send(number, *packets)
    left = [hall.broker.core.state.connections[number].have]
    while left[-1]:
        hall.turn()
        left.append(hall.broker.core.state.connections[number].have)
    assert [sum(map(len, packets[taken:])) for taken in range(1, 6)] == [*dict.fromkeys(left)]


def test_plain_events_are_taken_by_the_hundred() -> None:
    """Cheap packets do not suffer from dear ones that others, or the client itself, sent before."""
    hall = Alone()
    number = hall.client("dear")
    taken_by_slices(hall.broker, number, [guarded(one).write() for one in range(3)], hall.now)
    hall.turn()
    packets = [events(1)] * 600
    taken = taken_by_slices(hall.broker, number, packets, hall.now)
    assert sum(taken) == 600
    assert taken[0] > 200


def test_an_event_with_many_recipients_is_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone or in a network, the packets of a slice have no more deliveries for there being many readers."""
    monkeypatch.setattr("sojourn.mqtt.costs.RECIPIENTS", 1)
    monkeypatch.setattr("sojourn.mqtt.costs.SLICE", 64)
    hall = Alone()
    for reader in range(20):
        hall.send(hall.client(f"reader {reader}"), SubscribePacket(1, [TopicFilter("sh/+")]))
    hall.settle()
    writer = hall.client("writer")
    packets = [plain(0).write()] * COUNT
    taken = taken_by_slices(hall.broker, writer, packets, hall.now)
    assert sum(taken) == COUNT
    assert max(taken) <= 4


def test_frames_whose_events_go_to_many_are_fewer_in_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour's events are taken in by their deliveries, too."""
    monkeypatch.setattr(live_broker, "DELIVERIES_A_FRAME", 4)
    hall = Hall(line(2))
    for number in range(12):
        hall.visit(1, f"reader {number}").ask("sh/x")
    writer = hall.visit(0, "writer")
    hall.settle()
    near, far = hall.desks
    near.broker.handle(facts.ClientSent(writer.number, plain(0).write() * 16), hall.now)
    near.carry_out()
    data, broker = bytes(near.peer_writes.pop("B2")), far.broker
    before = broker.core.state.counters.delivered
    broker.handle(facts.PeerSent("B1", data), hall.now)
    slices = [broker.core.state.counters.delivered - before]
    while broker.has_slices:
        broker.handle(facts.ReadyForMore(), hall.now)
        slices.append(broker.core.state.counters.delivered - before)
    assert slices[-1] == 16 * 12
    assert max(after - earlier for earlier, after in itertools.pairwise([0, *slices])) <= 2 * 12
