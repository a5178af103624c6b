"""The end of a loop turn as a store sees it: a commit, now and then a snapshot, and what a full disk means.

A broker whose store cannot be written refuses whatever it would have to promise, and goes on serving the
rest. What it had taken in already is made safe in the room that was set aside (`Journal.reserve`); where even
that is not enough the journal is torn, and only the snapshot that is taken once there is room mends it.

That the broker refuses is a fact like others: without it, what was refused would be taken in on replay.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from sojourn.live.store.journal import JournalError
from sojourn.live.store.recording import REFUSING, Recording
from sojourn.mqtt.core import Core

if TYPE_CHECKING:
    from sojourn.broker.network import Network

ROOM_CHECK_S = 2.0

_log = logging.getLogger("sojourn.node")


class Safekeeping:
    """Makes safe what a broker was told."""

    def __init__(
        self, recording: Recording, core: Core, network: Network | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._recording = recording
        self._core = core
        self._network = network
        self._loop = loop

    def commit(self, now: float) -> None:
        """Make safe what the loop turn brought, before anybody hears of it."""
        recording = self._recording
        try:
            recording.journal.commit()
            if recording.wants_snapshot:
                recording.keep(self._core, self._network)
        except JournalError as error:
            self._short_of_room(str(error), now)

    def _short_of_room(self, why: str, now: float) -> None:
        """Make safe what was taken in already, and promise nothing more until there is room."""
        journal, state = self._recording.journal, self._core.state
        if state.refusing is None:
            _log.error("store", extra={"error": why})
            state.refusing = "The broker's store is full; try again later."
            self._recording.note(REFUSING, now, state.refusing)
            self._loop.call_later(ROOM_CHECK_S, self.look_for_room)
        journal.spend_reserve()
        try:
            journal.commit()
        except JournalError:
            journal.skip_pending()

    def look_for_room(self) -> None:
        """Promise again if there is room, or look again later."""
        recording, state = self._recording, self._core.state
        refusing = state.refusing
        if recording.journal.reserve():
            state.refusing = None  # before the snapshot: whoever comes back from it refuses nothing
            try:
                recording.keep(self._core, self._network)
            except JournalError:
                state.refusing = refusing
            else:
                _log.info("store", extra={"room": True})
                return
        self._loop.call_later(ROOM_CHECK_S, self.look_for_room)
