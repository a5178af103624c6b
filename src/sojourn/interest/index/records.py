"""Kernels for the ground level: regions of the pool, records inside leaves, and the table of keys.

A region belongs to one leaf and has one of a few sizes, four to a doubling, so that a leaf wastes an eighth
of its region on average and regions given back fit the next leaf that grows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sojourn.interest.index.compiling import borrowing, inlined, inner
from sojourn.interest.index.layout import (
    CLASS,
    CLASS_FREE,
    CLASS_MAX,
    GAP,
    GAPS,
    HEAD_WORDS,
    LINKS,
    NOWHERE,
    OFFSET,
    PLACE,
    POOL_TOP,
    SLOT_FREE,
    SLOT_MASK,
    SLOT_TOP,
    USED,
    Ints,
    Store,
)


@inlined
def record_words(head: int) -> int:
    """Return the length of a record from its head."""
    ranges = (head >> 32) & 0xFFFF
    needs = (head >> 48) & 0xFFFF
    return HEAD_WORDS + ((needs + 1) >> 1) + ((ranges + 3) >> 2) + 2 * ranges


@inlined
def atom_at(pool: Ints, record: int, i: int) -> int:
    """Return the i-th atom that a record needs besides the one it's filed under."""
    return int((pool[record + HEAD_WORDS + (i >> 1)] >> ((i & 1) << 5)) & 0xFFFFFFFF)


@inlined
def attribute_at(pool: Ints, attributes: int, i: int) -> int:
    """Return the attribute of the i-th range, given where the attributes of the record start."""
    return int((pool[attributes + (i >> 2)] >> ((i & 3) << 4)) & 0xFFFF)


@inlined
def class_words(size_class: int) -> int:
    """Return how many words a region of a size class has."""
    base = 16 << (size_class >> 2)
    return base + (size_class & 3) * (base >> 2)


@inner
def class_for(words: int) -> int:
    """Return the smallest size class that holds so many words."""
    size_class = 0
    while class_words(size_class + 4) < words:
        size_class += 4
    while class_words(size_class) < words:
        size_class += 1
    return size_class


@inner
def take_region(s: Store, size_class: int) -> int:
    """Return the offset of an unused region; the caller of the kernel made sure there is room."""
    head = s.counters[CLASS_FREE + size_class]
    if head >= 0:
        s.counters[CLASS_FREE + size_class] = s.pool[head]
        return int(head)
    head = s.counters[POOL_TOP]
    s.counters[POOL_TOP] = head + class_words(size_class)
    s.counters[CLASS_MAX] = max(s.counters[CLASS_MAX], size_class)
    return int(head)


@inner
def give_region(s: Store, leaf: int) -> None:
    """Put a leaf's region, if it has one, on the free list of its size."""
    offset = s.nodes[leaf, OFFSET]
    if offset < 0:
        return
    size_class = s.nodes[leaf, CLASS]
    s.pool[offset] = s.counters[CLASS_FREE + size_class]
    s.counters[CLASS_FREE + size_class] = offset
    s.nodes[leaf, OFFSET] = -1
    s.nodes[leaf, USED] = 0
    s.nodes[leaf, GAPS] = 0


@inner
def move_records(s: Store, leaf: int, to: int) -> None:
    """Copy a leaf's records without the gaps to an offset, at or before where they are or far from it."""
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    start = to
    while at < end:
        words = record_words(s.pool[at])
        slot = s.pool[at] & SLOT_MASK
        if slot != GAP:
            s.slots[slot, PLACE] = to
            for i in range(words):
                s.pool[to + i] = s.pool[at + i]
            to += words
        at += words
    s.nodes[leaf, USED] = to - start
    s.nodes[leaf, GAPS] = 0


@inner
def make_room(s: Store, leaf: int, words: int) -> None:
    """See to it that a leaf's region has room for so many more words."""
    offset, used, gaps = s.nodes[leaf, OFFSET], s.nodes[leaf, USED], s.nodes[leaf, GAPS]
    if offset >= 0 and used + words <= class_words(s.nodes[leaf, CLASS]):
        return
    if offset >= 0 and gaps * 4 >= used and used - gaps + words <= class_words(s.nodes[leaf, CLASS]):
        move_records(s, leaf, offset)
        return
    size_class = class_for(used - gaps + words)
    region = take_region(s, size_class)
    if offset >= 0:
        move_records(s, leaf, region)
        used = s.nodes[leaf, USED]
        give_region(s, leaf)
        s.nodes[leaf, USED] = used
    s.nodes[leaf, OFFSET] = region
    s.nodes[leaf, CLASS] = size_class


@inner
def append_record(s: Store, leaf: int, source: Ints, at: int) -> None:
    """Copy a record from elsewhere to the end of a leaf and tell its slot."""
    words = record_words(source[at])
    make_room(s, leaf, words)
    place = s.nodes[leaf, OFFSET] + s.nodes[leaf, USED]
    for i in range(words):
        s.pool[place + i] = source[at + i]
    s.nodes[leaf, USED] += words
    slot = source[at] & SLOT_MASK
    s.slots[slot, PLACE] = place
    s.slots[slot, LINKS] = (s.slots[slot, LINKS] & SLOT_MASK) | (leaf << 32)


@inner
def take_slot(s: Store, following: int) -> int:
    """Return a fresh slot; `following` is the filter's next slot or, if it has no record, its key."""
    slot = s.counters[SLOT_FREE]
    if slot >= 0:
        s.counters[SLOT_FREE] = s.slots[slot, LINKS]
    else:
        slot = s.counters[SLOT_TOP]
        s.counters[SLOT_TOP] = slot + 1
    s.slots[slot, PLACE] = NOWHERE
    s.slots[slot, LINKS] = following
    return int(slot)


@inner
def give_slot(s: Store, slot: int) -> None:
    """Take back a slot."""
    s.slots[slot, PLACE] = NOWHERE
    s.slots[slot, LINKS] = s.counters[SLOT_FREE]
    s.counters[SLOT_FREE] = slot


@inlined
def key_of(s: Store, slot: int) -> int:
    """Return the key of the filter that a slot belongs to."""
    place = s.slots[slot, PLACE]
    return int(s.slots[slot, LINKS] if place == NOWHERE else s.pool[place + 1])


@inlined
def _home(key: int, mask: int) -> int:
    """Spread keys over the table; neighbouring keys must not pile up."""
    mixed = key * -7046029254386353131
    return (mixed >> 20) & mask


@borrowing
def find_key(s: Store, key: int) -> int:
    """Return the position of a key in the table, or -1."""
    mask = s.table.size - 1
    at = _home(key, mask)
    while s.table[at] >= 0:
        if key_of(s, s.table[at]) == key:
            return at
        at = (at + 1) & mask
    return -1


@inner
def put_key(s: Store, key: int, slot: int) -> None:
    """Enter a key that isn't in the table, which has room."""
    mask = s.table.size - 1
    at = _home(key, mask)
    while s.table[at] >= 0:
        at = (at + 1) & mask
    s.table[at] = slot


@inner
def drop_key(s: Store, at: int) -> None:
    """Empty a position of the table and close the gap, so that searches need no tombstones."""
    mask = s.table.size - 1
    follow = (at + 1) & mask
    while s.table[follow] >= 0:
        home = _home(key_of(s, s.table[follow]), mask)
        if ((follow - home) & mask) >= ((follow - at) & mask):
            s.table[at] = s.table[follow]
            at = follow
        follow = (follow + 1) & mask
    s.table[at] = -1


@borrowing
def fill_table(s: Store, old: npt.NDArray[np.int32]) -> None:
    """Enter the first slots of all filters, given as the entries of a smaller table."""
    for slot in old:
        if slot >= 0:
            put_key(s, key_of(s, slot), slot)
