"""Shared subscriptions by paho, of both versions: at one broker, at two, and of members that move."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Sequence

import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from tests.live.interop.pahos import NEW, OLD, PATIENCE_S, WAYS, Network, Paho, Place, names


def _numbers(members: Sequence[Paho], count: int) -> list[int]:
    """What so many messages say that come to any of some members."""
    found: list[int] = []
    until_s = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until_s:
        for member in members:
            with contextlib.suppress(queue.Empty):
                found.append(int(member.got.get(timeout=0.05).payload))
    return found


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_a_network_says_that_it_has_shared_subscriptions(
    network: Network, version: MQTTProtocolVersion, way: str, topic: str
) -> None:
    """Before anybody asks, where there are words for that; what is no group is refused."""
    client = Paho(version, way)
    _, _, said = client.connect(network.place(0))
    if version == NEW:
        assert getattr(said, "SharedSubscriptionAvailable", 1) == 1
    assert client.subscribe(f"$share/group/{topic}", 1) == [1]
    assert client.subscribe("$share/group", 1) == [0x8F if version == NEW else 0x80]
    client.leave()


def test_members_at_two_brokers_share_what_comes(network: Network, topic: str) -> None:
    """Each event reaches one of them, in both versions; also when one has left."""
    members = [Paho(version, "tcp") for version in (OLD, NEW, OLD, NEW)]
    for number, member in enumerate(members):
        member.connect(network.place(number // 2))
        assert member.subscribe(f"$share/group/{topic}/#", 1) == [1]
    source = Paho(NEW, "tcp")
    source.connect(network.place(1))
    for number in range(40):
        source.publish(f"{topic}/{number % 3}", b"%d" % number, 1)
    assert sorted(_numbers(members, 40)) == list(range(40))
    members[1].leave()
    members[2].leave()
    for number in range(10):
        source.publish(topic + "/x", b"%d" % number, 1)
    left = (members[0], members[3])
    assert sorted(_numbers(left, 10)) == list(range(10))
    for one in (*left, source):
        one.leave()


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_member_moves_to_another_broker_with_what_waits_for_it(
    network: Network, version: MQTTProtocolVersion, topic: str
) -> None:
    """Of what was published while it was away nothing is lost and nothing comes to both."""
    lasts = {"SessionExpiryInterval": 300} if version == NEW else {}
    name = f"roams-{next(names)}"
    roams = Paho(version, "tcp", name)
    roams.connect(network.place(0), clean=False, **lasts)
    assert roams.subscribe(f"$share/group/{topic}", 1) == [1]
    roams.leave()
    source = Paho(NEW, "tcp")
    source.connect(network.place(0))
    for number in range(10):  # for it alone, since nobody else is a member
        source.publish(topic, b"%d" % number, 1)
    stays = Paho(NEW, "tcp")
    stays.connect(network.place(0))
    assert stays.subscribe(f"$share/group/{topic}", 1) == [1]
    again = Paho(version, "tcp", name)
    flags, _, _ = again.connect(network.place(1), clean=False, **lasts)
    assert flags.session_present
    assert [int(payload) for _, payload, _ in again.take(10)] == list(range(10))
    for number in range(10, 30):
        source.publish(topic, b"%d" % number, 1)
    assert sorted(_numbers((again, stays), 20)) == list(range(10, 30))
    for one in (again, stays, source):
        one.leave()


def test_members_of_both_versions_share_what_comes_at_one_broker(port: int, topic: str) -> None:
    """Each event reaches one of them, also when one has left."""
    place = Place(port, 0, 0)
    members = [Paho(version, "tcp") for version in (OLD, NEW, OLD)]
    for member in members:
        member.connect(place)
        assert member.subscribe(f"$share/group/{topic}/#", 1) == [1]
    source = Paho(NEW, "tcp")
    source.connect(place)
    for number in range(30):
        source.publish(f"{topic}/{number % 3}", b"%d" % number, 1)
    assert sorted(_numbers(members, 30)) == list(range(30))
    members[0].leave()  # the broker may read that after the next event, which is then given to another
    for number in range(10):
        source.publish(topic + "/x", b"%d" % number, 1)
    assert sorted(_numbers(members[1:], 10)) == list(range(10))
    assert all(member.got.empty() for member in members)
    for one in (*members[1:], source):
        one.leave()
