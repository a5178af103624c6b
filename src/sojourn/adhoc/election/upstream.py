"""Two brokers that operate in a coordinated fashion, the alternative to merging (paper 003, 3.1 and 4).

A broker that hears a senior one stays the broker of its nodes and is to the senior one what a node is: a
source of all events that it keeps, and a displayer that wants everything. So brokers form a tree towards the
most senior one, over which every event comes to every part.

Two rules keep the names of events in the fixed network sound (`Custody`): a broker always sends what was not
acknowledged from the first on, so that what the senior one has of a term has no holes; and what comes down is
a copy, which the one above sees to.
"""

from collections.abc import Iterable, Iterator

from sojourn.adhoc.election.messages import EventId, Kept, Publish, Refresh, Seniority
from sojourn.adhoc.election.portions import portion
from sojourn.adhoc.election.user import SEEN_MAX
from sojourn.interest.filters import Filter

EVERYTHING = Filter.parse("TRUE")


class Upstream:
    """The senior broker, as a junior one sees it."""

    def __init__(self, broker: int, seniority: Seniority, numbers: Iterator[int]) -> None:
        self.broker = broker
        self.seniority = seniority
        self._numbers = numbers
        """Of refreshes."""
        self._stored: set[EventId] = set()
        """What it was sent and has."""
        self._seen: set[EventId] = set()
        """What need not be sent from there: what came, and what it was sent."""
        self._untold: set[EventId] = set()
        """Of those, what it was not told of."""
        self._told: dict[int, frozenset[EventId]] = {}
        self._is_whole = True

    def words(self, events: Iterable[Kept]) -> list[Publish | Refresh]:
        """What it is to be told: all events that it lacks, and what is wanted here."""
        words: list[Publish | Refresh] = []
        kept_here = list(events)
        if len(self._seen) > SEEN_MAX:
            ids = {kept.id for kept in kept_here}
            self._stored &= ids
            self._seen &= ids
        # It may have what this one answers for as a copy only, if it was junior before.
        lacks = tuple(
            kept
            for kept in kept_here
            if kept.id not in (self._seen if kept.custody is None else self._stored)
        )
        if lacks:
            words.append(Publish(tuple(portion(lacks))))
        number = next(self._numbers)
        told = frozenset(self._seen if self._is_whole else self._untold)
        self._told = {number: told}
        words.append(Refresh(number, EVERYTHING, 0.0, tuple(told), self._is_whole))
        return words

    def stored(self, ids: Iterable[EventId]) -> None:
        """It has these."""
        known = set(ids)
        self._stored |= known
        self._see(known)

    def refreshed(self, number: int, *, ask_whole: bool) -> bool:
        """It answered a refresh; whether it is to be told once more, and everything."""
        told = self._told.pop(number, None)
        if told is None:
            return False
        self._is_whole = ask_whole
        if not ask_whole:
            self._untold -= told
        return ask_whole

    def delivered(self, events: Iterable[Kept]) -> list[Kept]:
        """Events from above, as they are kept here."""
        copies = [kept._replace(custody=None, is_copy=not kept.is_seen_to) for kept in events]
        self._see({kept.id for kept in copies})
        return copies

    def _see(self, ids: set[EventId]) -> None:
        self._seen |= ids
        self._untold |= ids
