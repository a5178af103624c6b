"""A client that began anew at two brokers in turn, and whose earlier session comes first where it is next."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest

from tests.live.hall import Hall, Visitor, line

NAME = "twice"


def connack(visitor: Visitor) -> Any:
    """What the broker said when it let the client in."""
    return next(one for one in visitor.inbox if isinstance(one, mqtt5.ConnAckPacket))


def two_sessions(hall: Hall) -> Visitor:
    """Let a client begin anew at B1, which gives that session to B2 over a slow link; and then at B3.

    There it subscribes. Then it is at B2, where the session of B1 comes first.
    """
    hall.visit(0, NAME, lasts_s=500, clean_start=True).lose()
    hall.settle()
    first = hall.visit(1, NAME, lasts_s=500)
    hall.carry("B2", "B1")
    first.lose()
    later = hall.visit(2, NAME, lasts_s=500, clean_start=True)
    later.ask("news")
    for _ in range(5):
        hall.carry("B3", "B2")
        hall.carry("B2", "B3")
    later.lose()
    back = hall.visit(1, NAME, lasts_s=500)
    hall.carry("B1", "B2")
    return back


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_the_session_that_the_client_was_served_in_last_stays(scheme: str) -> None:
    """Its connection to the other one ends, and it finds what it subscribed to when it comes again."""
    hall = Hall(line(3, scheme))
    writer = hall.visit(0, "writer")
    back = two_sessions(hall)
    assert connack(back).session_present
    hall.settle()
    assert back.is_over
    writer.publish("news", b"since then")
    hall.settle()
    again = hall.visit(1, NAME, lasts_s=500)
    hall.settle()
    assert connack(again).session_present
    assert again.got == [b"since then"]
    sessions = [desk.name for desk in hall.desks if NAME in desk.core.state.sessions]
    assert sessions == ["B2"]
