"""Sessions in a network that end with their connection: taken over, moved, resumed for a last time."""

from __future__ import annotations

import pytest
from mqtt5 import ConnAckReasonCode

from sojourn.mqtt import conventions
from tests.live.hall import Hall, line


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


def test_a_broker_that_has_been_down_for_long_is_not_waited_for() -> None:
    """Until then a client whose session may be there is told to try again, and at which broker it may be."""
    hall = Hall(line(3, give_up_s=100.0))
    hall.unlink("B3")
    for named in ([], [("sojourn-previous", "B3")]):
        early = hall.visit(0, "early", user_properties=named)
        hall.wait(10.1)
        refused = early.inbox.pop()
        assert refused.reason_code == ConnAckReasonCode.SERVER_UNAVAILABLE
        assert "B3" in (refused.reason_str or "")
        assert early.is_over
    hall.wait(100.0)
    for named in ([], [("sojourn-previous", "B3")]):
        late = hall.visit(1, "late", user_properties=named)
        hall.settle()
        assert late.inbox.pop().reason_code == ConnAckReasonCode.SUCCESS


def test_a_client_that_names_a_silent_broker_is_told_to_try_again() -> None:
    """A broker lets nobody wait for longer than ten seconds; whoever comes when all can be asked gets in."""
    hall = Hall(line(3))
    hall.cut.add("B3")  # nobody notices that it is down
    named = [("sojourn-previous", "B3")]
    first = hall.visit(1, "client", user_properties=named)
    hall.wait(10.1)
    assert first.is_over
    assert [packet.reason_code for packet in first.inbox] == [ConnAckReasonCode.SERVER_UNAVAILABLE]
    hall.cut.clear()
    second = hall.visit(1, "client", user_properties=named)
    hall.settle()
    assert second.inbox.pop().reason_code == ConnAckReasonCode.SUCCESS


def test_a_session_that_was_out_of_reach_gives_way_to_the_one_begun_meanwhile() -> None:
    """Cut off with its session, a broker learns on its return that the client has begun anew elsewhere."""
    hall = Hall(line(2, timeout_s=1_000.0, give_up_s=100.0))
    first = hall.visit(1, "reader", lasts_s=900)
    hall.settle()
    first.subscribe("old")
    hall.settle()
    first.lose()
    hall.unlink("B2")
    hall.wait(101.0)
    second = hall.visit(0, "reader", lasts_s=900)
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
