"""Keeps a broker's journal: commits what a turn noted, takes snapshots, and says what a full disk means.

A broker whose store cannot be written refuses whatever it would have to promise, and goes on serving the rest
(`StoreFilled`). What it had taken in already is made safe in the room that was set aside (`Journal.reserve`).
Where even that is not enough the broker must not go on: what it has in mind is not safe, so nobody may hear
of it. `NoRoomError` says so, the turn is not carried out, and the process ends; what it had promised is in
its store.

Snapshots are written by a child while the broker goes on (`aside.py`), but for the last one, when it stops,
and the one that mends a store which was taken away.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.records import LATER, write_snapshot
from sojourn.broker.reviving import Revival, at_once, reviving
from sojourn.broker.ruling import Rights
from sojourn.broker.settings import Settings
from sojourn.broker.state_codec import table_for
from sojourn.errors import typed
from sojourn.live.store.aside import Aside
from sojourn.live.store.errors import JournalError
from sojourn.live.store.following import Mark
from sojourn.live.store.journal import Journal

ROOM_CHECK_S = 2.0
PRESENCE_S = 1.0
"""How often it is looked whether the store is still where it was."""
SNAPSHOT_ENTRIES = 200_000
SNAPSHOT_BYTES = 64 << 20
"""A snapshot takes the place of the entries when there are so many, or so large."""
EARLY_ENTRIES = 10_000
"""Fewer are read again in half a second."""
EARLY_SHARE = 4
EARLY_S = 30.0
"""A snapshot takes their place earlier if it is small beside them, but not all the time."""
COPIED_ENTRIES = 2_000
COPIED_S = 10.0
"""The same where a journal is copied: then clients wait until somebody else has read it."""
SNAPSHOT_PAUSE_S = 30.0
"""After how long a snapshot that found no room is tried again."""
ASIDE_LOOK_S = 0.2
"""How often it is looked whether a snapshot has been written."""
ASIDE_S_MAX = 600.0
"""How long that may take, and to copy what came meanwhile; then it is given up."""
COPY_LOOK_S = 0.02
"""How often more of what came meanwhile is copied though nothing is committed."""
FULL = "The broker's store is full; try again later."

_log = logging.getLogger("sojourn.store")


class NoRoomError(JournalError):
    """Nothing more can be made safe; the broker is to end before anybody hears of what is not."""


class Keeper:
    """Makes safe what one broker notes."""

    def __init__(self, journal: Journal, *, is_copied: bool = False) -> None:
        self.journal = journal
        self._is_copied = is_copied
        self.look_again_s: float | None = None
        """When to look whether there is room again; None while there is."""
        self._next_snapshot_s = 0.0
        self._early_snapshot_s = 0.0
        self.is_gone = False
        """Whether the store was found to be gone; the next commit writes it anew, whatever it brings."""
        self._next_look_s = 0.0
        self._aside: tuple[Mark, Aside] | None = None
        """The snapshot that is being written."""
        self._aside_look_s = self._aside_until_s = 0.0
        self._is_written = False
        """Whether it is, and what was committed meanwhile is being copied."""

    @classmethod
    def open(
        cls,
        path: str,
        settings: Settings,
        life: str,
        now: float,
        *,
        power_safe: bool = False,
        rights: Rights = lambda _: (),
    ) -> tuple[Keeper, LiveBroker]:
        """Open a store, or begin one; return its keeper and the broker that it leaves, with these rights."""
        journal = Journal.open(path, broker=settings.name, power_safe=power_safe)
        try:
            return at_once(cls.opening(journal, settings, life, lambda: now, rights))
        except BaseException:
            journal.close()
            raise

    @classmethod
    def opening(
        cls,
        journal: Journal,
        settings: Settings,
        life: str,
        clock: Callable[[], float],
        rights: Rights,
        *,
        is_copied: bool = False,
    ) -> Generator[None, None, tuple[Keeper, LiveBroker]]:
        """Do the same from a journal that is open, and that nobody writes to meanwhile, with stops."""
        try:
            broker = yield from _reviving(journal, settings, life, clock, rights)
        except JournalError:
            raise
        except Exception as error:
            raise JournalError(
                f"The store {journal.path} holds what this release cannot read ({_said(error)}); "
                f"`sojourn store check {typed(journal.path)}` says more."
            ) from error
        journal.reserve()
        _log.info("revived", extra={"entries": journal.entries, "sessions": len(broker.core.state.sessions)})
        return cls(journal, is_copied=is_copied), broker

    def commit(self, broker: LiveBroker, entries: list[bytes]) -> facts.Remembered | None:
        """Make entries safe before anybody hears of them; return what the broker is to be told."""
        journal = self.journal
        if (self.is_gone or broker.now_s >= self._next_look_s) and self._is_gone(broker.now_s):
            self._renew(broker)
            return None
        try:
            journal.commit(entries)
        except JournalError as error:
            return self._short_of_room(str(error), broker.now_s)
        if self._aside is not None:
            self._look_at_aside(broker.now_s, has_committed=True)
            return None
        early = COPIED_ENTRIES if self._is_copied else EARLY_ENTRIES
        is_long = journal.entries >= early or journal.bytes > SNAPSHOT_BYTES
        # Who waits to be let in is in no snapshot: one that is due waits for a turn that leaves nobody so.
        if is_long and not broker.knocks and self._is_time_for_snapshot(broker.now_s):
            self._take_snapshot(broker)
        return None

    def _is_time_for_snapshot(self, now: float) -> bool:
        """Whether the entries are too many, or so many that a snapshot makes the next start much faster."""
        journal = self.journal
        if journal.entries > SNAPSHOT_ENTRIES or journal.bytes > SNAPSHOT_BYTES:
            return True
        early = COPIED_ENTRIES if self._is_copied else EARLY_ENTRIES
        if journal.entries < early or now < self._early_snapshot_s:
            return False
        return journal.bytes > (1 if self._is_copied else EARLY_SHARE) * journal.snapshot_bytes

    def _is_gone(self, now: float) -> bool:
        """Look now and then whether the store is still where it was."""
        if now >= self._next_look_s:
            self._next_look_s = now + PRESENCE_S
            self.is_gone = self.is_gone or self.journal.is_gone
        return self.is_gone

    def _renew(self, broker: LiveBroker) -> None:
        """Write the store anew, with everything that the broker has in mind."""
        self._give_up_aside()
        try:
            self.journal.renew(broker.snapshot(), broker.settings.name)
        except JournalError as error:
            raise NoRoomError(f"{error} The broker ends.") from None
        self.is_gone = False
        self.journal.reserve()

    def _take_snapshot(self, broker: LiveBroker) -> None:
        """Have a snapshot written that is to take the place of the entries."""
        now, journal = broker.now_s, self.journal
        if now < self._next_snapshot_s:
            return
        self._early_snapshot_s = now + (COPIED_S if self._is_copied else EARLY_S)
        mark = journal.mark()
        table_for(broker.network)  # loaded here: a child that loads nothing waits for no thread's lock
        try:
            aside = Aside(journal.new_snapshot(mark), lambda: write_snapshot(mark.number, broker.snapshot()))
        except OSError as error:
            self._no_snapshot(str(error.strerror), now)
            return
        self._aside, self._is_written = (mark, aside), False
        self._aside_look_s, self._aside_until_s = now + ASIDE_LOOK_S, now + ASIDE_S_MAX

    def _look_at_aside(self, now: float, *, has_committed: bool = False) -> None:
        """Go on with a snapshot that is being written, until it takes the place of what it holds."""
        if self._aside is None or (now < self._aside_look_s and not (has_committed and self._is_written)):
            return
        why = self._go_on_aside(*self._aside, now)
        if why:
            self._give_up_aside()
            self._no_snapshot(why, now)

    def _go_on_aside(self, mark: Mark, aside: Aside, now: float) -> str:
        """Look whether it is written, then copy what came meanwhile, a part a turn; say why there is none."""
        if not self._is_written:
            why = aside.outcome()
            if why:
                return why
            self._is_written = why == ""
            if self._is_written:
                self._aside_until_s = now + ASIDE_S_MAX
        if self.journal.torn:
            return "there was no room for what was committed meanwhile"
        if now >= self._aside_until_s:
            return "it took too long"
        self._aside_look_s = now + (COPY_LOOK_S if self._is_written else ASIDE_LOOK_S)
        if self._is_written:
            try:
                if self.journal.catch_up(mark):
                    self.journal.adopt(mark, aside.path)
                    self._aside = None
            except JournalError as error:
                return str(error)
        return ""

    def _give_up_aside(self) -> None:
        self.journal.give_up_following()
        if self._aside is not None:
            self._aside[1].give_up()
            self._aside = None

    def _no_snapshot(self, why: str, now: float) -> None:
        self._next_snapshot_s = now + SNAPSHOT_PAUSE_S
        _log.warning("There is no snapshot of the store: %s. The journal goes on growing.", why.rstrip("."))

    def _short_of_room(self, why: str, now: float) -> facts.Remembered | None:
        """Make safe what was taken in already; nothing more is promised until there is room.

        A snapshot that is being written, and the copy of what came meanwhile, may be what fills the disk:
        they go first, and if that is enough nobody is refused.
        """
        if self._aside is not None:
            self._give_up_aside()
            self._no_snapshot(why, now)
            with contextlib.suppress(JournalError):
                self.journal.commit()
                return None
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

    @property
    def next_look_s(self) -> float | None:
        """When to look for room, or for a snapshot that is being written; None if there is no need."""
        aside_s = self._aside_look_s if self._aside is not None else None
        return min((one for one in (self.look_again_s, aside_s) if one is not None), default=None)

    def look_for_room(self, now: float) -> facts.Remembered | None:
        """Look whether the store is there, and has room again; return what the broker is to be told."""
        self._is_gone(now)
        self._look_at_aside(now)
        if self.look_again_s is None or now < self.look_again_s:
            return None
        self.look_again_s = now + ROOM_CHECK_S
        if not self.journal.reserve():
            return None
        self.look_again_s = None
        _log.info("store", extra={"room": True})
        return facts.StoreMended()

    def abandon(self) -> None:
        """Let the store go as it is."""
        self._give_up_aside()
        self.journal.close()

    def close(self, broker: LiveBroker) -> None:
        """Leave a snapshot, so that the next start has nothing to tell again, and close the files."""
        self._give_up_aside()
        try:
            if self.journal.is_gone:
                broker.turn(broker.now_s)
                self._renew(broker)
            for entry in broker.turn(broker.now_s).entries:  # of a full disk that was noticed at the end
                self.journal.append(entry)
            self.journal.commit()
            self.journal.keep(broker.snapshot())
        except JournalError as error:
            _log.warning("%s The next start reads the journal instead.", error)
        self.journal.close()


def _reviving(
    journal: Journal, settings: Settings, life: str, clock: Callable[[], float], rights: Rights
) -> Revival:
    """Return the broker that a journal leaves; from the snapshot before if the last one makes no broker."""
    snapshot, entries = journal.replay()
    try:
        return (yield from reviving(LiveBroker, settings, life, clock, snapshot, entries, rights))
    except Exception as error:  # whatever a wrong snapshot leads to
        if LATER in str(error) or not journal.fall_back():
            raise
    snapshot, entries = journal.replay()
    return (yield from reviving(LiveBroker, settings, life, clock, snapshot, entries, rights))


def _said(error: Exception) -> str:
    """Return what went wrong within a sentence."""
    return str(error).removesuffix(".") or type(error).__name__
