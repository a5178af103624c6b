"""How often a client, and an address, may change what it subscribes to."""

from __future__ import annotations

import pytest
from mqtt5 import SubAckPacket, SubscribePacket, TopicFilter, UnsubscribePacket

from sojourn.mqtt.limits import Limits
from tests.broker.alone import Alone, patterns

LIMITS = Limits(subscriptions_max=10, subscribes_per_s_max=5, subscribes_address_per_s_max=0)
QOS, QUOTA_EXCEEDED = 2, 0x97


def ask(hall: Alone, number: int, *topics: str) -> list[int]:
    """Subscribe; return the codes of the answer."""
    hall.send(number, SubscribePacket(1, [TopicFilter(topic) for topic in topics]))
    hall.settle()
    (answer,) = [one for one in hall.packets(number) if isinstance(one, SubAckPacket)]
    return [int(code) for code in answer.reason_codes]


def test_who_subscribes_again_and_again_is_refused_until_it_has_rested() -> None:
    """Twice as many as it may have at once, then so many a second; to end them is never refused."""
    hall = Alone(LIMITS)
    busy, other = hall.client("busy"), hall.client("other")
    for _ in range(20):
        assert ask(hall, busy, "a/#") == [QOS]
        hall.send(busy, UnsubscribePacket(2, ["a/#"]))
    assert ask(hall, busy, "a/#") == [QUOTA_EXCEEDED]
    assert ask(hall, busy, "b", "c") == [QUOTA_EXCEEDED] * 2
    assert hall.broker.core.state.counters.refused["subscribe rate_exceeded"] == 3
    assert ask(hall, other, "a/#") == [QOS], "others are not concerned"
    hall.now += 0.5
    assert ask(hall, busy, "a/#", "b") == [QOS, QOS]
    assert ask(hall, busy, "c") == [QUOTA_EXCEEDED]
    assert {*hall.broker.core.state.sessions["busy"].subscriptions} == {"a/#", "b"}


def test_clients_of_one_address_have_a_limit_together() -> None:
    """Those of another address go on."""
    hall = Alone(Limits(subscribes_address_per_s_max=2))
    clients = [hall.client(f"c{number}") for number in range(5)]
    codes = [ask(hall, number, "a")[0] for number in clients]
    assert codes == [QOS, QOS, QOS, QOS, QUOTA_EXCEEDED]
    assert ask(hall, hall.client("there", "elsewhere"), "a") == [QOS]


def test_a_long_subscribe_is_within_the_limit_at_once() -> None:
    """All subscriptions that a client may have, and once more, with the limits as they come."""
    hall = Alone()
    client = hall.client("greedy")
    for _ in range(2):
        hall.send(client, patterns(1_000))
        hall.settle()
        (answer,) = hall.packets(client)
        assert isinstance(answer, SubAckPacket)
        assert [int(code) for code in answer.reason_codes] == [1] * 1_000
    hall.send(client, patterns(64))
    hall.settle()
    (answer,) = hall.packets(client)
    assert isinstance(answer, SubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [QUOTA_EXCEEDED] * 64


@pytest.mark.parametrize("rested_s", [0.0, 10.0])
def test_what_was_refused_is_not_told_again(rested_s: float) -> None:
    """A broker that comes back has the subscriptions that were granted, however quickly it is told them."""
    hall = Alone(LIMITS)
    client = hall.client("busy", session_expiry_interval=600)
    for number in range(25):
        ask(hall, client, f"t/{number % 10}")
    assert ask(hall, client, "refused") == [QUOTA_EXCEEDED]
    hall.now += rested_s
    again = hall.again()
    found = again.core.state.sessions["busy"].subscriptions
    assert {*found} == {f"t/{number}" for number in range(10)}
