"""What a broker knows of a transfer that it gave up waiting for, in case that the rest comes all the same.

A subscriber waited for its old broker until patience ran out, and was served with what there was. Of each
source it then has everything up to a *floor* (its marks, or as far as the transfer had come), and everything
from the *first* event on that came here by itself. An event that comes late from the old broker is

- one that the client has, if it is at the floor or below, or at the first or beyond;
- lost if it is between them: the client has been given later ones of that source;
- still in time if nothing of its source came here by itself yet. On a tree whose links are FIFO an event that
  takes both ways is here by itself before it is forwarded, since what forwards it has it from where the ways
  part; so such an event will not come again.

A stay may end before its transfer does, too. What comes then finds nobody, and is reported (`Memory.late`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from sojourn.routing.messages import Marks, Publish


class Verdict(Enum):
    """What a late event is to the client."""

    KNOWN = auto()
    IN_TIME = auto()
    LOST = auto()


@dataclass(slots=True)
class Late:
    """One transfer, or several with the same events, that a stay no longer waits for."""

    epochs: set[int]
    """Under which the rest would come."""
    floor: dict[str, int]
    first: dict[str, int]

    @classmethod
    def of(
        cls, epochs: Iterable[int], marks: Marks, forwarded: Iterable[Publish], own: Iterable[Publish]
    ) -> "Late":
        """What is known when waiting ends: what was consumed, forwarded, and came by itself."""
        found = cls(set(epochs), dict(marks), {})
        for publication in forwarded:
            source = publication.source
            found.floor[source] = max(found.floor.get(source, -1), publication.sequence)
        found.note(own, marks)
        return found

    def note(self, publications: Iterable[Publish], marks: Marks) -> None:
        """These came here by themselves, to a client that has consumed what the marks say."""
        for publication in publications:
            source, sequence = publication.source, publication.sequence
            if source not in self.first and sequence > self._floor(source, marks):
                self.first[source] = sequence

    def judge(self, publication: Publish, marks: Marks) -> Verdict:
        """Say what an event from the old broker is, and remember that it came."""
        source, sequence = publication.source, publication.sequence
        first = self.first.get(source)
        if sequence <= self._floor(source, marks):
            return Verdict.KNOWN
        if first is not None and sequence >= first:
            return Verdict.KNOWN
        self.floor[source] = sequence
        return Verdict.IN_TIME if first is None else Verdict.LOST

    def _floor(self, source: str, marks: Marks) -> int:
        """Up to where the client has everything of a source.

        Once events came by themselves, its marks say no more about those before them.
        """
        floor = self.floor.get(source, -1)
        if source not in self.first and marks.get(source, -1) > floor:
            floor = self.floor[source] = marks[source]
        return floor
