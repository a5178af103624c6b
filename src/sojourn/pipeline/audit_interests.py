"""Interests compiled for matching whole Arrow batches of publications: what is expected to be delivered.

For every run: its filters in one index or a few, and for each filter whose it is and when it is in force.
Reading ten thousand filters takes longer than matching half a million events, so indexes are made where there
are cores: `index_plan` deals the texts into parts, `compile_texts` makes an index of each. An event is
expected at a client when one of the client's interests matches it, was in force when it was published
(`from_s <= time < to_s`; no `to_s` means to the end), and the event's policy, if it has one, permits the
client's attributes. Between asking for an interest and its coming into force (`asked_s <= time < from_s`) a
delivery is allowed and not expected. A client with several such interests expects the event once. Place
enters by time: an interest that holds only somewhere is in the trace for as long as its client is there.

A filter that cannot be read matches nothing, a policy that cannot be read permits nobody, an event or a
client whose attributes cannot be read has none; `audit_job.py` says so to the user.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sojourn.errors import SojournError
from sojourn.interest import Event, Filter, Policy
from sojourn.interest.index import FilterIndex
from sojourn.interest.index.compiling import compiled
from sojourn.pipeline.audit_events import attributes_of, event_columns
from sojourn.trace.rows import TABLES

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


_NAMED_BY = ("run_id", *TABLES["interests"].named_by)
INTEREST = (*_NAMED_BY, "from_s", "to_s")
"""What an audit reads of interests."""

PART_ROWS = 1 << 19
"""Expected deliveries that are made at once, about: what a task holds must not depend on who wants what."""
_FIRST_EVENTS, _EVENTS_MIN = 8_192, 64

PART_FILTERS = 2_500
"""Filters that are worth an index of their own, when there is a core to make it."""


@dataclass(slots=True)
class RunInterests:
    """The interests of one run (or of some of its clients), numbered in the order of their clients."""

    indexes: list[FilterIndex]
    """All filters of a client are in one of them; their keys are numbers of interests."""
    clients: pa.Array
    """The clients' names, each once."""
    client_of: npt.NDArray[np.int32]
    """For each interest its client's place in `clients`, ascending."""
    asked_s: Floats
    from_s: Floats
    to_s: Floats
    attributes: dict[str, str]
    """By client, as JSON; for policies."""
    _permitted: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def match(
        self, publications: pa.Table, columns: dict[str, Any]
    ) -> tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return deliveries as places of publications and places of clients, and whether each is expected.

        Those that are not are allowed.

        `columns` are the publications' attributes as `event_columns` has them.
        """
        times = publications.column("time_s").to_numpy()
        found = []
        for index in self.indexes:
            matched = index.match_batch(columns)
            terms = (self.client_of, self.asked_s, self.from_s, self.to_s)
            found.append(_in_force(matched.offsets, matched.keys, times, *terms))
        events, clients, is_owed = (np.concatenate(parts) for parts in zip(*found, strict=True))
        policies = publications.column("policy")
        if policies.null_count < len(policies):
            permitted = self._permitted_pairs(policies, events, clients)
            events, clients, is_owed = events[permitted], clients[permitted], is_owed[permitted]
        return events, clients, is_owed

    def _permitted_pairs(
        self, policies: pa.ChunkedArray, events: Ints, clients: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        coded = policies.combine_chunks().dictionary_encode()
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        rows = [self._permits(text) for text in coded.dictionary.to_pylist()]
        rows.append(np.ones(len(self.clients), np.bool_))
        permitted: npt.NDArray[np.bool_] = np.stack(rows)[codes[events], clients]
        return permitted

    def _permits(self, text: str) -> npt.NDArray[np.bool_]:
        """Return for each client whether a policy permits it."""
        known = self._permitted.get(text)
        if known is None:
            try:
                policy = Policy.parse(text)
            except SojournError:
                permitted = [False] * len(self.clients)
            else:
                permitted = [
                    policy.permits(_client_event(self.attributes.get(client)))
                    for client in self.clients.to_pylist()
                ]
            known = self._permitted[text] = np.array(permitted, np.bool_)
        return known


def _client_event(text: str | None) -> Event:
    try:
        return Event(attributes_of(text))
    except SojournError:
        return Event({})


@dataclass(slots=True)
class IndexPlan:
    """Interests sorted out by run, and the texts that indexes are to be made of."""

    runs: dict[str, pa.Table]
    """By run, (client, filter, asked_s, from_s, to_s) rows in the order of clients."""
    parts_of: dict[str, list[int]]
    """By run, the places of its parts."""
    first: list[int]
    """For each part, the number of its first interest."""
    texts: list[list[str]]
    """For each part, the filters."""


def told_once(interests: pa.Table) -> pa.Table:
    """Join (INTEREST) rows told when an interest was asked for, when it was in force and when it ended."""
    asked = pc.coalesce(interests.column("asked_s"), interests.column("from_s"))
    rows = interests.set_column(interests.column_names.index("asked_s"), "asked_s", asked)
    told = rows.group_by(list(_NAMED_BY)).aggregate([("from_s", "max"), ("to_s", "max")])
    return told.rename_columns(list(INTEREST))


def index_plan(interests: pa.Table, parts_max: int) -> IndexPlan:
    """Deal (INTEREST) rows into parts; runs with the same filters share them."""
    plan = IndexPlan({}, {}, [], [])
    shared: dict[tuple[tuple[str, ...], bytes], list[int]] = {}
    ordered = interests.sort_by([(name, "ascending") for name in ("run_id", "client", "filter", "from_s")])
    for run_id, table in split_by(ordered, "run_id"):
        texts = tuple(table.column("filter").to_pylist())
        client_of = _codes(table.column("client"))
        key = (texts, client_of.tobytes())
        if key not in shared:
            shared[key] = []
            ends = _part_ends(client_of, parts_max)
            for begin, end in zip([0, *ends], ends, strict=False):
                shared[key].append(len(plan.first))
                plan.first.append(begin)
                plan.texts.append(list(texts[begin:end]))
        plan.runs[run_id] = table
        plan.parts_of[run_id] = shared[key]
    return plan


def _part_ends(client_of: npt.NDArray[np.int32], parts_max: int) -> list[int]:
    """Return where parts of about equal size end, the filters of a client never in two of them."""
    count = len(client_of)
    parts = max(1, min(parts_max, -(-count // PART_FILTERS)))
    ends = {
        int(np.searchsorted(client_of, client_of[count * part // parts - 1], side="right"))
        for part in range(1, parts + 1)
    }
    return sorted(ends)


class FilterMemory:
    """Filters that were read before, and indexes that were made of them: what comes again is there.

    For whoever compiles nearly the same interests again and again, as an audit that follows a run does.
    """

    def __init__(self, filters_max: int = 200_000, indexes_max: int = 16) -> None:
        self._filters_max, self._indexes_max = filters_max, indexes_max
        self._filters: dict[str, Filter] = {}
        self._indexes: dict[bytes, tuple[FilterIndex, dict[str, str]]] = {}
        self.parsed = 0
        """How many filters were read."""

    def parse(self, text: str) -> Filter:
        """Return what a text means, as `Filter.parse` does."""
        known = self._filters.get(text)
        if known is None:
            self.parsed += 1
            known = self._filters[text] = Filter.parse(text)
            if len(self._filters) > self._filters_max:
                del self._filters[next(iter(self._filters))]  # the oldest
        return known

    def compile(self, first: int, texts: Sequence[str]) -> tuple[FilterIndex, dict[str, str]]:
        """Return what `compile_texts` makes of filters; the same ones are known by their digest."""
        digest = hashlib.blake2b(f"{first}".encode())
        for text in texts:
            digest.update(b"\0" + text.encode())
        made = self._indexes.pop(digest.digest(), None) or compile_texts(first, texts, self.parse)
        self._indexes[digest.digest()] = made
        if len(self._indexes) > self._indexes_max:
            del self._indexes[next(iter(self._indexes))]  # that was used longest ago
        return made


def compile_texts(
    first: int, texts: Iterable[str], parse: Callable[[str], Filter] = Filter.parse
) -> tuple[FilterIndex, dict[str, str]]:
    """Make an index of filters, their keys counting up from `first`; and say what could not be read."""
    known: dict[str, Filter | None] = {}
    faulty: dict[str, str] = {}
    keys, filters = [], []
    for key, text in enumerate(texts, first):
        if text not in known:
            try:
                known[text] = parse(text)
            except SojournError as error:
                known[text], faulty[text] = None, str(error)
        wanted = known[text]
        if wanted is not None:
            keys.append(key)
            filters.append(wanted)
    index = FilterIndex()
    index.add_many(keys, filters)
    return index, faulty


def run_interests(
    plan: IndexPlan, indexes: Sequence[FilterIndex], clients: pa.Table
) -> dict[str, RunInterests]:
    """Put a plan and its indexes together; `clients` are (run_id, client, attributes_json) rows."""
    attributes: dict[str, dict[str, str]] = {}
    for row in clients.to_pylist():
        attributes.setdefault(row["run_id"], {})[row["client"]] = row["attributes_json"]
    compiled_runs = {}
    for run_id, table in plan.runs.items():
        coded = table.column("client").combine_chunks().dictionary_encode()
        from_s = table.column("from_s").fill_null(-np.inf)
        compiled_runs[run_id] = RunInterests(
            indexes=[indexes[part] for part in plan.parts_of[run_id]],
            clients=coded.dictionary,
            client_of=coded.indices.to_numpy().astype(np.int32),
            asked_s=pc.coalesce(table.column("asked_s"), from_s).to_numpy(),
            from_s=from_s.to_numpy(),
            to_s=table.column("to_s").fill_null(np.inf).to_numpy(),
            attributes=attributes.get(run_id, {}),
        )
    return compiled_runs


def compile_interests(
    interests: pa.Table,
    clients: pa.Table,
    faulty: dict[str, str] | None = None,
    memory: FilterMemory | None = None,
) -> dict[str, RunInterests]:
    """Compile interests by run, here and now; what cannot be read is added to `faulty`."""
    plan = index_plan(interests, 1)
    make = compile_texts if memory is None else memory.compile
    made = [make(first, texts) for first, texts in zip(plan.first, plan.texts, strict=True)]
    if faulty is not None:
        for _, wrong in made:
            faulty |= wrong
    return run_interests(plan, [index for index, _ in made], clients)


def expected_rows(publications: pa.Table, interests: Mapping[str, RunInterests]) -> Iterator[pa.Table]:
    """Yield the expected and allowed deliveries of publications, run by run, names as dictionaries."""
    for run_id, table in split_by(publications, "run_id"):
        if run_id in interests:
            yield from expected_in_parts(run_id, table, event_columns(table)[0], interests[run_id])


def expected_in_parts(
    run_id: str, publications: pa.Table, columns: dict[str, Any], run: RunInterests
) -> Iterator[pa.Table]:
    """Yield what `expected_of_run` returns in parts of about `PART_ROWS`, however many want an event."""
    begin, events = 0, min(len(publications), _FIRST_EVENTS)
    while begin < len(publications):
        part = publications.slice(begin, events)
        found = expected_of_run(
            run_id, part, {name: values[begin : begin + events] for name, values in columns.items()}, run
        )
        yield found
        begin += events
        fits = PART_ROWS * len(part) // max(1, len(found))
        events = max(_EVENTS_MIN, min(fits, 8 * events))


def expected_of_run(
    run_id: str, publications: pa.Table, columns: dict[str, Any], run: RunInterests
) -> pa.Table:
    """Return the expected and allowed deliveries of a run's publications, whose attributes are `columns`."""
    events, clients, is_owed = run.match(publications, columns)
    sources = publications.column("source").combine_chunks()
    if not pa.types.is_dictionary(sources.type):
        sources = sources.dictionary_encode()
    return pa.table(
        {
            "run_id": constant(run_id, len(events)),
            "client": pa.DictionaryArray.from_arrays(pa.array(clients), run.clients),
            "source": pa.DictionaryArray.from_arrays(
                pa.array(sources.indices.to_numpy()[events]), sources.dictionary
            ),
            "sequence": publications.column("sequence").to_numpy()[events],
            "time_s": publications.column("time_s").to_numpy()[events],
            "is_owed": is_owed,
        }
    )


def split_by(table: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield a table's rows by the value of a column, in the order the values first appear."""
    coded = table.column(column).combine_chunks().dictionary_encode()
    if len(coded.dictionary) == 1:
        yield coded.dictionary[0].as_py(), table
        return
    codes = coded.indices.to_numpy()
    for code, value in enumerate(coded.dictionary.to_pylist()):
        yield value, table.take(pa.array(np.flatnonzero(codes == code)))


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """Return a column that says the same in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text], pa.string()))


def check_filters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the filters of a one-column DataFrame that cannot be read, with the reason (FAULTY_FILTERS)."""
    for batch in batches:
        faulty: dict[str, str] = {}
        for text in batch.column(0).to_pylist():
            try:
                Filter.parse(text)
            except SojournError as error:
                faulty[text] = str(error)
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(faulty), pa.string()), pa.array(list(faulty.values()), pa.string())],
            names=["filter", "error"],
        )


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    codes: npt.NDArray[np.int32] = column.combine_chunks().dictionary_encode().indices.to_numpy()
    return codes


@compiled
def _in_force(
    offsets: Ints,
    keys: Ints,
    times: Floats,
    client_of: npt.NDArray[np.int32],
    asked_s: Floats,
    from_s: Floats,
    to_s: Floats,
) -> tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Keep the matches asked for or in force when their event was published, each client once an event.

    The flags tell which were in force.

    Keys ascend within an event and clients ascend with keys, so a repeated client follows itself.
    """
    events = np.empty(keys.size, np.int64)
    clients = np.empty(keys.size, np.int32)
    is_owed = np.empty(keys.size, np.bool_)
    kept = 0
    for event in range(offsets.size - 1):
        last = -1
        time = times[event]
        for at in range(offsets[event], offsets[event + 1]):
            key = keys[at]
            client = client_of[key]
            if time < asked_s[key] or time >= to_s[key]:
                continue
            if client != last:
                events[kept] = event
                clients[kept] = client
                is_owed[kept] = time >= from_s[key]
                kept += 1
                last = client
            elif time >= from_s[key]:
                is_owed[kept - 1] = True
    return events[:kept], clients[:kept], is_owed[:kept]
