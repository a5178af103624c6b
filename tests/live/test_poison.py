"""A frame that a neighbour cannot read does not keep those behind it from coming."""

from __future__ import annotations

import pytest

from sojourn.broker.messages import Part
from sojourn.broker.network import UNREADABLE
from tests.live.hall import Hall, line
from tests.live.test_reconciling import assert_all_links_are_up, subscribed, visitor

POISONS = {
    "no message": b"\xc1 this is no message",
    "empty": b"",
    "another kind": b"\x91\x63",
    "an event that is no packet": b"\x9b\x04\xa1s\x01\xa0\xc0\xc2\xc4\x03\x30\x07\x00\xc0\x00\xa0\x00\x00",
    "a piece in a piece": b"",
}


@pytest.mark.parametrize("name", POISONS)
def test_a_frame_that_cannot_be_read_is_skipped_and_counted(name: str) -> None:
    """Events before and after it arrive, also when the broker is told of it again after its death."""
    hall = Hall(line(3))
    reader = subscribed(hall, 2, "reader")
    writer = visitor(hall, 0, "writer")
    writer.publish("news", b"before")
    links = hall.desks[0].network.links
    body = POISONS[name]
    if name == "a piece in a piece":
        inner = links.wire.encode(Part(0, True, b"x"), hall.now)
        body = links.wire.encode(Part(0, True, inner), hall.now)
    links.channels["B2"].put(body)
    writer.publish("news", b"after")
    hall.settle()
    assert reader.got == [b"before", b"after"]
    assert_all_links_are_up(hall)
    two = hall.by_name["B2"]
    assert two.network.clients.drops[UNREADABLE] == 1
    assert [note.kind for note in two.notes].count("skipped") == 1
    hall.restart("B2")
    hall.settle()
    assert two.network.clients.drops[UNREADABLE] == 1
    writer.publish("news", b"later")
    hall.settle()
    assert reader.got == [b"before", b"after", b"later"]
    assert_all_links_are_up(hall)
