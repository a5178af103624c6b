"""What a journal does not hold, pings and most events of QoS 0, is not missed when the rest is told again."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import ConnectPacket, PingReqPacket, PublishPacket, QoS, Will

from sojourn.mqtt.connection import State
from tests.live.hall import Hall, Visitor, line


def guest(hall: Hall, client_id: str, **options: Any) -> Visitor:
    """A client of the first broker."""
    visitor = Visitor(hall.desks[0], [])
    visitor.send(ConnectPacket(client_id, clean_start=True, **options))
    hall.settle()
    return visitor


def test_who_only_pinged_is_not_taken_for_silent() -> None:
    """What was acknowledged to a client that had been connected for long is there after a restart."""
    hall = Hall(line(2))
    writer = guest(hall, "writer", keep_alive=10)
    for _ in range(4):
        hall.wait(8)
        writer.send(PingReqPacket())
    writer.publish("news", b"late")
    core, _ = hall.desks[0].replayed()
    assert core.state.connections[writer.number].state is State.OPEN
    assert core.state.counters.received == 1


def test_who_was_silent_was_so_at_the_same_moment() -> None:
    """A session that outlived its silent connection ends when it would have ended."""
    hall = Hall(line(2))
    will = Will("last", payload=b"words", qos=QoS.AT_LEAST_ONCE)
    guest(hall, "silent", keep_alive=10, session_expiry_interval=100, will=will)
    hall.wait(20)
    core, _ = hall.desks[0].replayed()
    before, after = hall.desks[0].core.state, core.state
    assert before.sessions["silent"].expires_s is not None
    assert after.sessions["silent"].expires_s == before.sessions["silent"].expires_s
    assert after.counters.received == before.counters.received == 1


def test_an_alias_given_at_quality_0_holds() -> None:
    """An event of QoS 1 may name its topic by an alias that one of QoS 0 has given."""
    hall = Hall(line(2))
    writer = guest(hall, "writer", keep_alive=0)
    writer.send(PublishPacket("news", b"first", topic_alias=1))
    writer.send(PublishPacket("", b"second", qos=QoS.AT_LEAST_ONCE, packet_id=1, topic_alias=1))
    core, _ = hall.desks[0].replayed()
    assert core.state.connections[writer.number].state is State.OPEN
    assert core.state.sequence == hall.desks[0].core.state.sequence


@pytest.mark.parametrize(
    "packet",
    [b"\x30\x05\0\2a#\0", b"\xc0\x01\x00", b"\x30\xff\xff\xff\x7f", b"\x32\x07\0\1a\0\0\0x"],
    ids=["quality 0", "ping", "length", "quality 1"],
)
def test_who_broke_the_protocol_did_so_at_the_same_moment(packet: bytes) -> None:
    """Though what broke it is in no journal: the will has the same number."""
    hall = Hall(line(2))
    breaker = guest(hall, "breaker", keep_alive=0, will=Will("last", payload=b"words"))
    hall.now += 1
    hall.desks[0].received(breaker.number, packet)
    assert breaker.is_over
    core, _ = hall.desks[0].replayed()
    assert core.state.counters.received == hall.desks[0].core.state.counters.received == 1
    assert core.state.sequence == hall.desks[0].core.state.sequence
