"""Sessions in a network that end with their connection: taken over, moved, resumed for a last time."""

from __future__ import annotations

import pytest
from mqtt5 import ConnAckReasonCode

from sojourn.broker import facts
from sojourn.mqtt import conventions
from tests.live.hall import Hall, Visitor, line


def test_a_session_resumed_for_the_last_time_brings_what_was_stored_and_what_comes() -> None:
    """The second connection says that the session is to end with it; until then nothing is missed."""
    for comes_to in (0, 1):
        hall = Hall(line(3))
        reader = hall.visit(0, "reader", lasts_s=300)
        hall.settle()
        reader.subscribe("news", "x > 3")
        hall.settle()
        reader.lose()
        writer = hall.visit(2, "writer")
        hall.settle()
        writer.publish("news", b"stored", {"x": 4})
        hall.settle()
        again = hall.visit(comes_to, "reader")
        hall.settle()
        writer.publish("news", b"fresh", {"x": 4})
        hall.settle()
        assert again.got == [b"stored", b"fresh"]
        again.leave()
        hall.settle()
        assert not any(desk.network.clients.broker.router.subs for desk in hall.desks)
        assert not any(desk.network.clients.broker.subscribers.main for desk in hall.desks)


def test_a_client_that_takes_over_its_own_short_session_is_served_anew() -> None:
    """Here or at another broker: the old connection and its session end, no subscription stays."""
    for comes_to in (0, 1):
        hall = Hall(line(3))
        first = hall.visit(0, "reader")
        hall.settle()
        first.subscribe("old")
        second = hall.visit(comes_to, "reader")
        hall.settle()
        assert first.is_over
        assert not second.inbox.pop().session_present
        second.subscribe("new")
        hall.settle()
        writer = hall.visit(2, "writer")
        hall.settle()
        writer.publish("old", b"not any more")
        writer.publish("new", b"this")
        hall.settle()
        assert second.got == [b"this"]
        second.leave()
        hall.settle()
        assert not any(desk.network.clients.broker.router.subs for desk in hall.desks)


def refusal(visitor: Visitor) -> ConnAckReasonCode:
    """The code with which a client was sent away."""
    assert visitor.is_over
    code: ConnAckReasonCode = visitor.inbox.pop().reason_code
    return code


def test_a_client_whose_session_may_be_out_of_reach_is_told_to_try_again() -> None:
    """Whether it names the missing broker or none; until the stated time has passed, and it begins anew."""
    for named in ([], [("sojourn-previous", "B3")]):
        hall = Hall(line(3, give_up_s=30.0))
        hall.unlink("B3")
        for broker in (0, 1):
            early = hall.visit(broker, "reader", user_properties=named)
            hall.wait(6.0)
            assert refusal(early) is ConnAckReasonCode.SERVER_UNAVAILABLE
        hall.wait(30.0)
        late = hall.visit(1, "reader", user_properties=named)
        hall.settle()
        assert not late.inbox.pop().session_present
        assert hall.desks[1].network.arrivals.given_up == 1


def test_a_client_that_starts_clean_waits_for_nobody() -> None:
    """It asked for an empty session, wherever the old one may be."""
    hall = Hall(line(3))
    hall.unlink("B3")
    visitor = hall.visit(1, "reader", clean_start=True)
    hall.settle()
    assert visitor.inbox.pop().reason_code is ConnAckReasonCode.SUCCESS


def test_a_client_that_names_a_silent_broker_is_told_to_try_again() -> None:
    """Nobody notices that the broker is down: it may have the session, and has not answered in time."""
    hall = Hall(line(3))
    hall.cut.add("B3")
    visitor = hall.visit(1, "client", user_properties=[("sojourn-previous", "B3")])
    hall.wait(8.0)
    assert refusal(visitor) is ConnAckReasonCode.SERVER_UNAVAILABLE


def test_a_session_that_was_out_of_reach_is_found_when_it_is_back() -> None:
    """What was acknowledged for its client meanwhile is there."""
    hall = Hall(line(2))
    first = hall.visit(1, "reader", lasts_s=300)
    hall.settle()
    first.subscribe("news")
    first.lose()
    hall.unlink("B2")
    writer = hall.visit(0, "writer", clean_start=True)
    writer.publish("news", b"this")
    early = hall.visit(0, "reader", lasts_s=300)
    hall.wait(20.0)
    assert refusal(early) is ConnAckReasonCode.SERVER_UNAVAILABLE
    hall.link("B1", "B2")
    hall.settle()
    second = hall.visit(0, "reader", lasts_s=300, got=first.got)
    hall.settle()
    assert second.inbox.pop().session_present
    assert second.got == [b"this"]


def test_a_clock_that_is_set_ahead_elsewhere_sends_nobody_away() -> None:
    """How a client's last session ended is heard after it connected, and under a later date than its own."""
    hall = Hall(line(2))
    ahead = hall.desks[1]
    ahead.ahead_s = 30.0
    for broker in (0, 1, 0, 1):
        visitor = hall.visit(broker, "roamer", lasts_s=20)
        hall.settle()
        visitor.lose()
        hall.settle()
    hall.unlink("B2")
    hall.visit(1, "roamer", lasts_s=20).lose()
    ahead.ahead_s += 3600.0
    back = hall.visit(0, "roamer", lasts_s=20)
    ahead.tell(facts.TimePassed())
    assert not ahead.core.state.sessions, "its time has run out there"
    hall.relink()
    hall.settle()
    assert not back.inbox.pop().session_present
    assert not back.is_over, "welcomed, and not sent away in the same breath"
    assert "roamer" in hall.desks[0].core.state.sessions


def test_a_session_that_was_given_up_gives_way_to_the_one_begun_meanwhile() -> None:
    """Cut off with its session, a broker learns on its return that the client has begun anew elsewhere."""
    hall = Hall(line(2, give_up_s=10.0))
    first = hall.visit(1, "reader", lasts_s=300)
    hall.settle()
    first.subscribe("old")
    hall.settle()
    first.lose()
    hall.unlink("B2")
    hall.wait(11.0)
    second = hall.visit(0, "reader", lasts_s=300)
    assert not second.inbox.pop().session_present
    second.subscribe("new")
    hall.link("B1", "B2")
    hall.settle()
    assert [list(desk.core.state.sessions) for desk in hall.desks] == [["reader"], []]
    writer = hall.visit(1, "writer")
    hall.settle()
    writer.publish("old", b"not any more")
    writer.publish("new", b"this")
    hall.settle()
    assert second.got == [b"this"]


@pytest.mark.parametrize("publishers", ["standard", "delayed", "proxy+delayed", "prefetch-delayed"])
@pytest.mark.parametrize("lasts_s", [0, 2, 60])
def test_the_tree_of_a_publisher_goes_in_its_time(publishers: str, lasts_s: int) -> None:
    """Whether its session ends before the tree does or after, and whether or not it advertises again."""
    hall = Hall(line(2, publishers=publishers))
    for number in range(4):
        publisher = hall.visit(number // 3, "publisher", lasts_s=lasts_s)
        hall.settle()
        if number in (0, 3):
            publisher.publish(conventions.ADVERTISE_TOPIC, b"x > 1")
            hall.settle()
            assert all(len(desk.network.clients.broker.router.ads) == 2 for desk in hall.desks)
        publisher.lose()
        hall.settle()
    hall.wait(100.0)
    assert all(len(desk.network.clients.broker.router.ads) == 1 for desk in hall.desks), "anything at all"
    assert not any(desk.network.clients.broker.stays for desk in hall.desks)
