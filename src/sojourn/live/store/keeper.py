"""Keeps a broker's journal: commits what a turn noted, takes snapshots, and says what a full disk means.

A broker whose store cannot be written refuses whatever it would have to promise, and goes on serving the rest
(`StoreFilled`). What it had taken in already is made safe in the room that was set aside (`Journal.reserve`).
Where even that is not enough the broker must not go on: what it has in mind is not safe, so nobody may hear
of it. `NoRoomError` says so, the turn is not carried out, and the process ends; what it had promised is in
its store.
"""

from __future__ import annotations

import logging

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import Settings
from sojourn.live.store.journal import Journal, JournalError

ROOM_CHECK_S = 2.0
SNAPSHOT_ENTRIES = 200_000
SNAPSHOT_BYTES = 64 << 20
"""A snapshot takes the place of the entries when there are so many, or so large."""
SNAPSHOT_PAUSE_S = 30.0
"""After how long a snapshot that found no room is tried again."""
FULL = "The broker's store is full; try again later."

_log = logging.getLogger("sojourn.store")


class NoRoomError(JournalError):
    """Nothing more can be made safe; the broker is to end before anybody hears of what is not."""


class Keeper:
    """Makes safe what one broker notes."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.look_again_s: float | None = None
        """When to look whether there is room again; None while there is."""
        self._next_snapshot_s = 0.0

    @classmethod
    def open(
        cls, path: str, settings: Settings, life: str, now: float, *, power_safe: bool = False
    ) -> tuple[Keeper, LiveBroker]:
        """Open a store, or begin one; return its keeper and the broker that it leaves."""
        journal = Journal.open(path, broker=settings.name, power_safe=power_safe)
        try:
            snapshot, entries = journal.replay()
            broker = LiveBroker.revived(settings, life, now, snapshot, entries)
        except JournalError:
            journal.close()
            raise
        except Exception as error:
            journal.close()
            raise JournalError(
                f"The store {path} holds what this release cannot read ({_said(error)}); "
                f"`sojourn store check {path}` says more."
            ) from error
        journal.reserve()
        _log.info("revived", extra={"entries": journal.entries, "sessions": len(broker.core.state.sessions)})
        return cls(journal), broker

    def commit(self, broker: LiveBroker, entries: list[bytes]) -> facts.Remembered | None:
        """Make entries safe before anybody hears of them; return what the broker is to be told."""
        journal = self.journal
        for entry in entries:
            journal.append(entry)
        try:
            journal.commit()
        except JournalError as error:
            return self._short_of_room(str(error), broker.now_s)
        if journal.entries > SNAPSHOT_ENTRIES or journal.bytes > SNAPSHOT_BYTES:
            self._take_snapshot(broker)
        return None

    def _take_snapshot(self, broker: LiveBroker) -> None:
        """Let a snapshot take the place of the entries; if there is no room for one, they simply stay."""
        if broker.now_s < self._next_snapshot_s:
            return
        try:
            self.journal.keep(broker.snapshot())
        except JournalError as error:
            self._next_snapshot_s = broker.now_s + SNAPSHOT_PAUSE_S
            _log.warning("%s The journal goes on growing.", error)

    def _short_of_room(self, why: str, now: float) -> facts.Remembered | None:
        """Make safe what was taken in already; nothing more is promised until there is room."""
        is_news = self.look_again_s is None
        self.look_again_s = now + ROOM_CHECK_S
        self.journal.spend_reserve()
        try:
            self.journal.commit()
        except JournalError as error:
            raise NoRoomError(f"{error} The broker ends; what it promised is safe.") from None
        if not is_news:
            return None
        _log.error("store", extra={"error": why})
        return facts.StoreFilled(FULL)

    def look_for_room(self, now: float) -> facts.Remembered | None:
        """Look whether there is room again, if it is time; return what the broker is to be told."""
        if self.look_again_s is None or now < self.look_again_s:
            return None
        self.look_again_s = now + ROOM_CHECK_S
        if not self.journal.reserve():
            return None
        self.look_again_s = None
        _log.info("store", extra={"room": True})
        return facts.StoreMended()

    def close(self, broker: LiveBroker) -> None:
        """Leave a snapshot, so that the next start has nothing to tell again, and close the files."""
        try:
            for entry in broker.turn(broker.now_s).entries:  # of a full disk that was noticed at the end
                self.journal.append(entry)
            self.journal.commit()
            self.journal.keep(broker.snapshot())
        except JournalError as error:
            _log.warning("%s The next start reads the journal instead.", error)
        self.journal.close()


def _said(error: Exception) -> str:
    """Return what went wrong within a sentence."""
    return str(error).removesuffix(".") or type(error).__name__
