"""Journal batches and snapshots as bytes: whatever happens to a file, a reader knows how far it is whole.

A *segment* begins with a head that names its first batch. A *batch* is all entries of one loop turn:

    segment head   magic SJRN, format, number of the first batch, checksum
    batch head     magic SJRB, length of the body, number, checksum of the body, checksum of this head
    batch body     the entries, a MessagePack array of byte strings

Batches are numbered without gaps, from 1 in the life of a store; a snapshot carries the number of the batch
that comes after it. The head's own checksum is what tells a torn tail from damage: a length that can be
trusted and bytes that are missing is a write that was cut short, a length that cannot be trusted is damage.

| what follows the last whole batch | the ending |
| --- | --- |
| nothing | `CLEAN` |
| the beginning of one more batch, or zeros, or one whose body is wrong and that nothing follows | `TORN` |
| a head or body that is wrong with more after it, a number that jumps, another format | `CORRUPT` |

A torn tail is normal after a process was killed or the power failed: nobody was told that it is safe. Damage
is not, and what comes after it is never read as if nothing had happened.

Everything here is bytes in, bytes out; files are `live/store/journal.py`'s business.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from sojourn.errors import SojournError

FORMAT = 1
"""The version of what is described above; a reader refuses a higher one."""
LATER = "and this release reads up to"
"""What every refusal of a later format says: such a store is not damaged."""
BODY_BYTES_MAX = (1 << 32) - 1

_SEGMENT = struct.Struct(">4sIQ")
_BATCH = struct.Struct(">4sIQI")
_SNAPSHOT = struct.Struct(">4sIQQI")
_CHECKSUM = struct.Struct(">I")
_SEGMENT_MAGIC, _BATCH_MAGIC, _SNAPSHOT_MAGIC = b"SJRN", b"SJRB", b"SJRS"

SEGMENT_HEAD_BYTES = _SEGMENT.size + _CHECKSUM.size
BATCH_HEAD_BYTES = _BATCH.size + _CHECKSUM.size
SNAPSHOT_HEAD_BYTES = _SNAPSHOT.size + _CHECKSUM.size

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


class RecordError(SojournError):
    """Bytes that should be a snapshot are not, or not a whole one."""


class Verdict(Enum):
    """How the batches of a segment end."""

    CLEAN = "clean"
    TORN = "torn"
    CORRUPT = "corrupt"


class Ending(NamedTuple):
    """Where the whole batches of a segment end, and what follows."""

    verdict: Verdict
    at: int
    """How many bytes of the segment are whole."""
    next_number: int
    """The number that the next batch has."""
    why: str = ""
    """What is wrong at that place, as the end of a sentence."""


class Batch(NamedTuple):
    """One whole batch."""

    number: int
    at: int
    """Where it begins."""
    entries: list[bytes]


def segment_head(first: int) -> bytes:
    """Return what a segment begins with whose first batch has this number."""
    return _sealed(_SEGMENT.pack(_SEGMENT_MAGIC, FORMAT, first))


def write_batch(number: int, entries: Sequence[bytes]) -> bytes:
    """Return one batch as bytes."""
    body = _encode(entries)
    if len(body) > BODY_BYTES_MAX:
        raise RecordError(f"A batch has at most {BODY_BYTES_MAX} bytes; this one has {len(body)}.")
    head = _BATCH.pack(_BATCH_MAGIC, len(body), number, zlib.crc32(body))
    return b"".join((head, _CHECKSUM.pack(zlib.crc32(head)), body))


def write_snapshot(number: int, state: bytes) -> bytes:
    """Return a snapshot of the state before the batch of that number, as bytes."""
    return _sealed(_SNAPSHOT.pack(_SNAPSHOT_MAGIC, FORMAT, number, len(state), zlib.crc32(state))) + state


def read_snapshot(data: bytes, expected: int) -> bytes:
    """Return the state in a snapshot that has the number it should have, or say what is wrong with it."""
    length, checksum = _read_snapshot_head(data, expected)
    state = data[SNAPSHOT_HEAD_BYTES:]
    if len(state) != length:
        raise RecordError(f"it has {len(state)} bytes of state where {length} were written")
    if zlib.crc32(state) != checksum:
        raise RecordError("its checksum is wrong")
    return state


def _read_snapshot_head(data: bytes, expected: int) -> tuple[int, int]:
    """Return the length and the checksum of the state in a snapshot."""
    if len(data) < SNAPSHOT_HEAD_BYTES:
        raise RecordError(f"it has {len(data)} bytes, fewer than a snapshot's head")
    magic, version, number, length, checksum = _SNAPSHOT.unpack_from(data)
    if magic != _SNAPSHOT_MAGIC or not _is_sealed(data, 0, _SNAPSHOT.size):
        raise RecordError("its head is damaged")
    if version > FORMAT:
        raise RecordError(f"its format is {version}, {LATER} {FORMAT}")
    if number != expected:
        raise RecordError(f"it was taken before batch {number} and not {expected}")
    return length, checksum


class SnapshotCheck:
    """Looks at a snapshot in the parts that it comes in, so that nobody has to read a large one at once."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._wanted: tuple[int, int] | None = None
        """Length and checksum of the state, as the head says."""
        self._found = (0, 0)

    def add(self, data: bytes) -> None:
        """Look at one more part; the first has the whole head."""
        if self._wanted is None:
            try:
                self._wanted = _read_snapshot_head(data, self._expected)
            except RecordError:
                self._wanted = (-1, -1)
            data = data[SNAPSHOT_HEAD_BYTES:]
        length, checksum = self._found
        self._found = length + len(data), zlib.crc32(data, checksum)

    @property
    def is_sound(self) -> bool:
        """Whether all parts together are what `read_snapshot` would take."""
        return self._found == self._wanted


class SegmentReader:
    """The batches of one segment, in order; `ending` says how they end once all were read.

    `first` is the number that the segment should begin with, as its name says.
    """

    def __init__(self, data: bytes, first: int) -> None:
        self._data = data
        self._view = memoryview(data)
        self._first = first
        self.ending = Ending(Verdict.CLEAN, 0, first)

    def __iter__(self) -> Iterator[Batch]:
        """Yield every whole batch up to the first that is not."""
        wrong = self._check_head()
        if wrong is not None:
            self.ending = wrong
            return
        at, number = SEGMENT_HEAD_BYTES, self._first
        while at < len(self._data):
            found = self._read(at, number)
            if isinstance(found, Ending):
                self.ending = found
                return
            end, entries = found
            # Noted before the batch is handed out, so that who stops half-way knows how far it got.
            self.ending = Ending(Verdict.CLEAN, end, number + 1)
            yield Batch(number, at, entries)
            at, number = end, number + 1
        self.ending = Ending(Verdict.CLEAN, at, number)

    def _check_head(self) -> Ending | None:
        data, first = self._data, self._first
        if len(data) < SEGMENT_HEAD_BYTES:
            if segment_head(first).startswith(data) or not any(data):
                return Ending(Verdict.TORN, 0, first, "the head of the segment is not complete")
            return Ending(Verdict.CORRUPT, 0, first, "the head of the segment is damaged")
        magic, version, number = _SEGMENT.unpack_from(data)
        if magic != _SEGMENT_MAGIC or not _is_sealed(data, 0, _SEGMENT.size):
            return Ending(Verdict.CORRUPT, 0, first, "the head of the segment is damaged")
        if version > FORMAT:
            why = f"the segment has format {version}, {LATER} {FORMAT}"
            return Ending(Verdict.CORRUPT, 0, first, why)
        if number != first:
            why = f"the segment begins with batch {number} where {first} was expected"
            return Ending(Verdict.CORRUPT, 0, first, why)
        return None

    def _read(self, at: int, number: int) -> tuple[int, list[bytes]] | Ending:
        """Return where a batch ends and its entries, or how the segment ends here."""
        data, left = self._data, len(self._data) - at
        if left < BATCH_HEAD_BYTES:
            beginning = data[at : at + 4]
            if _BATCH_MAGIC.startswith(beginning) or not any(data[at:]):
                return Ending(Verdict.TORN, at, number, "the head of a batch is not complete")
            return Ending(Verdict.CORRUPT, at, number, "what follows is no batch")
        magic, length, found, checksum = _BATCH.unpack_from(data, at)
        if magic != _BATCH_MAGIC or not _is_sealed(data, at, _BATCH.size):
            if not any(self._view[at:]):
                return Ending(Verdict.TORN, at, number, "zeros follow, as a failure of power leaves them")
            return Ending(Verdict.CORRUPT, at, number, "the head of a batch is damaged")
        if found != number:
            why = f"batch {found} follows where {number} was expected"
            return Ending(Verdict.CORRUPT, at, number, why)
        return self._read_body(at, number, length, checksum)

    def _read_body(
        self, at: int, number: int, length: int, checksum: int
    ) -> tuple[int, list[bytes]] | Ending:
        data, start = self._data, at + BATCH_HEAD_BYTES
        end = start + length
        if end > len(data):
            return Ending(Verdict.TORN, at, number, f"{end - len(data)} bytes of batch {number} are missing")
        if zlib.crc32(self._view[start:end]) != checksum:
            is_last = end == len(data)
            verdict = Verdict.TORN if is_last else Verdict.CORRUPT
            return Ending(verdict, at, number, f"the checksum of batch {number} is wrong")
        try:
            return end, _decode(self._view[start:end])
        except msgspec.MsgspecError as error:
            return Ending(Verdict.CORRUPT, at, number, f"batch {number} does not read ({error})")


class BatchHead(NamedTuple):
    """What the head of a batch says."""

    number: int
    size: int
    """Bytes of the batch, with its head."""
    checksum: int


def batch_head(head: bytes) -> BatchHead:
    """Read the head of a batch that is whole."""
    _, length, number, checksum = _BATCH.unpack_from(head)
    return BatchHead(number, BATCH_HEAD_BYTES + length, checksum)


def is_batch(data: bytes, number: int) -> bool:
    """Whether bytes are one whole batch of that number."""
    if len(data) < BATCH_HEAD_BYTES or not _is_sealed(data, 0, _BATCH.size):
        return False
    head = batch_head(data)
    body = memoryview(data)[BATCH_HEAD_BYTES:]
    return (head.number, head.size) == (number, len(data)) and zlib.crc32(body) == head.checksum


def snapshot_checksum(head: bytes) -> int:
    """Return the checksum of the state in a snapshot, from its head."""
    return int(_SNAPSHOT.unpack_from(head)[4])


def entries_of(batch: bytes, number: int) -> list[bytes]:
    """Return the entries of one batch that came from elsewhere, or say what is wrong with it."""
    reader = SegmentReader(segment_head(number) + batch, number)
    found = list(reader)
    if len(found) != 1 or reader.ending.verdict is not Verdict.CLEAN:
        raise RecordError(f"it is not batch {number}, or not a whole one")
    return found[0].entries


def batches_after(data: bytes, at: int) -> Iterator[Batch]:
    """Yield whatever whole batches are found beyond a damaged place, whatever their numbers are."""
    while (at := data.find(_BATCH_MAGIC, at)) >= 0:
        if len(data) - at < BATCH_HEAD_BYTES:
            return
        _, length, number, checksum = _BATCH.unpack_from(data, at)
        body = data[at + BATCH_HEAD_BYTES : at + BATCH_HEAD_BYTES + length]
        if not _is_sealed(data, at, _BATCH.size) or len(body) < length or zlib.crc32(body) != checksum:
            at += 1
            continue
        try:
            yield Batch(number, at, _decode(body))
        except msgspec.MsgspecError:
            at += 1
        else:
            at += BATCH_HEAD_BYTES + length


def _sealed(head: bytes) -> bytes:
    return head + _CHECKSUM.pack(zlib.crc32(head))


def _is_sealed(data: bytes, at: int, size: int) -> bool:
    (checksum,) = _CHECKSUM.unpack_from(data, at + size)
    return zlib.crc32(data[at : at + size]) == int(checksum)
