"""Outcomes counted: tallies by run, client, broker and window, and every incident, as rows of FINDINGS.

A window is the one in which the event was published; for a delivery that nobody expected, the one in which
it was delivered. A broker is the one that delivered first; what was lost has none here, since only other
tables can tell where its client was.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sojourn.pipeline.audit_kernel import BIN_MAX, Codes, Flags, Ints, Outcomes, latency_bins

LOST, DUPLICATED, OUT_OF_ORDER, UNAUTHORISED = "lost", "duplicated", "out_of_order", "unauthorised"
INCIDENTS = (LOST, DUPLICATED, OUT_OF_ORDER, UNAUTHORISED)
COUNTS = ("expected", "delivered", "deliveries", *INCIDENTS, "before_published")
LATENCY = "latency"
INCIDENT, BY_RUN, BY_CLIENT, BY_BROKER, BY_WINDOW = "incident", "run", "client", "broker", "window"

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
    }
)


def findings(outcomes: Outcomes, window_s: float, closed: Flags | None = None) -> pa.Table:
    """Count outcomes, all of them or those named by `closed`."""
    counts = _counts(outcomes, closed)
    moment = np.where(outcomes.is_expected, outcomes.published_s, outcomes.first_s)
    latency = outcomes.first_s - outcomes.published_s
    timed = counts["delivered"].astype(bool) & (latency >= 0)
    counts["before_published"] = (counts["delivered"].astype(bool) & (latency < 0)).astype(np.int64)
    bins = latency_bins(latency[timed])
    windows = np.floor(moment / window_s).astype(np.int64)
    least = int(windows.min()) if len(windows) else 0
    window_names = pa.array(
        [repr((least + i) * window_s) for i in range(int(np.ptp(windows)) + 1)] if len(windows) else []
    )
    seen = outcomes.broker >= 0
    all_names = np.ones(len(seen), np.bool_)
    parts = [
        _tallies(outcomes, scope, codes, names, counts, where, timed, bins)
        for scope, codes, names, where in (
            (BY_RUN, outcomes.run, outcomes.runs, all_names),
            (BY_CLIENT, outcomes.client, outcomes.clients, all_names),
            (BY_BROKER, outcomes.broker, outcomes.brokers, seen),
            (BY_WINDOW, (windows - least).astype(np.int32), window_names, all_names),
        )
    ]
    parts += [_incidents(outcomes, name, counts[name]) for name in INCIDENTS]
    return pa.concat_tables(parts)


def _counts(outcomes: Outcomes, closed: Flags | None) -> dict[str, Ints]:
    expected, copies = outcomes.is_expected, outcomes.copies.astype(np.int64)
    shown = np.ones(len(copies), np.bool_) if closed is None else closed
    arrived = copies > 0
    counts = {
        "expected": expected & shown,
        "delivered": expected & arrived & shown,
        "deliveries": np.where(shown, copies, 0),
        LOST: expected & ~arrived & shown,
        DUPLICATED: np.where(shown, np.maximum(copies - 1, 0), 0),
        OUT_OF_ORDER: outcomes.is_late & shown,
        UNAUTHORISED: ~expected & arrived & shown,
    }
    return {name: values.astype(np.int64) for name, values in counts.items()}


def _tallies(
    outcomes: Outcomes,
    scope: str,
    codes: Codes,
    names: pa.Array,
    counts: dict[str, Ints],
    where: Flags,
    timed: Flags,
    bins: Codes,
) -> pa.Table:
    wide = max(1, len(names))
    group, groups = _dense(
        (outcomes.run.astype(np.int64) * wide + codes)[where], wide * max(1, len(outcomes.runs))
    )
    run_of, name_of = np.divmod(groups, wide)
    places, tallies, measures = [], [], []
    for measure, values in counts.items():
        sums = np.bincount(group, values[where], len(groups)).astype(np.int64)
        some = np.flatnonzero(sums)
        places.append(some)
        tallies.append(sums[some])
        measures += [measure] * len(some)
    at = np.concatenate(places)
    counted = _table(
        run_id=outcomes.runs.take(pa.array(run_of[at])),
        scope=[scope] * len(at),
        key=names.take(pa.array(name_of[at])),
        measure=measures,
        tally=np.concatenate(tallies),
    )
    bins_at, bins_of = _histograms(group[timed[where]], bins, len(groups))
    timing = _table(
        run_id=outcomes.runs.take(pa.array(run_of[bins_at])),
        scope=[scope] * len(bins_at),
        key=names.take(pa.array(name_of[bins_at])),
        measure=[LATENCY] * len(bins_at),
        tally=[None] * len(bins_at),
        bins=bins_of,
    )
    return pa.concat_tables([counted, timing])


def _histograms(group: Ints, bins: Codes, groups: int) -> tuple[Ints, pa.Array]:
    """Return the groups that have latencies, and for each how many fell into which bins."""
    places, cells = _dense(group * (BIN_MAX + 1) + bins, groups * (BIN_MAX + 1))
    of_group, of_bin = np.divmod(cells, BIN_MAX + 1)
    tallies = np.bincount(places, minlength=len(cells))
    sizes = np.bincount(of_group, minlength=groups)
    some = np.flatnonzero(sizes)
    ends = np.concatenate([[0], np.cumsum(sizes[some])])
    pairs = pa.StructArray.from_arrays(
        [pa.array(of_bin, pa.int32()), pa.array(tallies, pa.int64())], names=["bin", "tally"]
    )
    return some, pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs)


def _incidents(outcomes: Outcomes, name: str, count: Ints) -> pa.Table:
    at = np.flatnonzero(count)
    broker = outcomes.broker[at]
    return _table(
        run_id=outcomes.runs.take(pa.array(outcomes.run[at])),
        scope=[INCIDENT] * len(at),
        key=outcomes.clients.take(pa.array(outcomes.client[at])),
        measure=[name] * len(at),
        tally=count[at],
        source=outcomes.sources.take(pa.array(outcomes.source[at])),
        sequence=outcomes.sequence[at],
        published_s=pa.array(outcomes.published_s[at], from_pandas=True),
        time_s=pa.array(outcomes.first_s[at], from_pandas=True),
        broker=outcomes.brokers.take(pa.array(broker, mask=broker < 0)) if len(outcomes.brokers) else None,
    )


def _table(**columns: object) -> pa.Table:
    rows = len(columns["tally"])  # type: ignore[arg-type]
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


def _dense(codes: npt.NDArray[np.int64], space: int) -> tuple[Ints, Ints]:
    """Return each code's place among the distinct ones, and these, in ascending order."""
    if space > 4 * len(codes) + 65_536:
        distinct, places = np.unique(codes, return_inverse=True)
        return places, distinct
    seen = np.zeros(space, np.bool_)
    seen[codes] = True
    return (np.cumsum(seen) - 1)[codes], np.flatnonzero(seen)
