"""Kernels for the trees of leaves: where a record is filed, how leaves split, how empty ones go.

Children of a node form a list (`CHILD`, then `SIBLING`), and every node knows its `PARENT`, so that searches
walk a tree without a stack.
"""

from __future__ import annotations

import numpy as np

from sojourn.interest.index.compiling import inlined, inner
from sojourn.interest.index.layout import (
    ATOM,
    ATTRIBUTE,
    BY_ATTRIBUTE,
    BY_HIGH,
    BY_LOW,
    CHILD,
    CUT,
    FREE,
    GAP,
    GAPS,
    HEAD_WORDS,
    HIGH,
    KIND,
    LEAF,
    LEAF_RECORDS,
    LIMIT,
    LINKS,
    LOW,
    MIXED,
    NO_RANGE,
    NODE_FIELDS,
    NODE_FREE,
    NODE_TOP,
    OFFSET,
    PARENT,
    RECORDS,
    ROOT,
    SIBLING,
    SLOT_MASK,
    TURN,
    USED,
    Floats,
    Ints,
    Store,
)
from sojourn.interest.index.records import (
    append_record,
    attribute_at,
    give_region,
    make_room,
    move_records,
    record_words,
)

SAMPLES = LEAF_RECORDS + 2
"""So many records at most decide where a leaf is cut."""


@inlined
def lead_bounds_at(record: int, head: int) -> int:
    """Return where the bounds of a record start, those of its lead range first."""
    return record + HEAD_WORDS + ((((head >> 48) & 0xFFFF) + 1) >> 1) + ((((head >> 32) & 0xFFFF) + 3) >> 2)


@inlined
def lead_attribute(pool: Ints, record: int) -> int:
    """Return the attribute of a record's lead range, or `NO_RANGE`."""
    head = pool[record]
    if (head >> 32) & 0xFFFF == 0:
        return NO_RANGE
    return attribute_at(pool, record + HEAD_WORDS + ((((head >> 48) & 0xFFFF) + 1) >> 1), 0)


@inner
def new_leaf(s: Store, atom: int, attribute: int, parent: int) -> int:
    """Return an empty leaf of an atom's tree."""
    node = s.counters[NODE_FREE]
    if node >= 0:
        s.counters[NODE_FREE] = s.nodes[node, CHILD]
    else:
        node = s.counters[NODE_TOP]
        s.counters[NODE_TOP] = node + 1
    s.nodes[node, :] = 0
    s.nodes[node, KIND] = LEAF
    s.nodes[node, ATOM] = atom
    s.nodes[node, ATTRIBUTE] = attribute
    s.nodes[node, PARENT] = parent
    s.nodes[node, CHILD] = -1
    s.nodes[node, SIBLING] = -1
    s.nodes[node, OFFSET] = -1
    s.nodes[node, LIMIT] = LEAF_RECORDS
    s.hulls[node, LOW] = np.inf
    s.hulls[node, HIGH] = -np.inf
    return int(node)


@inner
def give_node(s: Store, node: int) -> None:
    """Take back a node and its region."""
    give_region(s, node)
    s.nodes[node, KIND] = FREE
    s.nodes[node, CHILD] = s.counters[NODE_FREE]
    s.counters[NODE_FREE] = node


@inner
def child_for_attribute(s: Store, node: int, attribute: int) -> int:
    """Return the child of a `BY_ATTRIBUTE` node for a lead attribute, made if need be."""
    child = s.nodes[node, CHILD]
    while child >= 0:
        if s.nodes[child, ATTRIBUTE] == attribute:
            return int(child)
        child = s.nodes[child, SIBLING]
    child = new_leaf(s, s.nodes[node, ATOM], attribute, node)
    s.nodes[child, SIBLING] = s.nodes[node, CHILD]
    s.nodes[node, CHILD] = child
    return child


@inner
def _widen(s: Store, node: int, low: float, high: float) -> None:
    s.hulls[node, LOW] = min(s.hulls[node, LOW], low)
    s.hulls[node, HIGH] = max(s.hulls[node, HIGH], high)


@inner
def file_record(s: Store, node: int, source: Ints, at: int) -> None:
    """Append a record to the leaf it belongs to at or below a node, and split the leaf if it overflows.

    The source, which has room for `SAMPLES` numbers, is overwritten by a split.
    """
    attribute = lead_attribute(source, at)
    low, high = 0.0, 0.0
    if attribute >= 0:
        bounds_at = lead_bounds_at(at, source[at])
        ends = source.view(np.float64)
        low, high = ends[bounds_at], ends[bounds_at + 1]
    while True:
        if s.nodes[node, ATTRIBUTE] >= 0:
            _widen(s, node, low, high)
        kind = s.nodes[node, KIND]
        if kind == LEAF:
            break
        if kind == BY_ATTRIBUTE:
            node = child_for_attribute(s, node, attribute)
        else:
            end = low if kind == BY_LOW else high
            child = s.nodes[node, CHILD]
            node = child if end < s.hulls[node, CUT] else s.nodes[child, SIBLING]
    append_record(s, node, source, at)
    s.nodes[node, RECORDS] += 1
    if s.nodes[node, RECORDS] > s.nodes[node, LIMIT]:
        split_leaf(s, node, source)


@inner
def _middle_end(s: Store, leaf: int, which: int, scratch: Floats) -> float:
    """Return the median of the low (0) or high (1) ends of the lead ranges of a leaf's records, or -inf.

    A cut at -inf would leave one side empty: the ends are all the same. Of a leaf beyond its limit,
    every so many records stand for all.
    """
    values = s.ends
    step = 1 + s.nodes[leaf, RECORDS] // SAMPLES
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    seen, count = 0, 0
    while at < end:
        head = s.pool[at]
        if head & SLOT_MASK != GAP:
            if seen % step == 0:
                value = values[lead_bounds_at(at, head) + which]
                place = count
                while place > 0 and scratch[place - 1] > value:
                    scratch[place] = scratch[place - 1]
                    place -= 1
                scratch[place] = value
                count += 1
            seen += 1
        at += record_words(head)
    return scratch[count // 2] if scratch[0] < scratch[count // 2] else -np.inf


@inner
def split_leaf(s: Store, leaf: int, scratch: Ints) -> None:
    """Turn a leaf into an inner node over smaller leaves; one that can't be told apart may grow instead."""
    attribute = s.nodes[leaf, ATTRIBUTE]
    if attribute == MIXED:
        _deal_out(s, leaf, BY_ATTRIBUTE)
        return
    if attribute >= 0:
        for attempt in range(2):
            which = (s.nodes[leaf, TURN] + attempt) & 1
            cut = _middle_end(s, leaf, which, scratch.view(np.float64))
            if cut > -np.inf:
                _cut(s, leaf, which, cut)
                return
    s.nodes[leaf, LIMIT] *= 2


@inner
def _words_below(s: Store, leaf: int, which: int, cut: float) -> int:
    """Return how many words the records of a leaf take whose low (0) or high (1) end is below a cut."""
    values = s.ends
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    below = 0
    while at < end:
        head = s.pool[at]
        words = record_words(head)
        if head & SLOT_MASK != GAP and values[lead_bounds_at(at, head) + which] < cut:
            below += words
        at += words
    return below


@inner
def _cut(s: Store, leaf: int, which: int, cut: float) -> None:
    atom, attribute = s.nodes[leaf, ATOM], s.nodes[leaf, ATTRIBUTE]
    below = new_leaf(s, atom, attribute, leaf)
    above = new_leaf(s, atom, attribute, leaf)
    s.nodes[below, SIBLING] = above
    s.nodes[below, TURN] = which ^ 1
    s.nodes[above, TURN] = which ^ 1
    s.nodes[leaf, CHILD] = below
    s.hulls[leaf, CUT] = cut
    words = _words_below(s, leaf, which, cut)
    make_room(s, below, words)
    make_room(s, above, s.nodes[leaf, USED] - s.nodes[leaf, GAPS] - words)
    _deal_out(s, leaf, BY_LOW if which == 0 else BY_HIGH)


@inner
def _deal_out(s: Store, leaf: int, kind: int) -> None:
    """Move a leaf's records to its children, the leaf becoming an inner node of the given kind."""
    ends = s.ends
    cut = s.hulls[leaf, CUT]
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    while at < end:
        head = s.pool[at]
        if head & SLOT_MASK != GAP:
            bounds_at = lead_bounds_at(at, head)
            if kind == BY_ATTRIBUTE:
                child = child_for_attribute(s, leaf, lead_attribute(s.pool, at))
            else:
                child = s.nodes[leaf, CHILD]
                if ends[bounds_at + (0 if kind == BY_LOW else 1)] >= cut:
                    child = s.nodes[child, SIBLING]
            if s.nodes[child, ATTRIBUTE] >= 0:
                _widen(s, child, ends[bounds_at], ends[bounds_at + 1])
            append_record(s, child, s.pool, at)
            s.nodes[child, RECORDS] += 1
        at += record_words(head)
    give_region(s, leaf)
    s.nodes[leaf, RECORDS] = 0
    s.nodes[leaf, KIND] = kind


@inner
def take_out(s: Store, leaf: int, place: int) -> None:
    """Remove the record at a place of a leaf; close gaps and drop the leaf when that is due."""
    words = record_words(s.pool[place])
    s.pool[place] |= GAP
    s.nodes[leaf, RECORDS] -= 1
    s.nodes[leaf, GAPS] += words
    if s.nodes[leaf, RECORDS] == 0:
        give_region(s, leaf)
        _drop_leaf(s, leaf)
    elif s.nodes[leaf, GAPS] * 2 > s.nodes[leaf, USED]:
        move_records(s, leaf, s.nodes[leaf, OFFSET])


@inner
def _drop_leaf(s: Store, leaf: int) -> None:
    """Remove an empty leaf; what stays of its family moves up, so that trees shrink as they grew."""
    parent = s.nodes[leaf, PARENT]
    if parent < 0:
        s.atoms[s.nodes[leaf, ATOM], ROOT] = -1
        give_node(s, leaf)
        return
    if s.nodes[parent, CHILD] == leaf:
        s.nodes[parent, CHILD] = s.nodes[leaf, SIBLING]
    else:
        elder = s.nodes[parent, CHILD]
        while s.nodes[elder, SIBLING] != leaf:
            elder = s.nodes[elder, SIBLING]
        s.nodes[elder, SIBLING] = s.nodes[leaf, SIBLING]
    give_node(s, leaf)
    if s.nodes[parent, KIND] != BY_ATTRIBUTE:
        _replace_by_child(s, parent)
    elif s.nodes[parent, CHILD] < 0:  # only roots are split by attribute
        s.atoms[s.nodes[parent, ATOM], ROOT] = -1
        give_node(s, parent)


@inner
def _replace_by_child(s: Store, node: int) -> None:
    """Let the only child of a node take its place and number."""
    child = s.nodes[node, CHILD]
    parent, sibling = s.nodes[node, PARENT], s.nodes[node, SIBLING]
    for field in range(NODE_FIELDS):
        s.nodes[node, field] = s.nodes[child, field]
    s.nodes[node, PARENT] = parent
    s.nodes[node, SIBLING] = sibling
    s.nodes[child, OFFSET] = -1
    grandchild = s.nodes[node, CHILD]
    while grandchild >= 0:
        s.nodes[grandchild, PARENT] = node
        grandchild = s.nodes[grandchild, SIBLING]
    if s.nodes[node, KIND] == LEAF:
        at = s.nodes[node, OFFSET]
        end = at + s.nodes[node, USED]
        while at < end:
            slot = s.pool[at] & SLOT_MASK
            if slot != GAP:
                s.slots[slot, LINKS] = (s.slots[slot, LINKS] & SLOT_MASK) | (node << 32)
            at += record_words(s.pool[at])
    give_node(s, child)
