"""A journal told again leads to the same: what it does not hold, pings and events of QoS 0, is not missed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from mqtt5 import ConnectPacket, PingReqPacket, PublishPacket, QoS, Will

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt.connection import State
from sojourn.mqtt.conventions import ADVERTISE_TOPIC
from sojourn.mqtt.core import Core
from sojourn.mqtt.limits import Limits
from tests.live.hall import Hall, Visitor, line


def guest(hall: Hall, client_id: str, **options: Any) -> Visitor:
    """A client of the first broker."""
    visitor = Visitor(hall.desks[0], [])
    visitor.send(ConnectPacket(client_id, clean_start=True, **options))
    hall.settle()
    return visitor


def is_open(core: Core, visitor: Visitor) -> bool:
    """Whether a client is served."""
    return core.state.connections[visitor.number].state is State.OPEN


def last_numbers(broker: LiveBroker) -> dict[str, int]:
    """By neighbour: the number of the last frame for it."""
    assert broker.network is not None
    return {peer: channel.last for peer, channel in broker.network.links.channels.items()}


def test_who_only_pinged_is_not_taken_for_silent() -> None:
    """What was acknowledged to a client that had been connected for long is there after a restart."""
    hall = Hall(line(2))
    writer = guest(hall, "writer", keep_alive=10)
    for _ in range(4):
        hall.wait(8)
        writer.send(PingReqPacket())
    writer.publish("news", b"late")
    core = hall.desks[0].replayed().core
    assert is_open(core, writer)
    assert core.state.counters.received == 1


def test_who_was_silent_was_so_at_the_same_moment() -> None:
    """A session that outlived its silent connection ends when it would have ended."""
    hall = Hall(line(2))
    will = Will("last", payload=b"words", qos=QoS.AT_LEAST_ONCE)
    guest(hall, "silent", keep_alive=10, session_expiry_interval=100, will=will)
    hall.wait(20)
    core = hall.desks[0].replayed().core
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
    core = hall.desks[0].replayed().core
    assert is_open(core, writer)
    assert core.state.sequence == hall.desks[0].core.state.sequence


def test_an_advertisement_made_at_quality_0_holds() -> None:
    """It is in the session, and what neighbours were told of it has the numbers that it had."""
    hall = Hall(line(2))
    writer = guest(hall, "writer", keep_alive=0)
    writer.send(PublishPacket(ADVERTISE_TOPIC, b"speed > 80"))
    hall.settle()
    again = hall.desks[0].replayed()
    assert again.core.state.sessions["writer"].advertisements == ("speed > 80",)
    assert last_numbers(again) == last_numbers(hall.desks[0].broker)
    assert last_numbers(again)["B2"] > 2


@pytest.mark.parametrize("writes_at", [0, 1])
def test_what_is_stored_for_a_client_that_is_away_is_numbered_as_before(writes_at: int) -> None:
    """Events of QoS 0 too: the frames that bring them to its next broker have the numbers that they had."""
    hall = Hall(line(3))
    reader = hall.visit(1, "reader", lasts_s=300)
    hall.settle()
    reader.subscribe("news")
    writer = hall.visit(writes_at, "writer")
    hall.settle()
    reader.lose()
    for _ in range(3):
        writer.send(PublishPacket("news", b"unsure"))
        hall.settle()
    again = hall.visit(2, "reader", lasts_s=300)
    hall.settle()
    assert again.got == [b"unsure"] * 3
    for desk in hall.desks:
        assert last_numbers(desk.replayed()) == last_numbers(desk.broker)


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
    hall.desks[0].tell(facts.ClientSent(breaker.number, packet))
    assert breaker.is_over
    core = hall.desks[0].replayed().core
    assert core.state.counters.received == hall.desks[0].core.state.counters.received == 1
    assert core.state.sequence == hall.desks[0].core.state.sequence


def test_what_a_client_says_before_it_is_let_in_is_its_own() -> None:
    """It waits for the session that other brokers are asked for, and is kept under the right connection."""
    hall = Hall(line(2))
    early = Visitor(hall.desks[0], [])
    early.send(ConnectPacket("early", clean_start=False, session_expiry_interval=100, keep_alive=0))
    early.publish("news", b"at once")
    assert "early" not in hall.desks[0].core.state.sessions
    hall.settle()
    assert hall.desks[0].core.state.counters.received == 1
    assert hall.desks[0].replayed().core.state.counters.received == 1
    later = guest(hall, "later", keep_alive=0)
    later.publish("news", b"later")
    core = hall.desks[0].replayed().core
    assert core.state.counters.received == 2
    assert core.state.sequence == hall.desks[0].core.state.sequence


def test_who_sent_too_much_before_it_was_let_in_is_not_let_in_later() -> None:
    """Its connection was closed, and has no session."""
    hall = Hall(msgspec.structs.replace(line(2), limits=Limits(packet_bytes_max=1_000)))
    early = Visitor(hall.desks[0], [])
    early.send(ConnectPacket("early", clean_start=False, session_expiry_interval=100, keep_alive=0))
    for _ in range(3):
        early.publish("news", b"x" * 600)
    assert early.is_over
    hall.settle()
    core = hall.desks[0].replayed().core
    assert core.state.sessions.keys() == hall.desks[0].core.state.sessions.keys() == set()


def halted_reader(**limits: int) -> tuple[Hall, Visitor]:
    """A client of the first broker that subscribed to news and reads no more."""
    hall = Hall(msgspec.structs.replace(line(2), limits=Limits(**limits)))
    reader = guest(hall, "reader", keep_alive=0, session_expiry_interval=100)
    reader.subscribe("news")
    hall.settle()
    reader.desk.tell(facts.ClientBlocked(reader.number))
    return hall, reader


def test_who_left_too_much_unread_was_closed_at_the_same_moment() -> None:
    """Though most of what it left unread was of QoS 0, which is in no journal."""
    hall, reader = halted_reader(queue_messages_max=10)
    writer = guest(hall, "writer", keep_alive=0)
    for _ in range(10):
        writer.send(PublishPacket("news", b"unsure"))
    assert is_open(reader.desk.core, reader)
    hall.now += 1
    writer.publish("news", b"sure")
    assert reader.is_over
    hall.now += 1
    core = hall.desks[0].replayed().core
    before, after = hall.desks[0].core.state.sessions["reader"], core.state.sessions["reader"]
    assert after.connection is None
    assert after.expires_s == before.expires_s is not None


def test_what_was_right_then_breaks_nothing_now() -> None:
    """What was dropped for want of room may be there on replay, and an answer meet another event."""
    hall = Hall(line(2))
    reader = guest(hall, "reader", keep_alive=0)
    core = hall.desks[0].replayed().core
    answer = (core.state.sequence, b"\x50\x02\x00\x00")
    core.received_again(reader.number, [answer], hall.now)
    assert is_open(core, reader)
    core.received_again(reader.number, [answer, (core.state.sequence, b"")], hall.now)
    assert not is_open(core, reader)
    assert core.state.counters.refused["malformed_packet"] == 1


def test_numbers_do_not_go_back_when_two_facts_of_one_moment_are_told_again() -> None:
    """One call may note two facts, both with the number before it; each of them sends a will here."""
    hall = Hall(line(2))
    will = Will("wills", payload=b"a will", qos=QoS.AT_LEAST_ONCE)
    visitors = [hall.visit(0, name, will=will) for name in ("one", "two")]
    hall.settle()
    hall.now += 1.0
    for visitor in visitors:
        visitor.lose()
    desk = hall.desks[0]
    noted = [facts.read_entry(data) for data in desk.store.written]
    lost = [one for one in noted if isinstance(one.fact, facts.ClientLost)]
    again = LiveBroker(desk.settings, "life", remembers=True)
    for one in noted[: noted.index(lost[1])]:
        again.replay(one)
    first = again.core.state.sequence
    again.replay(msgspec.structs.replace(lost[1], sequence=lost[0].sequence))
    assert again.core.state.sequence == first + 1
