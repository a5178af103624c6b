"""A live broker withdraws a subscription that covered many in parts, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sojourn.broker import facts
from sojourn.broker.settings import AtOnce
from tests.live.hall import Hall, Visitor, line

TOPICS = [f"device/{number}" for number in range(6)]


def leaving() -> tuple[Hall, Visitor, list[bytes]]:
    """B1 has withdrawn `#`, which covered six subscriptions, and has done one of six parts."""
    hall = Hall(line(2), at_once=AtOnce(withdrawn=1))
    everything, reader = (hall.visit(0, name, lasts_s=1_000) for name in ("everything", "reader"))
    hall.settle()
    everything.subscribe("#")
    for topic in TOPICS:
        reader.subscribe(topic)
    hall.settle()
    everything.unsubscribe("#")
    router = hall.desks[0].network.clients.broker.router
    assert router.leaving
    assert hall.desks[0].due_s == 0.0, "time has something to do at once"
    hall.desks[0].tell(facts.TimePassed())
    hall.settle()
    assert router.leaving
    assert wanted(hall) == {"#", TOPICS[0]}
    return hall, reader, reader.got


def wanted(hall: Hall) -> set[str]:
    """What B2 believes that B1 wants, as patterns."""
    router = hall.desks[1].network.clients.broker.router
    bit = hall.desks[1].network.links.bits["B1"]
    texts = [
        hall.desks[1].network.links.names.subscription_text(one)
        for one, mask in router.subs.items()
        if mask & bit
    ]
    return {next((topic for topic in TOPICS if topic in text), "#") for text in texts}


def nothing(_hall: Hall) -> None:
    """Go on."""


def lines(hall: Hall) -> None:
    """B1 dies, and comes back from its journal."""
    hall.restart("B1")


def snapshot(hall: Hall) -> None:
    """B1 dies, and comes back from a snapshot."""
    hall.desks[0].keep()
    hall.restart("B1")


def forgetful(hall: Hall) -> None:
    """B2 loses its store, so that it is told everything anew."""
    hall.unlink("B2")
    hall.desks[1].delete_store()
    hall.restart("B2")


@pytest.mark.parametrize("happens", [nothing, lines, snapshot, forgetful])
def test_the_neighbour_has_what_is_wanted_in_the_end_and_events_come_all_the_time(
    happens: Callable[[Hall], None],
) -> None:
    """After a restart of either, too."""
    hall, reader, got = leaving()
    hall.visit(1, "writer").publish(TOPICS[5], b"meanwhile")
    hall.settle()
    assert got == [b"meanwhile"]
    happens(hall)
    hall.settle()
    if reader.is_over:
        hall.visit(0, "reader", lasts_s=1_000, got=got)
        hall.settle()
    for number, topic in enumerate(TOPICS):
        hall.visit(1, "writer").publish(topic, b"%d" % number)
        hall.settle()
    hall.wait(1.0)
    assert got == [b"meanwhile", *(b"%d" % number for number in range(6))]
    assert not hall.desks[0].network.clients.broker.router.leaving
    assert wanted(hall) == {*TOPICS}
