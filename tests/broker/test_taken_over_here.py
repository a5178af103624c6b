"""A client that comes again to its broker while that still has its old connection, as after a break."""

from __future__ import annotations

import mqtt5
import pytest

from sojourn.broker.settings import AtOnce
from tests.broker.crew import Silent
from tests.live.hall import Hall, line


@pytest.mark.parametrize("first", [["b0"], ["b0", "b1"], ["a0", "a1"], ["a0", "b0", "a1", "b1"]])
@pytest.mark.parametrize("given", [1, 1_000])
def test_what_is_answered_before_its_turn_to_be_given_is_not_sent_again(first: list[str], given: int) -> None:
    """It had waited behind the old connection's window, and the new one's was larger.

    What is stored is given in parts, and of two publishers one's events may be answered first.
    """
    hall = Hall(line(2), at_once=AtOnce(given=given))
    old = Silent(hall, 0, "reader", lasts_s=1_000, receive_max=2)
    old.subscribe("t")
    hall.settle()
    writers = [hall.visit(1, "a"), hall.visit(1, "b")]
    names = [f"{name}{number}" for number in range(3) for name in "ab"]
    for at, name in enumerate(names):
        writers[at % 2].publish("t", name.encode())
        hall.settle()
    assert len(hall.desks[0].core.state.sessions["reader"].queue) == 4, "they wait behind two"
    new = Silent(hall, 0, "reader", lasts_s=1_000, receive_max=4)
    sent = [bytes(event.payload).decode() for event in new.events]
    assert sent == names[:4]
    for event, name in zip(new.events[:], sent, strict=True):
        if name in first:
            assert event.packet_id is not None
            new.send(mqtt5.PubAckPacket(event.packet_id))
    hall.wait(1.0)
    for event, name in zip(new.events[:4], sent, strict=True):
        if name not in first:
            assert event.packet_id is not None
            new.send(mqtt5.PubAckPacket(event.packet_id))
    hall.wait(1.0)
    for event in new.events[4:]:
        assert event.packet_id is not None
        new.send(mqtt5.PubAckPacket(event.packet_id))
    hall.wait(1.0)
    assert [bytes(event.payload).decode() for event in new.events] == names
