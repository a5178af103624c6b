"""Packets that do not come whole, and clients that send more often than they may."""

from __future__ import annotations

from mqtt5 import (
    DisconnectPacket,
    PublishPacket,
)

from sojourn.broker import facts
from sojourn.mqtt.limits import Limits
from tests.broker.alone import Alone, events


def unfinished(size: int) -> bytes:
    """A packet without its last byte."""
    return PublishPacket("big", bytes(size)).write()[:-1]


def test_unfinished_packets_of_some_do_not_keep_others_from_sending() -> None:
    """The largest gives way when all of them are too much, not whoever comes last."""
    hall = Alone(Limits(input_bytes_max_all=100_000))
    greedy = [hall.client(f"greedy-{number}") for number in range(12)]
    for number in greedy:
        hall.send(number, unfinished(9_000))
    modest = hall.client("modest", "elsewhere")
    packet = PublishPacket("small", bytes(4_000)).write()
    for _ in range(10):
        hall.send(modest, packet[:2_000])
        hall.send(modest, packet[2_000:])
    hall.settle()
    assert hall.broker.core.state.counters.received == 10
    assert modest not in hall.closed
    assert hall.closed, "somebody gave way"
    ended = min(hall.closed)
    (told,) = hall.packets(ended)
    assert isinstance(told, DisconnectPacket)
    assert int(told.reason_code) == 0x97
    assert hall.broker.core.state.counters.refused["quota_exceeded"] == len(hall.closed)


def test_unfinished_packets_of_one_address_have_a_limit_of_their_own() -> None:
    """Who shares an address with nobody greedy keeps what it began."""
    hall = Alone(Limits(input_bytes_address_max=20_000))
    modest = hall.client("modest", "elsewhere")
    hall.send(modest, unfinished(15_000))
    greedy = [hall.client(f"greedy-{number}") for number in range(5)]
    for number in greedy:
        hall.send(number, unfinished(8_000))
    hall.settle()
    assert len(hall.closed) == 3
    assert modest not in hall.closed
    state = hall.broker.core.state
    for number in hall.closed:
        hall.tell(facts.ClientLost(number))
    assert state.input.by_address.keys() == {"here", "elsewhere"}
    assert state.input.bytes == sum(state.input.by_address.values())


def test_an_unfinished_packet_ends_with_its_time() -> None:
    """Also when its client goes on sending a little now and then; its journal knows of that."""
    hall = Alone(Limits(packet_timeout_s=10))
    slow = hall.client("slow", keep_alive=60, session_expiry_interval=600)
    hall.send(slow, unfinished(1_000)[:-50])
    for _ in range(12):
        hall.now += 1.0
        hall.send(slow, b"x")
        moment = hall.broker.next_moment()
        if moment is not None and moment <= hall.now:
            hall.tell(facts.TimePassed())
        hall.settle()
    (told,) = hall.packets(slow)
    assert isinstance(told, DisconnectPacket)
    assert int(told.reason_code) == 0x97
    again = hall.again()
    assert again.core.state.sessions["slow"].expires_s == hall.broker.core.state.sessions["slow"].expires_s


def test_packets_that_come_whole_in_time_are_served_however_long_their_client_stays() -> None:
    """The time limit is that of one packet."""
    hall = Alone(Limits(packet_timeout_s=10))
    steady = hall.client("steady", keep_alive=60)
    packet = PublishPacket("t", bytes(100)).write()
    for _ in range(30):
        hall.send(steady, packet[:50])
        hall.now += 4.0
        hall.tell(facts.TimePassed())
        hall.send(steady, packet[50:])
        hall.settle()
    assert steady not in hall.closed
    assert hall.broker.core.state.counters.received == 30


def test_who_publishes_more_often_than_allowed_is_told_and_ended() -> None:
    """Twice a second's worth at once is allowed, after a rest again, and no more."""
    hall = Alone(Limits(publishes_per_s_max=10))
    steady, greedy = hall.client("steady"), hall.client("greedy")
    for _ in range(5):
        hall.send(steady, events(20))
        hall.settle()
        hall.now += 2.0
    assert steady not in hall.closed
    hall.send(greedy, events(100))
    hall.settle()
    assert hall.closed == {greedy}
    (told,) = hall.packets(greedy)
    assert isinstance(told, DisconnectPacket)
    assert int(told.reason_code) == 0x96
    assert hall.broker.core.state.counters.refused["message_rate_too_high"] == 1
