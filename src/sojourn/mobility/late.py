"""What a broker knows of a transfer that it gave up waiting for, in case that the rest comes all the same.

A subscriber waited for its old broker until patience ran out, and was served with what there was. Of each
source it then has everything up to a *floor* (its marks, or as far as the transfer had come), and everything
from the *first* event on that came here by itself. An event that comes late from the old broker is

- one that the client has, if it is at the floor or below, or at the first or beyond;
- lost if it is between them: the client has been given later ones of that source;
- still in time if nothing of its source came here by itself yet. On a tree whose links are FIFO an event that
  takes both ways is here by itself before it is forwarded, since what forwards it has it from where the ways
  part; so such an event will not come again.
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
    """One transfer, or several, that a stay no longer waits for."""

    epochs: set[int]
    """Under which the rest would come."""
    floor: dict[str, int]
    first: dict[str, int]

    @classmethod
    def given_up(
        cls, epochs: Iterable[int], marks: Marks, forwarded: Iterable[Publish], own: Iterable[Publish]
    ) -> "Late":
        """What is known when patience has run out: what was consumed, forwarded, and came by itself."""
        found = cls(set(epochs), dict(marks), {})
        for publication in forwarded:
            event = publication.event
            found.floor[event.source] = max(found.floor.get(event.source, -1), event.sequence)
        found.note(own)
        return found

    def note(self, publications: Iterable[Publish]) -> None:
        """These came here by themselves."""
        for publication in publications:
            event = publication.event
            if event.sequence > self.floor.get(event.source, -1):
                self.first.setdefault(event.source, event.sequence)

    def judge(self, publication: Publish) -> Verdict:
        """Say what an event from the old broker is, and remember that it came."""
        event = publication.event
        first = self.first.get(event.source)
        if event.sequence <= self.floor.get(event.source, -1) or (
            first is not None and event.sequence >= first
        ):
            return Verdict.KNOWN
        self.floor[event.source] = event.sequence
        return Verdict.IN_TIME if first is None else Verdict.LOST
