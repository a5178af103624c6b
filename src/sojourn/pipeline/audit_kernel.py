"""Expected deliveries compared with actual ones, for a bucket of clients at a time, in arrays.

A delivery is named by run, client, source and sequence number. Both sides are sorted by that name once; one
pass over it then tells, for every name:

- *lost*: expected and never delivered;
- *duplicated*: deliveries beyond the first, counted one by one;
- *out of order*: its first delivery came after the first delivery of a later event of the same source to the
  same client. Only first deliveries count, so a duplicate is not also out of order, and two neighbours that
  changed places count once: for the one that should have come first. Equal times are in order;
- *allowed*: delivered and not expected, by an interest that had been asked for and was not yet in force;
- *unauthorised*: delivered and neither, because no such interest matched or the policy forbade it;
- *unrecorded*: instead of lost or unauthorised, where a gap in the trace can explain it (`audit_gaps.py`);
- *latency*: from publication to first delivery. One below zero is of clocks that differ and is counted apart:
  those of two processes differ by some milliseconds where nobody set one, so down to `CLOCKS_S` below zero it
  is 0, and beyond that, where a clock jumped, there is none.

Expected = delivered + lost + unrecorded deliveries, and rows of deliveries = delivered + allowed +
unauthorised + duplicated + those of unrecorded publications.

Latencies are counted in bins whose width is 1/128 of their lower end, taken from the bits of the number: sums
of bins don't depend on the order of summation, and a percentile read from them is exact to 0.4%.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sojourn.interest.index.compiling import compiled

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

CLOCKS_S = 0.1
"""By so much clocks of brokers may differ, where nobody set one."""

BIN_BITS = 7
_SHIFT = 52 - BIN_BITS
_BIN_START = (1023 - 20) << BIN_BITS
"""Bin 0 is everything up to 2**-20 s, about a microsecond."""
BIN_MAX = 40 << BIN_BITS
"""The last bin begins at 2**20 s, some twelve days."""

_DIGIT_BITS = 11
_DIGITS = 1 << _DIGIT_BITS


@dataclass(slots=True)
class Outcomes:
    """What became of every name; arrays have one value a name unless said otherwise."""

    run: Codes
    client: Codes
    source: Codes
    sequence: Ints
    published_s: Floats
    """NaN where neither expected nor allowed."""
    is_expected: Flags
    first_s: Floats
    """Of the first delivery; NaN where there is none."""
    broker: Codes
    """Of the first delivery, or where it was lost; -1 where it isn't known."""
    copies: Codes
    is_late: Flags
    """Out of order."""
    name_of_delivery: Codes
    """For each delivery row its name."""
    runs: pa.Array
    clients: pa.Array
    sources: pa.Array
    brokers: pa.Array
    reason: Codes = field(default_factory=lambda: np.empty(0, np.int32))
    """Why it was lost, a place in `reasons`, -1 where it was not; empty until `audit_losses.py` is asked."""
    reasons: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    is_unrecorded: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    """Whether nobody can know what became of it, or of its publication; empty where no rows are missing."""

    @property
    def is_wanted(self) -> Flags:
        """Whether the name is expected or allowed."""
        return ~np.isnan(self.published_s)


def compare(expected: pa.Table | None, delivered: pa.Table | None) -> Outcomes:
    """Compare the rows of both sides, whose names are dictionary columns."""
    count = 0 if expected is None else expected.num_rows
    (runs, run), (clients, client), (sources, source) = (
        _joined(expected, delivered, name) for name in ("run_id", "client", "source")
    )
    sequence: Ints = _values(expected, delivered, "sequence")
    times: Floats = _values(expected, delivered, "time_s")
    brokers, broker = _joined(None, delivered, "broker")
    rank = np.argsort(np.argsort(np.array([name or "" for name in brokers.to_pylist()], str))).astype(
        np.int32
    )
    ranked = rank[broker] if len(rank) else broker
    pair = (run.astype(np.int64) * len(clients) + client) * len(sources) + source
    pairs = len(runs) * len(clients) * len(sources)
    keys, span = _keys(pair, pairs, sequence)
    order = sorted_order(keys, int(keys.max()) if len(keys) else 0)
    name_of, first, wanted, copies, late = _scan(order, keys, span, times, ranked, count)
    any_row = np.where(wanted >= 0, wanted, first)
    delivery = first[first >= 0]
    owed = np.empty(0, np.bool_) if expected is None else expected.column("is_owed").to_numpy()
    is_expected = np.zeros(len(first), np.bool_)
    is_expected[wanted >= 0] = owed[wanted[wanted >= 0]]
    brokers_of = np.full(len(first), -1, np.int32)
    brokers_of[first >= 0] = broker[delivery - count]
    return Outcomes(
        run=run[any_row],
        client=client[any_row],
        source=source[any_row],
        sequence=sequence[any_row],
        published_s=_at(times, wanted),
        is_expected=is_expected,
        first_s=_at(times, first),
        broker=brokers_of,
        copies=copies,
        is_late=late,
        name_of_delivery=name_of,
        runs=runs,
        clients=clients,
        sources=sources,
        brokers=brokers,
    )


def by_clocks(times_s: Floats) -> Floats:
    """Return times between moments of two clocks, 0 for those that are below it by what clocks may differ."""
    known: Floats = np.where((times_s < 0) & (times_s >= -CLOCKS_S), 0.0, times_s)
    return known


def latency_bins(latency_s: Floats) -> Codes:
    """Return the bin of each latency."""
    bits = latency_s.view(np.int64) >> _SHIFT
    bins: Codes = np.clip(bits - _BIN_START, 0, BIN_MAX).astype(np.int32)
    return bins


def bin_middle_s(number: int) -> float:
    """Return the latency that a bin stands for: its middle."""
    if number <= 0:
        return float(2.0**-21)
    ends = (np.array([number, number + 1], np.int64) + _BIN_START) << _SHIFT
    return float(ends.view(np.float64).mean())


# -------------------------------------------------------------------------- names as numbers


def _joined(expected: pa.Table | None, delivered: pa.Table | None, name: str) -> tuple[pa.Array, Codes]:
    """Return one dictionary for a column of both sides, and the codes of all rows."""
    columns = [table.column(name) for table in (expected, delivered) if table is not None]
    if not columns:
        return pa.array([], pa.string()), np.empty(0, np.int32)
    arrays = [chunk for column in columns for chunk in column.chunks]
    together = pa.chunked_array(arrays, columns[0].type).unify_dictionaries()
    codes = [np.asarray(chunk.indices.fill_null(-1), np.int32) for chunk in together.chunks]
    names = together.chunk(0).dictionary if together.num_chunks else pa.array([], pa.string())
    joined = np.concatenate(codes) if codes else np.empty(0, np.int32)
    if (joined < 0).any():  # a null name is a name of its own
        joined = np.where(joined < 0, np.int32(len(names)), joined)
        names = pa.concat_arrays([names, pa.nulls(1, names.type)])
    return names, joined


def _at(times: Floats, rows: Codes) -> Floats:
    """Return the times of rows, NaN where there is no row."""
    found = np.full(len(rows), np.nan)
    found[rows >= 0] = times[rows[rows >= 0]]
    return found


def _ranks(names: pa.Array) -> Codes:
    """Return each name's place in alphabetical order, which unlike its code is the same in every process."""
    order = np.argsort(np.array([name or "" for name in names.to_pylist()], str))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order))
    return ranks


def _values(expected: pa.Table | None, delivered: pa.Table | None, name: str) -> Any:
    columns = [table.column(name).to_numpy() for table in (expected, delivered) if table is not None]
    return np.concatenate(columns) if columns else np.empty(0, np.int64)


def _keys(pair: Ints, pairs: int, sequence: Ints) -> tuple[Ints, int]:
    """Return one number a row that sorts by pair, then sequence; and how many numbers a pair has."""
    if not len(pair):
        return pair, 1
    least, most = int(sequence.min()), int(sequence.max())
    if pairs * (most - least + 1) >= 2**62:
        # Sequence numbers may be anything, such as times in nanoseconds; their ranks are dense.
        sequence, least = np.unique(sequence, return_inverse=True)[1], 0
        most = int(sequence.max())
        if pairs * (most + 1) >= 2**62:
            pair = np.unique(pair, return_inverse=True)[1]
    span = most - least + 1
    return pair * span + (sequence - least), span


# -------------------------------------------------------------------------- kernels


@compiled
def sorted_order(keys: Ints, top: int) -> Codes:
    """Return the order that sorts numbers from 0 to `top`, equal ones as they were: a radix sort."""
    order = np.arange(keys.size).astype(np.int32)
    spare = np.empty(keys.size, np.int32)
    shift = 0
    while (top >> shift) > 0:
        starts = np.zeros(_DIGITS + 1, np.int64)
        for key in keys:
            starts[((key >> shift) & (_DIGITS - 1)) + 1] += 1
        for digit in range(_DIGITS):
            starts[digit + 1] += starts[digit]
        for at in range(keys.size):
            row = order[at]
            digit = (keys[row] >> shift) & (_DIGITS - 1)
            spare[starts[digit]] = row
            starts[digit] += 1
        order, spare = spare, order
        shift += _DIGIT_BITS
    return order


@compiled
def _scan(
    order: Codes, keys: Ints, span: int, times: Floats, broker: Codes, expected: int
) -> tuple[Codes, Codes, Codes, Codes, Flags]:
    """Go through the sorted rows, later events first, and return by name what `Outcomes` is made of.

    The first `expected` rows are expected, the others delivered; `broker` has one value a delivery.
    """
    names = 0
    for at in range(order.size):
        if at == 0 or keys[order[at]] != keys[order[at - 1]]:
            names += 1
    name_of = np.empty(order.size - expected, np.int32)
    first = np.full(names, -1, np.int32)
    wanted = np.full(names, -1, np.int32)
    copies = np.zeros(names, np.int32)
    late = np.zeros(names, np.bool_)
    name = names
    key = np.int64(-1)
    earliest_later = np.inf
    for at in range(order.size - 1, -1, -1):
        row = order[at]
        if keys[row] != key:
            if name < names and first[name] >= 0:
                late[name] = earliest_later < times[first[name]]
                earliest_later = min(earliest_later, times[first[name]])
            if key < 0 or keys[row] // span != key // span:
                earliest_later = np.inf
            key = keys[row]
            name -= 1
        if row < expected:
            if wanted[name] < 0 or times[row] < times[wanted[name]]:
                wanted[name] = row
        else:
            copies[name] += 1
            name_of[row - expected] = name
            best = first[name]
            if (
                best < 0
                or times[row] < times[best]
                or (times[row] == times[best] and broker[row - expected] < broker[best - expected])
            ):
                first[name] = row
    if name < names and first[name] >= 0:
        late[name] = earliest_later < times[first[name]]
    return name_of, first, wanted, copies, late
