"""Looks after one process that keeps copies, and says what people should know of it.

That is when a broker waits for its copies for so long that its clients should know, and when it goes on; what
keeps it from serving; who is missing to vote; and that a folder was taken away while the process ran.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from sojourn.broker.seats.council import Council
from sojourn.broker.seats.messages import Seat
from sojourn.broker.seats.waiting import Electorate
from sojourn.live.brokers.outbox import Outbox
from sojourn.live.seats.folders import Folders
from sojourn.live.seldom import Seldom

HELD_UP_S = 10.0
"""How long clients wait for an answer, before they are told that they wait in vain."""
WAITING_S = 5.0
"""How long a broker that does not serve yet is silent about that."""
PRESENCE_S = 1.0
"""How often it is looked whether what is held is still where it was."""
NOTICED_S = 5.0
"""How long too few are there to vote, before that is said."""

_log = logging.getLogger("sojourn.seats")


class Watch:
    """One process's eye on the broker whose home it is, and on who can vote."""

    def __init__(self, council: Council, name: str, now: float) -> None:
        self._council, self._name = council, name
        self._waiting, self._said_s = Seldom(_log), now
        """When it was last said what the broker waits for before it serves."""
        self._looked_s = now
        self._waits_since_s: float | None = None
        self._few_since_s: float | None = None
        self._few_said = False

    def look(self, outbox: Outbox, now: float) -> None:
        """Look whether what the broker promises waits, and for how long."""
        oldest_s = outbox.waits_since_s
        is_late = oldest_s is not None and now - oldest_s >= HELD_UP_S
        if not (self._council.at_risk(self._name) or is_late):
            self._goes_on(outbox, now)
            return
        if self._waits_since_s is None:
            self._waits_since_s = now
        if outbox.held_up or not (is_late or now - self._waits_since_s >= HELD_UP_S):
            return
        why = self._council.why_not(self._name)
        _log.warning(
            "%s acknowledges nothing for %g s: %s Clients that connect are told to try again (0x88)",
            self._name,
            HELD_UP_S,
            why,
        )
        outbox.hold_up(f"{self._name} cannot acknowledge anything at present: {why} Try another broker.")

    def _goes_on(self, outbox: Outbox, now: float) -> None:
        since_s, self._waits_since_s = self._waits_since_s, None
        if outbox.held_up:
            outbox.go_on()
            waited_s = now - since_s if since_s is not None else HELD_UP_S
            _log.warning("%s acknowledges again: its copies are whole, after %.0f s", self._name, waited_s)

    def wait_to_serve(self, waits_for: Callable[[], str], now: float) -> None:
        """Say now and then what the broker waits for, before it serves."""
        if now - self._said_s > WAITING_S:
            self._said_s = now
            self._waiting.warning("waits", "%s", waits_for())

    def look_at_files(self, folders: Folders, played: AbstractSet[str], now: float) -> list[str]:
        """Look now and then whether what is held is there; return the brokers of which there is no copy now.

        Notes of votes that were taken away are written anew: who keeps the stores of those that this process
        plays does the same.
        """
        if now - self._looked_s < PRESENCE_S:
            return []
        self._looked_s = now
        try:
            if folders.renew_votes():
                _log.error("The notes of votes in %s were taken away, and are written anew", folders.copies)
        except OSError as error:
            _log.error("The notes of votes in %s were taken away: %s", folders.copies, error.strerror)
        gone = folders.taken_away(played)
        for name in gone:
            _log.error("The copy of %s was taken away while the process ran; it is made anew", name)
        return gone

    def count_voters(self, now: float) -> None:
        """Say once when not one more process may go, and once when one may again."""
        found = self._council.ballot()
        if not found.missing or found.spare > 0:
            self._few_since_s = None
            if self._few_said:
                self._few_said = False
                _log.warning("%d of %d processes are here to vote about copies again", *_counts(found))
            return
        if self._few_since_s is None:
            self._few_since_s = now
        if not self._few_said and now - self._few_since_s >= NOTICED_S:
            self._few_said = True
            _log.warning(
                "%d of %d processes are here and remember their votes about copies, and %d have to: %s. "
                "Start %s; if disks were lost, start all, and they begin with what is left",
                *_counts(found),
                found.needed,
                "not one more may go" if not found.spare else "nothing is decided before more are back",
                ", ".join(found.missing),
            )


def _counts(found: Electorate) -> tuple[int, int]:
    return len(found.here), found.total


def who_plays(seat: Seat) -> str:
    """Say who plays a broker, and who has copies of it."""
    where = "at home" if seat.host == seat.name else f"by {seat.host}"
    followers = ", ".join(seat.followers) or "nobody"
    return f"{seat.name} is played {where} from term {seat.term} on; copies are with {followers}."
