"""What the streaming audit holds for a bucket of clients between two looks, and how it settles.

Held are the interests and clients known so far, and the publications and deliveries not yet settled. Settling
a moment compares everything published before it with everything delivered, with the batch audit's code, and
drops what is then done. Deliveries that wait stay in the comparison, since one of them may be what makes an
older event out of order.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sojourn.pipeline.audit_chunks import serialised
from sojourn.pipeline.audit_findings import BY_WINDOW, INCIDENT, findings
from sojourn.pipeline.audit_interests import compile_interests, expected_rows
from sojourn.pipeline.audit_kernel import compare

PUBLICATIONS, DELIVERIES, INTERESTS, CLIENTS = 0, 1, 2, 3
_CLIENT = ("run_id", "client", "attributes_json")
_INTEREST = ("run_id", "client", "interest", "filter", "from_s")


@dataclass(slots=True)
class Held:
    """The rows a bucket waits with, by side."""

    tables: dict[int, pa.Table] = field(default_factory=dict)

    @classmethod
    def loads(cls, blob: bytes) -> Held:
        """Return what `dumps` wrote."""
        payloads: dict[int, bytes] = pickle.loads(blob)  # noqa: S301  from our own checkpoint
        return cls({side: _read(payload) for side, payload in payloads.items()})

    def dumps(self) -> bytes:
        """Return all of it as bytes."""
        return pickle.dumps({side: serialised(table) for side, table in self.tables.items()}, protocol=5)

    def add(self, side: int, payload: bytes) -> None:
        """Add rows."""
        new = _plain(_read(payload))
        known = self.tables.get(side)
        self.tables[side] = new if known is None else pa.concat_tables([known, new])

    @property
    def is_waiting(self) -> bool:
        """Whether something is still to be settled."""
        return any(side in self.tables and len(self.tables[side]) for side in (PUBLICATIONS, DELIVERIES))

    def settle(self, before_s: float, window_s: float) -> pa.Table | None:
        """Compare what was published before a moment, drop it, and return its findings."""
        published, delivered = self.tables.get(PUBLICATIONS), self.tables.get(DELIVERIES)
        ready = None if published is None else published.filter(pc.field("time_s") < before_s)
        expected = self._expected(ready) if ready is not None and len(ready) else None
        if expected is None and (delivered is None or not len(delivered)):
            self._keep_publications(before_s)
            return None
        coded = None if delivered is None else _coded(delivered)
        outcomes = compare(expected, coded)
        # What nobody expected is settled by the time of its delivery.
        closed = np.where(outcomes.is_expected, outcomes.published_s, outcomes.first_s) < before_s
        found = findings(outcomes, window_s, (BY_WINDOW, INCIDENT), closed)
        if delivered is not None:
            waiting = ~closed[outcomes.name_of_delivery] if len(closed) else np.ones(len(delivered), np.bool_)
            self.tables[DELIVERIES] = delivered.filter(pa.array(waiting)).combine_chunks()
        self._keep_publications(before_s)
        return found if len(found) else None

    def _expected(self, ready: pa.Table) -> pa.Table | None:
        interests = self.tables.get(INTERESTS)
        if interests is None:
            return None
        told = interests.group_by(list(_INTEREST)).aggregate([("to_s", "max")])
        told = told.rename_columns([name.removesuffix("_max") for name in told.column_names])
        clients = self.tables.get(CLIENTS)
        if clients is None:
            clients = pa.table(
                {name: pa.array([], pa.string()) for name in ("run_id", "client", "attributes_json")}
            )
        rows = list(expected_rows(ready, compile_interests(told, clients)))
        return pa.concat_tables(rows) if rows else None

    def _keep_publications(self, before_s: float) -> None:
        published = self.tables.get(PUBLICATIONS)
        if published is not None:
            self.tables[PUBLICATIONS] = published.filter(pc.field("time_s") >= before_s).combine_chunks()


def _read(payload: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_all()


def _plain(table: pa.Table) -> pa.Table:
    """Return a table with names written out, which unlike codes can be appended to."""
    columns = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def _coded(table: pa.Table) -> pa.Table:
    names = ("run_id", "client", "source", "broker")
    columns = zip(table.column_names, table.columns, strict=True)
    return pa.table({n: c.combine_chunks().dictionary_encode() if n in names else c for n, c in columns})
