"""`sojourn bench match`: how fast the index finds the filters an event matches, beside brute force.

Two workloads. In W1 a filter has one or two equalities on c0..c9 (strings, 1,000 values each, Zipf 1.0) and
ranges on n0..n9, 3 to 7 predicates in all, the ranges 50 to 500 wide; in W2 it has 3 to 7 ranges, 100 to 500
wide. A range of width w starts uniformly in [0, 1000 - w), so that w/1000 of all values lie in it. Events
carry all attributes, the numbers uniform in [0, 1000).

Everything runs on one core, after a warm-up that compiles. The two brute forces see the same events, and
what they find is compared with what the index finds, before and after the updates. Figures `_per_s` go by the
clock; those `_per_cpu_s` count the seconds the processor worked on it, which matters when others use it too.
"""

from __future__ import annotations

import gc
import math
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sojourn.cli.benchmarks import Progress, Row
from sojourn.interest.events import Event
from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.index import ColumnFilters, FilterIndex
from sojourn.interest.index.compiling import compiled
from sojourn.interest.values import number_set, string_set

SIZES = (10_000, 100_000, 1_000_000)
SEED = 1
BATCH_EVENTS = 1_000
_VALUES = 1_000
_ATTRIBUTES = 10
_UPDATES = 20_000
_UPDATE_BATCH = 1_000

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Events:
    """Events as numbers: those of each c attribute (none on W2) and of each n attribute, event by event."""

    choices: Ints
    numbers: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def columns(self, start: int, stop: int) -> Row:
        """Return a batch as a user would give it: plain Arrow strings and NumPy numbers."""
        strings = np.array([f"v{i}" for i in range(_VALUES)], object)
        columns: Row = {
            f"c{a}": pa.array(strings[self.choices[start:stop, a]], pa.string())
            for a in range(self.choices.shape[1])
        }
        return columns | {
            f"n{a}": np.ascontiguousarray(self.numbers[start:stop, a]) for a in range(_ATTRIBUTES)
        }

    def objects(self, count: int) -> list[Event]:
        """Return the first events as objects."""
        return [
            Event(
                {f"c{a}": f"v{v}" for a, v in enumerate(choices)}
                | {f"n{a}": v for a, v in enumerate(numbers)}
            )
            for choices, numbers in zip(
                self.choices[:count].tolist(), self.numbers[:count].tolist(), strict=True
            )
        ]


def _zipf(random: np.random.Generator, shape: tuple[int, ...]) -> Ints:
    weights = 1 / np.arange(1, _VALUES + 1)
    return np.searchsorted(np.cumsum(weights / weights.sum()), random.random(shape)).astype(np.int64)


def _pick(random: np.random.Generator, counts: Ints) -> tuple[Ints, Ints]:
    """Return for each row so many distinct attributes, in compressed rows."""
    order = np.argsort(random.random((len(counts), _ATTRIBUTES)), axis=1)
    starts = np.concatenate(([0], np.cumsum(counts)))
    return starts, order[np.arange(_ATTRIBUTES) < counts[:, None]]


def make_filters(workload: str, count: int, random: np.random.Generator) -> ColumnFilters:
    """Draw the filters of a workload, with keys from 0."""
    predicates = random.integers(3, 8, count)
    equalities = random.integers(1, 3, count) if workload == "W1" else np.zeros(count, np.int64)
    narrowest = 50 if workload == "W1" else 100
    equality_starts, equality_attributes = _pick(random, equalities)
    range_starts, range_attributes = _pick(random, predicates - equalities)
    widths = random.uniform(narrowest, 500, len(range_attributes))
    lows = random.random(len(range_attributes)) * (1000 - widths)
    return ColumnFilters(
        keys=np.arange(count),
        tokens=[(f"c{a}", f"v{v}") for a in range(_ATTRIBUTES) for v in range(_VALUES)],
        equality_starts=equality_starts,
        equality_tokens=equality_attributes * _VALUES + _zipf(random, (len(equality_attributes),)),
        paths=[f"n{a}" for a in range(_ATTRIBUTES)],
        range_starts=range_starts,
        range_paths=range_attributes,
        lows=lows,
        highs=np.nextafter(lows + widths, -np.inf),  # n < low + width
    )


def make_events(workload: str, count: int, random: np.random.Generator) -> Events:
    """Draw events of a workload."""
    choices = _zipf(random, (count, _ATTRIBUTES)) if workload == "W1" else np.zeros((count, 0), np.int64)
    return Events(choices, random.uniform(0, 1000, (count, _ATTRIBUTES)))


def filter_object(filters: ColumnFilters, row: int) -> Filter:
    """Return one of the filters as an object of the language."""
    tokens = filters.equality_tokens[filters.equality_starts[row] : filters.equality_starts[row + 1]].tolist()
    constraints = []
    for token in tokens:
        path, value = filters.tokens[token]
        constraints.append((path, string_set((str(value), f"{value}\x01"))))
    for i in range(filters.range_starts[row], filters.range_starts[row + 1]):
        path = filters.paths[filters.range_paths[i]]
        constraints.append((path, number_set((float(filters.lows[i]), float(filters.highs[i])))))
    return Filter((Conjunction(tuple(sorted(constraints))),))


@compiled
def _brute_force(
    equality_starts: Ints,
    equality_tokens: Ints,
    range_starts: Ints,
    range_paths: Ints,
    lows: Floats,
    highs: Floats,
    choices: Ints,
    numbers: Floats,
) -> Ints:
    """Try every filter on one event, leaving it at its first predicate that fails."""
    found = np.empty(range_starts.size - 1, np.int64)
    count = 0
    for row in range(range_starts.size - 1):
        matches = True
        for i in range(equality_starts[row], equality_starts[row + 1]):
            attribute = equality_tokens[i] // _VALUES
            if choices[attribute] != equality_tokens[i] - attribute * _VALUES:
                matches = False
                break
        if not matches:
            continue
        for i in range(range_starts[row], range_starts[row + 1]):
            value = numbers[range_paths[i]]
            if value < lows[i] or value > highs[i]:
                matches = False
                break
        if matches:
            found[count] = row
            count += 1
    return found[:count]


class _NumpyBruteForce:
    """All filters as dense columns, an attribute each; one event is compared with whole columns."""

    def __init__(self, filters: ColumnFilters) -> None:
        count = len(filters.keys)
        self.lows = np.full((_ATTRIBUTES, count), -np.inf)
        self.highs = np.full((_ATTRIBUTES, count), np.inf)
        rows = np.repeat(np.arange(count), np.diff(filters.range_starts))
        self.lows[filters.range_paths, rows] = filters.lows
        self.highs[filters.range_paths, rows] = filters.highs
        self.choices = np.full((_ATTRIBUTES, count), -1, np.int16)
        rows = np.repeat(np.arange(count), np.diff(filters.equality_starts))
        self.choices[filters.equality_tokens // _VALUES, rows] = filters.equality_tokens % _VALUES

    def match(self, choices: Ints, numbers: Floats) -> Ints:
        matches = np.ones(self.lows.shape[1], np.bool_)
        for attribute, choice in enumerate(choices):
            column = self.choices[attribute]
            matches &= (column == choice) | (column == -1)
        for attribute, number in enumerate(numbers):
            matches &= (self.lows[attribute] <= number) & (number <= self.highs[attribute])
        return np.flatnonzero(matches)


@dataclass(frozen=True)
class _Pace:
    """How often something was done, and in how many seconds of the clock and of the processor."""

    done: int
    seconds: float
    cpu_seconds: float

    def row(self, name: str, *, each: int = 1) -> dict[str, float]:
        """Return the pace as `NAME_per_s` and `NAME_per_cpu_s`."""
        done = self.done * each
        return {f"{name}_per_s": done / self.seconds, f"{name}_per_cpu_s": done / self.cpu_seconds}


def _pace(act: Callable[[int], object], most: int, seconds: float = math.inf) -> _Pace:
    """Do something at most so often and about so long."""
    start, cpu_start = time.perf_counter(), time.thread_time()
    done = 0
    while done < most and (done < 3 or time.perf_counter() - start < seconds):
        act(done)
        done += 1
    return _Pace(done, time.perf_counter() - start, time.thread_time() - cpu_start)


def _resident_bytes() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def _build(filters: ColumnFilters) -> tuple[FilterIndex, dict[str, float]]:
    """Build an index twice, once for the time and once for the memory, as watching memory takes time."""
    start = time.perf_counter()
    index = FilterIndex()
    index.add_columns(filters)
    seconds = time.perf_counter() - start
    del index
    gc.collect()
    resident = _resident_bytes()
    tracemalloc.start()
    index = FilterIndex()
    index.add_columns(filters)
    gc.collect()
    traced = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    count = len(filters.keys)
    return index, {
        "build_s": seconds,
        "bytes_per_filter": traced / count,
        "resident_bytes_per_filter": (_resident_bytes() - resident) / count,
    }


def _update(
    index: FilterIndex, filters: ColumnFilters, workload: str, random: np.random.Generator
) -> dict[str, float]:
    """Let random filters go and new ones come, one by one and in batches, then the other way round."""
    count = len(filters.keys)
    moves = min(_UPDATES, count // 2 // _UPDATE_BATCH * _UPDATE_BATCH)
    old_keys = random.choice(count, moves, replace=False).tolist()
    new_keys = list(range(count, count + moves))
    drawn = make_filters(workload, moves, random)
    old = [filter_object(filters, key) for key in old_keys]
    new = [filter_object(drawn, row) for row in range(moves)]

    def one(i: int) -> None:
        index.add(new_keys[i], new[i])
        index.remove(old_keys[i])

    def batch(i: int) -> None:
        some = slice(i * _UPDATE_BATCH, (i + 1) * _UPDATE_BATCH)
        index.add_many(old_keys[some], old[some])
        index.remove_many(new_keys[some])

    updates = _pace(one, moves).row("updates", each=2)
    return updates | _pace(batch, moves // _UPDATE_BATCH).row("batch_updates", each=2 * _UPDATE_BATCH)


def _same(index: FilterIndex, events: Events, expected: Sequence[Ints]) -> bool:
    """Whether one by one and in a batch the index finds what was found by trying every filter."""
    batch = index.match_batch(events.columns(0, len(expected)))
    one_by_one = (index.match(event) for event in events.objects(min(len(expected), 50)))
    return all(np.array_equal(batch[i], wanted) for i, wanted in enumerate(expected)) and all(
        np.array_equal(found, wanted) for found, wanted in zip(one_by_one, expected, strict=False)
    )


def _measure(workload: str, count: int, seed: int, progress: Progress) -> Row:
    random = np.random.default_rng([seed, int(workload[1:]), count])
    progress(f"{workload}, {count:,} filters: drawing filters and events")
    filters = make_filters(workload, count, random)
    events = make_events(workload, 10 * BATCH_EVENTS, random)
    row: Row = {"workload": workload, "filters": count}

    progress(f"{workload}, {count:,} filters: building the index")
    index, built = _build(filters)
    row |= built

    progress(f"{workload}, {count:,} filters: matching one by one and in batches of {BATCH_EVENTS:,}")
    objects = events.objects(2_000)
    row |= _pace(lambda i: index.match(objects[i]), len(objects), 2).row("events")
    batches = [events.columns(at, at + BATCH_EVENTS) for at in range(0, len(events), BATCH_EVENTS)]
    pace = _pace(lambda i: index.match_batch(batches[i]), len(batches), 3)
    row |= pace.row("batch_events", each=BATCH_EVENTS)
    row["matches_per_event"] = (
        sum(len(index.match_batch(batch).keys) for batch in batches[: pace.done]) / pace.done / BATCH_EVENTS
    )

    progress(f"{workload}, {count:,} filters: brute force in NumPy and in Numba")
    dense = _NumpyBruteForce(filters)
    by_numpy: list[Ints] = []
    row |= _pace(
        lambda i: by_numpy.append(dense.match(events.choices[i], events.numbers[i])), BATCH_EVENTS, 1.5
    ).row("numpy_events")
    arrays = (
        filters.equality_starts,
        filters.equality_tokens,
        filters.range_starts,
        filters.range_paths,
        filters.lows,
        filters.highs,
    )
    by_numba: list[Ints] = []
    row |= _pace(
        lambda i: by_numba.append(_brute_force(*arrays, events.choices[i], events.numbers[i])),
        BATCH_EVENTS,
        1.5,
    ).row("numba_events")
    same = all(np.array_equal(a, b) for a, b in zip(by_numpy, by_numba, strict=False))
    same = same and _same(index, events, by_numba)

    progress(f"{workload}, {count:,} filters: filters come and go")
    row |= _update(index, filters, workload, random)
    row["same_results"] = same and _same(index, events, by_numba)
    return row


def run(sizes: Iterable[int] = SIZES, seed: int = SEED, progress: Progress = lambda _: None) -> list[Row]:
    """Measure both workloads at each number of filters; a row for each, with the units in the names."""
    progress("compiling, or reading what was compiled before")
    for workload in ("W1", "W2"):
        _measure(workload, 4_000, seed, lambda _: None)
    return [_measure(workload, count, seed, progress) for workload in ("W1", "W2") for count in sizes]
