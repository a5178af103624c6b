"""What a node is as a broker: its terms, the table that it keeps in one, and what of it is noted.

A term begins with an empty table, and ends when another broker has all of it. Events that no broker had
before are counted in a term (`Custody`).
"""

from collections.abc import Iterable, Iterator

from sojourn.adhoc.election.messages import (
    Custody,
    Effect,
    Elected,
    GaveAway,
    Keep,
    Kept,
    Note,
    SeenTo,
    Seniority,
    Took,
)
from sojourn.adhoc.election.table import BrokerTable


class Office:
    """The broker's office of one node, held or not."""

    def __init__(self, number: int, lifetime_s: float) -> None:
        self._number = number
        self._lifetime_s = lifetime_s
        self.table: BrokerTable | None = None
        """What it keeps; None while it is no broker."""
        self.elected: Seniority = (0.0, number)
        """When its term began."""
        self._term = 0
        self._taken = 0
        """Events counted in this term."""

    def take_up(self, now: float) -> list[Effect]:
        """Begin a term, unless one is under way."""
        if self.table is not None:
            return []
        self._begin(self._term + 1, (now, self._number))
        return [Keep(Elected(self._term, self.elected))]

    def give_away(self) -> list[Effect]:
        """Another broker has everything."""
        self.table = None
        return [Keep(GaveAway())]

    def store(self, events: Iterable[Kept]) -> tuple[list[Kept], list[Effect]]:
        """Keep events; says which are new, and notes them."""
        assert self.table is not None
        table = self.table
        new = table.store(self._named(kept) for kept in events if table.lacks(kept))
        return new, [Keep(Took(kept)) for kept in new]

    def _named(self, kept: Kept) -> Kept:
        """Give an event that no broker had before the name under which the fixed network is offered it."""
        if kept.custody is not None or kept.is_copy or kept.is_seen_to:
            return kept
        self._taken += 1
        return kept._replace(custody=Custody(self._number, self._term, self._taken))

    def _begin(self, term: int, elected: Seniority) -> None:
        self._term, self.elected, self._taken = term, elected, 0
        self.table = BrokerTable(self._lifetime_s)

    def recall(self, note: Note) -> None:
        """Be told a note again."""
        match note:
            case Elected(term, seniority):
                self._begin(term, seniority)
            case Took(kept) if self.table is not None:
                self.table.store([kept])
                if kept.custody is not None and kept.custody[:2] == (self._number, self._term):
                    self._taken = max(self._taken, kept.custody.number)
            case SeenTo(ids) if self.table is not None:
                for event in ids:
                    self.table.see_to(event)
            case GaveAway():
                self.table = None
            case _:
                pass

    def memory(self) -> Iterator[Note]:
        """Notes that lead to what it keeps."""
        yield Elected(self._term, self.elected)
        if self.table is None:
            yield GaveAway()
        else:
            for kept in self.table.contents()[1]:
                yield Took(kept)
