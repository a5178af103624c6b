"""What a live broker asks its driver to do at the end of a loop turn.

The order is a promise: first `entries` are made safe in the journal, then everything else leaves. A process
that dies anywhere in between has promised nothing that it does not remember.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from sojourn.mqtt.connection import Connection
from sojourn.mqtt.connection import State as Phase
from sojourn.mqtt.payload import LARGE, Data

REPEATED = "repeated by a neighbour"
"""The reason for events that were let go because they had come before: no subscriber misses them."""
COPY_FULL = "no room in a copy"
"""The reason for events that a copy of a session could not store.

Whether its client misses them, the broker that has the session says."""
NOT_MISSED = (REPEATED, COPY_FULL)
"""The reasons for events that were let go here and that no subscriber misses because of that."""


class Note(NamedTuple):
    """Something that a trace or a page wants to know; it changes nothing."""

    kind: str
    """The name of the witness's method."""
    what: tuple[Any, ...]


class Turn(msgspec.Struct):
    """What one turn leads to; carried out in the order of the fields."""

    entries: list[bytes] = []
    """Lines for the journal, to be safe before anything below is done."""
    writes: list[tuple[int, Data]] = []
    """Bytes for clients, by connection; one that is sent large payloads is there several times, in order."""
    closes: list[int] = []
    """Connections of clients to close, after what was written has been read."""
    peer_writes: list[tuple[str, bytes]] = []
    """Bytes for neighbours."""
    peer_closes: list[tuple[str, str]] = []
    """Connections to neighbours to close, and why."""
    holds: list[int] = []
    """Connections of clients that are not to be read for now."""
    releases: list[int] = []
    """Those of them that are to be read again."""
    notes: list[Note] = []
    leaves_more: bool = False
    """Whether something is left to the next turn, which should come soon."""

    def collect_writes(self, touched: list[Connection], *, has_large: bool = True) -> list[int]:
        """Take what is for clients, each connection once; return for whom something waits all the same."""
        waiting: list[int] = []
        for connection in touched:
            output = connection.output
            if output:
                if len(output) == 1:
                    self.writes.append((connection.number, output[0]))
                elif not has_large or max(map(len, output)) < LARGE:
                    self.writes.append((connection.number, b"".join(output)))
                else:
                    self.writes += [(connection.number, data) for data in _joined(output)]
                output.clear()
                connection.put_out = 0
            if connection.state is Phase.CLOSED:
                self.closes.append(connection.number)
            elif not connection.direct and not connection.blocked:
                session = connection.session
                if session is not None and (session.queue or session.unsent):
                    waiting.append(connection.number)
        touched.clear()
        return waiting


def _joined(output: list[Data]) -> Iterator[Data]:
    """Join what is short; a payload that is large is shared by all who are sent it, and stays as it is."""
    for is_large, some in groupby(output, lambda data: len(data) >= LARGE):
        if is_large:
            yield from some
        else:
            yield b"".join(some)
