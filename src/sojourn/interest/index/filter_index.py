"""`FilterIndex`: a set of filters that finds those an event matches without trying them all.

What the arrays hold is told in `layout.py`; how a batch is matched, in `blocks.py`. This module grows the
arrays, checks keys and calls the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn.errors import SojournError
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.interest.index.blocks import match_block
from sojourn.interest.index.bulk import ColumnFilters, encode_columns
from sojourn.interest.index.columns import Columns, blocks, read_columns
from sojourn.interest.index.encoding import Encoder
from sojourn.interest.index.layout import (
    BROAD,
    FILTERS,
    KEY_MAX,
    KEY_MIN,
    NODE_TOP,
    POOL_TOP,
    ROOT,
    SHARED,
    SLOT_TOP,
    Floats,
    Ints,
    Store,
    empty_store,
)
from sojourn.interest.index.records import fill_table, find_key
from sojourn.interest.index.search import match_one
from sojourn.interest.index.sorting import drop_repeated, keys_by_event, sort_by_bits
from sojourn.interest.index.updates import (
    count_needs,
    first_known,
    first_unknown,
    insert_new,
    insert_stream,
    remove_keys,
    room_needed,
)

_KEYS = np.iinfo(np.int64)


class KeyTakenError(SojournError):
    """A filter is added under a key that another one has."""


class UnknownKeyError(SojournError):
    """A filter is removed that isn't there."""


class BadKeyError(SojournError):
    """A key isn't an integer of 64 bits."""


@dataclass(frozen=True, slots=True)
class BatchMatches:
    """The keys that each event of a batch matches: those of event i are keys[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    keys: Ints
    """Sorted for each event, none twice."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> Ints:
        return self.keys[self.offsets[event] : self.offsets[event + 1]]


class FilterIndex:
    """Filters by key, to be matched with events one by one or in batches."""

    def __init__(self) -> None:
        self._encoder = Encoder()
        self._store = empty_store()

    def __len__(self) -> int:
        return int(self._store.counters[FILTERS])

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, int) or not _KEYS.min <= key <= _KEYS.max:
            return False
        return bool(find_key(self._store, key) >= 0)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, what is reserved for growth included."""
        return sum(array.nbytes for array in self._store if array.base is None)

    def add(self, key: int, wanted: Filter) -> None:
        """Add a filter under a key that isn't taken."""
        codes: list[int] = []
        bounds: list[float] = []
        if not _KEYS.min <= key <= _KEYS.max:
            raise BadKeyError(f"The key {key} has more than 64 bits; number filters with smaller integers.")
        self._encoder.encode(key, wanted, codes, bounds)
        self._admit_atoms()
        code_array, bound_array = np.array(codes, np.int64), np.array(bounds, np.float64)
        at, bounds_at, longest = insert_new(self._store, code_array, bound_array)
        if at < 0:
            self._encoder.release(self._encoder.fresh)
            self._encoder.fresh.clear()
            raise _taken(key)
        self._encoder.fresh.clear()
        if at < len(codes):
            self._insert(code_array, bound_array, at, bounds_at, longest)

    def add_many(self, keys: Iterable[int], filters: Iterable[Filter]) -> None:
        """Add filters under keys that aren't taken: all of them, or none when a key is bad."""
        key_array = self._fresh_keys(keys)
        codes: list[int] = []
        bounds: list[float] = []
        for key, wanted in zip(key_array.tolist(), filters, strict=True):
            self._encoder.encode(key, wanted, codes, bounds)
        self._add_stream(np.array(codes, np.int64), np.array(bounds, np.float64))

    def add_columns(self, filters: ColumnFilters) -> None:
        """Add filters given as arrays: the quick way in for a million of them."""
        self._fresh_keys(filters.keys)
        self._add_stream(*encode_columns(filters, self._encoder))

    def remove(self, key: int) -> None:
        """Remove the filter with a key."""
        self.remove_many((key,))

    def remove_many(self, keys: Iterable[int]) -> None:
        """Remove the filters with these keys: all of them, or none when a key is unknown."""
        key_array = _key_array(keys)
        unknown = first_unknown(self._store, key_array)
        if unknown >= 0:
            raise UnknownKeyError(
                f"There is no filter with the key {key_array[unknown]}; remove only what was added."
            )
        if len(key_array) > 1 and len(np.unique(key_array)) < len(key_array):
            raise UnknownKeyError("A key is given twice; a filter can be removed once.")
        unneeded = remove_keys(self._store, key_array)
        if len(unneeded):
            atoms = unneeded.tolist()
            self._encoder.release(atoms)

    def match(self, event: Event) -> list[int]:
        """Return the keys of the filters that an event matches, sorted."""
        atoms, values = self._encoder.encode_event(event)
        found = match_one(self._store, np.array(atoms, np.int64), np.array(values, np.float64))
        found.sort()
        if self._store.counters[SHARED]:
            found = np.unique(found)
        keys: list[int] = found.tolist()
        return keys

    def match_batch(self, columns: Columns) -> BatchMatches:
        """Return the keys that each event of a batch matches; these come as columns (see `columns.py`)."""
        rows, read = read_columns(columns)
        offsets: list[Ints] = [np.zeros(1, np.int64)]
        keys: list[Ints] = []
        total = 0
        for events, block in blocks(rows, read, self._encoder):
            starts, found = keys_by_event(self._store, match_block(self._store, block), events)
            found = self._sort(starts, found)
            offsets.append(starts[1:] + total)
            keys.append(found)
            total += len(found)
        return BatchMatches(np.concatenate(offsets), np.concatenate(keys) if keys else np.empty(0, np.int64))

    def _sort(self, offsets: Ints, keys: Ints) -> Ints:
        counters = self._store.counters
        least, most = int(counters[KEY_MIN]), int(counters[KEY_MAX])
        if most - least <= 16 * len(self) + 65_536:
            return keys[: sort_by_bits(offsets, keys, least, most)]
        for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            keys[start:stop].sort()
        return keys[: drop_repeated(offsets, keys)] if counters[SHARED] else keys

    def _fresh_keys(self, keys: Iterable[int]) -> Ints:
        key_array = _key_array(keys)
        known = first_known(self._store, key_array)
        if known >= 0:
            raise _taken(int(key_array[known]))
        values, counts = np.unique(key_array, return_counts=True)
        if len(values) < len(key_array):
            raise KeyTakenError(f"The key {values[counts > 1][0]} is given twice; give each filter its own.")
        return key_array

    def _add_stream(self, codes: Ints, bounds: Floats) -> None:
        self._admit_atoms()
        self._encoder.fresh.clear()
        longest = count_needs(self._store, codes)
        self._insert(codes, bounds, 0, 0, longest)

    def _insert(self, codes: Ints, bounds: Floats, at: int, bounds_at: int, longest: int) -> None:
        while True:
            at, bounds_at = insert_stream(self._store, codes, bounds, at, bounds_at, longest)
            if at == len(codes):
                return
            self._grow(int(codes[at + 1]), longest)

    def _admit_atoms(self) -> None:
        """Give new atoms and range attributes their rows."""
        store, encoder = self._store, self._encoder
        if len(encoder.owners) > len(store.atoms):
            atoms = _grown(store.atoms, len(encoder.owners))
            atoms[len(store.atoms) :, ROOT] = -1
            store = store._replace(atoms=atoms)
        if len(encoder.attributes) > len(store.spans):
            spans = _grown(store.spans, len(encoder.attributes))
            spans[len(store.spans) :] = np.inf, -np.inf
            store = store._replace(spans=spans)
        for atom in encoder.fresh:
            store.atoms[atom, BROAD] = atom in encoder.broad
        self._store = store

    def _grow(self, conjunctions: int, longest: int) -> None:
        """Make room for a further filter and, as memory matters more than copying, an eighth more."""
        store = self._store
        counters = store.counters
        words, nodes = room_needed(store, conjunctions, longest)
        if counters[POOL_TOP] + words > len(store.pool):
            pool = _grown(store.pool, int(counters[POOL_TOP]) + words)
            store = store._replace(pool=pool, ends=pool.view(np.float64))
        if counters[NODE_TOP] + nodes > len(store.nodes):
            grown = _grown(store.nodes, int(counters[NODE_TOP]) + nodes)
            store = store._replace(nodes=grown, hulls=grown.view(np.float64))
        if counters[SLOT_TOP] + conjunctions + 1 > len(store.slots):
            store = store._replace(slots=_grown(store.slots, int(counters[SLOT_TOP]) + conjunctions + 1))
        if (counters[FILTERS] + 1) * 10 > len(store.table) * 7:
            old = store.table
            store = store._replace(table=np.full(2 * len(old), -1, np.int32))
            fill_table(store, old)
        self._store = store

    def __getstate__(self) -> dict[str, Any]:
        """Plain arrays cut to what is used, and what the atoms say; the rest is made again."""
        store, counters = self._store, self._store.counters
        return {
            "encoder": self._encoder,
            "pool": store.pool[: counters[POOL_TOP]],
            "nodes": store.nodes[: counters[NODE_TOP]],
            "atoms": store.atoms[: len(self._encoder.owners)],
            "slots": store.slots[: counters[SLOT_TOP]],
            "table": store.table,
            "spans": store.spans,
            "counters": counters,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._encoder = state.pop("encoder")
        # A pickle may hand out read-only views of its own bytes, which the kernels can't update.
        arrays = {name: np.array(array) for name, array in state.items()}
        ends, hulls = arrays["pool"].view(np.float64), arrays["nodes"].view(np.float64)
        self._store = Store(**arrays, ends=ends, hulls=hulls)


def _grown(array: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    size = max(least + 64, len(array) + (len(array) >> 3 if len(array) > 1 << 12 else len(array)))
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _taken(key: int) -> KeyTakenError:
    return KeyTakenError(
        f"There is a filter with the key {key} already; remove it first or take another key."
    )


def _key_array(keys: Iterable[int] | Ints) -> Ints:
    try:
        if isinstance(keys, np.ndarray):
            return keys.astype(np.int64, casting="safe")
        return np.fromiter(keys, np.int64)
    except (OverflowError, TypeError, ValueError) as error:
        raise BadKeyError(f"Keys are integers of at most 64 bits ({error}).") from None
