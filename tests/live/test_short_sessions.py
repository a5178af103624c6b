"""Sessions in a network that end with their connection: taken over, moved, resumed for a last time."""

from __future__ import annotations

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
