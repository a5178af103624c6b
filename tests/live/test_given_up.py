"""What is lost with a session that was out of reach for too long is counted; and its will is published."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mqtt5
import pytest
from mqtt5 import PublishPacket, Will

from sojourn.broker import facts
from sojourn.mobility.queues import GIVEN_UP
from tests.live.hall import Hall, Visitor, line

LAST_WORDS = Will(topic="wills", payload=b"gone", will_delay_interval=250)


class Deaf(Visitor):
    """A client that acknowledges nothing."""

    def take(self, data: bytes, *, is_over: bool) -> None:
        """Read what the broker wrote, and do not answer events."""
        while data:
            packet, length = mqtt5.read(memoryview(data))
            data = data[length:]
            if isinstance(packet, PublishPacket):
                self.got.append(bytes(packet.payload))
        self.is_over = is_over


def lost(hall: Hall) -> Counter[str]:
    """What all brokers together count as lost, by reason."""
    return sum((desk.network.clients.drops for desk in hall.desks), Counter[str]())


def told(hall: Hall) -> int:
    """How many events people are told of that were lost with sessions."""
    return sum(note.what[1] for desk in hall.desks for note in desk.notes if note.kind == "gave_up")


def away(hall: Hall, broker: int, **options: Any) -> Visitor:
    """A client that has left its session at a broker."""
    reader = hall.visit(broker, "reader", lasts_s=300, **options)
    hall.settle()
    reader.subscribe("news")
    hall.settle()
    reader.lose()
    hall.settle()
    return reader


def publish(hall: Hall, broker: int, *payloads: bytes) -> None:
    """Let somebody publish at a broker."""
    writer = hall.visit(broker, f"writer {broker}", clean_start=True)
    for payload in payloads:
        writer.publish("news", payload)
    writer.leave()


@pytest.mark.parametrize("scheme", ["reactive", "proactive"])
def test_what_was_stored_for_a_session_that_is_given_up_is_counted_once(scheme: str) -> None:
    """Wherever it was acknowledged, and not what the client's next session may have got."""
    hall = Hall(line(3, scheme, give_up_s=5.0))
    away(hall, 2)
    hall.unlink("B2")
    hall.wait(12.0)
    publish(hall, 2, b"1", b"2", b"3")
    publish(hall, 0, b"4", b"5")
    again = hall.visit(0, "reader", lasts_s=300)
    hall.wait(1.0)
    assert not again.inbox.pop().session_present
    again.ask("news")
    hall.wait(10.0)
    publish(hall, 0, b"6", b"7")
    hall.relink()
    hall.settle()
    hall.wait(400.0)
    assert again.got == [b"6", b"7"]
    assert lost(hall) == {GIVEN_UP: 5}
    assert told(hall) == 5
    for desk in hall.desks:
        assert desk.replayed().network.clients.drops == desk.network.clients.drops  # type: ignore[union-attr]  # it is there


def test_what_a_client_that_is_given_up_had_not_acknowledged_is_counted_too() -> None:
    """It is in the session itself, which comes too late."""
    hall = Hall(line(3, give_up_s=5.0))
    reader = hall.visit(2, "reader", lasts_s=300)
    hall.settle()
    reader.subscribe("news")
    hall.settle()
    reader.__class__ = Deaf
    publish(hall, 2, b"1", b"2")
    assert reader.got == [b"1", b"2"]
    reader.lose()
    publish(hall, 2, b"3")
    hall.unlink("B2")
    hall.wait(12.0)
    again = hall.visit(0, "reader", lasts_s=300)
    hall.wait(1.0)
    assert not again.inbox.pop().session_present
    hall.relink()
    hall.settle()
    assert lost(hall) == {GIVEN_UP: 3}
    assert told(hall) == 3


def test_a_client_that_asked_for_a_clean_start_has_lost_nothing() -> None:
    """Whether its session was in reach or not."""
    for is_cut in (False, True):
        hall = Hall(line(3, give_up_s=5.0))
        away(hall, 2)
        if is_cut:
            hall.unlink("B2")
            hall.wait(12.0)
        publish(hall, 2, b"1", b"2", b"3")
        again = hall.visit(0, "reader", lasts_s=300, clean_start=True)
        hall.wait(1.0)
        assert not again.inbox.pop().session_present
        hall.relink()
        hall.settle()
        assert [list(desk.core.state.sessions) for desk in hall.desks] == [["reader"], [], []]
        assert not lost(hall)


def test_what_the_earlier_of_two_sessions_stored_is_counted() -> None:
    """A client begins anew, leaves that session too, and finds its old one where it was."""
    hall = Hall(line(3, give_up_s=5.0))
    away(hall, 2)
    hall.unlink("B2")
    hall.wait(12.0)
    away(hall, 0)
    publish(hall, 0, b"1", b"2")
    again = hall.visit(2, "reader", lasts_s=300)
    assert again.inbox.pop().session_present
    hall.relink()
    hall.settle()
    assert [list(desk.core.state.sessions) for desk in hall.desks] == [[], [], ["reader"]]
    assert lost(hall) == {GIVEN_UP: 2}
    assert told(hall) == 2


def test_a_session_that_was_given_away_and_forgotten_to_be_is_no_loss() -> None:
    """What the copy has that a broker finds in its store, the client got elsewhere."""
    hall = Hall(line(3))
    away(hall, 2)
    publish(hall, 2, b"1", b"2")
    before = len(hall.desks[2].store.written)
    again = hall.visit(0, "reader", lasts_s=300)
    hall.settle()
    assert again.got == [b"1", b"2"]
    hall.restart("B3", forgets=len(hall.desks[2].store.written) - before)
    hall.settle()
    hall.wait(20.0)
    assert [list(desk.core.state.sessions) for desk in hall.desks] == [["reader"], [], []]
    assert not lost(hall)


@pytest.mark.parametrize("is_clean", [False, True])
def test_the_will_of_a_session_that_ended_out_of_reach_is_published(is_clean: bool) -> None:
    """Its session has ended, so its delay is over: once, and whoever wanted it to end."""
    hall = Hall(line(3, give_up_s=5.0))
    mourner = hall.visit(1, "mourner")
    hall.settle()
    mourner.subscribe("wills")
    hall.settle()
    away(hall, 2, will=LAST_WORDS)
    hall.unlink("B3")
    hall.wait(12.0)
    again = hall.visit(0, "reader", lasts_s=300, clean_start=is_clean)
    hall.wait(1.0)
    assert not again.inbox.pop().session_present
    assert not mourner.got
    hall.relink()
    hall.settle()
    hall.wait(300.0)
    assert mourner.got == [b"gone"]


def test_two_sessions_that_a_client_had_at_once_become_one() -> None:
    """Nothing stays behind of the one that its client is told to be gone, not even what it wanted."""
    hall = Hall(line(2, give_up_s=5.0))
    reader = hall.visit(0, "reader", lasts_s=300)
    hall.settle()
    reader.subscribe("old/#")
    hall.settle()
    hall.unlink("B2")
    hall.wait(12.0)
    again = hall.visit(1, "reader", lasts_s=300)
    hall.wait(1.0)
    assert not again.inbox.pop().session_present
    again.ask("new/#")
    hall.relink()
    hall.wait(10.0)
    assert reader.is_over
    assert not again.is_over
    first, second = (desk.network.clients.broker.subscribers for desk in hall.desks)
    assert (first.older, second.older) == ({}, {})
    wanted = [desk.network.links.interests for desk in hall.desks]
    subs = [desk.network.clients.broker.router.subs for desk in hall.desks]
    for interests, held in zip(wanted, subs, strict=True):
        assert not [number for number in held if "old/#" in str(interests.subs[number])]


def test_who_waits_too_long_for_a_session_is_told_so() -> None:
    """By the broker where it waits, with another reason than for passwords that wait."""
    hall = Hall(line(2))
    away(hall, 0)
    back = hall.visit(1, "reader", lasts_s=300)
    desk = hall.desks[1]
    hall.now += hall.config.limits.connect_timeout_s + 1.0
    desk.tell(facts.TimePassed())  # nothing was carried meanwhile
    (answer,) = back.inbox
    assert (int(answer.reason_code), back.is_over) == (0x88, True)
    assert desk.core.state.counters.refused == {"session_not_in_time": 1}
    assert desk.replayed().core.state.counters.refused == {"session_not_in_time": 1}
