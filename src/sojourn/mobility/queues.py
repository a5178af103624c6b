"""Stored events, each once however many subscribers it is stored for, within a budget of bytes.

Paper 001's brokers have 1 to 4 MB for messages, and one stored message serves all subscribers that share an
interest. A queue is then a list of references, and what counts is how many distinct events are referred to.

Rules: an event that is stored already costs nothing more; one that finds no room is not stored for anybody.
What was promised is kept until it is consumed, handed on, or its owner's time is up; only a broker whose
scheme says so makes room by giving up the oldest event, and then has to know whose it is (`owners`).
"""

from collections.abc import Iterable

from sojourn.mobility.holdings import Holding
from sojourn.routing.messages import Publish


class Store:
    """How often each stored event of one broker is referred to, and the bytes of all of them."""

    __slots__ = ("_event_bytes", "_references", "bytes", "bytes_max", "bytes_peak", "owners")

    def __init__(self, bytes_max: int, event_bytes: int, *, evicts: bool = False) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.bytes_peak = 0
        self._event_bytes = event_bytes
        self._references: dict[Publish, int] = {}
        """By event, the oldest first."""
        self.owners: dict[Publish, list[Holding]] | None = {} if evicts else None
        """By event: the holdings it was stored for, some of which may have let it go."""

    @property
    def events(self) -> int:
        """How many distinct events are stored."""
        return len(self._references)

    def __contains__(self, publication: Publish) -> bool:
        """Whether an event is stored."""
        return publication in self._references

    def oldest(self) -> Publish | None:
        """The event that has been stored for longest."""
        return next(iter(self._references), None)

    def admit(self, publication: Publish, copies: int) -> bool:
        """Refer to an event from so many queues; False, and nothing done, where there is no room."""
        references = self._references.get(publication)
        if references is None:
            size = self.bytes + (publication.size or self._event_bytes)
            if size > self.bytes_max:
                return False
            self.bytes = size
            self.bytes_peak = max(self.bytes_peak, size)
            references = 0
        self._references[publication] = references + copies
        return True

    def release(self, publications: Iterable[Publish]) -> None:
        """Refer to each of these events from one queue less."""
        known = self._references
        for publication in publications:
            references = known[publication] - 1
            if references:
                known[publication] = references
            else:
                del known[publication]
                if self.owners is not None:
                    self.owners.pop(publication, None)
                self.bytes -= publication.size or self._event_bytes
