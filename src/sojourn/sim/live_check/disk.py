"""A broker's store as a disk has it: what was written, what of that survives the machine, and its room.

What was written survives the process. What was also synced survives the machine; of the rest a beginning
does, in whole records, since a record that is torn in the middle is known by its checksum and left out.

`Keeper` does for a simulated process what `live/store/keeper.py` does for a real one: a full disk makes the
broker refuse, the room that was set aside takes what it took in already, and where that is not enough the
process ends before anybody hears of what is not safe.
"""

from __future__ import annotations

import random

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker

ROOM_CHECK_S = 2.0
RESERVE_RECORDS = 2_000
"""How many records fit into the room that is set aside for a full disk."""
FULL = "The broker's store is full; try again later."


class NoRoomError(Exception):
    """Nothing more can be made safe: the process ends before anybody hears of it."""


class Disk:
    """Records in order: batches of entries, and snapshots that take the place of all before."""

    def __init__(self) -> None:
        self.records: list[list[bytes] | bytes] = []
        self.synced = 0
        """How many of them survive the machine."""
        self.synced_s = 0.0
        """Since when that is so."""
        self.slow_until_s = 0.0
        """Until when nothing is synced in passing."""
        self.is_full = False
        self._snapshot = 0
        """The place of the last snapshot among them."""

    def append(self, record: list[bytes] | bytes, now_s: float, *, sync: bool) -> None:
        """Write a record."""
        if isinstance(record, bytes):
            self._snapshot = len(self.records)
        self.records.append(record)
        if sync:
            self.sync(now_s)

    def sync(self, now_s: float) -> None:
        """Let all that was written survive the machine, and let go of what a snapshot replaces."""
        del self.records[: self._snapshot]
        self._snapshot = 0
        self.synced = len(self.records)
        self.synced_s = now_s

    def lose_power(self, draw: random.Random, *, loses_all: bool = False) -> int:
        """Keep what was synced and a beginning of the rest, or none; return how many records are lost."""
        kept = self.synced if loses_all else draw.randint(self.synced, len(self.records))
        lost = len(self.records) - kept
        del self.records[kept:]
        places = [place for place, record in enumerate(self.records) if isinstance(record, bytes)]
        self._snapshot = places[-1] if places else 0
        self.synced = kept
        return lost

    def erase(self) -> None:
        """Lose everything."""
        self.records.clear()
        self.synced = self._snapshot = 0

    def read(self) -> tuple[bytes | None, list[bytes]]:
        """Return the last snapshot, if there is one, and the entries after it."""
        snapshot: bytes | None = None
        entries: list[bytes] = []
        for record in self.records:
            if isinstance(record, bytes):
                snapshot, entries = record, []
            else:
                entries += record
        return snapshot, entries


class Keeper:
    """Makes safe what one process notes."""

    def __init__(self, disk: Disk, *, power_safe: bool) -> None:
        self.disk = disk
        self.power_safe = power_safe
        self.look_again_s: float | None = None
        """When to look whether there is room again, by the broker's clock."""
        self._reserve = 0 if disk.is_full else RESERVE_RECORDS

    def commit(self, broker: LiveBroker, entries: list[bytes], now_s: float) -> facts.Remembered | None:
        """Make entries safe; return what the broker is to be told."""
        if not entries:
            return None
        if not self.disk.is_full:
            self.disk.append(entries, now_s, sync=self.power_safe)
            return None
        if not self._reserve:
            raise NoRoomError
        is_news = self.look_again_s is None
        self.look_again_s = broker.now_s + ROOM_CHECK_S
        self._reserve -= 1
        self.disk.append(entries, now_s, sync=self.power_safe)
        return facts.StoreFilled(FULL) if is_news else None

    def look_for_room(self, broker: LiveBroker) -> facts.Remembered | None:
        """Look whether there is room again, if it is time; return what the broker is to be told."""
        if self.look_again_s is None or broker.now_s < self.look_again_s:
            return None
        self.look_again_s = broker.now_s + ROOM_CHECK_S
        if self.disk.is_full:
            return None
        self._reserve = RESERVE_RECORDS
        self.look_again_s = None
        return facts.StoreMended()

    def keep(self, broker: LiveBroker, now_s: float) -> None:
        """Let a snapshot take the place of all entries."""
        self.disk.append(broker.snapshot(), now_s, sync=True)
