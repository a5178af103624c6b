"""A broker that forgot what it did last leaves no copies behind that go on storing, or serve anybody."""

from __future__ import annotations

import msgspec
import pytest

from sojourn.broker import facts
from sojourn.broker.arrivals import Arrivals
from sojourn.broker.live_broker import LiveBroker
from sojourn.mobility.copies import State
from sojourn.mobility.copy_requests import CopyRequests
from sojourn.routing.messages import Kind
from tests.live.hall import Desk, Hall, Visitor, line


class Trip:
    """A client that hops from broker to broker, and a writer that stays at the last one."""

    def __init__(self, brokers: int = 3) -> None:
        self.hall = Hall(line(brokers, timeout_s=3_600.0))
        self.got: list[bytes] = []
        self.writer = self.hall.visit(brokers - 1, "writer")
        self.visit(0).subscribe("t/#")

    def visit(self, broker: int) -> Visitor:
        """Be at a broker, and be sent what waits."""
        visitor = self.hall.visit(broker, "client", lasts_s=3_000, got=self.got)
        self.hall.settle()
        assert visitor.inbox.popleft().reason_code == 0
        return visitor

    def stop_by(self, broker: int) -> None:
        """Be at a broker for a moment."""
        self.visit(broker).leave()
        self.hall.settle()

    def publish(self, *payloads: bytes) -> None:
        """Have events published."""
        for payload in payloads:
            self.writer.publish("t/a", payload)
        self.hall.settle()

    def forget_hop(self) -> None:
        """Hop from the first broker to the second one and back; the first one forgets that."""
        known = len(self.hall.desks[0].store.written)
        self.stop_by(1)
        self.stop_by(0)
        self.forget(0, known)

    def forget(self, broker: int, known: int) -> None:
        """Have a broker lose power, and come back with so many lines of its journal."""
        desk = self.hall.desks[broker]
        self.hall.unlink(desk.name)
        desk.restart(forgets=len(desk.store.written) - known)
        self.hall.relink()
        self.hall.settle()


def active(desk: Desk) -> int:
    """How many copies store at a broker."""
    return desk.network.clients.broker.subscribers.counts()[State.ACTIVE.name.lower()]


@pytest.mark.parametrize("pause_s", [0.0, 5.0])
@pytest.mark.parametrize("missing", ["", "doubts", "epochs"])
def test_events_after_the_healing_come_once(
    pause_s: float, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the client comes next to a broker that was told to store by a stay which is forgotten.

    Two things keep that from serving it, each of which is enough.
    """
    if missing == "doubts":
        monkeypatch.setattr(CopyRequests, "on_doubted", lambda *_: None)
    elif missing == "epochs":
        monkeypatch.setattr(Arrivals, "_last_epoch", lambda *_: None)
    trip = Trip()
    trip.stop_by(0)
    trip.forget_hop()
    trip.hall.wait(pause_s)
    for number, broker in enumerate((0, 0, 1, 2, 0)):
        visitor = trip.visit(broker)
        trip.publish(b"%d" % number)
        visitor.leave()
        trip.publish(b"%d away" % number)
    trip.visit(1)
    assert trip.got == [one for number in range(5) for one in (b"%d" % number, b"%d away" % number)]


def test_no_copy_of_a_forgotten_stay_goes_on_storing() -> None:
    """At no broker, however far, once all have heard that something was forgotten."""
    trip = Trip(4)
    for broker in (2, 0, 1, 0):
        trip.stop_by(broker)
    trip.forget_hop()
    trip.hall.wait(5.0)
    trip.visit(0)
    trip.publish(b"1", b"2")
    assert trip.got == [b"1", b"2"]
    assert [active(desk) for desk in trip.hall.desks] == [0, 0, 0, 0]


def test_a_copy_that_lost_events_serves_nobody() -> None:
    """Its broker forgot some that it had taken in; the one that the client comes from has them all."""
    trip = Trip()
    trip.stop_by(1)
    trip.stop_by(0)  # the second broker has a copy, which stores
    desk = trip.hall.desks[1]
    assert active(desk) == 1
    known = len(desk.store.written)
    trip.publish(b"1", b"2")
    trip.forget(1, known)
    trip.visit(1)
    trip.publish(b"3")
    assert trip.got == [b"1", b"2", b"3"]


def test_copies_are_made_again_at_the_next_stay() -> None:
    """What ended in doubt is activated when the client leaves again, and has all that it had."""
    trip = Trip()
    for broker in (1, 0):
        trip.stop_by(broker)
    trip.forget_hop()
    trip.hall.wait(5.0)
    trip.stop_by(1)
    trip.stop_by(0)
    trip.publish(b"1", b"2")
    assert active(trip.hall.desks[1]) == 1
    assert trip.hall.desks[0].network.clients.handoff_count
    trip.visit(1)
    assert trip.got == [b"1", b"2"]


@pytest.mark.parametrize("forgetful", [0, 2])
def test_what_was_asked_is_asked_again_when_somebody_forgot(forgetful: int) -> None:
    """The request, or its answer, is in what a broker forgot; nobody waits for that until patience ends."""
    trip = Trip(4)
    trip.stop_by(0)
    trip.publish(b"1", b"2")
    trip.visit(2)
    assert trip.got == [b"1", b"2"]
    desk = trip.hall.desks[forgetful]
    kind = {0: Kind.MOVED, 2: Kind.FORWARD}[forgetful]
    noted = [facts.read_entry(line).fact for line in desk.store.written]
    known = next(
        place
        for place, fact in enumerate(noted)
        if isinstance(fact, facts.FrameTaken) and fact.body[1] == kind
    )
    trip.forget(forgetful, known)
    trip.publish(b"3")
    trip.visit(2)
    assert trip.got[-1] == b"3"
    stays = trip.hall.desks[2].network.clients.broker.subscribers.main.values()
    assert all(stay.complete for stay in stays)


def test_the_journal_of_an_earlier_build_tells_nobody() -> None:
    """Its broker had sent no such message then, and its frames keep their numbers."""
    trip = Trip()
    trip.stop_by(0)
    trip.forget_hop()
    desk = trip.hall.desks[0]
    entries = [facts.read_entry(line) for line in desk.store.written]
    numbers = []
    for is_told in (True, False):
        broker = LiveBroker(desk.settings, "life", remembers=True)
        for entry in entries:
            fact = entry.fact
            if isinstance(fact, facts.LinkReset):
                fact = msgspec.structs.replace(fact, is_told=is_told)
            broker.replay(msgspec.structs.replace(entry, fact=fact))
        assert broker.network is not None
        numbers.append(broker.network.links.channels["B2"].last)
    assert numbers[0] == numbers[1] + 1 == desk.network.links.channels["B2"].last
