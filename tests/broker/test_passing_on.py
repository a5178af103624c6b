"""A hand-off bothers few brokers: who has a session is asked first, and others pass frames on as they are."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.broker.arrivals import Arrivals
from sojourn.broker.passing_on import PASSED_ON, destination_of
from sojourn.broker.wire import MESSAGES, Wire
from sojourn.mobility.finding_messages import EVERYBODY, Find, Found
from sojourn.routing.messages import Handoff
from tests.broker.test_left_copies import Trip, active


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whom brokers ask for a session."""
    found: list[int] = []
    encode = Wire.encode

    def listening(self: Wire, message: Any, now: float) -> bytes:
        if isinstance(message, Find):
            found.append(message.destination)
        return encode(self, message, now)

    monkeypatch.setattr(Wire, "encode", listening)
    return found


def hop_to_and_fro(trip: Trip) -> None:
    """Let the first two brokers learn that clients go from one to the other."""
    for broker in (1, 0, 1, 0):
        trip.stop_by(broker)


def test_who_has_a_copy_that_stores_asks_the_broker_that_had_it_store(asked: list[int]) -> None:
    """It is the one that the client left, so nobody else is asked."""
    trip = Trip(5)
    hop_to_and_fro(trip)
    trip.publish(b"1")
    assert active(trip.hall.desks[1]) == 1
    asked.clear()
    trip.visit(1)
    assert asked == [0]
    assert trip.got == [b"1"]


@pytest.mark.parametrize("wrong", [2, 3])
def test_who_asks_the_wrong_broker_first_finds_the_session_all_the_same(
    wrong: int, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy is a hint: the broker that it names says no, and all are asked."""
    trip = Trip(5)
    hop_to_and_fro(trip)
    trip.publish(b"1")
    monkeypatch.setattr(Arrivals, "_likely", lambda *_: wrong)
    asked.clear()
    trip.visit(1)
    assert asked[:2] == [wrong, EVERYBODY]
    assert trip.got == [b"1"]


def test_a_broker_on_the_way_does_not_read_what_is_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client goes from one end of a line to the other; who is in between reads what is for itself alone."""
    trip = Trip(3)
    trip.stop_by(0)
    trip.publish(b"1")
    middle = trip.hall.desks[1].network.links
    read, right = [], Wire.read

    def listening(self: Wire, body: bytes, now: float) -> Any:
        message = right(self, body, now)
        if self is middle.wire:
            read.append(message)
        return message

    monkeypatch.setattr(Wire, "read", listening)
    trip.visit(2)
    assert trip.got == [b"1"]
    about_clients = [one for one in read if isinstance(one, Handoff | Find | Found)]
    assert about_clients, "it is asked for the session too"
    assert {one.destination for one in about_clients} <= {1, EVERYBODY}


def test_the_first_bytes_of_a_frame_say_whom_it_is_for() -> None:
    """That holds for messages about a client that moves, and for no others."""
    kinds = {bytes([cls.kind]) for cls in MESSAGES if issubclass(cls, (Handoff, Find, Found))}
    assert kinds == PASSED_ON
    links = Trip(3).hall.desks[0].network.links
    client, wire = links.names.client_number("client"), links.wire
    for place, expected in ((0, 0), (127, 127), (128, None), (EVERYBODY, None)):
        find = Find(destination=place, sender=1, client=client, epoch=7)
        assert destination_of(wire.encode(find, 0.0)) == expected
    assert destination_of(b"") is None
    assert destination_of(b"\x91\x20") is None
