"""From columns to blocks: events given as NumPy or Arrow columns become what the block kernels read.

A column is named by its path. Nulls, and NaN among numbers, are missing attributes. Arrow structs are objects
and are taken apart; a column `pos.lat` makes `pos` an object wherever it has a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn.errors import SojournError
from sojourn.interest.index.atoms import PathAtoms
from sojourn.interest.index.blocks import BLOCK_EVENTS, BLOCK_WORDS, Block, rank_columns
from sojourn.interest.index.compiling import compiled
from sojourn.interest.index.encoding import Encoder, is_number
from sojourn.interest.index.layout import EVERYTHING, Floats, Ints, Words
from sojourn.interest.values import INTEGER_MAX, Scalar

if TYPE_CHECKING:
    import pyarrow as pa

Columns: TypeAlias = "Mapping[str, Any] | pa.RecordBatch | pa.Table"


class ColumnError(SojournError):
    """A batch of events cannot be read from the columns given."""


@dataclass(slots=True)
class Column:
    """One attribute of all events of a batch."""

    present: npt.NDArray[np.bool_]
    numbers: Floats | None
    """The events' numbers, NaN where there is none; None when there can't be any."""
    codes: npt.NDArray[np.int32] | None
    """For each event the position of its value in `distinct`, or -1; None for a column of numbers only."""
    distinct: Sequence[Scalar]
    only_strings: bool = False
    """Whether all distinct values are known to be strings."""


def read_columns(columns: Columns) -> tuple[int, dict[str, Column]]:
    """Return the number of events and their columns by path."""
    pa = _arrow()
    arrays: dict[str, Any] = {}
    rows = -1
    if isinstance(columns, (pa.RecordBatch, pa.Table)):
        rows = columns.num_rows
        columns = dict(zip(columns.schema.names, columns.columns, strict=True))
    for path, array in columns.items():
        for name, part in _take_apart(path, array):
            arrays[name] = part
            if rows not in (-1, len(part)):
                raise ColumnError(
                    f"The column {name} has {len(part)} rows and others {rows}; give all the same."
                )
            rows = len(part)
    return max(rows, 0), {path: _read(path, array) for path, array in arrays.items()}


def _arrow() -> Any:
    """Arrow, which is large, and which only batches need."""
    import pyarrow  # noqa: ICN001, PLC0415 - brokers never come here

    return pyarrow


def _take_apart(path: str, array: Any) -> Iterator[tuple[str, Any]]:
    pa = _arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # an older Arrow keeps chunks of some types
            array = pa.concat_arrays(array.chunks)
    if isinstance(array, pa.Array) and pa.types.is_struct(array.type):
        for field, part in zip(array.type, array.flatten(), strict=True):
            yield from _take_apart(f"{path}.{field.name}", part)
    else:
        yield path, array if isinstance(array, pa.Array) else np.asarray(array)


def _read(path: str, array: Any) -> Column:
    pa = _arrow()
    if isinstance(array, np.ndarray):
        if array.dtype.kind in "fiu":
            return _numbers(path, array)
        array = pa.array(array) if array.dtype.kind == "b" else array.tolist()
    if isinstance(array, pa.Array):
        kind = array.type
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            if pa.types.is_integer(kind) and array.null_count:
                _check_integers(path, array.drop_null().to_numpy(zero_copy_only=False))
                array = array.cast(pa.float64(), safe=False)
            return _numbers(path, array.to_numpy(zero_copy_only=False))
        if pa.types.is_null(kind):
            return Column(np.zeros(len(array), np.bool_), None, np.full(len(array), -1, np.int32), ())
        if not pa.types.is_dictionary(kind):
            array = array.dictionary_encode()
        codes = np.asarray(array.indices.fill_null(-1), np.int32)
        if not array.dictionary.null_count and _is_string(array.type.value_type):
            return Column(codes >= 0, None, codes, array.dictionary.to_pylist(), only_strings=True)
        return _mixed(path, codes, array.dictionary.to_pylist())
    return _from_objects(path, array)


def _is_string(kind: Any) -> bool:
    pa = _arrow()
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _from_objects(path: str, values: list[object]) -> Column:
    """Read a column of Python objects, which may mix kinds; a boolean isn't the number it equals."""
    known: dict[tuple[bool, object], int] = {}
    codes = np.empty(len(values), np.int32)
    for i, value in enumerate(values):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            codes[i] = -1
        else:
            codes[i] = known.setdefault((isinstance(value, bool), value), len(known))
    return _mixed(path, codes, [value for _, value in known])


def _mixed(path: str, codes: npt.NDArray[np.int32], distinct: list[Any]) -> Column:
    for value in distinct:
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise ColumnError(
                f"The column {path} holds a {type(value).__name__}; numbers, strings and booleans will do."
            )
    if None in distinct:  # an Arrow dictionary may name null among its values
        codes = np.where(
            np.isin(codes, [i for i, v in enumerate(distinct) if v is None]), np.int32(-1), codes
        )
    numbers: Floats | None = None
    if any(value is not None and is_number(value) for value in distinct):
        table = [float(v) if v is not None and is_number(v) else math.nan for v in distinct]
        numbers = np.array([*table, math.nan])[codes]
    return Column(codes >= 0, numbers, codes, ["" if v is None else v for v in distinct])


def _numbers(path: str, array: npt.NDArray[Any]) -> Column:
    if array.dtype.kind != "f":
        _check_integers(path, array)
    numbers = np.asarray(array, np.float64)
    return Column(~np.isnan(numbers), numbers, None, ())


def _check_integers(path: str, array: npt.NDArray[Any]) -> None:
    if array.dtype.itemsize == 8 and array.size and max(-int(array.min()), int(array.max())) > INTEGER_MAX:
        raise ColumnError(
            f"The column {path} has integers beyond 2**53, where numbers lose digits; give strings."
        )


@dataclass(slots=True)
class _Source:
    """A column's values, coded; the atoms of code c are atoms[starts[c]:starts[c + 1]]."""

    codes: npt.NDArray[np.int32]
    starts: Ints
    atoms: Ints


def _source(codes: npt.NDArray[np.int32], groups: list[list[int]]) -> _Source:
    starts = np.zeros(len(groups) + 1, np.int64)
    np.cumsum([len(group) for group in groups], out=starts[1:])
    return _Source(codes, starts, np.array([atom for group in groups for atom in group], np.int64))


def _value_source(column: Column, known: PathAtoms) -> _Source:
    if column.codes is None:
        assert column.numbers is not None
        distinct, inverse = np.unique(column.numbers, return_inverse=True)
        codes = np.where(column.present, inverse, -1).astype(np.int32)
        values: Sequence[Scalar] = distinct.tolist()
    else:
        codes, values = column.codes, column.distinct
        if column.only_strings and known.has_plain_strings_only:
            find = known.by_string.get
            found = np.array([find(str(value), -1) for value in values], np.int64)
            starts = np.zeros(len(values) + 1, np.int64)
            np.cumsum(found >= 0, out=starts[1:])
            return _Source(codes, starts, found[found >= 0])
    return _source(codes, [known.atoms(value) for value in values])


def _sources(rows: int, columns: dict[str, Column], encoder: Encoder) -> list[_Source]:
    sources = [_source(np.zeros(rows, np.int32), [[EVERYTHING]])]
    sources += [
        _value_source(column, known)
        for path, column in columns.items()
        if (known := encoder.paths.get(path)) is not None and known.count
    ]
    for path, known in {**encoder.watching_missing, **encoder.watching_objects}.items():
        objects = np.zeros(rows, np.bool_)
        for other, column in columns.items():
            if other.startswith(path + "."):
                objects |= column.present
        missing = ~objects & ~columns[path].present if path in columns else ~objects
        codes = np.where(objects, 1, np.where(missing, 0, -1)).astype(np.int32)
        sources.append(_source(codes, [list(known.on_missing), list(known.on_object)]))
    return sources


def blocks(rows: int, columns: dict[str, Column], encoder: Encoder) -> Iterator[tuple[int, Block]]:
    """Yield the events of a batch block by block, each with its number of events."""
    sources = _sources(rows, columns, encoder)
    ranged = [
        (known.attribute, column.numbers)
        for path, column in columns.items()
        if (known := encoder.paths.get(path)) is not None
        and known.attribute >= 0
        and column.numbers is not None
    ]
    column_of = np.full(max(1, len(encoder.attributes)), -1, np.int64)
    for i, (attribute, _) in enumerate(ranged):
        column_of[attribute] = i
    for start in range(0, rows, BLOCK_EVENTS):
        stop = min(rows, start + BLOCK_EVENTS)
        values = np.full((len(ranged), BLOCK_EVENTS), np.nan)
        for i, (_, numbers) in enumerate(ranged):
            values[i, : stop - start] = numbers[start:stop]
        order = np.argsort(values, axis=1)
        parts = [_expand(source.codes[start:stop], source.starts, source.atoms) for source in sources]
        events = np.concatenate([part[0] for part in parts])
        atoms = np.concatenate([part[1] for part in parts])
        present, starts, grouped, bits, local_of = _group(events, atoms, len(encoder.owners))
        ordered, prefixes, cells, scales = rank_columns(values, order)
        yield (
            stop - start,
            Block(
                values=values,
                column_of=column_of,
                ordered=ordered,
                prefixes=prefixes,
                cells=cells,
                scales=scales,
                atoms=present,
                starts=starts,
                events=grouped,
                atom_bits=bits,
                local_of=local_of,
            ),
        )


@compiled
def _expand(codes: npt.NDArray[np.int32], starts: Ints, atoms: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of event and atom that a column gives."""
    count = 0
    for code in codes:
        if code >= 0:
            count += starts[code + 1] - starts[code]
    events = np.empty(count, np.int64)
    expanded = np.empty(count, np.int64)
    at = 0
    for event in range(codes.size):
        if codes[event] >= 0:
            for i in range(starts[codes[event]], starts[codes[event] + 1]):
                events[at] = event
                expanded[at] = atoms[i]
                at += 1
    return events, expanded


@compiled
def _group(
    events: Ints, atoms: Ints, atoms_known: int
) -> tuple[Ints, Ints, Ints, Words, npt.NDArray[np.int32]]:
    """Group pairs of event and atom by atom; return the last five fields of a `Block`."""
    local_of = np.full(atoms_known, -1, np.int32)
    distinct = np.empty(atoms.size, np.int64)
    counts = np.zeros(atoms.size + 1, np.int64)
    size = 0
    for atom in atoms:
        if local_of[atom] < 0:
            local_of[atom] = size
            distinct[size] = atom
            size += 1
        counts[local_of[atom] + 1] += 1
    starts = np.cumsum(counts[: size + 1])
    at = starts.copy()
    grouped = np.empty(events.size, np.int64)
    bits = np.zeros((size, BLOCK_WORDS), np.uint64)
    for i in range(events.size):
        local = local_of[atoms[i]]
        grouped[at[local]] = events[i]
        at[local] += 1
        bits[local, events[i] >> 6] |= np.uint64(1) << np.uint64(events[i] & 63)
    return distinct[:size], starts, grouped, bits, local_of
