"""What buckets found, summed up: rows of FINDINGS to one row of COUNTED a run, client, broker or window.

Sums are of integers, so they do not depend on who is added first. Percentiles of latencies are read off
summed bins: the first bin with enough latencies in it and below it, whose middle is given. The longest is the
longest itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from sojourn.pipeline.audit_kernel import bin_middle_s, by_clocks
from sojourn.pipeline.schemas import COUNTED

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
TIMES = ("latency", "handoff_away", "handoff_ready")
_KEYS = ["run_id", "scope", "key"]
_SCHEMA = to_arrow_schema(COUNTED)
COUNTS = tuple(field.name for field in _SCHEMA if pa.types.is_integer(field.type))
"""Every count that a row of COUNTED has."""


def summed(found: pa.Table) -> pa.Table:
    """Sum up findings; all that belongs to one row must be among them."""
    groups = found.select(_KEYS).group_by(_KEYS).aggregate([])
    place = _places(found, groups)
    rows = len(groups)
    measure = found.column("measure").combine_chunks().dictionary_encode()
    codes, names = measure.indices.to_numpy(), measure.dictionary.to_pylist()
    tally = found.column("tally").fill_null(0).to_numpy()
    columns: dict[str, pa.Array | pa.ChunkedArray] = {name: groups.column(name) for name in _KEYS}
    for name in COUNTS:
        of_name = codes == names.index(name) if name in names else np.zeros(len(codes), np.bool_)
        sums = np.zeros(rows, np.int64)
        np.add.at(sums, place[of_name], tally[of_name])
        columns[name] = pa.array(sums)
    columns["before_published_max_s"] = _longest(found, place, rows, "before_published")
    for what in TIMES:
        columns |= _percentiles(found, place, rows, what)
    return pa.table(columns).select(_SCHEMA.names).cast(_SCHEMA)


def handoff_times(handoffs: pa.Table) -> list[dict[str, Any]]:
    """Percentiles of hand-offs by run, as `audit.handoff_times` has them: of few, sooner done here."""
    runs = handoffs.column("run_id").to_numpy(zero_copy_only=False)
    left, arrived, ready = (handoffs.column(f"{name}_s").to_numpy() for name in ("left", "arrived", "ready"))
    apart = {"away": arrived - left, "ready": ready - left, "wait": ready - arrived}
    measures = {measure: by_clocks(times) for measure, times in apart.items()}
    rows = []
    for run_id in sorted(set(runs)):
        mine = runs == run_id
        row: dict[str, Any] = {"run_id": run_id, "handoffs": int(mine.sum())}
        for measure, times in measures.items():
            known = times[mine & ~np.isnan(times)]
            for name, share in PERCENTILES.items():
                found = float(np.quantile(known, share)) if len(known) else None
                row[f"handoff_{measure}_{name}_s"] = found
        rows.append(row)
    return rows


def _places(found: pa.Table, groups: pa.Table) -> npt.NDArray[np.int64]:
    """Return for each finding the place of its group."""
    numbers = np.zeros(len(found), np.int64)
    wanted = np.zeros(len(groups), np.int64)
    for name in _KEYS:
        names = groups.column(name).unique()
        wanted = wanted * len(names) + pc.index_in(groups.column(name), names).to_numpy()
        numbers = numbers * len(names) + pc.index_in(found.column(name), names).to_numpy()
    order = np.argsort(wanted)
    places: npt.NDArray[np.int64] = order[np.searchsorted(wanted, numbers, sorter=order)]
    return places


def _longest(found: pa.Table, place: npt.NDArray[np.int64], rows: int, what: str) -> pa.Array:
    """Return the longest of the times that findings of a measure tell."""
    mine = np.flatnonzero(pc.equal(found.column("measure"), what).to_numpy())
    values = np.full(rows, np.nan)
    np.fmax.at(values, place[mine], found.column("time_s").to_numpy()[mine])
    return pa.array(values, from_pandas=True)


def _percentiles(found: pa.Table, place: npt.NDArray[np.int64], rows: int, what: str) -> dict[str, pa.Array]:
    """Return percentiles of the times that bins of the measure `what` tell of."""
    mine = np.flatnonzero(pc.equal(found.column("measure"), what).to_numpy())
    bins = found.column("bins").take(pa.array(mine)).combine_chunks()
    cells = bins.flatten()
    row = np.repeat(place[mine], bins.value_lengths().fill_null(0).to_numpy())
    number, tally = (cells.field(name).to_numpy() for name in ("bin", "tally"))
    order = np.lexsort((number, row))
    row, number, tally = row[order], number[order], tally[order]
    upto = np.concatenate([[0], np.cumsum(tally)])
    before = upto[np.searchsorted(row, np.arange(rows), side="left")]
    total = upto[np.searchsorted(row, np.arange(rows), side="right")] - before
    some = total > 0
    told = {}
    for name, share in PERCENTILES.items():
        if name == "max":
            told[f"{what}_{name}_s"] = _longest(found, place, rows, what)
            continue
        values = np.full(rows, np.nan)
        at = np.searchsorted(upto[1:], before[some] + np.maximum(1, np.ceil(total[some] * share)))
        values[some] = [bin_middle_s(int(reached)) for reached in number[at]]
        told[f"{what}_{name}_s"] = pa.array(values, from_pandas=True)
    return told
