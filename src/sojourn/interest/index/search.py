"""The kernel that matches one event."""

from __future__ import annotations

import numpy as np

from sojourn.interest.index.compiling import compiled, inlined
from sojourn.interest.index.layout import (
    ATTRIBUTE,
    CHILD,
    GAP,
    HIGH,
    KEY,
    KIND,
    LEAF,
    LOW,
    OFFSET,
    PARENT,
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
            return s.nodes[node, SIBLING]
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
    found = np.empty(512, np.int64)
    count = 0
    bounds = s.nodes.view(np.float64)
    for atom in atoms:
        root = s.atoms[atom, ROOT]
        node = root
        while node >= 0:
            attribute = s.nodes[node, ATTRIBUTE]
            if attribute >= 0:
                value = values[attribute]
                if not (bounds[node, LOW] <= value <= bounds[node, HIGH]):
                    node = next_node(s, node, root)
                    continue
            if s.nodes[node, KIND] != LEAF:
                node = s.nodes[node, CHILD]
                continue
            found, count = _search_leaf(s, node, atoms, values, found, count)
            node = next_node(s, node, root)
    return found[:count]


@compiled
def _search_leaf(
    s: Store, leaf: int, atoms: Ints, values: Floats, found: Ints, count: int
) -> tuple[Ints, int]:
    """Add the keys of a leaf's matching records to those found; return them, moved if they outgrew their room."""
    pool = s.pool
    ends = s.pool.view(np.float64)
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    while at < end:
        head = pool[at]
        ranges = (head >> 32) & 0xFFFF
        needs = (head >> 48) & 0xFFFF
        attributes = at + 1 + ((needs + 1) >> 1)
        bounds_at = attributes + ((ranges + 3) >> 2)
        matches = needs == 0 or _holds_all(s, atoms, at, needs)
        i = 0
        while matches and i < ranges:
            value = values[attribute_at(pool, attributes, i)]
            matches = (ends[bounds_at + 2 * i] <= value) & (value <= ends[bounds_at + 2 * i + 1])
            i += 1
        if matches and head & SLOT_MASK != GAP:
            if count == found.size:
                larger = np.empty(2 * count, np.int64)
                larger[:count] = found
                found = larger
            found[count] = s.slots[head & SLOT_MASK, KEY]
            count += 1
        at = bounds_at + 2 * ranges
    return found, count
