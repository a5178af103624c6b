"""An event that a client does not get is counted once in a network, whichever brokers had no room for it."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from mqtt5 import ConnAckPacket, ConnectPacket

from sojourn.broker.effects import COPY_FULL
from sojourn.mqtt.limits import Limits
from tests.live.hall import Hall, Visitor, line
from tests.live.test_large_events import Silent

EVENTS, BYTES, QUEUE_BYTES = 40, 1_000, 14_000
FULL = "queue full"


def hall_of_three() -> Hall:
    """Brokers with room for a few events for each client."""
    return Hall(msgspec.structs.replace(line(3), limits=Limits(queue_bytes_max=QUEUE_BYTES)))


def roamed(hall: Hall) -> Visitor:
    """A client that went from B1 to B3 and back, so that B1 expects it to go to B3 again."""
    reader = hall.visit(0, "reader", lasts_s=300)
    hall.settle()
    reader.subscribe("news")
    for broker in (2, 0):
        reader.lose()
        reader = hall.visit(broker, "reader", lasts_s=300)
        hall.settle()
    return reader


def publish(hall: Hall, count: int) -> None:
    """Publish events at B2, one after the other."""
    writer = hall.visit(1, "writer", clean_start=True)
    for _ in range(count):
        writer.publish("news", bytes(BYTES))
        hall.settle()


def drops(hall: Hall) -> list[Counter[str]]:
    """What each broker let go, by reason."""
    return [desk.network.clients.drops for desk in hall.desks]


@pytest.mark.parametrize("back_at", [0, 1, 2])
def test_what_a_copy_has_no_room_for_is_counted_where_the_session_is(back_at: int) -> None:
    """A client is away from B1, and B3 has a copy that stores too; wherever it comes back, it is so."""
    hall = hall_of_three()
    roamed(hall).lose()
    hall.settle()
    publish(hall, EVENTS)
    reader = hall.visit(back_at, "reader", lasts_s=300)
    hall.settle()
    missed = EVENTS - len(reader.got)
    assert 0 < missed < EVENTS
    assert drops(hall) == [Counter({FULL: missed}), Counter(), Counter({COPY_FULL: missed})]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("back_at", [0, 1, 2])
def test_who_comes_back_is_told_how_many_events_were_dropped(back_at: int, *, restarts: bool) -> None:
    """Once, wherever it comes back, also after the broker that had no room was started again."""
    hall = hall_of_three()
    roamed(hall).lose()
    hall.settle()
    publish(hall, EVENTS)
    if restarts:
        hall.restart("B1")
        hall.settle()
    reader = hall.visit(back_at, "reader", lasts_s=300)
    hall.settle()
    missed = EVENTS - len(reader.got)
    assert told_of(reader) == str(missed)
    reader.lose()
    again = hall.visit(back_at, "reader", lasts_s=300)
    hall.settle()
    assert told_of(again) is None


def told_of(visitor: Visitor) -> str | None:
    """How many events were dropped, as CONNACK says."""
    (connack,) = (packet for packet in visitor.inbox if isinstance(packet, ConnAckPacket))
    assert connack.session_present
    return dict(connack.user_properties).get("sojourn-dropped")


@pytest.mark.parametrize("back_at", [0, 1, 2])
def test_what_waited_before_a_copy_stored_is_counted_once_too(back_at: int) -> None:
    """Some events were stored at B1 before the client left, and take room of those that come after."""
    hall = hall_of_three()
    roamed(hall).lose()
    hall.now += 0.01
    silent = Silent(hall.desks[0], [])
    silent.send(
        ConnectPacket("reader", clean_start=False, session_expiry_interval=300, keep_alive=0, receive_max=2)
    )
    hall.settle()
    publish(hall, 8)
    assert len(silent.got) == 2
    silent.lose()
    hall.settle()
    publish(hall, EVENTS)
    reader = hall.visit(back_at, "reader", lasts_s=300)
    hall.settle()
    missed = EVENTS + 8 - len(reader.got)
    assert missed > EVENTS / 2
    assert sum(one[FULL] for one in drops(hall)) == missed
