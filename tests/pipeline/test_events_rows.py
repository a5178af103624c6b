"""Offsets, rows and events of the data source, as values: no broker and no Spark."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from sojourn.live.client.inbox import Received
from sojourn.pipeline.events import offsets
from sojourn.pipeline.events.offsets import SILENT_US, SOURCES_KEPT, SOURCES_MAX, Between
from sojourn.pipeline.events.options import Options, SourceError
from sojourn.pipeline.events.reading import PARTITION_BYTES, PARTITION_ROWS, _pieces
from sojourn.pipeline.events.rows import Arrived, batch, outgoing, time_us


class Event(NamedTuple):
    """What offsets look at."""

    source: str
    sequence: int
    qos: int = 1


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_is_found_again_whatever_is_sent_in_between(seed: int) -> None:
    """Sources interleave otherwise, later events come first, and those of QoS 0 not at all."""
    draw = random.Random(seed)
    every = [
        Event(source, number * 3, draw.choice((0, 1, 2)))
        for source in "abc"
        for number in range(draw.randrange(1, 20))
    ]
    mixed = _interleaved(every, draw)
    cut, until = sorted(draw.sample(range(len(mixed) + 1), 2))
    start = offsets.advanced(offsets.initial(), mixed[:cut])
    end = offsets.advanced(start, mixed[cut:until])
    assert json.loads(json.dumps(end)) == end, "Spark keeps it as JSON"
    between = Between(start, end)
    sent_again = [event for event in _interleaved(mixed[cut:], draw) if event.qos]
    found = [event for event in sent_again if between.takes(event)]
    assert sorted(found) == sorted(event for event in mixed[cut:until] if event.qos)
    assert between.complete


def test_a_batch_of_events_without_numbers_is_found_again_by_their_count() -> None:
    """As many as were read; the next one is the next batch's."""
    start = offsets.advanced(offsets.initial(), [Event("", 0)] * 2)
    between = Between(start, offsets.advanced(start, [Event("", 0)] * 3))
    assert [between.takes(Event("", 0)) for _ in range(4)] == [True, True, True, False]


def _interleaved(events: list[Event], draw: random.Random) -> list[Event]:
    """Each source in its order, the sources mixed."""
    queues = {name: [event for event in events if event.source == name] for name in "abc"}
    mixed = []
    while left := [name for name, queue in queues.items() if queue]:
        mixed.append(queues[draw.choice(left)].pop(0))
    return mixed


def test_offsets_forget_sources_that_are_long_silent_and_no_others() -> None:
    """Unless there are more than any client remembers."""
    old = [Event(f"old{n}", n) for n in range(500)]
    new = [Event(f"new{n}", 2 * SILENT_US) for n in range(SOURCES_KEPT)]
    marks = offsets.advanced(offsets.initial(), old + new)["marks"]
    assert set(marks) == {event.source for event in new}
    many = [Event(f"many{n}", 2 * SILENT_US) for n in range(SOURCES_MAX + 5)]
    assert len(offsets.advanced(offsets.initial(), new + many)["marks"]) == SOURCES_MAX
    few = offsets.advanced(offsets.initial(), [*old, Event("now", 2 * SILENT_US)])
    assert len(few["marks"]) == 501


def test_offsets_of_earlier_checkpoints_are_read() -> None:
    """They did not tell what was kept, and counted all."""
    assert offsets.kept({"count": 7, "marks": {}}) == 7


def received(**more: Any) -> Received:
    """An event."""
    return Received(**{"topic": "t", "payload": b"", "attributes": {}, **more})


def test_time_is_the_brokers_unless_an_attribute_tells_it() -> None:
    """And that of arrival where no broker of ours numbered it."""
    numbered = received(source="p@b", sequence=5_000_000, attributes={"at": 7, "is": True, "far": 1e300})
    assert time_us(Arrived(numbered, 9)) == 5_000_000
    assert time_us(Arrived(numbered, 9), "at") == 7_000_000
    for unreadable in ("is", "far", "none"):
        assert time_us(Arrived(numbered, 9), unreadable) == 5_000_000
    assert time_us(Arrived(received(), 9)) == 9


def test_attributes_of_every_kind_are_texts_in_a_row() -> None:
    """What is no text as JSON writes it; what is nothing is left out."""
    event = received(attributes={"text": "a", "yes": True, "list": [1, 2], "nothing": None, "number": 1.5})
    (row,) = batch([Arrived(event, 0)]).to_pylist()
    assert dict(row["attributes"]) == {"text": "a", "yes": "true", "list": "[1, 2]", "number": "1.5"}
    assert row["time"] == datetime.fromtimestamp(0, UTC)


def test_partitions_are_cut_by_rows_and_by_bytes() -> None:
    """And an event larger than all that has one of its own."""
    small = [Arrived(received(), 0)] * (PARTITION_ROWS + 1)
    large = [Arrived(received(payload=b"x" * (PARTITION_BYTES + 1)), 0)] * 2
    assert [len(piece) for piece in _pieces(small + large)] == [PARTITION_ROWS, 2, 1]
    assert not list(_pieces([]))


def test_rows_become_events_in_an_order_that_does_not_depend_on_partitions() -> None:
    """By the column that orders them, then by topic and payload; nothing comes first."""
    rows = [{"time": at, "topic": "t", "n": n} for at, n in ((2, 1), (None, 2), (1, 3), (1, 1))]
    events = sorted(outgoing(dict(row), "", "time") for row in rows)
    assert [json.loads(event.payload)["n"] for event in events] == [2, 1, 3, 1]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"n": 1}, "goes to no topic"),
        ({"n": float("nan"), "topic": "t"}, "has NaN or an infinity"),
        ({"payload": 7, "topic": "t"}, "make it a string or binary"),
        ({"time": [1], "topic": "t"}, "cannot be ordered by a list"),
    ],
)
def test_rows_that_cannot_be_events_are_refused_in_a_sentence(row: dict[str, Any], said: str) -> None:
    """Which names the way out."""
    with pytest.raises(SourceError, match=said):
        outgoing(row, "", "time")


def test_payloads_go_as_they_are() -> None:
    """Texts, bytes, and nothing at all."""
    for payload, sent in (("é", "é".encode()), (bytearray(b"\0"), b"\0"), (None, b"")):
        assert outgoing({"payload": payload, "n": 1}, "t", "time").payload == sent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"BATCHMAX": "0"}, "batchMax is a whole number from 1 on, not '0'"),
        ({"batchmax": "ten"}, "not 'ten'"),
    ],
)
def test_options_that_are_none_are_refused_in_a_sentence(given: dict[str, str], said: str) -> None:
    """Their names do not care about case."""
    with pytest.raises(SourceError, match=said):
        Options(given).count("batchMax", 1)
    with pytest.raises(SourceError, match="true or false, not 'maybe'"):
        Options({"retain": "maybe"}).flag("retain", default=False)
    with pytest.raises(SourceError, match="The option url is missing"):
        Options(given).needed("url")
