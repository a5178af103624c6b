"""Large events, and many of them, on their way to a client that comes back elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from mqtt5 import ConnectPacket

from sojourn.live.config import Config
from sojourn.mqtt.limits import Limits
from tests.live.hall import Hall, Visitor, line

MIB = 1 << 20
EVENTS = 40


class Silent(Visitor):
    """A client that answers nothing: what it is sent stays on its way."""

    def send(self, packet: Any) -> None:
        """Send nothing but what the test wants sent."""
        if not type(packet).__name__.startswith("PubAck"):
            super().send(packet)


def roomy(**options: Any) -> Config:
    """Two brokers with room for 64 MiB for each client."""
    return msgspec.structs.replace(line(2, **options), limits=Limits(queue_bytes_max=64 * MIB))


def told(hall: Hall) -> list[bytes]:
    """Publish events of 1 MiB each at the first broker; return what each begins with."""
    writer = hall.visit(0, "writer", clean_start=True)
    heads = [b"%03d" % number for number in range(EVENTS)]
    for head in heads:
        writer.publish("news", head.ljust(MIB, b"."))
        hall.settle()
    return heads


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_forty_events_of_a_mebibyte_that_waited_arrive_elsewhere_in_order(scheme: str) -> None:
    """They are more than one frame may hold, and travel in several."""
    hall = Hall(roomy(scheme=scheme))
    first = hall.visit(0, "reader", lasts_s=300)
    hall.settle()
    first.subscribe("news")
    first.lose()
    heads = told(hall)
    second = hall.visit(1, "reader", lasts_s=300)
    hall.settle()
    assert second.inbox.pop().session_present
    assert [payload[:3] for payload in second.got] == heads
    assert not hall.desks[0].network.clients.drops


def test_a_session_with_forty_mebibytes_on_their_way_moves() -> None:
    """The session itself is larger than a frame may be: it goes in pieces, and all is sent again."""
    hall = Hall(roomy())
    hall.now += 0.01
    first = Silent(hall.desks[0], [])
    hall.settle()
    first.send(ConnectPacket("reader", clean_start=False, session_expiry_interval=300, keep_alive=0))
    hall.settle()
    first.subscribe("news")
    heads = told(hall)
    assert len(first.got) == EVENTS
    first.lose()
    second = hall.visit(1, "reader", lasts_s=300)
    hall.settle()
    assert second.inbox.pop().session_present
    assert [payload[:3] for payload in second.got] == heads


def test_what_is_stored_for_one_client_keeps_to_its_limit() -> None:
    """Beyond it the newest are dropped, and that is counted; what was stored before arrives."""
    hall = Hall(line(2))
    first = hall.visit(0, "reader", lasts_s=300)
    hall.settle()
    first.subscribe("news")
    first.lose()
    heads = told(hall)
    second = hall.visit(1, "reader", lasts_s=300)
    hall.settle()
    got = [payload[:3] for payload in second.got]
    assert got == heads[: len(got)]
    assert 14 <= len(got) <= 16
    assert hall.desks[0].network.clients.drops["queue full"] == EVENTS - len(got)
