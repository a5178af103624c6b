"""Filters as arrays: the quick way in for a million of them, and a form that travels well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sojourn.errors import SojournError
from sojourn.interest.index.compiling import compiled
from sojourn.interest.index.encoding import Encoder
from sojourn.interest.index.layout import ATTRIBUTES_MAX, Floats, Ints
from sojourn.interest.values import NUMBER_MAX


class ColumnFiltersError(SojournError):
    """Arrays don't describe filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFilters:
    """Conjunctions of equalities and numeric ranges, one for each key, in compressed rows.

    Filter i needs the equalities equality_tokens[equality_starts[i]:equality_starts[i + 1]], numbers of
    entries of `tokens`, and likewise the ranges from range_starts[i] on; each on its own attribute.
    """

    keys: Ints
    tokens: Sequence[tuple[str, float | str]]
    """Path and value of each equality that occurs."""
    equality_starts: Ints
    equality_tokens: Ints
    paths: Sequence[str]
    """The attributes that have ranges."""
    range_starts: Ints
    range_paths: Ints
    """For each range the number of its path in `paths`."""
    lows: Floats
    """The least number inside each range."""
    highs: Floats
    """The greatest number inside each range; a half-open range ends at the double before its end."""

    def __post_init__(self) -> None:
        for name, starts, entries, kinds in (
            ("equality", self.equality_starts, self.equality_tokens, len(self.tokens)),
            ("range", self.range_starts, self.range_paths, len(self.paths)),
        ):
            if len(starts) != len(self.keys) + 1 or starts[0] != 0 or starts[-1] != len(entries):
                raise ColumnFiltersError(
                    f"{name}_starts must lead from 0 to the last entry, one for each key and one."
                )
            if np.any(np.diff(starts) < 0) or (
                len(entries) and not 0 <= entries.min() <= entries.max() < kinds
            ):
                raise ColumnFiltersError(
                    f"{name}_starts must not fall, and entries must name what is listed."
                )
        if len(self.lows) != len(self.range_paths) or len(self.highs) != len(self.range_paths):
            raise ColumnFiltersError("Give a low and a high end for every range.")
        if not np.all((self.lows >= -NUMBER_MAX) & (self.lows <= self.highs) & (self.highs <= NUMBER_MAX)):
            raise ColumnFiltersError(
                "The ends of ranges must be finite numbers, the low one not above the high one."
            )


def encode_columns(filters: ColumnFilters, encoder: Encoder) -> tuple[Ints, Floats]:
    """Return the stream (see `updates.py`) of filters given as arrays."""
    attributes = np.array([encoder.attribute(path) for path in filters.paths], np.int64)
    if -1 in attributes:
        raise ColumnFiltersError(f"At most {ATTRIBUTES_MAX} attributes can have ranges; this index has more.")
    atoms = np.zeros(len(filters.tokens), np.int64)
    for token in np.unique(
        filters.equality_tokens
    ).tolist():  # an atom that nothing needs would never be released
        atoms[token] = encoder.equality(*filters.tokens[token])
    codes = _interleave(
        np.asarray(filters.keys, np.int64),
        np.asarray(filters.equality_starts, np.int64),
        atoms[filters.equality_tokens],
        np.asarray(filters.range_starts, np.int64),
        attributes[filters.range_paths],
    )
    return codes, np.column_stack((filters.lows, filters.highs)).astype(np.float64).ravel()


@compiled
def _interleave(keys: Ints, atom_starts: Ints, atoms: Ints, range_starts: Ints, attributes: Ints) -> Ints:
    codes = np.empty(4 * keys.size + atoms.size + attributes.size, np.int64)
    at = 0
    for i in range(keys.size):
        needs = atom_starts[i + 1] - atom_starts[i]
        ranges = range_starts[i + 1] - range_starts[i]
        codes[at], codes[at + 1], codes[at + 2], codes[at + 3] = keys[i], 1, needs, ranges
        at += 4
        codes[at : at + needs] = atoms[atom_starts[i] : atom_starts[i + 1]]
        at += needs
        codes[at : at + ranges] = attributes[range_starts[i] : range_starts[i + 1]]
        at += ranges
    return codes
