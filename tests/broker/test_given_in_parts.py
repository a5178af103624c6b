"""What was stored for a client, or left by it, is given on in parts, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import AtOnce
from sojourn.mobility import queues
from sojourn.mobility.holdings import in_order
from sojourn.mobility.queues import Queues
from tests.broker.crew import JOBS, member, picks, publish, silent_member, together
from tests.counting import counted
from tests.live.hall import Hall, Visitor, line

STORED = 9
EXPECTED = [b"%d" % number for number in range(STORED)]


def stored(scheme: str = "proactive", brokers: int = 3) -> Hall:
    """Nine events of two publishers are stored at B1 for a reader that is away; parts have two."""
    hall = Hall(line(brokers, scheme), at_once=AtOnce(given=2))
    reader = hall.visit(0, "reader", lasts_s=1_000)
    reader.subscribe("news/#")
    hall.settle()
    reader.lose()
    hall.settle()
    writers = [hall.visit(at, f"writer-{at}") for at in (0, 1)]
    hall.settle()
    for number in range(STORED):
        writers[number % 2].publish(f"news/{number}", b"%d" % number)
        hall.settle()
    for writer in writers:
        writer.leave()
    while any(desk.network.clients.broker.subscribers.is_giving for desk in hall.desks):  # to copies
        some(hall)
    return hall


def some(hall: Hall) -> None:
    """Let every broker that gives something give a part of it."""
    for desk in hall.desks:
        if desk.network.clients.broker.subscribers.is_giving:
            assert desk.due_s == 0.0, "time has something to do at once"
            desk.tell(facts.TimePassed())
    hall.settle()


def nothing(_hall: Hall, reader: Visitor) -> Visitor:
    """Go on."""
    return reader


def event(hall: Hall, reader: Visitor) -> Visitor:
    """One more event comes, which is behind the rest."""
    hall.visit(1, "late writer").publish("news/late", b"late")
    hall.settle()
    return reader


def lines(hall: Hall, reader: Visitor) -> Visitor:
    """The broker dies, and comes back from its journal; the client comes back to it."""
    hall.restart(reader.desk.name)
    hall.settle()
    return hall.visit(hall.desks.index(reader.desk), "reader", lasts_s=1_000, got=reader.got)


def snapshot(hall: Hall, reader: Visitor) -> Visitor:
    """The same from a snapshot, as every other broker."""
    for desk in hall.desks:
        desk.keep()
        hall.restart(desk.name)
        hall.settle()
    return hall.visit(hall.desks.index(reader.desk), "reader", lasts_s=1_000, got=reader.got)


def breaks_off(hall: Hall, reader: Visitor) -> Visitor:
    """The client breaks off, and comes back to the same broker."""
    reader.lose()
    hall.settle()
    return hall.visit(hall.desks.index(reader.desk), "reader", lasts_s=1_000, got=reader.got)


def moves_on(hall: Hall, reader: Visitor) -> Visitor:
    """The client moves on to the last broker of the line."""
    reader.lose()
    hall.settle()
    return hall.visit(2, "reader", lasts_s=1_000, got=reader.got)


def moves_back(hall: Hall, reader: Visitor) -> Visitor:
    """The client goes to the second broker and at once back to the first, without a word to either."""
    away = hall.visit(1, "reader", lasts_s=1_000, got=reader.got)
    hall.settle()
    away.lose()
    return hall.visit(0, "reader", lasts_s=1_000, got=reader.got)


def old_broker_dies(hall: Hall, reader: Visitor) -> Visitor:
    """The broker that the client was at before dies and comes back."""
    hall.restart("B1")
    hall.settle()
    return hall.visit(0, "reader", lasts_s=1_000, got=reader.got) if reader.is_over else reader


Happens = Callable[[Hall, Visitor], Visitor]
ALL = [nothing, event, lines, snapshot, breaks_off, moves_on, moves_back, old_broker_dies]


@pytest.mark.parametrize("parts", [0, 1, 2])
@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
@pytest.mark.parametrize("to", [0, 1, 2])
@pytest.mark.parametrize("happens", ALL)
def test_every_event_comes_once_and_in_order_wherever_the_client_goes(
    happens: Happens, to: int, scheme: str, parts: int
) -> None:
    """Of each publisher in its order, though the client, or a broker, is gone before the last part."""
    hall = stored(scheme)
    reader = hall.visit(to, "reader", lasts_s=1_000)
    hall.settle()
    for _ in range(parts):
        some(hall)
    reader = happens(hall, reader)
    hall.settle()
    hall.wait(2.0)
    assert not any(desk.network.clients.broker.subscribers.is_giving for desk in hall.desks)
    got = [one for one in reader.got if one != b"late"]
    assert sorted(got) == EXPECTED
    for mine in (EXPECTED[0::2], EXPECTED[1::2]):
        assert [one for one in got if one in mine] == mine
    assert (b"late" in reader.got) == (happens is event)
    hall.visit(0, "writer").publish("news/after", b"after")
    hall.settle()
    hall.wait(1.0)
    assert reader.got[-1] == b"after"
    for desk in hall.desks:
        holdings = desk.network.clients.broker.subscribers.main.values()
        left = [len(one.queue) + len(one.forwarded) for one in holdings]
        if desk is reader.desk:
            assert not any(left), "what was acknowledged is stored no longer"


def test_others_are_served_between_two_parts() -> None:
    """A client that comes back to much is given a part of it at once, and the next when time has passed."""
    hall = stored()
    reader = hall.visit(0, "reader", lasts_s=1_000)
    assert reader.got == EXPECTED[:2]
    other = hall.visit(0, "other")
    other.subscribe("other")
    hall.visit(0, "writer").publish("other", b"hello")
    hall.settle()
    assert other.got == [b"hello"]
    assert len(reader.got) == 2
    counts = []
    while hall.desks[0].network.clients.broker.subscribers.is_giving:
        before = len(reader.got)
        some(hall)
        counts.append(len(reader.got) - before)
    assert counts == [2, 2, 2, 1]


def test_a_broker_that_is_told_again_has_given_as_much() -> None:
    """What its journal says, and what a snapshot in between says, lead to the same state."""
    hall = stored()
    hall.visit(1, "reader", lasts_s=1_000)
    hall.settle()
    for _ in range(2):
        some(hall)
    for desk in hall.desks[:2]:
        assert bool(giving(desk.broker)[0]) == (desk.name == "B1")
        assert giving(desk.replayed()) == giving(desk.broker)


def giving(broker: LiveBroker) -> tuple[list[int], list[tuple[object, ...]]]:
    """Whose events a broker gives in parts, and how far it is with each."""
    assert broker.network is not None
    subscribers = broker.network.clients.broker.subscribers
    holdings = [*subscribers.main.values(), *(one for older in subscribers.older.values() for one in older)]
    far: list[tuple[object, ...]] = [
        (one.client, one.state, one.served, one.gives, len(one.queue), len(one.forwarded)) for one in holdings
    ]
    return [one.client for one in subscribers._giving.under_way], far


@pytest.mark.parametrize("happens", ["nothing", "an event", "lines", "snapshot", "leaves too"])
@pytest.mark.parametrize("at", [0, 1])
def test_what_a_member_leaves_is_picked_again_in_parts(at: int, happens: str) -> None:
    """All that a member had not acknowledged reaches others, though the broker that picks dies meanwhile."""
    hall = Hall(line(3), at_once=AtOnce(picked_again=2))
    first = silent_member(hall, at, "first")
    sent = publish(hall, 0, STORED)
    hall.settle()
    others = [member(hall, broker, f"other {broker}") for broker in (1, 2)]
    hall.settle()
    first.unsubscribe(JOBS)
    hall.settle()
    shares = hall.desks[0].network.clients.shares
    assert len(shares.left) == STORED - 2
    assert hall.desks[0].due_s == 0.0, "time has something to do at once"
    hall.desks[0].tell(facts.TimePassed())
    hall.settle()
    assert len(together(others)) == 4
    if happens == "an event":
        sent += publish(hall, 0, 1, first=STORED)
    elif happens in ("lines", "snapshot"):
        if happens == "snapshot":
            hall.desks[0].keep()
        hall.restart("B1")
        hall.settle()
        shares = hall.desks[0].network.clients.shares
        assert len(shares.left) == STORED - 4
    elif happens == "leaves too":
        others[0].unsubscribe(JOBS)
    hall.wait(2.0)
    assert not shares.left
    assert together(others) == sent
    assert picks(hall) == 0


def test_what_the_old_broker_gives_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new one puts it before what came by itself, as it is, where nothing is double or out of order."""
    hall = stored("reactive")
    ordered: list[tuple[Any, ...]] = []
    replaced: list[tuple[Any, ...]] = []
    monkeypatch.setattr(queues, "in_order", counted(in_order, ordered))
    monkeypatch.setattr(Queues, "_replace", counted(Queues._replace, replaced))
    reader = hall.visit(1, "reader", lasts_s=1_000)
    hall.settle()
    hall.wait(2.0)
    assert sorted(reader.got) == EXPECTED
    assert [len(events) for events, _ in ordered].count(STORED) == 2, "once at each broker"
    assert not replaced
