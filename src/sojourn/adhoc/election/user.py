"""A node as a displayer and a source: what its user wants, has seen, and has published.

Rules: what the user published is kept until a broker has stored it; what is to be shown is noted before it is
shown, and shown again under the same number after a death in between. At most `pending_max` events wait for a
broker, `SHOWING_MAX` are shown at once, and of events that were seen the newest `SEEN_MAX` are remembered.
"""

from collections.abc import Iterable, Iterator

from sojourn.adhoc.election.messages import (
    Effect,
    EventId,
    Keep,
    Kept,
    Knows,
    Note,
    Owes,
    Paid,
    Publish,
    Refresh,
    Saw,
    Show,
    Showing,
    Wants,
)
from sojourn.adhoc.election.portions import portion
from sojourn.interest.filters import Filter

SEEN_MAX = 100_000
SHOWING_MAX = 1_000
"""Events that are being shown at once; the broker keeps the rest."""


class User:
    """The user of one node."""

    def __init__(self, pending_max: int) -> None:
        self._pending_max = pending_max
        self.wanted: Filter | None = None
        self.since_s = 0.0
        self.is_whole = True
        """Whether the next refresh is to tell everything."""
        self.pending: dict[EventId, Kept] = {}
        """Published, and stored by no broker yet."""
        self.dropped = 0
        """Of those, given up because there were too many."""
        self._seen: dict[EventId, None] = {}
        self._untold: set[EventId] = set()
        """Seen since the last refresh that the broker answered."""
        self._told: dict[int, frozenset[EventId]] = {}
        """By refresh under way: the part of the above that it told."""
        self._refreshes = 0
        self._showing: dict[int, Kept] = {}
        """By number: what the user has perhaps not seen yet."""
        self._shows = 0

    def begin(self, refreshes: int) -> None:
        """Count refreshes from here on: those of an earlier life are not answered any more."""
        self._refreshes = refreshes

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to say to a broker."""
        return self.wanted is not None or bool(self.pending)

    def subscribe(self, wanted: Filter, since_s: float) -> list[Effect]:
        """The user wants something else, published from that moment on."""
        self.wanted, self.since_s, self.is_whole = wanted, since_s, True
        self._seen.clear()
        self._untold.clear()
        return [Keep(Wants(wanted, since_s))]

    def publish(self, kept: Kept, *, is_shown: bool) -> list[Effect] | None:
        """Keep an event until it is stored; None if it is known already."""
        if kept.id in self.pending or (is_shown and kept.id in self._seen):
            return None
        self.pending[kept.id] = kept
        effects: list[Effect] = [Keep(Owes(kept))]
        if len(self.pending) > self._pending_max:
            oldest = next(iter(self.pending))
            del self.pending[oldest]
            self.dropped += 1
            effects.append(Keep(Paid((oldest,))))
        if is_shown:
            self._see(kept.id)
            effects.append(Keep(Knows((kept.id,), self._shows)))
        return effects

    def stored(self, ids: Iterable[EventId]) -> list[Effect]:
        """A broker has these."""
        known = tuple(event for event in ids if self.pending.pop(event, None) is not None)
        return [Keep(Paid(known))] if known else []

    def show(self, events: Iterable[Kept]) -> list[Effect]:
        """A broker delivers events: those that are new are for the user."""
        effects: list[Effect] = []
        for kept in events:
            if self.lacks(kept):
                if len(self._showing) >= SHOWING_MAX:
                    continue  # the broker sends it again
                self._see(kept.id)
                self._shows += 1
                self._showing[self._shows] = kept
                effects += [Keep(Showing(kept, self._shows)), Show(kept, self._shows)]
            self._untold.add(kept.id)
        return effects

    def lacks(self, kept: Kept) -> bool:
        """Whether an event is for the user, who was not shown it yet."""
        if kept.id in self._seen or self.wanted is None or kept.published_s < self.since_s:
            return False
        return self.wanted.matches(kept.event)

    def shown(self, number: int) -> list[Effect]:
        """The user has seen it."""
        return [] if self._showing.pop(number, None) is None else [Keep(Saw(number))]

    def show_again(self) -> list[Effect]:
        """What the user has perhaps not seen, after a restart."""
        return [Show(kept, number) for number, kept in self._showing.items()]

    def words(self) -> list[Publish | Refresh]:
        """What the broker is to be told."""
        words: list[Publish | Refresh] = []
        if self.pending:
            words.append(Publish(tuple(portion(self.pending.values()))))
        if self.wanted is not None:
            self._refreshes += 1
            told = frozenset(self._seen if self.is_whole else self._untold)
            self._told = {self._refreshes: told}
            words.append(Refresh(self._refreshes, self.wanted, self.since_s, tuple(told), self.is_whole))
        return words

    def refreshed(self, number: int, *, ask_whole: bool) -> bool:
        """The broker answered a refresh; whether it is to be told once more, and everything."""
        told = self._told.pop(number, None)
        if told is None:
            return False
        self.is_whole = ask_whole
        if not ask_whole:
            self._untold -= told
        return ask_whole

    def _see(self, event: EventId) -> None:
        self._seen[event] = None
        if len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]

    # What is remembered -----------------------------------------------------------------------------

    def recall(self, note: Note) -> None:
        """Be told a note again."""
        match note:
            case Wants(wanted, since_s):
                self.subscribe(wanted, since_s)
            case Owes(kept):
                self.pending[kept.id] = kept
            case Paid(ids):
                for event in ids:
                    self.pending.pop(event, None)
            case Showing(kept, number):
                self._see(kept.id)
                self._showing[number] = kept
                self._shows = max(self._shows, number)
            case Saw(number):
                self._showing.pop(number, None)
            case Knows(ids, shows):
                for event in ids:
                    self._see(event)
                self._shows = max(self._shows, shows)
            case _:
                pass

    def memory(self) -> Iterator[Note]:
        """Notes that lead to what it knows, without those that were overtaken."""
        if self.wanted is not None:
            yield Wants(self.wanted, self.since_s)
        showing = {kept.id for kept in self._showing.values()}
        yield Knows(tuple(event for event in self._seen if event not in showing), self._shows)
        for number, kept in self._showing.items():
            yield Showing(kept, number)
        for kept in self.pending.values():
            yield Owes(kept)
