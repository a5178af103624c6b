"""What a new operator once found broken with whole brokers, each as it should be."""

from __future__ import annotations

import pytest
from mqtt5 import QoS, Will

from tests.live.hall import Hall, Visitor, line
from tests.live.test_reconciling import assert_all_links_are_up, subscribed, visitor


def answer(guest: Visitor) -> object:
    """What a client was told first."""
    return guest.inbox[0]


@pytest.mark.parametrize("place", [0, 1])
def test_who_was_away_for_longer_than_events_are_stored_is_told_that_its_session_is_new(place: int) -> None:
    """It asked for a session of an hour, and events are stored for a minute; a little less is in time."""
    for away_s, is_present in ((50.0, True), (70.0, False)):
        hall = Hall(line(2, timeout_s=60.0))
        reader = subscribed(hall, 0, "reader", lasts_s=3_600)
        reader.leave()
        writer = visitor(hall, 1, "writer")
        writer.publish("news", b"stored")
        hall.settle()
        hall.wait(away_s)
        again = hall.visit(place, "reader", lasts_s=3_600)
        hall.settle()
        assert answer(again).session_present is is_present  # type: ignore[attr-defined]  # a CONNACK
        assert again.got == ([b"stored"] if is_present else [])


@pytest.mark.parametrize("restarts", [False, True])
def test_a_clock_that_is_ahead_keeps_no_client_from_moving(*, restarts: bool) -> None:
    """B2's is 25 s ahead: who was there is let in elsewhere at once, with its session."""
    hall = Hall(line(3))
    hall.desks[1].ahead_s = 25.0
    roamer = subscribed(hall, 1, "roamer")
    if restarts:
        hall.restart("B2")
        hall.settle()
    else:
        roamer.leave()
    for place in (0, 1, 2, 0):
        moved = hall.visit(place, "roamer", lasts_s=50)
        hall.settle()
        assert int(answer(moved).reason_code) == 0  # type: ignore[attr-defined]  # a CONNACK
        assert answer(moved).session_present  # type: ignore[attr-defined]  # a CONNACK
        moved.leave()


def test_a_retained_topic_of_220_levels_keeps_no_broker_from_starting() -> None:
    """Every broker that got it takes a snapshot, starts from it, and tells it to who asks."""
    hall = Hall(line(2))
    topic = "/".join(["level"] * 220)
    writer = visitor(hall, 0, "writer")
    writer.publish(topic, b"deep", retain=True)
    hall.settle()
    for desk in hall.desks:
        desk.keep()
        hall.restart(desk.name)
        hall.settle()
    assert_all_links_are_up(hall)
    reader = subscribed(hall, 1, "reader", topic)
    assert reader.got == [b"deep"]


def mortal(hall: Hall, place: int, delay_s: int) -> Visitor:
    """A client with a will."""
    will = Will("news", payload=b"the will", qos=QoS.AT_LEAST_ONCE, will_delay_interval=delay_s)
    guest = hall.visit(place, "mortal", lasts_s=3_600, will=will)
    hall.settle()
    return guest


def test_a_delayed_will_comes_though_its_client_tried_another_broker_and_vanished() -> None:
    """Its session moved on with the will, and nobody came for it."""
    hall = Hall(line(3, timeout_s=3_600.0))
    heir = subscribed(hall, 2, "heir", lasts_s=3_600)
    mortal(hall, 0, delay_s=20).lose()
    hall.wait(5.0)
    tries = hall.visit(1, "mortal", lasts_s=3_600)
    tries.lose()  # before it was answered
    hall.settle()
    hall.wait(10.0)
    assert heir.got == []
    hall.wait(30.0)
    assert heir.got == [b"the will"]


def test_a_takeover_by_another_broker_sends_a_will_that_has_no_delay() -> None:
    """The old connection is closed by the broker, and not by its client; one with a delay waits in vain."""
    for delay_s, expected in ((0, [b"the will"]), (60, [])):
        hall = Hall(line(3, timeout_s=3_600.0))
        heir = subscribed(hall, 2, "heir", lasts_s=3_600)
        before = mortal(hall, 0, delay_s)
        after = hall.visit(1, "mortal", lasts_s=3_600)
        hall.settle()
        assert before.is_over
        assert answer(after).session_present  # type: ignore[attr-defined]  # a CONNACK
        hall.wait(90.0)
        assert heir.got == expected
