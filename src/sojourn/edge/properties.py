"""Ordered, consistent, complete: what replication may promise a user (paper 003, section 5), as predicates.

Each predicate looks at what one user was shown, in the order of showing, and answers None where the property
holds or a `Violation` that names the events it fails on. The yardstick is a system with one broker:

- *ordered*: such a system shows a source's events in the order they were generated;
- *consistent*: it shows each event that was published and matches at most once, and may lack any of them, so
  every sub-set of those, each once, could be its own; nothing else could;
- *complete*: had its one broker received all that any of the replicas received, it would have shown all of it
  that matches.

`pipeline/properties.py` says the same of traces; a test holds the two together.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

EventId = tuple[str, int]
"""A source and the number it gave the event."""

PROPERTIES = ("ordered", "consistent", "complete")


class Violation(NamedTuple):
    """Why a property does not hold."""

    wrong: str
    """out of order, shown twice, never to be shown, or missing."""
    event: EventId
    other: EventId | None = None
    """The event that it is behind, where the order is wrong."""


def ordered(shown: Sequence[EventId]) -> Violation | None:
    """Whether no event was shown after a newer one of its source."""
    newest: dict[str, int] = {}
    for source, sequence in shown:
        before = newest.get(source, -1)
        if sequence < before:
            return Violation("out of order", (source, sequence), (source, before))
        newest[source] = sequence
    return None


def consistent(shown: Sequence[EventId], matching: Collection[EventId]) -> Violation | None:
    """Whether one broker, whatever it missed, could have shown just these; `matching` are all published."""
    seen: set[EventId] = set()
    for event in shown:
        if event in seen:
            return Violation("shown twice", event)
        if event not in matching:
            return Violation("never to be shown", event)
        seen.add(event)
    return None


def complete(shown: Sequence[EventId], received: Collection[EventId]) -> Violation | None:
    """Whether all was shown that some broker received; `received` are the matching ones."""
    missing = set(received).difference(shown)
    return Violation("missing", min(missing)) if missing else None


def violations(
    shown: Sequence[EventId], matching: Collection[EventId], received: Collection[EventId]
) -> dict[str, Violation | None]:
    """All three at once, by name."""
    return {
        "ordered": ordered(shown),
        "consistent": consistent(shown, matching),
        "complete": complete(shown, received),
    }
