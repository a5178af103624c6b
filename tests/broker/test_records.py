"""Batches as bytes: every truncation and every flipped bit is noticed, and nothing is read past damage."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.broker.records import (
    BATCH_HEAD_BYTES,
    SEGMENT_HEAD_BYTES,
    SNAPSHOT_HEAD_BYTES,
    RecordError,
    SegmentReader,
    SnapshotCheck,
    Verdict,
    batches_after,
    read_snapshot,
    segment_head,
    write_batch,
    write_snapshot,
)

Turns = list[list[bytes]]
turns_of_entries = st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=4), max_size=6)


def segment(turns: Turns, first: int = 1) -> bytes:
    """A segment with these batches."""
    return segment_head(first) + b"".join(
        write_batch(first + place, turn) for place, turn in enumerate(turns)
    )


def read(data: bytes, first: int = 1) -> tuple[Turns, SegmentReader]:
    """What can be read of a segment, and its reader."""
    reader = SegmentReader(data, first)
    return [batch.entries for batch in reader], reader


SMALL: Turns = [[b"one", b"two"], [b""], [b"three" * 3]]


@given(turns=turns_of_entries, first=st.integers(1, 1 << 60))
def test_what_was_written_is_read(turns: Turns, first: int) -> None:
    """Entries come back batch by batch, and the end is clean."""
    data = segment(turns, first)
    found, reader = read(data, first)
    assert found == turns
    assert reader.ending == (Verdict.CLEAN, len(data), first + len(turns), "")


@given(turns=turns_of_entries, data=st.data())
def test_every_prefix_is_whole_batches_and_a_torn_tail(turns: Turns, data: st.DataObject) -> None:
    """A write that was cut short takes its own batch along and no other."""
    whole = segment(turns)
    ends = [SEGMENT_HEAD_BYTES]
    for place, turn in enumerate(turns):
        ends.append(ends[-1] + len(write_batch(1 + place, turn)))
    cut = data.draw(st.integers(0, len(whole)))
    found, reader = read(whole[:cut])
    complete = sum(end <= cut for end in ends) - 1
    assert found == turns[: max(0, complete)]
    if cut in ends:
        assert reader.ending.verdict is Verdict.CLEAN
    else:
        assert reader.ending.verdict is Verdict.TORN
        assert reader.ending.at == (ends[complete] if complete >= 0 else 0)


def test_every_flipped_bit_is_noticed() -> None:
    """Wherever it is, the batches before it are read, none after it, and the end is not clean."""
    whole = segment(SMALL)
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            found, reader = read(bytes(damaged))
            assert found == SMALL[: len(found)]
            assert len(found) < len(SMALL)
            assert reader.ending.verdict is not Verdict.CLEAN
            assert reader.ending.at <= at


def test_damage_with_more_after_it_is_corruption() -> None:
    """It is never taken for a torn tail, whatever byte it is: also not if a length is damaged."""
    whole = segment(SMALL)
    last = len(whole) - len(write_batch(3, SMALL[2]))
    for at in range(last):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        assert read(bytes(damaged))[1].ending.verdict is Verdict.CORRUPT


def test_zeros_at_the_end_are_a_torn_tail() -> None:
    """A file system may have made room for a write that never came."""
    whole = segment(SMALL)
    for count in (1, 7, 5_000):
        found, reader = read(whole + bytes(count))
        assert found == SMALL
        assert reader.ending.verdict is Verdict.TORN
        assert reader.ending.at == len(whole)
    assert read(bytes(100))[1].ending.verdict is Verdict.CORRUPT


def test_a_number_that_jumps_is_corruption() -> None:
    """A batch that was lost, repeated or came from elsewhere is not skipped."""
    for numbers in ([1, 3], [1, 1], [2]):
        data = segment_head(1) + b"".join(write_batch(number, [b"x"]) for number in numbers)
        reader = SegmentReader(data, 1)
        count = len(list(reader))
        assert reader.ending.verdict is Verdict.CORRUPT
        assert reader.ending.why == f"batch {numbers[count]} follows where {count + 1} was expected"
    assert "begins with batch 5 where 1 was" in read(segment([[b"x"]], 5))[1].ending.why


def test_a_later_format_is_not_guessed_at() -> None:
    """A segment or snapshot of a later release is refused with both numbers."""
    for head, size in ((segment_head(1), 16), (write_snapshot(1, b""), 28)):
        later = bytearray(head[:size])
        later[4:8] = struct.pack(">I", 2)
        data = bytes(later) + struct.pack(">I", zlib.crc32(bytes(later)))
        if size == 16:
            assert "format 2, and this release reads up to 1" in read(data)[1].ending.why
        else:
            with pytest.raises(RecordError, match="format is 2"):
                read_snapshot(data, 1)


@settings(max_examples=30)
@given(garbage=st.binary(max_size=200))
def test_any_bytes_are_judged(garbage: bytes) -> None:
    """No bytes lead to anything but a verdict."""
    found, reader = read(segment(SMALL) + garbage)
    assert found == SMALL
    assert reader.ending.verdict is (Verdict.CLEAN if not garbage else reader.ending.verdict)
    read(garbage)


def test_what_is_whole_beyond_damage_can_be_counted() -> None:
    """For whoever has to say how much is given up."""
    whole = segment(SMALL)
    at = SEGMENT_HEAD_BYTES + BATCH_HEAD_BYTES
    damaged = whole[:at] + b"\0" + whole[at + 1 :]
    assert [batch.entries for batch in batches_after(damaged, SEGMENT_HEAD_BYTES)] == SMALL[1:]


def test_a_snapshot_is_whole_or_refused() -> None:
    """Every truncation and every flipped byte of a small one."""
    whole = write_snapshot(7, b"state")
    assert read_snapshot(whole, 7) == b"state"
    damaged = [whole[:cut] for cut in range(len(whole))] + [whole + b"x"]
    damaged += [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in range(len(whole))]
    for data in damaged:
        with pytest.raises(RecordError):
            read_snapshot(data, 7)
    with pytest.raises(RecordError, match="before batch 7 and not 8"):
        read_snapshot(whole, 8)


def test_a_snapshot_that_comes_in_parts_is_judged_as_one_that_is_read_at_once() -> None:
    """However it is cut behind its head; and every truncation and flipped byte is found."""
    whole = write_snapshot(7, b"some state")
    broken = [whole[:cut] for cut in range(len(whole))]
    broken += [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in range(len(whole))]
    for first in range(SNAPSHOT_HEAD_BYTES, len(whole) + 1):
        for size in (1, 3, 100):
            assert _is_sound(whole, first, size)
            assert not any(_is_sound(data, first, size) for data in broken)
    assert not SnapshotCheck(7).is_sound
    check = SnapshotCheck(8)
    check.add(whole)
    assert not check.is_sound


def _is_sound(data: bytes, first: int, size: int) -> bool:
    """Judge a snapshot of batch 7 of which the first part has so many bytes, and each other one so many."""
    check = SnapshotCheck(7)
    check.add(data[:first])
    for at in range(first, len(data), size):
        check.add(data[at : at + size])
    return check.is_sound
