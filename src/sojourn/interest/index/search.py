"""The kernel that matches one event."""

from __future__ import annotations

import numpy as np

from sojourn.interest.index.compiling import compiled, inlined, inner
from sojourn.interest.index.layout import (
    ATTRIBUTE,
    CHILD,
    GAP,
    HEAD_WORDS,
    HIGH,
    KIND,
    LEAF,
    LOW,
    OFFSET,
    PARENT,
    RECORDS,
    ROOT,
    SIBLING,
    SLOT_MASK,
    USED,
    Floats,
    Ints,
    Store,
)
from sojourn.interest.index.records import atom_at, attribute_at


@inlined
def next_node(s: Store, node: int, root: int) -> int:
    """Return the node to visit after everything below `node`, or -1 at the end of the tree."""
    while node != root:
        if s.nodes[node, SIBLING] >= 0:
            return int(s.nodes[node, SIBLING])
        node = s.nodes[node, PARENT]
    return -1


@inlined
def _holds_all(s: Store, atoms: Ints, record: int, needs: int) -> bool:
    """Whether all atoms that a record needs are among those of the event, which are sorted and few."""
    for i in range(needs):
        wanted = atom_at(s.pool, record, i)
        if atoms.size <= 16:
            found = False
            for atom in atoms:
                found |= atom == wanted
            if not found:
                return False
        else:
            at = np.searchsorted(atoms, wanted)
            if at == atoms.size or atoms[at] != wanted:
                return False
    return True


@compiled
def match_one(s: Store, atoms: Ints, values: Floats) -> Ints:
    """Return the keys of the filters that an event matches, unsorted and perhaps repeated.

    `atoms` are those the event satisfies, sorted; `values` has its number for every range attribute, NaN
    where it has none.
    """
    found = np.empty(1_024, np.int64)
    atom, node, count = 0, -1, 0
    while True:
        atom, node, count = _search(s, atoms, values, found, atom, node, count)
        if atom == atoms.size:
            return found[:count]
        larger = np.empty(2 * found.size + s.nodes[node, RECORDS], np.int64)
        larger[:count] = found[:count]
        found = larger


@inner
def _search(
    s: Store, atoms: Ints, values: Floats, found: Ints, atom: int, node: int, count: int
) -> tuple[int, int, int]:
    """Search from an atom and a node of its tree on (-1: the root), until the end or the room is reached."""
    while atom < atoms.size:
        root = s.atoms[atoms[atom], ROOT]
        if node < 0:
            node = root
        while node >= 0:
            attribute = s.nodes[node, ATTRIBUTE]
            if attribute >= 0 and not (s.hulls[node, LOW] <= values[attribute] <= s.hulls[node, HIGH]):
                node = next_node(s, node, root)
            elif s.nodes[node, KIND] != LEAF:
                node = s.nodes[node, CHILD]
            elif count + s.nodes[node, RECORDS] > found.size:
                return atom, node, count
            else:
                count = _search_leaf(s, node, atoms, values, found, count)
                node = next_node(s, node, root)
        atom += 1
    return atom, node, count


@inner
def _search_leaf(s: Store, leaf: int, atoms: Ints, values: Floats, found: Ints, count: int) -> int:
    """Add the keys of a leaf's matching records to those found; return how many these are now."""
    pool = s.pool
    ends = s.ends
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    while at < end:
        head = pool[at]
        ranges = (head >> 32) & 0xFFFF
        needs = (head >> 48) & 0xFFFF
        attributes = at + HEAD_WORDS + ((needs + 1) >> 1)
        bounds_at = attributes + ((ranges + 3) >> 2)
        matches = needs == 0 or _holds_all(s, atoms, at, needs)
        i = 0
        if matches and ranges > 1:
            # Either of the two narrowest may well hold, both seldom: one branch on both is mostly foreseen.
            lead = values[pool[attributes] & 0xFFFF]
            second = values[(pool[attributes] >> 16) & 0xFFFF]
            matches = (
                (ends[bounds_at] <= lead)
                & (lead <= ends[bounds_at + 1])
                & (ends[bounds_at + 2] <= second)
                & (second <= ends[bounds_at + 3])
            )
            i = 2
        while matches and i < ranges:
            value = values[attribute_at(pool, attributes, i)]
            matches = (ends[bounds_at + 2 * i] <= value) & (value <= ends[bounds_at + 2 * i + 1])
            i += 1
        if matches and head & SLOT_MASK != GAP:
            found[count] = pool[at + 1]
            count += 1
        at = bounds_at + 2 * ranges
    return count
