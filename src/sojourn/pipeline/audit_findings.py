"""Outcomes counted: tallies by run, client, broker and window, and every incident, as rows of FINDINGS.

A window is the one in which the event was published; for a delivery that nobody expected, the one in which
it was delivered. A broker is the one that delivered first, or the one where it was lost (`audit_losses.py`).
Only the scopes that are asked for are counted: a histogram of latencies for every client costs more than all
comparing. What buckets found is summed up in `audit_sums.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sojourn.pipeline.audit_chunks import dense
from sojourn.pipeline.audit_kernel import (
    BIN_MAX,
    Codes,
    Flags,
    Floats,
    Ints,
    Outcomes,
    by_clocks,
    latency_bins,
)
from sojourn.pipeline.audit_losses import OTHER, REASONS

LOST, DUPLICATED, OUT_OF_ORDER, UNAUTHORISED = "lost", "duplicated", "out_of_order", "unauthorised"
UNRECORDED_DELIVERIES, UNRECORDED_PUBLICATIONS = "unrecorded_deliveries", "unrecorded_publications"
"""Deliveries that were expected, and those of unknown events, where rows are missing (`audit_gaps.py`)."""
INCIDENTS = (
    *(LOST, DUPLICATED, OUT_OF_ORDER, UNAUTHORISED),
    *(UNRECORDED_DELIVERIES, UNRECORDED_PUBLICATIONS),
)
ALLOWED, LATENCY, UNRECORDED = "allowed", "latency", "unrecorded"
PUBLISHED, CLOCK_JUMPS, UNREADABLE = "published", "clock_jumps", "unreadable"
HANDOFFS, BEFORE_PUBLISHED = "handoffs", "before_published"
INCIDENT, BY_RUN, BY_CLIENT, BY_BROKER, BY_WINDOW = "incident", "run", "client", "broker", "window"
Counts = Ints | Codes | Flags
STRANGER = "stranger"
"""The clients that got what they should not have, and how much: one that nobody knows is among them."""

UNREADABLE_FILTER = "filter"
"""Filters that could not be read, where they are compiled in parts."""

_SCHEMA = pa.schema(
    {
        "run_id": pa.string(),
        "scope": pa.string(),
        "key": pa.string(),
        "measure": pa.string(),
        "tally": pa.int64(),
        "bins": pa.list_(pa.struct({"bin": pa.int32(), "tally": pa.int64()})),
        "source": pa.string(),
        "sequence": pa.int64(),
        "published_s": pa.float64(),
        "time_s": pa.float64(),
        "broker": pa.string(),
        "reason": pa.string(),
    }
)


class Times(NamedTuple):
    """Latencies of those outcomes that have one."""

    timed: Flags
    """Which outcomes those are."""
    seconds: Floats
    bins: Codes
    before_s: Floats
    """Of all outcomes: by how much a delivery is older than its publication; mostly below 0."""


def findings(
    outcomes: Outcomes, window_s: float, scopes: Sequence[str], closed: Flags | None = None
) -> pa.Table:
    """Count outcomes in some scopes, all of them or those named by `closed`."""
    counts = _counts(outcomes, closed)
    apart = outcomes.first_s - outcomes.published_s
    counts[BEFORE_PUBLISHED] = (apart < 0) & (counts["delivered"] > 0)
    latency = by_clocks(apart)
    timed: Flags = (latency >= 0) & (counts["delivered"] > 0)
    times = Times(timed, latency[timed], latency_bins(latency[timed]), -apart)
    parts = [_SCHEMA.empty_table()]
    if BY_RUN in scopes:
        one = np.zeros(len(outcomes.run), np.int32)
        parts.append(_tallies(outcomes, BY_RUN, one, pa.nulls(1, pa.string()), counts, times))
    if BY_CLIENT in scopes:
        parts.append(_tallies(outcomes, BY_CLIENT, outcomes.client, outcomes.clients, counts, times))
    if BY_BROKER in scopes:
        somewhere = np.where(outcomes.broker < 0, len(outcomes.brokers), outcomes.broker).astype(np.int32)
        names = pa.concat_arrays([outcomes.brokers.cast(pa.string()), pa.nulls(1, pa.string())])
        parts.append(_tallies(outcomes, BY_BROKER, somewhere, names, counts, times))
    if BY_WINDOW in scopes:
        windows, names = _windows(outcomes, window_s)
        parts.append(_tallies(outcomes, BY_WINDOW, windows, names, counts, times))
    if STRANGER in scopes and counts[UNAUTHORISED].any():
        leaked = {UNAUTHORISED: counts[UNAUTHORISED]}
        none = Times(np.zeros(len(timed), np.bool_), times.seconds[:0], times.bins[:0], times.before_s)
        parts.append(_tallies(outcomes, STRANGER, outcomes.client, outcomes.clients, leaked, none))
    if INCIDENT in scopes:
        parts += [_incidents(outcomes, name, counts[name]) for name in INCIDENTS]
    return pa.concat_tables(parts)


def outcome_rows(outcomes: Outcomes) -> pa.Table:
    """Return outcomes one by one (`derived_rows.Outcome`), but for what was only allowed and did not come."""
    expected, arrived = outcomes.is_expected, outcomes.copies > 0
    at = np.flatnonzero(expected | arrived)
    kind = np.where(expected, np.where(arrived, 0, 1), np.where(outcomes.is_wanted, 2, 3))
    if len(outcomes.is_unrecorded):
        kind[outcomes.is_unrecorded] = 4
    apart = by_clocks(outcomes.first_s - outcomes.published_s)
    latency = np.where(expected & (apart >= 0), apart, np.nan)[at]
    broker = outcomes.broker[at]
    lost = outcomes.reason[at] if len(outcomes.reason) else np.full(len(at), -1, np.int32)
    kinds = pa.array(["delivered", LOST, ALLOWED, UNAUTHORISED, UNRECORDED])
    return pa.table(
        {
            "run_id": _names_at(outcomes.runs, outcomes.run[at]),
            "client": _names_at(outcomes.clients, outcomes.client[at]),
            "source": _names_at(outcomes.sources, outcomes.source[at]),
            "sequence": outcomes.sequence[at],
            "outcome": kinds.take(pa.array(kind[at])),
            "published_s": pa.array(outcomes.published_s[at], from_pandas=True),
            "first_s": pa.array(outcomes.first_s[at], from_pandas=True),
            "latency_s": pa.array(latency, from_pandas=True),
            "copies": outcomes.copies[at].astype(np.int64),
            "out_of_order": outcomes.is_late[at],
            "broker": _names_at(outcomes.brokers, broker),
            "reason": _names_at(outcomes.reasons, lost),
        }
    )


def _names_at(names: pa.Array, codes: Codes) -> pa.Array:
    """Return the names of codes, null for -1."""
    if not len(names):
        return pa.nulls(len(codes), pa.string())
    return names.cast(pa.string()).take(pa.array(codes, mask=codes < 0))


def publication_findings(publications: pa.Table) -> pa.Table:
    """Count publications by run, those older than the one before them in sequence, and those unreadable.

    The rows are (run_id, source, sequence, time_s, unreadable), all of a source's among them.
    """
    runs, sources = (publications.column(name).combine_chunks() for name in ("run_id", "source"))
    run, source = runs.indices.to_numpy(), sources.indices.to_numpy()
    times = publications.column("time_s").to_numpy()
    order = np.lexsort((publications.column("sequence").to_numpy(), source, run))
    same = (run[order][1:] == run[order][:-1]) & (source[order][1:] == source[order][:-1])
    jumped = order[1:][same & (times[order][1:] < times[order][:-1])]
    unreadable = publications.column(UNREADABLE).to_numpy().astype(bool)
    groups = len(runs.dictionary)
    tallies = {
        PUBLISHED: np.bincount(run, minlength=groups),
        CLOCK_JUMPS: np.bincount(run[jumped], minlength=groups),
        UNREADABLE: np.bincount(run[unreadable], minlength=groups),
    }
    parts = [
        _table(
            run_id=runs.dictionary.take(pa.array(some)),
            scope=[BY_RUN] * len(some),
            measure=[measure] * len(some),
            tally=tally[some],
        )
        for measure, tally in tallies.items()
        for some in (np.flatnonzero(tally),)
    ]
    return pa.concat_tables(parts)


def faulty_findings(filters: pa.Table) -> pa.Table:
    """Tell of filters that cannot be read; the rows are (filter, error)."""
    return _table(
        scope=[UNREADABLE_FILTER] * len(filters),
        key=[f"{text}\x00{error}" for text, error in zip(*filters.to_pydict().values(), strict=True)],
        measure=[UNREADABLE] * len(filters),
        tally=[1] * len(filters),
    )


def faulty_filters(keys: Iterable[str]) -> dict[str, str]:
    """Return by filter why it cannot be read, from the keys of `faulty_findings`."""
    return {text: error for text, _, error in (key.partition("\x00") for key in keys)}


def late_findings(run_id: str, measure: str, moments_s: Floats, window_s: float) -> pa.Table:
    """Count what came too late, by the window of its own time."""
    begins, tallies = np.unique(np.floor(moments_s / window_s), return_counts=True)
    return _table(
        run_id=[run_id] * len(begins),
        scope=[BY_WINDOW] * len(begins),
        key=[_window_name(begin, window_s) for begin in begins],
        measure=[measure] * len(begins),
        tally=tallies,
    )


def handoff_findings(handoffs: pa.Table, window_s: float) -> pa.Table:
    """Count hand-offs and their times by the window in which they were complete."""
    ready, left, arrived = (handoffs.column(f"{name}_s").to_numpy() for name in ("ready", "left", "arrived"))
    begins, group = np.unique(np.floor(ready / window_s), return_inverse=True)
    run_id = handoffs.column("run_id")[0].as_py()
    names = pa.array([_window_name(begin, window_s) for begin in begins])
    parts = [late_findings(run_id, HANDOFFS, ready, window_s)]
    for measure, apart in (("handoff_away", arrived - left), ("handoff_ready", ready - left)):
        times = by_clocks(apart)
        timed = times >= 0  # unlike not a number, or a clock that jumped
        known = times[timed]
        at, bins, most = _histograms(group[timed], latency_bins(known), known, len(begins))
        parts.append(
            _table(
                run_id=[run_id] * len(at),
                scope=[BY_WINDOW] * len(at),
                key=names.take(pa.array(at)),
                measure=[measure] * len(at),
                tally=[None] * len(at),
                bins=bins,
                time_s=most,
            )
        )
    return pa.concat_tables(parts)


def _window_name(begin: float, window_s: float) -> str:
    return repr(float(begin) * window_s)


def _windows(outcomes: Outcomes, window_s: float) -> tuple[Codes, pa.Array]:
    """Return the window of each outcome, and the windows' names: the seconds at which they begin."""
    moment = np.where(outcomes.is_wanted, outcomes.published_s, outcomes.first_s)
    begins, codes = np.unique(np.floor(moment / window_s), return_inverse=True)
    names = pa.array([_window_name(begin, window_s) for begin in begins], pa.string())
    return codes.astype(np.int32), names


def _counts(outcomes: Outcomes, closed: Flags | None) -> dict[str, Counts]:
    """Return each measure by outcome, as numbers or as flags."""
    expected, copies = outcomes.is_expected, outcomes.copies
    shown = np.ones(len(copies), np.bool_) if closed is None else closed
    arrived = copies > 0
    unknown = outcomes.is_unrecorded if len(outcomes.is_unrecorded) else np.zeros(len(copies), np.bool_)
    leaked = ~outcomes.is_wanted & arrived & shown
    counts: dict[str, Counts] = {
        "expected": expected & shown,
        "delivered": expected & arrived & shown,
        "deliveries": np.where(shown, copies, 0),
        LOST: expected & ~arrived & ~unknown & shown,
        DUPLICATED: np.where(shown, np.maximum(copies - 1, 0), 0),
        OUT_OF_ORDER: outcomes.is_late & shown,
        ALLOWED: outcomes.is_wanted & ~expected & arrived & shown,
        UNAUTHORISED: leaked & ~unknown,
        UNRECORDED_DELIVERIES: expected & ~arrived & unknown & shown,
        UNRECORDED_PUBLICATIONS: leaked & unknown,
    }
    if len(outcomes.reason):
        named = [name if name in REASONS else OTHER for name in outcomes.reasons.to_pylist()]
        of_reason = np.array([REASONS.index(name) for name in named] + [-1], np.int32)[outcomes.reason]
        for code, reason in enumerate(REASONS):
            counts[f"{LOST}_{reason}"] = (of_reason == code) & shown
    return counts


def _tallies(
    outcomes: Outcomes,
    scope: str,
    codes: Codes,
    names: pa.Array,
    counts: dict[str, Counts],
    times: Times,
) -> pa.Table:
    wide = max(1, len(names))
    groups, group = dense(outcomes.run.astype(np.int64) * wide + codes, wide * max(1, len(outcomes.runs)))
    run_of, name_of = np.divmod(groups, wide)
    places, tallies, measures, most = [], [], [], []
    for measure, values in counts.items():
        # Most measures are rare, and a tally of few is soon made.
        rare = np.flatnonzero(values)
        sums = np.bincount(group[rare], values[rare], len(groups)).astype(np.int64)
        some = np.flatnonzero(sums)
        places.append(some)
        tallies.append(sums[some])
        measures += [measure] * len(some)
        longest = np.full(len(groups), np.nan)
        if measure == BEFORE_PUBLISHED:
            np.fmax.at(longest, group[rare], times.before_s[rare])
        most.append(longest[some])
    at = np.concatenate(places)
    counted = _table(
        run_id=outcomes.runs.take(pa.array(run_of[at])),
        scope=[scope] * len(at),
        key=names.take(pa.array(name_of[at])),
        measure=measures,
        tally=np.concatenate(tallies),
        time_s=pa.array(np.concatenate(most), from_pandas=True),
    )
    bins_at, bins_of, longest = _histograms(group[times.timed], times.bins, times.seconds, len(groups))
    timing = _table(
        run_id=outcomes.runs.take(pa.array(run_of[bins_at])),
        scope=[scope] * len(bins_at),
        key=names.take(pa.array(name_of[bins_at])),
        measure=[LATENCY] * len(bins_at),
        tally=[None] * len(bins_at),
        bins=bins_of,
        time_s=longest,
    )
    return pa.concat_tables([counted, timing])


def _histograms(group: Ints, bins: Codes, seconds: Floats, groups: int) -> tuple[Ints, pa.Array, Floats]:
    """Return the groups that have times, for each how many fell into which bins, and the longest."""
    cells, places = dense(group * (BIN_MAX + 1) + bins, groups * (BIN_MAX + 1))
    of_group, of_bin = np.divmod(cells, BIN_MAX + 1)
    tallies = np.bincount(places, minlength=len(cells))
    sizes = np.bincount(of_group, minlength=groups)
    some = np.flatnonzero(sizes)
    ends = np.concatenate([[0], np.cumsum(sizes[some])])
    pairs = pa.StructArray.from_arrays(
        [pa.array(of_bin, pa.int32()), pa.array(tallies, pa.int64())], names=["bin", "tally"]
    )
    most = np.zeros(groups)
    np.maximum.at(most, group, seconds)
    return some, pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs), most[some]


def _incidents(outcomes: Outcomes, name: str, count: Counts) -> pa.Table:
    at = np.flatnonzero(count)
    broker = outcomes.broker[at]
    return _table(
        run_id=outcomes.runs.take(pa.array(outcomes.run[at])),
        scope=[INCIDENT] * len(at),
        key=outcomes.clients.take(pa.array(outcomes.client[at])),
        measure=[name] * len(at),
        tally=count[at].astype(np.int64),
        source=outcomes.sources.take(pa.array(outcomes.source[at])),
        sequence=outcomes.sequence[at],
        published_s=pa.array(outcomes.published_s[at], from_pandas=True),
        time_s=pa.array(outcomes.first_s[at], from_pandas=True),
        broker=outcomes.brokers.take(pa.array(broker, mask=broker < 0)) if len(outcomes.brokers) else None,
        reason=_reasons(outcomes, at) if name == LOST else None,
    )


def _reasons(outcomes: Outcomes, at: Ints) -> pa.Array | None:
    return outcomes.reasons.take(pa.array(outcomes.reason[at])) if len(outcomes.reason) else None


def _table(**columns: object) -> pa.Table:
    rows = len(columns["tally"])  # type: ignore[arg-type]  # a column has a length
    arrays = []
    for field in _SCHEMA:
        column = columns.get(field.name)
        if column is None:
            arrays.append(pa.nulls(rows, field.type))
        else:
            arrays.append(
                column.cast(field.type) if isinstance(column, pa.Array) else pa.array(column, field.type)
            )
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)
