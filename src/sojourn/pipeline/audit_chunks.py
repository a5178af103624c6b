"""Rows on their way to the comparison, packed column-wise by bucket of clients.

A shuffle moves row by row, which for tens of millions of narrow rows costs more than the audit itself. So
rows travel in chunks: a task gathers Arrow batches, splits them by a hash of run and client, and sends each
part as one binary value, names as dictionaries beside 32-bit codes. A chunk stands alone; whoever gets the
chunks of a bucket concatenates them and joins the dictionaries. Everything that a client's deliveries are
judged by goes to the client's bucket; publications, which belong to no client, go by their source. A *hot*
client (`audit_sizes.py`) has a bucket for each of its sources, and its sojourns, which belong to none, go to
all buckets.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

EXPECTED, DELIVERED, DROPPED, STAYED, PUBLISHED, FAULTY, NEAR_GAPS = range(7)
"""What a chunk has rows of: expected and actual deliveries, drops, sojourns, publications, bad filters, and
publications near gaps (`audit_gaps.py`), which go to all buckets."""

CHUNK_ROWS = 1 << 19
"""Rows gathered by a task before they are split into chunks: bounds its memory at some 30 MB."""

Hot = frozenset[tuple[str, str]]
"""Clients, by run and name, whose rows are too many for one bucket."""
NOBODY: Hot = frozenset()

NAMES = ("run_id", "client", "source", "broker", "reason")


def named_rows(batch: pa.RecordBatch) -> pa.Table:
    """Return rows with names as dictionaries."""
    table = pa.Table.from_batches([batch])
    return pa.table(
        {
            name: _coded(table.column(name)) if name in NAMES else table.column(name)
            for name in table.column_names
        }
    )


class Packer:
    """Gathers tables of the same columns and yields (bucket, side, payload) rows when there are enough."""

    def __init__(self, side: int, buckets: int, hot: Hot = NOBODY) -> None:
        self._side = side
        self._buckets = buckets
        self._hot = NOBODY if side == PUBLISHED else hot
        self._gathered: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Take a table."""
        self._gathered.append(table)
        self._rows += table.num_rows
        if self._rows >= CHUNK_ROWS:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Give out what is still gathered."""
        if self._rows:
            by = "source" if self._side == PUBLISHED else "client"
            table = _together(self._gathered)
            yield from split(table, self._side, self._buckets, by, self._hot)
        self._gathered, self._rows = [], 0


def packed(
    tables: Iterable[pa.Table], side: int, buckets: int, hot: Hot = NOBODY
) -> Iterator[pa.RecordBatch]:
    """Yield (bucket, side, payload) rows for tables of the same columns."""
    packer = Packer(side, buckets, hot)
    for table in tables:
        yield from packer.add(table)
    yield from packer.rest()


def unpacked(payloads: Iterable[bytes]) -> pa.Table | None:
    """Return the rows of chunks as one table, each name column with one dictionary; None without chunks."""
    tables = []
    for payload in payloads:
        with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
            tables.append(widened(reader.read_all()))
    return _together(tables) if tables else None


def bucket_of(run_id: str, client: str, buckets: int, source: str = "") -> int:
    """Return the bucket of a client, a source, or of both in a run: the same in every process."""
    return zlib.crc32(f"{run_id}\x00{client}\x00{source}".encode()) % buckets


def serialised(table: pa.Table) -> bytes:
    """Return a table as the bytes of an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _together(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def split(
    table: pa.Table, side: int, buckets: int, by: str = "client", hot: Hot = NOBODY
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table as one chunk for each bucket of what the column `by` names."""
    is_hot = _are_hot(table, hot) if hot else np.zeros(0, np.bool_)
    if not is_hot.any():
        yield _split(table, side, _buckets(table, by, buckets), buckets)
        return
    cold, warm = table.filter(pa.array(~is_hot)), table.filter(pa.array(is_hot))
    if len(cold):
        yield _split(cold, side, _buckets(cold, by, buckets), buckets)
    if "source" in table.column_names:
        yield _split(warm, side, _buckets(warm, by, buckets, "source"), buckets)
    else:
        yield to_all(warm, side, buckets)


def to_all(table: pa.Table, side: int, buckets: int) -> pa.RecordBatch:
    """Return the rows of a table as a chunk for every bucket."""
    columns = [
        pa.array(range(buckets), pa.int32()),
        pa.array([side] * buckets, pa.int32()),
        pa.array([serialised(table)] * buckets, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["bucket", "side", "payload"])


def _split(table: pa.Table, side: int, of_row: npt.NDArray[np.uint16], buckets: int) -> pa.RecordBatch:
    # 16-bit keys are sorted by counting, so this is linear.
    order = np.argsort(of_row, kind="stable")
    sizes = np.bincount(of_row, minlength=buckets)
    ends = np.cumsum(sizes)
    ordered = table.take(pa.array(order))
    used = np.flatnonzero(sizes)
    payloads = [serialised(_trimmed(ordered.slice(ends[b] - sizes[b], sizes[b]))) for b in used]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(used, pa.int32()),
            pa.array([side] * len(used), pa.int32()),
            pa.array(payloads, pa.binary()),
        ],
        names=["bucket", "side", "payload"],
    )


def _are_hot(table: pa.Table, hot: Hot) -> npt.NDArray[np.bool_]:
    """Return which rows are of hot clients."""
    runs, clients = (table.column(name).combine_chunks() for name in ("run_id", "client"))
    run_names, client_names = runs.dictionary.to_pylist(), clients.dictionary.to_pylist()
    run, client = runs.indices.to_numpy(), clients.indices.to_numpy()
    found = np.zeros(len(table), np.bool_)
    for run_id, name in hot:
        if run_id in run_names and name in client_names:
            found |= (run == run_names.index(run_id)) & (client == client_names.index(name))
    return found


def _buckets(table: pa.Table, by: str, buckets: int, and_by: str = "") -> npt.NDArray[np.uint16]:
    """Return the bucket of each row, by the run and one or two more columns."""
    columns = [table.column(name).combine_chunks() for name in ("run_id", by, and_by) if name]
    names = [column.dictionary.to_pylist() for column in columns]
    code = np.zeros(len(table), np.int64)
    for column, known in zip(columns, names, strict=True):
        code = code * len(known) + column.indices.to_numpy()
    # Few combinations are hashed, not every row.
    distinct, place = dense(code, math.prod(len(known) for known in names))
    hashed = np.empty(len(distinct), np.uint16)
    for at, one in enumerate(distinct.tolist()):
        told = []
        for known in reversed(names):
            one, which = divmod(one, len(known))  # noqa: PLW2901 - the rest of the code
            told.append(known[which])
        run_id, client, *source = reversed(told)
        hashed[at] = bucket_of(run_id, client, buckets, *source)
    return hashed[place]


def dense(codes: npt.NDArray[np.int64], space: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct codes of those below `space`, ascending, and the place of each code among them."""
    if space > 4 * len(codes) + 65_536:
        distinct, places = np.unique(codes, return_inverse=True)
        return distinct, places
    seen = np.zeros(space, np.bool_)
    seen[codes] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[codes]


def _trimmed(table: pa.Table) -> pa.Table:
    """Leave out of the dictionaries what the rows do not name, and write numbers in as few bytes as do."""
    columns = []
    for column in table.columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_dictionary(array.type) and not array.null_count:
            codes = array.indices.to_numpy()
            seen = np.zeros(len(array.dictionary), np.bool_)
            seen[codes] = True
            places = (np.cumsum(seen) - 1).astype(_narrowest(len(seen)))
            array = pa.DictionaryArray.from_arrays(
                pa.array(places[codes]), array.dictionary.take(pa.array(np.flatnonzero(seen)))
            )
        elif pa.types.is_integer(array.type) and not array.null_count:
            values = array.to_numpy()
            array = pa.array(values.astype(_narrowest(int(np.abs(values).max(initial=0)) + 1)))
        columns.append(array)
    return pa.Table.from_arrays(columns, names=table.column_names)


def _narrowest(count: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type that holds the numbers below `count`."""
    return (
        np.int8 if count <= 2**7 else np.int16 if count <= 2**15 else np.int32 if count <= 2**31 else np.int64
    )


def widened(table: pa.Table) -> pa.Table:
    """Undo what `_trimmed` did to the types, so that chunks can be put together."""
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_dictionary(kind) and kind.index_type != pa.int32():
            kind = pa.dictionary(pa.int32(), kind.value_type)
        elif pa.types.is_integer(kind):
            kind = pa.int64()
        columns.append(column if kind == column.type else column.cast(kind))
    return pa.Table.from_arrays(columns, names=table.column_names)
