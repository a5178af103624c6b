"""Retained values agree again after a broker had no room for some of them."""

from __future__ import annotations

import msgspec
import pytest

from sojourn.broker.network import RETAINED_LOOK_S
from sojourn.mqtt.limits import Limits
from tests.live.hall import Desk, Hall, line
from tests.live.test_reconciling import visitor


def values(desk: Desk) -> dict[str, bytes]:
    """What a broker has retained."""
    kept = desk.core.state.retained._kept
    return {topic: bytes(message.payload) for topic, message in kept.items()}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_broker_at_its_limit_learns_the_values_later(*, restarts: bool) -> None:
    """B2 has room for four; when others are cleared it asks again, also after a restart."""
    config = line(3)
    hall = Hall(config)
    two = hall.by_name["B2"]
    two.settings = msgspec.structs.replace(two.settings, limits=Limits(retained_messages_max=4))
    hall.restart("B2")
    hall.settle()
    writer = visitor(hall, 0, "writer")
    for number in range(6):
        writer.publish(f"topic/{number}", b"%d" % number, retain=True)
    hall.settle()
    assert len(values(hall.desks[0])) == len(values(hall.desks[2])) == 6
    assert len(values(two)) == 4
    for number in range(3):
        writer.publish(f"topic/{number}", b"", retain=True)
    hall.settle()
    if restarts:
        two.keep()
        hall.restart("B2")
        hall.settle()
    hall.wait(3 * RETAINED_LOOK_S)
    expected = {f"topic/{number}": b"%d" % number for number in range(3, 6)}
    assert [values(desk) for desk in hall.desks] == [expected] * 3
    assert not two.core.state.retained.lacks


def test_who_is_still_full_does_not_ask() -> None:
    """It would be told the same again and again."""
    hall = Hall(line(2))
    two = hall.by_name["B2"]
    two.settings = msgspec.structs.replace(two.settings, limits=Limits(retained_messages_max=2))
    hall.restart("B2")
    hall.settle()
    writer = visitor(hall, 0, "writer")
    for number in range(4):
        writer.publish(f"topic/{number}", b"%d" % number, retain=True)
    hall.settle()
    sent = two.network.links.channels["B1"].last
    hall.wait(5 * RETAINED_LOOK_S)
    assert two.network.links.channels["B1"].last == sent
    assert two.core.state.retained.lacks
