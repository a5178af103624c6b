"""From filters and events to numbers: atoms and range attributes get numbers, and give them back.

The encoder is the part of the index that lives in Python. It knows attributes by path and atoms by number;
a filter becomes codes for the kernels, an event becomes the atoms it satisfies and its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from sojourn.interest.events import Event
from sojourn.interest.filters import Conjunction, Filter
from sojourn.interest.index.atoms import PathAtoms
from sojourn.interest.index.layout import ATTRIBUTES_MAX, EVERYTHING
from sojourn.interest.values import Scalar, ValueSet

Owner = tuple[str, "float | str | ValueSet"]
"""What an atom says: a path, and the one value or the set of values it may have."""


class Encoder:
    """Numbers for the atoms and range attributes of the filters in an index."""

    def __init__(self) -> None:
        self.paths: dict[str, PathAtoms] = {}
        self.attributes: list[str] = []
        """The paths of the range attributes, by number."""
        self.owners: list[Owner | None] = [None]
        """What each atom says, by number; `EVERYTHING` says nothing."""
        self.watching_missing: dict[str, PathAtoms] = {}
        self.watching_objects: dict[str, PathAtoms] = {}
        self.fresh: list[int] = []
        """Atoms numbered since the list was last cleared."""
        self.broad: set[int] = set()
        self._sets: dict[tuple[str, ValueSet], int] = {}
        self._free: list[int] = []

    def encode(self, key: int, wanted: Filter, codes: list[int], bounds: list[float]) -> None:
        """Append a filter to a stream for the kernels (see `updates.py`)."""
        codes.append(key)
        codes.append(len(wanted.conjunctions))
        for conjunction in wanted.conjunctions:
            self._encode_conjunction(conjunction, codes, bounds)

    def _encode_conjunction(self, conjunction: Conjunction, codes: list[int], bounds: list[float]) -> None:
        atoms: list[int] = []
        attributes: list[int] = []
        for path, allowed in conjunction.constraints:
            if not (allowed.missing or allowed.objects or allowed.booleans):
                ranges = allowed.numbers.ranges
                if not ranges:
                    only = allowed.strings.only_value
                    if only is not None:
                        atoms.append(self.equality(path, only))
                        continue
                elif len(ranges) == 1 and not allowed.strings:
                    low, high = ranges[0]
                    if low == high:
                        atoms.append(self.equality(path, low))
                        continue
                    attribute = self.attribute(path)
                    if attribute >= 0:
                        attributes.append(attribute)
                        bounds.append(low)
                        bounds.append(high)
                        continue
            atoms.append(self._set_atom(path, allowed))
        codes.append(len(atoms))
        codes.append(len(attributes))
        codes += atoms
        codes += attributes

    def attribute(self, path: str) -> int:
        """Return the number of a range attribute, or -1 when all numbers are taken."""
        known = self._path(path)
        if known.attribute < 0 and len(self.attributes) < ATTRIBUTES_MAX:
            known.attribute = len(self.attributes)
            self.attributes.append(path)
        return known.attribute

    def equality(self, path: str, value: float | str) -> int:
        """Return the atom for "the attribute at `path` equals `value`"."""
        known = self._path(path)
        atom = known.by_string.get(value) if isinstance(value, str) else known.by_number.get(value)
        if atom is None:
            atom = self._number((path, value))
            self._enter_equality(known, value, atom)
        return atom

    def _enter_equality(self, known: PathAtoms, value: float | str, atom: int) -> None:
        known.count += 1
        if isinstance(value, str):
            known.by_string[value] = atom
        else:
            known.by_number[value] = atom

    def _set_atom(self, path: str, allowed: ValueSet) -> int:
        atom = self._sets.get((path, allowed))
        if atom is None:
            atom = self._number((path, allowed))
            self._enter_set(path, allowed, atom)
        return atom

    def _enter_set(self, path: str, allowed: ValueSet, atom: int) -> None:
        known = self._path(path)
        known.count += 1
        self._sets[path, allowed] = atom
        if known.enter(atom, allowed):
            self.broad.add(atom)
        if allowed.missing:
            self.watching_missing[path] = known
        if allowed.objects:
            self.watching_objects[path] = known

    def _path(self, path: str) -> PathAtoms:
        known = self.paths.get(path)
        if known is None:
            known = self.paths[path] = PathAtoms()
        return known

    def _number(self, owner: Owner) -> int:
        if self._free:
            atom = self._free.pop()
            self.owners[atom] = owner
        else:
            atom = len(self.owners)
            self.owners.append(owner)
        self.fresh.append(atom)
        return atom

    def release(self, atoms: Iterable[int]) -> None:
        """Forget atoms that no filter needs any more; their numbers will be used again."""
        for atom in atoms:
            owner = self.owners[atom]
            assert owner is not None, "an atom is released once"
            path, value = owner
            known = self.paths[path]
            known.count -= 1
            if isinstance(value, ValueSet):
                del self._sets[path, value]
                known.leave(atom, value)
                self.broad.discard(atom)
                if not known.on_missing:
                    self.watching_missing.pop(path, None)
                if not known.on_object:
                    self.watching_objects.pop(path, None)
            elif isinstance(value, str):
                del known.by_string[value]
            else:
                del known.by_number[value]
            self.owners[atom] = None
            self._free.append(atom)
            if known.count == 0 and known.attribute < 0:
                del self.paths[path]

    def encode_event(self, event: Event) -> tuple[list[int], list[float]]:
        """Return the atoms that an event satisfies, sorted, and its number for every range attribute."""
        atoms = [EVERYTHING]
        values = [math.nan] * len(self.attributes)
        flat = event.flat
        for path, value in flat.items():
            known = self.paths.get(path)
            if known is None:
                continue
            if known.attribute >= 0 and not isinstance(value, (str, bool)):
                values[known.attribute] = value
            if known.count:
                atoms += known.atoms(value)
        for path, known in self.watching_missing.items():
            if path not in flat and path not in event.objects:
                atoms += known.on_missing
        for path, known in self.watching_objects.items():
            if path in event.objects:
                atoms += known.on_object
        atoms.sort()
        return atoms, values

    def __getstate__(self) -> tuple[list[str], list[Owner | None]]:
        return self.attributes, self.owners

    def __setstate__(self, state: tuple[list[str], list[Owner | None]]) -> None:
        self.__init__()  # type: ignore[misc]  # a fresh start, filled from what the atoms say
        attributes, owners = state
        for path in attributes:
            self.attribute(path)
        self.owners = list(owners)
        for atom, owner in enumerate(owners):
            if owner is None:
                if atom != EVERYTHING:
                    self._free.append(atom)
                continue
            path, value = owner
            if isinstance(value, ValueSet):
                self._enter_set(path, value, atom)
            else:
                self._enter_equality(self._path(path), value, atom)


def is_number(value: Scalar) -> bool:
    """Whether a scalar is a number, which a boolean is not here."""
    return not isinstance(value, (str, bool))
