"""A member of a group whose session ended where it was, and is found again elsewhere."""

from __future__ import annotations

import msgspec
import pytest

from sojourn.mqtt import conventions
from sojourn.mqtt.members import address_of
from tests.broker.crew import JOBS, Silent, member, picks, silent_member
from tests.live.hall import Hall, Visitor, line

NAME = "member"


def address_at(hall: Hall, broker: int) -> str:
    """Where events for the member are sent."""
    return address_of(hall.desks[broker].core.state.sessions[NAME].subscriptions[JOBS])


def found_again(hall: Hall) -> tuple[Visitor, Visitor]:
    """Let a member begin anew at B3, which has just given its session to B2, and be at B2 in the end.

    The link is slow from B3 to B2, so an event is sent to the member at B3, where it is a member no more.
    Another one comes only after that.
    """
    member(hall, 2, NAME).lose()
    writer = hall.visit(0, "writer")
    hall.settle()
    first = hall.visit(1, NAME, lasts_s=500)
    hall.carry("B2", "B3")  # asks for the session, which is on its way to B2 from here on
    hall.visit(2, NAME, lasts_s=500, clean_start=True).lose()
    writer.publish("jobs/a", b"left behind")
    hall.carry("B1", "B2")
    hall.carry("B2", "B3")
    first.lose()
    other = hall.visit(0, "other", lasts_s=500)
    other.ask(JOBS)
    return hall.visit(1, NAME, lasts_s=500), other


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_what_was_sent_to_where_its_session_had_ended_goes_to_another(scheme: str) -> None:
    """The session that began anew stays, and is a member of nothing."""
    hall = Hall(line(3, scheme))
    back, other = found_again(hall)
    hall.settle()
    assert (back.got, other.got) == ([], [b"left behind"])
    assert picks(hall) == 0


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_it_does_also_if_the_client_has_gone_again_meanwhile(scheme: str) -> None:
    """And whoever was restarted knows that from its store."""
    hall = Hall(line(3, scheme))
    back, other = found_again(hall)
    back.lose()
    hall.settle()
    hall.restart("B2")
    hall.settle()
    assert other.got == [b"left behind"]
    assert picks(hall) == 0


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_what_was_lost_with_a_store_while_the_session_moved_is_picked_again(scheme: str) -> None:
    """The next broker is told that nobody knows any more what was stored: the client is another member."""
    hall = Hall(line(3, scheme))
    member(hall, 2, NAME).lose()
    writer = hall.visit(0, "writer")
    writer.publish("jobs/a", b"stored")
    hall.settle()
    address = address_at(hall, 2)
    back = hall.visit(1, NAME, lasts_s=500)
    hall.carry("B2", "B3")
    hall.carry("B3", "B2")  # the session is at B2, and what is stored for it still at B3
    hall.unlink("B3")
    hall.by_name["B3"].delete_store()
    hall.by_name["B3"].restart()
    hall.relink()
    hall.settle()
    assert back.got == [b"stored"]
    assert address_at(hall, 1) != address
    assert picks(hall) == 0


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_who_just_moves_stays_the_same_member(scheme: str) -> None:
    """Nobody picks again for it, whatever it has not acknowledged."""
    hall = Hall(line(3, scheme))
    member(hall, 2, NAME).lose()
    address = address_at(hall, 2)
    for broker in (1, 0, 0, 2):
        back = hall.visit(broker, NAME, lasts_s=500)
        hall.settle()
        back.lose()
        hall.settle()
        assert address_at(hall, broker) == address


def marks_of(seen: Silent) -> list[tuple[str, str]]:
    """What a client says of all that it was sent."""
    said = [dict(event.user_properties) for event in seen.events]
    marks = {one[conventions.SOURCE]: int(one[conventions.SEQUENCE]) for one in said}
    return [(conventions.MARKS, msgspec.json.encode(marks).decode())]


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_what_a_client_was_sent_as_another_member_says_nothing_of_what_waits_for_the_old_one(
    scheme: str,
) -> None:
    """It had begun anew where its old session was out of reach, and was sent later events of the group."""
    hall = Hall(line(3, scheme))
    member(hall, 2, NAME).lose()
    writer = hall.visit(0, "writer")
    hall.settle()
    writer.publish("jobs/a", b"waits")
    hall.settle()
    hall.unlink("B3")
    anew = silent_member(hall, 1, NAME, clean_start=True, user_properties=[(conventions.NUMBERED, "1")])
    hall.wait(0.1)
    writer.publish("jobs/a", b"later")
    hall.settle()
    assert [bytes(event.payload) for event in anew.events] == [b"later"]
    marks = marks_of(anew)
    anew.acknowledge()
    anew.lose()
    back = hall.visit(2, NAME, lasts_s=500, user_properties=marks)
    hall.settle()
    assert back.got == [b"waits"]
    hall.relink()
    hall.settle()
    assert picks(hall) == 0
