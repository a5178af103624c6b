"""What a machine holds of one broker, where journals are copied: batches with numbers after a snapshot.

It is a `Disk` for whoever plays the broker, and what the council of the machine ships and compares.
"""

from __future__ import annotations

import zlib

import msgspec

from sojourn.sim.live_check.disk import Disk


class SeatDisk(Disk):
    """The journal of one broker at one machine."""

    def __init__(self, first: int = 1) -> None:
        super().__init__()
        self.first = first
        """The number of the first batch after the snapshot."""
        self.snapshot: bytes | None = None
        self.batches: list[list[bytes]] = []

    @property
    def next(self) -> int:
        """The number of the batch that comes next."""
        return self.first + len(self.batches)

    def append(self, record: list[bytes] | bytes, _now_s: float, *, sync: bool) -> None:  # noqa: ARG002 - the disk's signature
        """Write a batch, or a snapshot that takes the place of all before; power is never lost here."""
        if isinstance(record, bytes):
            self.first, self.snapshot, self.batches = self.next, record, []
        else:
            self.batches.append(record)

    def sync(self, now_s: float) -> None:
        """Note the time: whatever was written is there."""
        self.synced_s = now_s

    def read(self) -> tuple[bytes | None, list[bytes]]:
        """Return the last snapshot, if there is one, and the entries after it."""
        return self.snapshot, [entry for batch in self.batches for entry in batch]

    def check(self, number: int) -> int | None:
        """Return a checksum of what is before a batch; None if that can no longer be told."""
        if not self.first <= number <= self.next:
            return None
        if number == self.first:
            return zlib.crc32(self.snapshot or b"")
        return zlib.crc32(written(self.batches[number - self.first - 1]))


written = msgspec.msgpack.Encoder().encode
read_batch = msgspec.msgpack.Decoder(list[bytes]).decode
