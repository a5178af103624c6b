"""A synthetic trace for the audit's benchmark, with losses, duplicates and swaps at known places.

5,000 clients have two interests each, 10,000 in all: four in five ask for a kind (of 200), a price range and
a depth range, the others for narrow ranges of any kind; every tenth begins late or ends early.
40 sources publish in turn, 1,000 events a second; an event is expected at about 18 clients. The expected
deliveries are found here by plain loops over arrays, apart from everything that the audit uses.

Planted: 1% lost (a third of these with a drop for a full queue, a third expired), 0.5% doubled, 0.2% swapped
with the next delivery of the same source to the same client. Events of one source are 40 ms apart and
deliveries take 2 to 35 ms, so that nothing else is out of order.

A trace may have another shape: other numbers of interests (and half as many clients); an *outage*, after
which nothing is delivered any more and no broker says why; a *skew*, by which half of all interests belong to
one client, who then wants nearly everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sojourn.errors import SojournError
from sojourn.interest.index.compiling import compiled
from sojourn.trace import segment_folder, write_run
from sojourn.trace.manifests import segment_name
from sojourn.trace.segments import arrow_table, write_segment

RUN = "bench"
INTERESTS, SOURCES, KINDS, BROKERS = 10_000, 40, 200, 64
OUTAGE_FROM = 100
"""The first event that nobody gets, where there is an outage."""
RATE_HZ = 1_000
CHUNK_EVENTS = 50_000
_ANY_KIND = -1

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Planted:
    """What an audit must find."""

    published: int = 0
    expected: int = 0
    deliveries: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    unauthorised: int = 0
    lost_queue_full: int = 0
    lost_expired: int = 0
    bytes: int = 0


class Shape(NamedTuple):
    """What a trace is like."""

    interests: int = INTERESTS
    outage: bool = False
    skew: bool = False

    @classmethod
    def named(cls, text: str) -> Shape:
        """Return the shape of a name: plain, outage, skew or a number of interests."""
        if text.isdigit() and int(text) >= 100:
            return cls(interests=int(text))
        if text not in ("plain", "outage", "skew"):
            raise SojournError(f"--shape may be plain, outage, skew or a number of filters, not {text!r}.")
        return cls(outage=text == "outage", skew=text == "skew")


@dataclass(slots=True)
class _Wanted:
    """The interests as arrays, ordered by kind, those of any kind by price."""

    client: Ints
    kind: Ints
    bounds: Floats
    """Price from, to, depth from, to; in force from, to."""
    starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Where the interests of each kind start; those of any kind come first."""


def write_trace(
    root: Path,
    deliveries: int,
    seed: int,
    progress: Callable[[str], None],
    shape: Shape = Shape(),  # noqa: B008  a constant tuple
) -> Planted:
    """Write a trace of so many expected deliveries, about, and return what was planted in it."""
    rng = np.random.default_rng(seed)
    # In force times depend on the duration, so the number of events is settled first, from the mean.
    events = max(2_000, round(deliveries / _matches_per_event(seed, shape) * 1.01))
    wanted = _interests(rng, events / RATE_HZ, shape)
    _write_small_tables(root, wanted, rng, events / RATE_HZ)
    planted = Planted(published=events)
    for number, start in enumerate(range(0, events, CHUNK_EVENTS)):
        progress(f"writing {planted.deliveries:,} of {deliveries:,} deliveries")
        ids = np.arange(start, min(events, start + CHUNK_EVENTS))
        _write_chunk(root, number, ids, wanted, rng, planted, outage=shape.outage)
    planted.bytes = sum(path.stat().st_size for path in root.rglob("*.parquet"))
    return planted


def _matches_per_event(seed: int, shape: Shape) -> float:
    rng = np.random.default_rng(seed)
    wanted = _interests(rng, 1.0, shape)
    kind, price, depth = _attributes(rng, 2_000)
    events, _ = _match(kind, price, depth, np.full(2_000, 0.5), wanted)
    return len(events) / 2_000


def _interests(rng: np.random.Generator, duration_s: float, shape: Shape) -> _Wanted:
    count = shape.interests
    numbers = np.arange(count)
    narrow = numbers % 5 == 0
    kind = np.where(narrow, _ANY_KIND, rng.integers(0, KINDS, count))
    width = np.where(narrow[:, None], rng.integers(30, 61, (count, 2)), rng.integers(400, 801, (count, 2)))
    low = (rng.random((count, 2)) * (1_000 - width)).astype(np.int64)
    begin = np.where(numbers % 20 == 7, np.round(duration_s * 0.2, 3), 0.0)
    end = np.where(numbers % 20 == 13, np.round(duration_s * 0.8, 3), np.inf)
    client = np.where((numbers % 2 == 0) & shape.skew, 0, numbers // 2)
    bounds = np.column_stack(
        [low[:, 0], low[:, 0] + width[:, 0], low[:, 1], low[:, 1] + width[:, 1], begin, end]
    )
    order = np.lexsort((bounds[:, 0], kind))
    starts = np.searchsorted(kind[order], np.arange(_ANY_KIND, KINDS + 1))
    return _Wanted(client[order], kind[order], bounds[order], starts.astype(np.int64))


def filter_text(kind: int, bounds: Floats) -> str:
    """Write an interest as its filter."""
    low, high, shallow, deep = (int(value) for value in bounds[:4])
    ranges = f"price >= {low} AND price < {high} AND depth >= {shallow} AND depth < {deep}"
    return ranges if kind == _ANY_KIND else f"kind = 'k{kind}' AND {ranges}"


def _write_small_tables(root: Path, wanted: _Wanted, rng: np.random.Generator, duration_s: float) -> None:
    interests = len(wanted.client)
    clients = interests // 2
    names = _names("client", clients)
    left = np.sort(rng.random(clients) * duration_s)
    away = left + 1 + rng.random(clients)
    none = [None] * clients
    tables: dict[str, dict[str, Any]] = {
        "clients": {"client": names, "attributes_json": ["{}"] * clients},
        "interests": {
            "client": names.take(pa.array(wanted.client)),
            "interest": [f"i{number}" for number in range(interests)],
            "filter": [filter_text(int(k), b) for k, b in zip(wanted.kind, wanted.bounds, strict=True)],
            "from_s": wanted.bounds[:, 4],
            "to_s": pa.array(wanted.bounds[:, 5], mask=np.isinf(wanted.bounds[:, 5])),
        },
        "sojourns": {
            "client": names,
            "broker": _names("broker", BROKERS).take(pa.array(np.arange(clients) % BROKERS)),
            "from_s": np.zeros(clients),
            "to_s": pa.array(none, pa.float64()),
        },
        "handoffs": {
            "client": names,
            "from_broker": none,
            "to_broker": none,
            "left_s": left,
            "arrived_s": away,
            "ready_s": away + 0.1 * rng.random(clients),
            "cause": none,
        },
        "runs": {
            "world": ["sim"],
            "study": ["bench"],
            "seed": [1],
            "spec_json": ["{}"],
            "started_at": [None],
            "duration_s": [duration_s + 10.0],
            "warmup_s": [0.0],
            "error": [None],
        },
    }
    write_run(root, RUN, tables)


def _write_chunk(
    root: Path,
    number: int,
    ids: Ints,
    wanted: _Wanted,
    rng: np.random.Generator,
    planted: Planted,
    *,
    outage: bool,
) -> None:
    times = ids / RATE_HZ
    kind, price, depth = _attributes(rng, len(ids))
    source, sequence = ids % SOURCES, ids // SOURCES
    none = pa.nulls(len(ids), pa.string())
    _write(
        root,
        "publications",
        number,
        {
            "source": _names("source", SOURCES).take(pa.array(source)),
            "sequence": sequence,
            "time_s": times,
            "broker": none,
            "topic": none,
            "attributes_json": [
                f'{{"depth":{d},"kind":"k{k}","price":{p}}}'
                for d, k, p in zip(depth.tolist(), kind.tolist(), price.tolist(), strict=True)
            ],
            "policy": none,
            "bytes": np.full(len(ids), 200),
        },
    )
    events, clients = _match(kind, price, depth, times, wanted)
    gone: Flags = outage & (ids[events] >= OUTAGE_FROM)
    arrival, lost, doubled, swapped = _plant(rng, events, clients, source, times, gone)
    names = {
        "client": _names("client", len(wanted.client) // 2).take(pa.array(clients)),
        "source": _names("source", SOURCES).take(pa.array(source[events])),
        "sequence": pa.array(sequence[events]),
        "broker": _names("broker", BROKERS).take(pa.array(clients % BROKERS)),
    }
    dropped = lost & ~gone
    third = np.cumsum(dropped) % 3
    for reason, code in (("queue_full", 0), ("expired", 1)):
        at = np.flatnonzero(dropped & (third == code))
        columns = {name: values.take(pa.array(at)) for name, values in names.items()}
        columns |= {"time_s": times[events[at]], "reason": [reason] * len(at)}
        _write(root, "drops", number, columns, writer=reason)
        setattr(planted, f"lost_{reason}", getattr(planted, f"lost_{reason}") + len(at))
    rows = np.concatenate([np.flatnonzero(~lost), np.flatnonzero(doubled)])
    when = np.concatenate([arrival[~lost], arrival[doubled] + 0.5])
    order = np.argsort(when, kind="stable")
    columns = {name: values.take(pa.array(rows[order])) for name, values in names.items()}
    _write(root, "deliveries", number, {**columns, "time_s": when[order]})
    planted.expected += len(events)
    planted.deliveries += len(rows)
    planted.lost += int(lost.sum())
    planted.duplicated += int(doubled.sum())
    planted.out_of_order += int(swapped.sum())


def _plant(
    rng: np.random.Generator, events: Ints, clients: Ints, source: Ints, times: Floats, gone: Flags
) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return when each expected delivery arrives, and which are lost, doubled and swapped with the next."""
    count = len(events)
    chance = rng.random(count)
    lost, doubled = (chance < 0.01) | gone, (chance >= 0.01) & (chance < 0.015) & ~gone
    arrival = times[events] + rng.uniform(0.002, 0.035, count)
    # Neighbours are deliveries of one source to one client, next to each other among those that arrive.
    arriving = np.flatnonzero(~lost)
    order = arriving[np.lexsort((events[arriving], clients[arriving] * SOURCES + source[events[arriving]]))]
    pair = clients[order] * SOURCES + source[events[order]]
    plain = ~doubled[order]
    wanted = (rng.random(len(order)) < 0.0027) & plain
    wanted[:-1] &= (pair[1:] == pair[:-1]) & plain[1:]
    wanted[-1:] = False
    wanted[1:] &= ~wanted[:-1]  # a delivery takes part in one swap
    first = np.flatnonzero(wanted)
    arrival[order[first]] = arrival[order[first + 1]] + 0.001
    swapped = np.zeros(count, np.bool_)
    swapped[order[first]] = True
    return arrival, lost, doubled, swapped


def _attributes(rng: np.random.Generator, count: int) -> tuple[Ints, Floats, Ints]:
    return (
        rng.integers(0, KINDS, count),
        np.round(rng.random(count) * 1_000, 2),
        rng.integers(0, 1_000, count),
    )


def _names(prefix: str, count: int) -> pa.Array:
    return pa.array([f"{prefix}-{number:05d}" for number in range(count)])


def _write(root: Path, table: str, number: int, columns: dict[str, Any], *, writer: str = "bench") -> None:
    path = segment_folder(root, table, RUN) / segment_name(writer, number)
    write_segment(path, arrow_table(table, columns))


def _match(kind: Ints, price: Floats, depth: Ints, times: Floats, wanted: _Wanted) -> tuple[Ints, Ints]:
    events, clients = _match_all(
        kind, price, depth.astype(np.float64), times, wanted.client, wanted.bounds, wanted.starts
    )
    many = len(wanted.client)
    pairs = np.unique(events * many + clients)
    return pairs // many, pairs % many


@compiled
def _match_all(
    kind: Ints, price: Floats, depth: Floats, times: Floats, client: Ints, bounds: Floats, starts: Ints
) -> tuple[Ints, Ints]:
    most = max(64, client.size // 100)
    events = np.empty(kind.size * most, np.int64)
    clients = np.empty(kind.size * most, np.int64)
    found = 0
    for event in range(kind.size):
        for group in (0, kind[event] + 1):
            for at in range(starts[group], starts[group + 1]):
                b = bounds[at]
                if b[0] > price[event]:
                    break  # within a kind they are ordered by their lowest price
                if (
                    price[event] < b[1]
                    and b[2] <= depth[event]
                    and depth[event] < b[3]
                    and b[4] <= times[event]
                    and times[event] < b[5]
                ):
                    events[found] = event
                    clients[found] = client[at]
                    found += 1
    return events[:found], clients[:found]
