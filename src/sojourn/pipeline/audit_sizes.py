"""How large an audit will be, told from samples before it begins: how many buckets, and whom to split.

A bucket is held in memory by one task, so there must be enough of them for what is expected as well as for
what was delivered: after an outage a trace has many expected deliveries and hardly a row of actual ones. What
is delivered stands in the files' footers. What is expected is estimated: some events from all over the trace
are matched with all interests, each interest counting for the share of the run that it was in force. Where
there are too many interests for that, some of them are tried.

All rows of a client lie in one bucket, but for *hot* clients, who have more than half a bucket's rows by
themselves: theirs are split by source. An event is compared with copies of itself and with neighbours of its
own source, so that changes nothing. Estimates decide on memory and time alone, never on what is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sojourn.pipeline.audit_chunks import Hot
from sojourn.pipeline.audit_events import event_columns
from sojourn.pipeline.audit_interests import RunInterests, compile_interests, split_by
from sojourn.pipeline.tables import Split, Trace, TraceFile, split_batches

BUCKET_ROWS = 1_000_000
"""Expected and actual deliveries in a bucket, about."""
BUCKETS_MAX = 4_096
HOT_ROWS = BUCKET_ROWS // 2
_SAMPLED_GROUPS = 16
_SAMPLED_EVENTS = 2_048
_SAMPLED_INTERESTS = 2_000
_EVENT = ("run_id", "time_s", "topic", "attributes_json")


class Sizes(NamedTuple):
    """What an audit will have to hold, about."""

    expected: int
    delivered: int
    hot: Hot

    def buckets(self, cores: int) -> int:
        """Return into how many buckets rows go: enough for every core, each small enough for its memory."""
        by_size = -(-(self.expected + self.delivered) // BUCKET_ROWS)
        return min(BUCKETS_MAX, max(1, by_size, cores))


def sizes_of(
    trace: Trace, interests: Mapping[str, RunInterests], ends: Mapping[str, float], scale: float = 1.0
) -> Sizes:
    """Estimate an audit; `interests` stand for `scale` times as many, `ends` say how long runs were."""
    rows: Counter[tuple[str, str]] = _delivered_by_client(trace)
    expected = _expected_by_client(trace, interests, ends)
    if scale == 1.0:  # some of the interests tell nothing of single clients
        rows.update(expected)
    hot = frozenset(client for client, count in rows.items() if count > HOT_ROWS)
    return Sizes(int(scale * sum(expected.values())), trace.rows.get("deliveries", 0), hot)


def some_interests(interests: pa.Table) -> tuple[dict[str, RunInterests], float]:
    """Compile some of many interests, and tell for how many each of them stands."""
    count = min(len(interests), _SAMPLED_INTERESTS)
    chosen = interests.take(pa.array(np.linspace(0, len(interests) - 1, count).astype(np.int64)))
    nobody = pa.table({name: pa.array([], pa.string()) for name in ("run_id", "client", "attributes_json")})
    return compile_interests(chosen, nobody), len(interests) / max(1, count)


def _spread(files: list[TraceFile], table: str) -> list[Split]:
    """Return some row groups from all over a table's files."""
    groups = [
        Split(0, table, file.run_id, str(file.path), group)
        for file in files
        for group, rows in enumerate(file.group_rows)
        if rows
    ]
    places = np.unique(np.linspace(0, len(groups) - 1, min(len(groups), _SAMPLED_GROUPS)).astype(int))
    return [groups[place] for place in places]


def _first_batch(split: Split, columns: Sequence[str], names: Sequence[str] = ()) -> pa.RecordBatch | None:
    """Return some rows; none where a page is damaged, which the audit itself will say."""
    try:
        return next(split_batches([split], columns, names), None)
    except (pa.ArrowException, OSError):
        return None


def _delivered_by_client(trace: Trace) -> Counter[tuple[str, str]]:
    """Return how many deliveries clients have, as far as a sample tells."""
    names = ("run_id", "client")
    seen: Counter[tuple[str, str]] = Counter()
    sampled = 0
    for split in _spread(trace.files.get("deliveries", []), "deliveries"):
        batch = _first_batch(split, names, names)
        if batch is not None:
            clients = batch.column("client")
            tallies = np.bincount(clients.indices.to_numpy(), minlength=len(clients.dictionary))
            for code in np.flatnonzero(tallies):
                seen[split.run_id, clients.dictionary[int(code)].as_py()] += int(tallies[code])
            sampled += batch.num_rows
    share = trace.rows.get("deliveries", 0) / max(1, sampled)
    return Counter({client: round(count * share) for client, count in seen.items()})


def _expected_by_client(
    trace: Trace, interests: Mapping[str, RunInterests], ends: Mapping[str, float]
) -> Counter[tuple[str, str]]:
    """Return how many deliveries clients expect, as far as a sample of events tells."""
    splits = _spread(trace.files.get("publications", []), "publications")
    most = -(-_SAMPLED_EVENTS // max(1, len(splits)))
    found: dict[tuple[str, str], float] = {}
    sampled = 0
    for split in splits:
        batch = _first_batch(split, _EVENT)
        if batch is None:
            continue
        chosen = np.unique(np.linspace(0, batch.num_rows - 1, min(most, batch.num_rows)).astype(np.int64))
        sampled += len(chosen)
        for run_id, rows in split_by(pa.Table.from_batches([batch.take(pa.array(chosen))]), "run_id"):
            if run_id in interests:
                run = interests[run_id]
                for client, count in _matched(run, rows, ends.get(run_id, np.inf)):
                    found[run_id, client] = found.get((run_id, client), 0.0) + count
    share = trace.rows.get("publications", 0) / max(1, sampled)
    return Counter({client: round(count * share) for client, count in found.items()})


def _matched(run: RunInterests, rows: pa.Table, end_s: float) -> list[tuple[str, float]]:
    """Return how many deliveries of some events clients expect, by the time that interests are in force."""
    columns, _ = event_columns(rows)
    shares = _in_force_share(run, end_s)
    by_client = np.zeros(len(run.clients))
    for index in run.indexes:
        keys = index.match_batch(columns).keys
        np.add.at(by_client, run.client_of[keys], shares[keys])
    return [(run.clients[int(at)].as_py(), float(by_client[at])) for at in np.flatnonzero(by_client)]


def _in_force_share(run: RunInterests, end_s: float) -> npt.NDArray[np.float64]:
    """Return for each interest the share of the run that it was in force."""
    if not np.isfinite(end_s) or end_s <= 0:
        return np.ones(len(run.from_s))
    begin, end = np.clip(run.asked_s, 0.0, end_s), np.clip(run.to_s, 0.0, end_s)
    shares: npt.NDArray[np.float64] = np.clip((end - begin) / end_s, 0.0, 1.0)
    return shares
