"""What the streaming audit holds for a bucket of clients between two looks, and how it settles.

Held are the interests and clients known so far, where clients were, the publications, deliveries and drops
not yet judged, and which events have been judged. Settling a moment compares everything published before it
with everything delivered, with the batch audit's code, and drops what is then done. An interest that ended,
and a stay but for a client's last, is kept for `keep_s` more, for publications that come late.

Rules, where rows come late or clocks differ:
- A row waits from its own time or from when it came, whichever is later. So a publication that came after
  others of its time had been judged is judged all the same, and counted as late.
- A delivery that nobody expects waits for its publication as long, whatever its clock says; one whose
  publication is held is judged with it. A delivery stamped before its publication is therefore what it is in
  the batch audit.
- A delivery, or a copy of one, that comes when its event has been judged is counted as late and nothing else:
  what it would have changed (a loss, a duplicate, a leak) has been said. An interest that begins or ends
  before the moment judged last is counted as late, and holds from now on. The batch audit, which sees all at
  once, knows no lateness.
- A copy of a delivery whose event was never published counts as another leak, not as a duplicate.
- A loss has the reason that a broker gave for it. Without one it was in flight if it was published within the
  last seconds of a run that has ended, else it was never routed: that a client has left for good is known
  when a run is over, and then by the batch audit.
- Where a broker ended without sealing what it had noted, what that can explain is unrecorded, as in the batch
  audit; of a broker that has not come again, what was published since it sealed last. The numbers of events
  that were judged before say nothing here of when an unknown one was published.
- Order is judged among what is held: a later event judged before an earlier one, because its clock was
  behind, no longer makes the earlier one out of order.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sojourn.pipeline.audit_chunks import serialised, widened
from sojourn.pipeline.audit_findings import (
    BY_WINDOW,
    INCIDENT,
    findings,
    handoff_findings,
    late_findings,
)
from sojourn.pipeline.audit_gaps import Gaps, near_gaps
from sojourn.pipeline.audit_interests import FilterMemory, compile_interests, expected_rows, told_once
from sojourn.pipeline.audit_kernel import Flags, Floats, Ints, Outcomes, compare
from sojourn.pipeline.audit_losses import RunEnds, judged_by
from sojourn.pipeline.audit_options import LiveOptions

PUBLICATIONS, DELIVERIES, INTERESTS, CLIENTS, HANDOFFS, END, DROPS, SOJOURNS = range(8)
LATE = {PUBLICATIONS: "late_publications", DELIVERIES: "late_deliveries", INTERESTS: "late_interests"}
_CLIENT = ("run_id", "client", "attributes_json")
_EVENT = ["run_id", "source", "sequence", "time_s"]
_SINCE = "since_s"
_MEMORY = FilterMemory()
"""Of this process: what a bucket compiled is there when the next batch comes to the same worker."""


@dataclass(slots=True)
class Held:
    """The rows a bucket waits with, by side, and what it remembers of those judged."""

    tables: dict[int, pa.Table] = field(default_factory=dict)
    judged: dict[str, Ints] = field(default_factory=dict)
    """By source, the sequence numbers judged, as rows of first and last."""
    judged_s: float = -np.inf
    """The moment before which all that was held has been judged."""
    has_ended: bool = False
    duration_s: float = np.nan
    """How long the run was, once it has ended."""
    found: list[pa.Table] = field(default_factory=list)
    """Findings that need no judging, to be told at the next occasion."""

    @classmethod
    def loads(cls, blob: bytes) -> Held:
        """Return what `dumps` wrote."""
        payloads, *rest = pickle.loads(blob)  # noqa: S301  from our own checkpoint
        return cls({side: _read(payload) for side, payload in payloads.items()}, *rest)

    def dumps(self) -> bytes:
        """Return all of it as bytes; findings must have been told."""
        payloads = {side: serialised(table) for side, table in self.tables.items()}
        rest = (self.judged, self.judged_s, self.has_ended, self.duration_s)
        return pickle.dumps((payloads, *rest), protocol=5)

    def add(self, side: int, payload: bytes | None, now_s: float, window_s: float) -> None:
        """Add rows that came when the watermark was `now_s`, or note that the run has ended."""
        if side == END or payload is None:
            self.has_ended |= side == END
            self.duration_s = float(payload) if payload else self.duration_s
            return
        new = _plain(widened(_read(payload)))
        if side == HANDOFFS:
            self.found.append(handoff_findings(new, window_s))
            return
        late, moments = self._is_late(side, new)
        if late.any():
            run_id = new.column("run_id")[0].as_py()
            self.found.append(late_findings(run_id, LATE[side], moments[late], window_s))
        if side == DELIVERIES:
            new = new.filter(pa.array(~late))
        if side in (PUBLICATIONS, DELIVERIES):
            since = np.maximum(new.column("time_s").to_numpy(), now_s)
            new = new.append_column(_SINCE, pa.array(since))
        known = self.tables.get(side)
        self.tables[side] = new if known is None else pa.concat_tables([known, new])

    @property
    def is_waiting(self) -> bool:
        """Whether something is still to be settled."""
        return any(side in self.tables and len(self.tables[side]) for side in (PUBLICATIONS, DELIVERIES))

    def settle(
        self, before_s: float, options: LiveOptions, gaps: Gaps = MappingProxyType({})
    ) -> pa.Table | None:
        """Judge what was published, and has waited since, before a moment; drop it and return findings.

        `gaps` tells of which brokers rows are missing.
        """
        before_s = max(self.judged_s, np.inf if self.has_ended else before_s)
        published, delivered = self.tables.get(PUBLICATIONS), self.tables.get(DELIVERIES)
        ready = None if published is None else published.filter(pc.field(_SINCE) < before_s)
        if published is not None:
            self.tables[PUBLICATIONS] = published.filter(pc.field(_SINCE) >= before_s).combine_chunks()
        expected = self._expected(ready.drop_columns(_SINCE)) if ready is not None and len(ready) else None
        if expected is not None or (delivered is not None and len(delivered)):
            self._judge(expected, delivered, before_s, options, self._near_gaps(ready, gaps), gaps)
        if ready is not None:
            self._remember(ready)
        self.judged_s = before_s if np.isfinite(before_s) else self.judged_s
        self._forget(self.judged_s - options.keep_s)
        told, self.found = [table for table in self.found if len(table)], []
        return pa.concat_tables(told) if told else None

    def _near_gaps(self, ready: pa.Table | None, gaps: Gaps) -> pa.Table | None:
        """Return the publications that are known and not yet judged, as far as gaps may concern them."""
        known = [table for table in (ready, self.tables.get(PUBLICATIONS)) if table is not None]
        found = [near_gaps(table.select(_EVENT), missing) for missing in gaps.values() for table in known]
        return pa.concat_tables(found) if found else None

    def _judge(
        self,
        expected: pa.Table | None,
        delivered: pa.Table | None,
        before_s: float,
        options: LiveOptions,
        near: pa.Table | None,
        gaps: Gaps,
    ) -> None:
        outcomes = compare(expected, None if delivered is None else _coded(delivered))
        known = dict.fromkeys(outcomes.runs.to_pylist(), self.duration_s) if self.has_ended else {}
        ends = RunEnds(known, options.in_flight_s, gaps)
        outcomes = judged_by(outcomes, self.tables.get(DROPS), self.tables.get(SOJOURNS), near, ends)
        if len(outcomes.is_unrecorded):
            outcomes.is_unrecorded &= ~(self._was_judged(outcomes) & (outcomes.copies > 0))
        closed = outcomes.is_wanted
        if delivered is not None and len(delivered):
            since = np.full(len(closed), -np.inf)
            np.maximum.at(since, outcomes.name_of_delivery, delivered.column(_SINCE).to_numpy())
            waits = np.zeros(len(closed), np.bool_)
            waits[outcomes.name_of_delivery[self._waits_for_publication(delivered)]] = True
            closed = closed | ((since < before_s) & ~waits)
        self.found.append(findings(outcomes, options.window_s, (BY_WINDOW, INCIDENT), closed))
        if delivered is not None and len(delivered):
            waiting = ~closed[outcomes.name_of_delivery]
            self.tables[DELIVERIES] = delivered.filter(pa.array(waiting)).combine_chunks()

    def _was_judged(self, outcomes: Outcomes) -> Flags:
        """Return which names are of events that have been judged, and so have been known."""
        names = {"source": outcomes.sources.cast(pa.string()).take(pa.array(outcomes.source))}
        return _are_in(pa.table(names | {"sequence": outcomes.sequence}), self.judged)

    def _waits_for_publication(self, delivered: pa.Table) -> Flags:
        """Return which deliveries are of publications that are held and not yet judged."""
        waiting = self.tables.get(PUBLICATIONS)
        if waiting is None or not len(waiting):
            return np.zeros(len(delivered), np.bool_)
        return _are_in(delivered, _ranges(waiting))

    def _is_late(self, side: int, new: pa.Table) -> tuple[Flags, Floats]:
        """Return which rows came after they would have counted, and the times they tell."""
        if side == PUBLICATIONS:
            moments = new.column("time_s").to_numpy()
            return moments < self.judged_s, moments
        if side == DELIVERIES:
            return _are_in(new, self.judged), new.column("time_s").to_numpy()
        if side == INTERESTS:
            moments = pc.coalesce(new.column("to_s"), new.column("from_s")).to_numpy()
            return moments < self.judged_s, moments
        return np.zeros(len(new), np.bool_), np.zeros(len(new))

    def _remember(self, ready: pa.Table) -> None:
        for source, ranges in _ranges(ready).items():
            known = self.judged.get(source)
            together = ranges if known is None else np.concatenate([known, ranges])
            self.judged[source] = _merged(together)

    def _forget(self, before_s: float) -> None:
        """Drop what was said of judged events, and what was over before a moment."""
        drops, interests, stays = (self.tables.get(side) for side in (DROPS, INTERESTS, SOJOURNS))
        if drops is not None and len(drops):
            old = pc.less(drops.column("time_s"), before_s).fill_null(fill_value=False).to_numpy()
            self.tables[DROPS] = drops.filter(pa.array(~(_are_in(drops, self.judged) | old))).combine_chunks()
        if interests is not None and len(interests):
            told = told_once(interests)
            over = pc.less(told.column("to_s"), before_s).fill_null(fill_value=False)
            self.tables[INTERESTS] = told.filter(pc.invert(over)).select(interests.column_names)
        if stays is not None and len(stays):
            last = stays.group_by("client").aggregate([("from_s", "max")])
            at = pc.index_in(stays.column("client"), last.column("client"))
            is_last = pc.equal(stays.column("from_s"), last.column("from_s_max").take(at))
            lasts = pc.greater_equal(stays.column("to_s"), before_s).fill_null(fill_value=True)
            self.tables[SOJOURNS] = stays.filter(pc.or_(is_last, lasts)).combine_chunks()

    def _expected(self, ready: pa.Table) -> pa.Table | None:
        interests = self.tables.get(INTERESTS)
        if interests is None:
            return None
        clients = self.tables.get(CLIENTS)
        if clients is None:
            clients = pa.table({name: pa.array([], pa.string()) for name in _CLIENT})
        compiled = compile_interests(told_once(interests), clients, memory=_MEMORY)
        rows = list(expected_rows(ready, compiled))
        return pa.concat_tables(rows) if rows else None


# -------------------------------------------------------------------------- which events


def _ranges(table: pa.Table) -> dict[str, Ints]:
    """Return the sequence numbers of a table's rows by source, as rows of first and last."""
    coded = table.column("source").combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    numbers = table.column("sequence").to_numpy()
    return {
        source: _merged(np.stack([numbers[codes == code]] * 2, axis=1))
        for code, source in enumerate(coded.dictionary.to_pylist())
    }


def _merged(ranges: Ints) -> Ints:
    """Return ranges in order, those that touch joined."""
    ordered = ranges[np.argsort(ranges[:, 0], kind="stable")]
    last = np.maximum.accumulate(ordered[:, 1])
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:, 0] > last[:-1] + 1]))
    ends = np.concatenate([begins[1:] - 1, [len(ordered) - 1]])
    return np.stack([ordered[begins, 0], last[ends]], axis=1)


def _are_in(table: pa.Table, ranges: dict[str, Ints]) -> npt.NDArray[np.bool_]:
    """Return which rows are of events, by source and sequence number, that ranges hold."""
    found = np.zeros(len(table), np.bool_)
    if not len(table):
        return found
    coded = table.column("source").combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    numbers = table.column("sequence").to_numpy()
    for code, source in enumerate(coded.dictionary.to_pylist()):
        if source in ranges:
            mine = np.flatnonzero(codes == code)
            at = np.searchsorted(ranges[source][:, 0], numbers[mine], side="right") - 1
            found[mine] = (at >= 0) & (numbers[mine] <= ranges[source][np.maximum(at, 0), 1])
    return found


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
