"""Messages and notes of an election as bytes: read back as they were, and refused when they are none."""

import contextlib

import pytest

from sojourn.adhoc.election import messages as m
from sojourn.adhoc.election.codec import (
    CodecError,
    decode_message,
    decode_note,
    encode_message,
    encode_note,
)
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

EVENT = Event({"value": 7, "place": {"floor": 2}}, topic="a/b", source="s", sequence=3)
KEPT = m.Kept(EVENT, 1.5, m.Custody(4, 1, 9), is_copy=False, is_seen_to=True, body=b"\x00x")
WANTED = Filter.parse("value > 3 OR topic LIKE 'a/%'")
WHATS: list[m.What] = [
    m.Refresh(1, WANTED, 0.5, (("s", 1), ("t", 2)), whole=True),
    m.Refreshed(1, ask_whole=False),
    m.Publish((KEPT, m.Kept(EVENT, 2.0))),
    m.Stored((("s", 3),)),
    m.Deliver((KEPT,)),
    m.Handover(2, (m.Entry(7, WANTED, 0.0, 1.0, frozenset({("s", 1)})),), (KEPT,)),
    m.HandedOver(2),
]
MESSAGES: list[m.Message] = [
    m.Flood(1, 2, 3, m.Search()),
    m.Flood(1, 2, 3, m.Candidacy()),
    m.Flood(1, 2, 3, m.Beacon((1.5, 2))),
    *(m.Routed(1, 2, 3, 4, 5, what) for what in WHATS),
]
NOTES: list[m.Note] = [
    m.Began(3),
    m.Wants(WANTED, 1.0),
    m.Owes(KEPT),
    m.Paid((("s", 3),)),
    m.Elected(2, (1.0, 5)),
    m.Took(KEPT),
    m.SeenTo((("s", 3),)),
    m.GaveAway(),
    m.Showing(KEPT, 4),
    m.Saw(4),
    m.Knows((("s", 3),), 4),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message.what).__name__)
def test_a_message_is_read_back_as_it_was(message: m.Message) -> None:
    """Whole, and refused at every shorter length."""
    data = encode_message(message)
    assert decode_message(data) == message
    for length in range(len(data)):
        with pytest.raises(CodecError):
            decode_message(data[:length])


@pytest.mark.parametrize("note", NOTES, ids=lambda note: type(note).__name__)
def test_a_note_is_read_back_as_it_was(note: m.Note) -> None:
    """Whole, and refused at every shorter length."""
    data = encode_note(note)
    assert decode_note(data) == note
    for length in range(len(data)):
        with pytest.raises(CodecError):
            decode_note(data[:length])


@pytest.mark.parametrize("position", range(0, 120, 3))
def test_a_changed_byte_is_read_as_something_or_refused(position: int) -> None:
    """What strangers send raises nothing but a `CodecError`."""
    for message in MESSAGES:
        data = bytearray(encode_message(message))
        for value in (0, 0x7F, 0x90, 0xC0, 0xDC, 0xFF):
            data[position % len(data)] = value
            with contextlib.suppress(CodecError):
                decode_message(bytes(data))
