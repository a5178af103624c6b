"""Rows on their way to the comparison, packed column-wise by bucket of clients.

A shuffle moves row by row, which for tens of millions of narrow rows costs more than the audit itself. So
rows travel in chunks: a task gathers Arrow batches, splits them by a hash of run and client, and sends each
part as one binary value, names as dictionaries beside 32-bit codes. A chunk stands alone; whoever gets the
chunks of a bucket concatenates them and joins the dictionaries. Everything that a client's deliveries are
judged by goes to the client's bucket; publications, which belong to no client, go by their source.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

EXPECTED, DELIVERED, DROPPED, STAYED, PUBLISHED = range(5)
"""What a chunk has rows of: expected and actual deliveries, drops, sojourns or publications."""

CHUNK_ROWS = 1 << 19
"""Rows gathered by a task before they are split into chunks: bounds its memory at some 30 MB."""

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

    def __init__(self, side: int, buckets: int) -> None:
        self._side = side
        self._buckets = buckets
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
            yield split(_together(self._gathered), self._side, self._buckets, by)
        self._gathered, self._rows = [], 0


def packed(tables: Iterable[pa.Table], side: int, buckets: int) -> Iterator[pa.RecordBatch]:
    """Yield (bucket, side, payload) rows for tables of the same columns."""
    packer = Packer(side, buckets)
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


def bucket_of(run_id: str, client: str, buckets: int) -> int:
    """Return the bucket of a client (or source) in a run: the same in every process."""
    return zlib.crc32(f"{run_id}\x00{client}".encode()) % buckets


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


def split(table: pa.Table, side: int, buckets: int, by: str = "client") -> pa.RecordBatch:
    """Return the rows of a table as one chunk for each bucket of what the column `by` names."""
    of_row = _buckets(table, by, buckets)
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


def _buckets(table: pa.Table, by: str, buckets: int) -> npt.NDArray[np.uint16]:
    runs, clients = (table.column(name).combine_chunks() for name in ("run_id", by))
    run_names, client_names = runs.dictionary.to_pylist(), clients.dictionary.to_pylist()
    # Few pairs of run and client are hashed, not every row.
    pair = runs.indices.to_numpy().astype(np.int64) * len(client_names) + clients.indices.to_numpy()
    if len(run_names) * len(client_names) <= 4 * table.num_rows + 65_536:
        hashed = np.array([bucket_of(r, c, buckets) for r in run_names for c in client_names], np.uint16)
        return cast("npt.NDArray[np.uint16]", hashed[pair])
    distinct, inverse = np.unique(pair, return_inverse=True)
    runs_of, clients_of = np.divmod(distinct, len(client_names))
    hashed = np.array(
        [bucket_of(run_names[r], client_names[c], buckets) for r, c in zip(runs_of, clients_of, strict=True)],
        np.uint16,
    )
    return hashed[inverse]


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
