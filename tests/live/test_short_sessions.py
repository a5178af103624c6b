"""Sessions in a network that end with their connection: taken over, moved, resumed for a last time."""

from __future__ import annotations

import pytest

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
        assert not any(desk.network.broker.router.subs for desk in hall.desks)
        assert not any(desk.network.broker.subscribers.main for desk in hall.desks)


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
        assert not any(desk.network.broker.router.subs for desk in hall.desks)


def refusal(visitor: Visitor) -> tuple[int, str]:
    """The code and text that a client was refused with."""
    packet = visitor.inbox.pop()
    return int(packet.reason_code), packet.reason_str


def test_a_client_whose_session_may_be_out_of_reach_is_told_so_at_once() -> None:
    """It waits only where nobody has noticed yet; it gets in when all brokers are there."""
    hall = Hall(line(3))
    hall.unlink("B3")
    hall.wait(3.1)
    near = hall.visit(1, "near")
    hall.settle()
    told = (0x88, "Your session may be at B3, which is out of reach; try again.")
    assert refusal(near) == told
    far = hall.visit(0, "far")
    hall.settle()
    assert not far.inbox
    hall.wait(5.1)
    assert refusal(far) == told
    hall.relink()
    hall.settle()
    near = hall.visit(1, "near")
    hall.settle()
    assert refusal(near)[0] == 0


def test_a_client_that_names_a_silent_broker_is_not_left_waiting() -> None:
    """A broker lets nobody wait for longer than ten seconds; whoever comes again later is let in."""
    hall = Hall(line(3))
    hall.cut.add("B3")  # nobody notices that it is down
    named = [("sojourn-previous", "B3")]
    first = hall.visit(1, "client", user_properties=named)
    hall.wait(6.1)
    assert first.is_over
    assert refusal(first)[0] == 0x88
    hall.cut.clear()
    hall.settle()
    second = hall.visit(1, "client", user_properties=named)
    hall.settle()
    assert refusal(second)[0] == 0


def test_a_session_that_was_out_of_reach_gives_way_to_the_one_begun_meanwhile() -> None:
    """Cut off with its session, a broker learns on its return that the client has begun anew elsewhere."""
    hall = Hall(line(2))
    first = hall.visit(1, "reader", lasts_s=3_000)
    hall.settle()
    first.subscribe("old")
    hall.settle()
    first.lose()
    hall.unlink("B2")
    hall.wait(601.0)
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
            assert all(len(desk.network.broker.router.ads) == 2 for desk in hall.desks)
        publisher.lose()
        hall.settle()
    hall.wait(100.0)
    assert all(len(desk.network.broker.router.ads) == 1 for desk in hall.desks), "anything at all"
    assert not any(desk.network.broker.stays for desk in hall.desks)
