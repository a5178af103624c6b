"""Events that a client of a network is not sent, being too large or too old, are done with as if it were."""

from __future__ import annotations

import pytest
from mqtt5 import PublishPacket, QoS

from tests.live.hall import Hall, Visitor, line


def published(writer: Visitor, payload: bytes, expiry_s: int | None = None) -> None:
    """Publish an event that lives so long."""
    writer.send(
        PublishPacket("news", payload, qos=QoS.AT_LEAST_ONCE, packet_id=1, message_expiry_interval=expiry_s)
    )
    writer.desk.hall.settle()


@pytest.mark.parametrize("comes_to", [0, 1])
@pytest.mark.parametrize("waits", [False, True])
def test_what_a_client_is_not_sent_makes_nothing_come_twice(comes_to: int, *, waits: bool) -> None:
    """What came after it was acknowledged, and does not come again at the next connection, here or there."""
    hall = Hall(line(3))
    reader = hall.visit(0, "reader", lasts_s=300, max_packet_size=200)
    hall.settle()
    reader.subscribe("news")
    writer = hall.visit(2, "writer")
    hall.settle()
    core = reader.desk.core
    if waits:
        core.blocked(reader.number)
    published(writer, b"first", 5 if waits else None)
    published(writer, b"large" * 100)
    published(writer, b"second")
    hall.wait(6)
    core.drained(reader.number, hall.now)
    reader.desk.carry_out()
    hall.settle()
    expected = [b"second"] if waits else [b"first", b"second"]
    assert reader.got == expected
    assert core.state.counters.dropped["expired"] == waits
    assert core.state.counters.dropped["larger than the client takes"] == 1
    reader.lose()
    again = hall.visit(comes_to, "reader", lasts_s=300)
    hall.settle()
    assert again.got == []
    published(writer, b"third")
    assert again.got == [b"third"]
