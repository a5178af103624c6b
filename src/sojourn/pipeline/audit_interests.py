"""Interests compiled for matching whole Arrow batches of publications: what is expected to be delivered.

For every run: an index of its filters, and for each filter whose it is and when it is in force. An event is
expected at a client when one of the client's interests matches it, was in force when it was published
(`from_s <= time < to_s`; no `to_s` means to the end), and the event's policy, if it has one, permits the
client's attributes. A client with several such interests expects the event once. Place enters by time: an
interest that holds only somewhere is in the trace for as long as its client is there.

A filter that cannot be read matches nothing and a policy that cannot be read permits nobody; `audit_job.py`
says so to the user. An event whose attributes cannot be read has none, and nobody is told yet.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sojourn.errors import SojournError
from sojourn.interest import Event, Filter, Policy
from sojourn.interest.index import FilterIndex
from sojourn.interest.index.compiling import compiled
from sojourn.pipeline.audit_events import attributes_of, event_columns

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class RunInterests:
    """The interests of one run (or of some of its clients), numbered in the order of their clients."""

    index: FilterIndex
    clients: pa.Array
    """The clients' names, each once."""
    client_of: npt.NDArray[np.int32]
    """For each interest its client's place in `clients`, ascending."""
    from_s: Floats
    to_s: Floats
    attributes: dict[str, str]
    """By client, as JSON; for policies."""
    _permitted: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def match(self, publications: pa.Table) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Return the expected deliveries as places of publications and places of clients."""
        found = self.index.match_batch(event_columns(publications))
        times = publications.column("time_s").to_numpy()
        events, clients = _in_force(found.offsets, found.keys, times, self.client_of, self.from_s, self.to_s)
        policies = publications.column("policy")
        if policies.null_count < len(policies):
            permitted = self._permitted_pairs(policies, events, clients)
            events, clients = events[permitted], clients[permitted]
        return events, clients

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
                permitted = [
                    policy.permits(Event(attributes_of(self.attributes.get(client))))
                    for client in self.clients.to_pylist()
                ]
            except SojournError:
                permitted = [False] * len(self.clients)
            known = self._permitted[text] = np.array(permitted, np.bool_)
        return known


def compile_interests(
    interests: pa.Table, clients: pa.Table, filters: Mapping[str, Filter]
) -> dict[str, RunInterests]:
    """Compile (run_id, client, filter, from_s, to_s) rows by run.

    `clients` are (run_id, client, attributes_json) rows; `filters` the filters by text, from which those that
    cannot be read are missing: they match nothing. Runs with the same filters share one index.
    """
    attributes: dict[str, dict[str, str]] = {}
    for row in clients.to_pylist():
        attributes.setdefault(row["run_id"], {})[row["client"]] = row["attributes_json"]
    shared: dict[tuple[str, ...], FilterIndex] = {}
    compiled_runs = {}
    ordered = interests.sort_by([(name, "ascending") for name in ("run_id", "client", "filter", "from_s")])
    for run_id, table in split_by(ordered, "run_id"):
        texts = tuple(table.column("filter").to_pylist())
        index = shared.get(texts)
        if index is None:
            index = shared[texts] = _index(texts, filters)
        coded = table.column("client").combine_chunks().dictionary_encode()
        compiled_runs[run_id] = RunInterests(
            index=index,
            clients=coded.dictionary,
            client_of=coded.indices.to_numpy().astype(np.int32),
            from_s=table.column("from_s").fill_null(-np.inf).to_numpy(),
            to_s=table.column("to_s").fill_null(np.inf).to_numpy(),
            attributes=attributes.get(run_id, {}),
        )
    return compiled_runs


def expected_rows(publications: pa.Table, interests: Mapping[str, RunInterests]) -> Iterator[pa.Table]:
    """Yield the expected deliveries of publications, run by run, names as dictionaries."""
    for run_id, table in split_by(publications, "run_id"):
        run = interests.get(run_id)
        if run is None:
            continue
        events, clients = run.match(table)
        sources = table.column("source").combine_chunks().dictionary_encode()
        yield pa.table(
            {
                "run_id": constant(run_id, len(events)),
                "client": pa.DictionaryArray.from_arrays(pa.array(clients), run.clients),
                "source": pa.DictionaryArray.from_arrays(
                    pa.array(sources.indices.to_numpy()[events]), sources.dictionary
                ),
                "sequence": table.column("sequence").to_numpy()[events],
                "time_s": table.column("time_s").to_numpy()[events],
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


def parse_filters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read filters where their texts are, so that the driver need not (see PARSED_FILTERS)."""
    for batch in batches:
        texts = batch.column(0).to_pylist()
        parsed: list[bytes | None] = []
        errors: list[str | None] = []
        for text in texts:
            try:
                parsed.append(pickle.dumps(Filter.parse(text), protocol=5))
                errors.append(None)
            except SojournError as error:
                parsed.append(None)
                errors.append(str(error))
        yield pa.RecordBatch.from_arrays(
            [pa.array(texts, pa.string()), pa.array(parsed, pa.binary()), pa.array(errors, pa.string())],
            names=["filter", "parsed", "error"],
        )


def filters_by_text(parsed: pa.Table) -> dict[str, Filter]:
    """Return the filters that could be read, by their text."""
    readable = parsed.filter(pc.is_valid(parsed.column("parsed")))
    return {
        text: pickle.loads(blob)  # noqa: S301  made by `parse_filters` in the same job
        for text, blob in zip(
            readable.column("filter").to_pylist(), readable.column("parsed").to_pylist(), strict=True
        )
    }


def _index(texts: tuple[str, ...], filters: Mapping[str, Filter]) -> FilterIndex:
    index = FilterIndex()
    readable = [(key, filters[text]) for key, text in enumerate(texts) if text in filters]
    index.add_many((key for key, _ in readable), (wanted for _, wanted in readable))
    return index


@compiled
def _in_force(
    offsets: Ints,
    keys: Ints,
    times: Floats,
    client_of: npt.NDArray[np.int32],
    from_s: Floats,
    to_s: Floats,
) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Keep the matches in force when their event was published, each client once an event.

    Keys ascend within an event and clients ascend with keys, so a repeated client follows itself.
    """
    events = np.empty(keys.size, np.int64)
    clients = np.empty(keys.size, np.int32)
    kept = 0
    for event in range(offsets.size - 1):
        last = -1
        time = times[event]
        for at in range(offsets[event], offsets[event + 1]):
            key = keys[at]
            client = client_of[key]
            if client != last and from_s[key] <= time < to_s[key]:
                events[kept] = event
                clients[kept] = client
                kept += 1
                last = client
    return events[:kept], clients[:kept]
