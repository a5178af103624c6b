"""What a live broker asks its driver to do at the end of a loop turn.

The order is a promise: first `entries` are made safe in the journal, then everything else leaves. A process
that dies anywhere in between has promised nothing that it does not remember.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Note(NamedTuple):
    """Something that a trace or a page wants to know; it changes nothing."""

    kind: str
    """The name of the witness's method."""
    what: tuple[Any, ...]


class Turn:
    """What one turn leads to; carried out in the order of the fields."""

    __slots__ = (
        "closes",
        "entries",
        "holds",
        "notes",
        "peer_closes",
        "peer_writes",
        "releases",
        "writes",
    )

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        """Lines for the journal, to be safe before anything below is done."""
        self.writes: list[tuple[int, bytes]] = []
        """Bytes for clients, by connection."""
        self.closes: list[int] = []
        """Connections of clients to close, after what was written has been read."""
        self.peer_writes: list[tuple[str, bytes]] = []
        """Bytes for neighbours."""
        self.peer_closes: list[tuple[str, str]] = []
        """Connections to neighbours to close, and why."""
        self.holds: list[int] = []
        """Connections of clients that are not to be read for now."""
        self.releases: list[int] = []
        """Those of them that are to be read again."""
        self.notes: list[Note] = []
