"""How the index lies in memory: a few flat arrays, and the names of their fields.

Every filter is an OR of conjunctions. A conjunction is a record: the atoms it needs (an atom is "attribute X
has a value in set S", numbered by `atoms.py`) and its numeric ranges. Records live in leaves. Every atom
owns a tree of leaves: a record is filed under its rarest atom, or under `EVERYTHING` when it has ranges only.

A tree starts as one leaf. A leaf that overflows is split, first by the attribute of the record's *lead*
range (the narrowest), then by cutting that range's low or high end at the median in turn. Every node
below the first split keeps the hull of its lead ranges, so a search enters only nodes whose hull holds the
event's value. That is the second level that separates a rare equality from a full scan behind it.

A record is a run of 8-byte words in `pool`: a head (slot, number of ranges, number of atoms), the filter's
key, the atoms two a word, the attributes of the ranges four a word, then the low and high end of every range.
Leaves own regions of the pool; regions come in size classes with a free list each, so nothing is rebuilt:
a leaf that grows moves to the next class, a removed record stays as a gap until its leaf is half gaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sojourn.interest.index.compiling import inner

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

EVERYTHING = 0
"""The atom that every event satisfies; records without a sharp atom are filed under it."""

LEAF_RECORDS = 128
"""A leaf with more records is split. Smaller leaves prune better and cost more nodes."""

ATTRIBUTES_MAX = 65_535
"""Range attributes have 16-bit numbers; ranges on further attributes are treated as atoms."""

# Kinds of node.
FREE, LEAF, BY_ATTRIBUTE, BY_LOW, BY_HIGH = 0, 1, 2, 3, 4

# Fields of a node; the first eight, one cache line, are all that a search reads of an inner node.
KIND, ATTRIBUTE, LOW, HIGH, CHILD, SIBLING, PARENT, OFFSET = 0, 1, 2, 3, 4, 5, 6, 7
USED, CLASS, RECORDS, GAPS, LIMIT, ATOM, CUT, TURN = 8, 9, 10, 11, 12, 13, 14, 15
NODE_FIELDS = 16

MIXED = -1
"""The attribute of a node whose records lead with different attributes."""
NO_RANGE = -2
"""The attribute of a node whose records have no range at all."""

# Fields of an atom: the root of its tree, how many records need it, and whether few events satisfy it.
ROOT, NEEDED, BROAD = 0, 1, 2
ATOM_FIELDS = 3

# Fields of a slot, one for every conjunction: where the record is, and the leaf and the next slot of the same
# filter packed in one word.
PLACE, LINKS = 0, 1
SLOT_FIELDS = 2
NOWHERE = -1
"""The place of a slot without a record, for a filter that matches nothing; its key stands in `LINKS`."""
HEAD_WORDS = 2
"""A record starts with its head and its filter's key, where a search that finds it needs it."""

# Counters.
POOL_TOP, NODE_TOP, NODE_FREE, SLOT_TOP, SLOT_FREE, FILTERS, CONJUNCTIONS, CLASS_MAX = 0, 1, 2, 3, 4, 5, 6, 7
KEY_MIN, KEY_MAX, SHARED = 8, 9, 10
"""`SHARED` counts the conjunctions beyond the first of their filter: only these need removing duplicates."""
CLASS_FREE = 16
CLASSES = 112
COUNTERS = CLASS_FREE + CLASSES

SLOT_MASK = 0xFFFFFFFF
GAP = SLOT_MASK
"""The slot number in the head of a removed record."""


class Store(NamedTuple):
    """All the arrays the kernels work on. Python grows them, kernels only fill them."""

    pool: Ints
    ends: Floats
    """The same memory as `pool`, read as numbers."""
    nodes: Ints
    hulls: Floats
    """The same memory as `nodes`, read as numbers."""
    atoms: Ints
    slots: Ints
    table: npt.NDArray[np.int32]
    """Open-addressing hash table from key to first slot; a power of two long, -1 where empty."""
    spans: Floats
    """Least low and greatest high end seen for every range attribute, to compare widths across attributes."""
    counters: Ints


def empty_store() -> Store:
    """Make the store of an index without filters."""
    counters = np.zeros(COUNTERS, np.int64)
    counters[[NODE_FREE, SLOT_FREE]] = -1
    counters[CLASS_FREE:] = -1
    counters[KEY_MIN], counters[KEY_MAX] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    atoms = np.zeros((16, ATOM_FIELDS), np.int64)
    atoms[:, ROOT] = -1
    pool, nodes = np.zeros(1024, np.int64), np.zeros((16, NODE_FIELDS), np.int64)
    return Store(
        pool=pool,
        ends=pool.view(np.float64),
        nodes=nodes,
        hulls=nodes.view(np.float64),
        atoms=atoms,
        slots=np.zeros((64, SLOT_FIELDS), np.int64),
        table=np.full(128, -1, np.int32),
        spans=np.tile(np.array([np.inf, -np.inf]), (8, 1)),
        counters=counters,
    )


@inner
def watched() -> int:
    """Make Numba watch this file: kernels contain what it says, and must be compiled anew when it changes."""
    return 0
