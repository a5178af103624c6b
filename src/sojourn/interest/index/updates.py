"""Kernels that add and remove filters, one or a million in a call.

Filters come as a stream of two arrays. `codes` holds, for every filter, its key and number of conjunctions,
and for each of these the number of atoms and of ranges, the atoms, and the attributes of the ranges;
`bounds` holds the low and high end of every range in the same order. A kernel that runs out of room stops
before the filter that doesn't fit, so that Python can grow the arrays and call again.
"""

from __future__ import annotations

import numpy as np

from sojourn.interest.index.compiling import borrowing, compiled, inner
from sojourn.interest.index.layout import (
    ATOM,
    BROAD,
    CLASS_MAX,
    CONJUNCTIONS,
    EVERYTHING,
    FILTERS,
    HEAD_WORDS,
    KEY_MAX,
    KEY_MIN,
    LEAF_RECORDS,
    LINKS,
    MIXED,
    NEEDED,
    NODE_TOP,
    NOWHERE,
    PLACE,
    POOL_TOP,
    ROOT,
    SHARED,
    SLOT_MASK,
    SLOT_TOP,
    Floats,
    Ints,
    Store,
)
from sojourn.interest.index.records import (
    atom_at,
    class_words,
    drop_key,
    find_key,
    give_slot,
    put_key,
    take_slot,
)
from sojourn.interest.index.trees import SAMPLES, file_record, new_leaf, take_out

_NODES_A_SPLIT = LEAF_RECORDS + 4
"""Splitting a leaf by attribute makes at most one node a record."""


@borrowing
def count_needs(s: Store, codes: Ints) -> int:
    """Count the atoms of a stream before any of it is filed, so that even the first filters know the rarest.

    Returns the length of the longest record in words.
    """
    longest = 0
    at = 0
    while at < codes.size:
        conjunctions = codes[at + 1]
        at += 2
        for _ in range(conjunctions):
            needs, ranges = codes[at], codes[at + 1]
            for i in range(needs):
                s.atoms[codes[at + 2 + i], NEEDED] += 1
            longest = max(longest, HEAD_WORDS + ((needs + 1) >> 1) + ((ranges + 3) >> 2) + 2 * ranges)
            at += 2 + needs + ranges
    return longest


@compiled
def insert_stream(
    s: Store, codes: Ints, bounds: Floats, at: int, bounds_at: int, longest: int
) -> tuple[int, int]:
    """File the filters of a stream from a position on; return the position it came to."""
    return _insert_filters(
        s, codes, bounds, at, bounds_at, longest, np.empty(3 * longest + SAMPLES, np.int64)
    )


@inner
def _insert_filters(
    s: Store, codes: Ints, bounds: Floats, at: int, bounds_at: int, longest: int, scratch: Ints
) -> tuple[int, int]:
    while at < codes.size:
        key, conjunctions = codes[at], codes[at + 1]
        if not _has_room(s, conjunctions, longest):
            break
        at += 2
        s.counters[FILTERS] += 1
        s.counters[CONJUNCTIONS] += conjunctions
        s.counters[SHARED] += max(0, conjunctions - 1)
        s.counters[KEY_MIN] = min(s.counters[KEY_MIN], key)
        s.counters[KEY_MAX] = max(s.counters[KEY_MAX], key)
        slot = SLOT_MASK
        for _ in range(conjunctions):
            slot = take_slot(s, slot)
            needs, ranges = codes[at], codes[at + 1]
            ends = bounds[bounds_at : bounds_at + 2 * ranges]
            _insert(s, key, slot, codes[at + 2 : at + 2 + needs + ranges], needs, ends, longest, scratch)
            at += 2 + needs + ranges
            bounds_at += 2 * ranges
        if conjunctions == 0:
            slot = take_slot(s, key)
        put_key(s, key, slot)
    return at, bounds_at


@borrowing
def room_needed(s: Store, conjunctions: int, longest: int) -> tuple[int, int]:
    """Return the words and nodes that one filter takes at worst, when leaves grow, are cut or dealt out."""
    largest = class_words(s.counters[CLASS_MAX]) + 2 * longest
    words = 3 * largest + 5 * min(largest, LEAF_RECORDS * longest) + 16 * _NODES_A_SPLIT
    return (conjunctions + 1) * words, (conjunctions + 1) * _NODES_A_SPLIT


@inner
def _has_room(s: Store, conjunctions: int, longest: int) -> bool:
    words, nodes = room_needed(s, conjunctions, longest)
    return bool(
        s.counters[POOL_TOP] + words <= s.pool.size
        and s.counters[NODE_TOP] + nodes <= s.nodes.shape[0]
        and s.counters[SLOT_TOP] + conjunctions + 1 <= s.slots.shape[0]
        and (s.counters[FILTERS] + 1) * 10 <= s.table.size * 7
    )


@inner
def _insert(
    s: Store, key: int, slot: int, codes: Ints, needs: int, ends: Floats, longest: int, scratch: Ints
) -> None:
    """Write a conjunction as a record into the scratch space and file it."""
    atoms, attributes = codes[:needs], codes[needs:]
    order, shares = scratch[longest : 2 * longest], scratch[2 * longest :].view(np.float64)
    _order_ranges(s, attributes, ends, order, shares)
    access = _access_atom(s, atoms, attributes.size)
    needed = 0
    for atom in atoms:
        if atom != access:
            word = HEAD_WORDS + (needed >> 1)
            scratch[word] = (scratch[word] | (atom << 32)) if needed & 1 else atom
            needed += 1
    start = HEAD_WORDS + ((needed + 1) >> 1)
    bounds_at = start + ((attributes.size + 3) >> 2)
    scratch[start:bounds_at] = 0
    values = scratch.view(np.float64)
    for i in range(attributes.size):
        scratch[start + (i >> 2)] |= attributes[order[i]] << ((i & 3) << 4)
        values[bounds_at + 2 * i] = ends[2 * order[i]]
        values[bounds_at + 2 * i + 1] = ends[2 * order[i] + 1]
    scratch[1] = key
    scratch[0] = slot | (attributes.size << 32) | (needed << 48)
    root = s.atoms[access, ROOT]
    if root < 0:
        root = new_leaf(s, access, MIXED, -1)
        s.atoms[access, ROOT] = root
    file_record(s, root, scratch, 0)


@inner
def _access_atom(s: Store, atoms: Ints, ranges: int) -> int:
    """Choose the atom to file a record under: the rarest sharp one, or for want of these a broad one."""
    best = EVERYTHING
    for atom in atoms:
        if best == EVERYTHING:
            better = ranges == 0 or s.atoms[atom, BROAD] == 0
        elif s.atoms[atom, BROAD] != s.atoms[best, BROAD]:
            better = s.atoms[atom, BROAD] == 0
        else:
            better = s.atoms[atom, NEEDED] < s.atoms[best, NEEDED]
        if better:
            best = atom
    return best


@inner
def _order_ranges(s: Store, attributes: Ints, ends: Floats, order: Ints, shares: Floats) -> None:
    """Order ranges by the share of the attribute's known span they cover; the narrowest will lead."""
    for i in range(attributes.size):
        attribute, low, high = attributes[i], ends[2 * i], ends[2 * i + 1]
        for end in (low, high):
            if abs(end) < 1e300:  # an open end says nothing about the span
                s.spans[attribute, 0] = min(s.spans[attribute, 0], end)
                s.spans[attribute, 1] = max(s.spans[attribute, 1], end)
        least, most = s.spans[attribute, 0], s.spans[attribute, 1]
        shares[i] = (min(high, most) - max(low, least)) / (most - least) if most > least else 1.0
        j = i
        while j > 0 and shares[order[j - 1]] > shares[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@compiled
def remove_keys(s: Store, keys: Ints) -> Ints:
    """Remove filters that are there; return the atoms that no record needs any more."""
    unneeded = np.empty(_count_atoms(s, keys), np.int64)
    return unneeded[: _remove_filters(s, keys, unneeded)]


@inner
def _count_atoms(s: Store, keys: Ints) -> int:
    """Return how many atoms the records of some filters need, the ones they're filed under included."""
    count = 0
    for key in keys:
        slot = int(s.table[find_key(s, key)])
        while slot != SLOT_MASK:
            if s.slots[slot, PLACE] == NOWHERE:
                break
            count += 1 + ((s.pool[s.slots[slot, PLACE]] >> 48) & 0xFFFF)
            slot = s.slots[slot, LINKS] & SLOT_MASK
    return count


@inner
def _remove_filters(s: Store, keys: Ints, unneeded: Ints) -> int:
    count = 0
    for key in keys:
        at = find_key(s, key)
        slot = int(s.table[at])
        drop_key(s, at)
        s.counters[FILTERS] -= 1
        first = True
        while slot != SLOT_MASK:
            place, links = s.slots[slot, PLACE], s.slots[slot, LINKS]
            give_slot(s, slot)
            if place == NOWHERE:
                break
            s.counters[CONJUNCTIONS] -= 1
            s.counters[SHARED] -= 0 if first else 1
            first = False
            count = _forget_needs(s, place, s.nodes[links >> 32, ATOM], unneeded, count)
            take_out(s, links >> 32, place)
            slot = links & SLOT_MASK
    return count


@inner
def _forget_needs(s: Store, place: int, filed_under: int, unneeded: Ints, count: int) -> int:
    needs = (s.pool[place] >> 48) & 0xFFFF
    for i in range(needs + 1):
        atom = filed_under if i == needs else atom_at(s.pool, place, i)
        if atom == EVERYTHING:
            continue
        s.atoms[atom, NEEDED] -= 1
        if s.atoms[atom, NEEDED] == 0:
            unneeded[count] = atom
            count += 1
    return count


@compiled
def insert_new(s: Store, codes: Ints, bounds: Floats) -> tuple[int, int, int]:
    """Begin with a single filter: do nothing and return -1 when its key is known."""
    if find_key(s, codes[0]) >= 0:
        return -1, 0, 0
    longest = count_needs(s, codes)
    at, bounds_at = insert_stream(s, codes, bounds, 0, 0, longest)
    return at, bounds_at, longest


@borrowing
def first_known(s: Store, keys: Ints) -> int:
    """Return the position of the first of some keys that is in the table, or -1."""
    for i in range(keys.size):
        if find_key(s, keys[i]) >= 0:
            return i
    return -1


@borrowing
def first_unknown(s: Store, keys: Ints) -> int:
    """Return the position of the first of some keys that isn't in the table, or -1."""
    for i in range(keys.size):
        if find_key(s, keys[i]) < 0:
            return i
    return -1
