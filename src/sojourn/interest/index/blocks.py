"""Kernels that match a block of up to 1,024 events at once, reading every record once for all of them.

The trick is to hold sets of events as bit sets of 16 words. The events whose number for an attribute lies in
a range are, in the order of that number, a run; with the bit sets of the first k events in that order at
hand for every k, the run is the exclusive or of two of them. A range thus costs two rank lookups and a few
vector instructions for the whole block, whatever the number of events.

An atom that only some events satisfy costs less still: for up to `FEW` events their numbers are gathered side
by side and compared directly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sojourn.interest.index.compiling import bit_count, compiled, inlined, lowest_bit
from sojourn.interest.index.layout import (
    ATTRIBUTE,
    CHILD,
    GAP,
    HIGH,
    KIND,
    LEAF,
    LOW,
    OFFSET,
    RECORDS,
    ROOT,
    SLOT_MASK,
    USED,
    Floats,
    Ints,
    Store,
    Words,
)
from sojourn.interest.index.records import atom_at, attribute_at
from sojourn.interest.index.search import next_node

BLOCK_EVENTS = 1_024
BLOCK_WORDS = 16
CELLS = 4_096
"""Cells of equal width over the numbers of an attribute; a rank lookup starts at its cell."""
FEW = 128
"""Up to so many events are compared one by one rather than by rank."""


class Block(NamedTuple):
    """What the kernels know of a block of events."""

    values: Floats
    """Column by event: numbers, NaN where there is none."""
    column_of: Ints
    """For every range attribute its row in `values`, or -1."""
    ordered: Floats
    """Each column sorted, the NaNs last."""
    prefixes: Words
    """For column c and rank k, in row c * 1025 + k: the set of the first k events in the column's order."""
    cells: npt.NDArray[np.uint16]
    """For each column, how many events lie below each cell."""
    scales: Floats
    """For each column, the least number and the cells a unit."""
    atoms: Ints
    """The atoms that some event satisfies, sorted."""
    starts: Ints
    """For every such atom, where its events start in `events`."""
    events: Ints
    atom_bits: Words
    """The same as bit sets."""
    local_of: npt.NDArray[np.int32]
    """For every atom of the index its position in `atoms`, or -1."""


@inlined
def _cell(value: float, least: float, scale: float) -> int:
    position = (value - least) * scale
    if not position > 0.0:
        return 0
    return CELLS - 1 if position >= CELLS - 1 else int(position)


@compiled
def rank_columns(values: Floats, order: Ints) -> tuple[Floats, Words, npt.NDArray[np.uint16], Floats]:
    """Return the sorted columns, the prefix sets, the cells and the scales of a block."""
    columns = values.shape[0]
    ordered = np.full((columns, BLOCK_EVENTS), np.nan)
    prefixes = np.empty((columns * (BLOCK_EVENTS + 1), BLOCK_WORDS), np.uint64)
    cells = np.zeros((columns, CELLS + 1), np.uint16)
    scales = np.zeros((columns, 2))
    running = np.empty(BLOCK_WORDS, np.uint64)
    for c in range(columns):
        running[:] = 0
        row = c * (BLOCK_EVENTS + 1)
        prefixes[row] = running
        count = 0
        while count < BLOCK_EVENTS and not np.isnan(values[c, order[c, count]]):
            event = order[c, count]
            ordered[c, count] = values[c, event]
            running[event >> 6] |= np.uint64(1) << np.uint64(event & 63)
            count += 1
            prefixes[row + count] = running
        if count == 0:
            continue
        least, width = ordered[c, 0], ordered[c, count - 1] - ordered[c, 0]
        scale = CELLS / width if 0.0 < width < np.inf else 0.0
        scales[c, 0], scales[c, 1] = least, scale if scale < np.inf else 0.0
        for k in range(count):
            cells[c, _cell(ordered[c, k], least, scales[c, 1]) + 1] += 1
        for k in range(CELLS):
            cells[c, k + 1] += cells[c, k]
    return ordered, prefixes, cells, scales


@inlined
def _rank(b: Block, column: int, value: float, with_equal: bool) -> int:  # noqa: FBT001
    """Return how many events have a number below the value, or up to it."""
    cell = _cell(value, b.scales[column, 0], b.scales[column, 1])
    low, high = np.int64(b.cells[column, cell]), np.int64(b.cells[column, cell + 1])
    while high - low > 4:
        middle = (low + high) >> 1
        other = b.ordered[column, middle]
        if other < value or (with_equal and other == value):
            low = middle + 1
        else:
            high = middle
    while low < high:
        other = b.ordered[column, low]
        if not (other < value or (with_equal and other == value)):
            break
        low += 1
    return low


@inlined
def _narrow(b: Block, among: Words, column: int, low: float, high: float) -> bool:
    """Keep those events of a set whose number lies in a range; False when there can be none."""
    first = _rank(b, column, low, False)  # noqa: FBT003
    last = _rank(b, column, high, True)  # noqa: FBT003
    if first >= last:
        return False
    row = column * (BLOCK_EVENTS + 1)
    for w in range(BLOCK_WORDS):
        among[w] &= b.prefixes[row + first, w] ^ b.prefixes[row + last, w]
    return True


@inlined
def _emit(among: Words, slot: int, found: Ints, count: int) -> int:
    """Add a pair of event and slot for every event of a set."""
    for w in range(BLOCK_WORDS):
        word = among[w]
        while word != 0:
            event = (w << 6) + lowest_bit(word)
            found[count] = (event << 32) | slot
            count += 1
            word &= word - np.uint64(1)
    return count


@compiled
def _room_for(found: Ints, count: int, more: int) -> Ints:
    if count + more <= found.size:
        return found
    larger = np.empty(max(2 * found.size, count + more), np.int64)
    larger[:count] = found[:count]
    return larger


@compiled
def match_block(s: Store, b: Block) -> Ints:
    """Return the matching pairs of a block as event << 32 | slot, in no order."""
    found = np.empty(1 << 16, np.int64)
    count = 0
    columns = b.values.shape[0]
    gathered = np.full((columns, FEW), np.nan)
    among = np.empty(BLOCK_WORDS, np.uint64)
    for local in range(b.atoms.size):
        root = s.atoms[b.atoms[local], ROOT]
        if root < 0:
            continue
        events = b.events[b.starts[local] : b.starts[local + 1]]
        if events.size <= FEW:
            for c in range(columns):
                for j in range(events.size):
                    gathered[c, j] = b.values[c, events[j]]
                for j in range(events.size, min(FEW, (events.size + 7) & ~7)):
                    gathered[c, j] = np.nan
        node = root
        while node >= 0:
            if events.size <= FEW and _misses_all(s, b, node, gathered, events.size):
                node = next_node(s, node, root)
                continue
            if s.nodes[node, KIND] != LEAF:
                node = s.nodes[node, CHILD]
                continue
            found = _room_for(found, count, s.nodes[node, RECORDS] * events.size)
            if events.size <= FEW:
                count = _leaf_for_few(s, b, node, local, events, gathered, among, found, count)
            else:
                count = _leaf_for_many(s, b, node, local, among, found, count)
            node = next_node(s, node, root)
    return found[:count]


@inlined
def _misses_all(s: Store, b: Block, node: int, gathered: Floats, events: int) -> bool:
    """Whether no event's number lies in the hull of a node."""
    attribute = s.nodes[node, ATTRIBUTE]
    if attribute < 0:
        return False
    column = b.column_of[attribute]
    if column < 0:
        return True
    if events > 24:
        return False
    bounds = s.nodes.view(np.float64)
    low, high = bounds[node, LOW], bounds[node, HIGH]
    inside = 0
    for j in range(events):
        inside += (low <= gathered[column, j]) & (gathered[column, j] <= high)
    return inside == 0


@inlined
def _both_sets(s: Store, b: Block, record: int, needs: int, local: int, among: Words) -> int:
    """Set `among` to the events that satisfy all atoms of a record; return how many these are."""
    for w in range(BLOCK_WORDS):
        among[w] = b.atom_bits[local, w]
    for i in range(needs):
        other = b.local_of[atom_at(s.pool, record, i)]
        if other < 0:
            return 0
        for w in range(BLOCK_WORDS):
            among[w] &= b.atom_bits[other, w]
    total = 0
    for w in range(BLOCK_WORDS):
        total += bit_count(among[w])
    return total


@compiled
def _leaf_for_many(s: Store, b: Block, leaf: int, local: int, among: Words, found: Ints, count: int) -> int:
    """Match a leaf's records with the events of a frequent atom, by rank."""
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    while at < end:
        head = s.pool[at]
        ranges, needs = (head >> 32) & 0xFFFF, (head >> 48) & 0xFFFF
        attributes = at + 1 + ((needs + 1) >> 1)
        bounds_at = attributes + ((ranges + 3) >> 2)
        if head & SLOT_MASK != GAP and _both_sets(s, b, at, needs, local, among) > 0:
            count = _narrow_and_emit(s, b, head, attributes, bounds_at, among, found, count)
        at = bounds_at + 2 * ranges
    return count


@compiled
def _narrow_and_emit(
    s: Store, b: Block, head: int, attributes: int, bounds_at: int, among: Words, found: Ints, count: int
) -> int:
    ends = s.pool.view(np.float64)
    for i in range((head >> 32) & 0xFFFF):
        column = b.column_of[attribute_at(s.pool, attributes, i)]
        if column < 0 or not _narrow(b, among, column, ends[bounds_at + 2 * i], ends[bounds_at + 2 * i + 1]):
            return count
    return _emit(among, head & SLOT_MASK, found, count)


@compiled
def _leaf_for_few(
    s: Store,
    b: Block,
    leaf: int,
    local: int,
    events: Ints,
    gathered: Floats,
    among: Words,
    found: Ints,
    count: int,
) -> int:
    """Match a leaf's records with the few events of an atom, whose numbers lie side by side."""
    ends = s.pool.view(np.float64)
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    lanes = min(FEW, (events.size + 7) & ~7)
    everyone = np.uint64(0xFFFFFFFFFFFFFFFF)
    first_all = everyone >> np.uint64(64 - min(events.size, 64))
    second_all = everyone >> np.uint64(128 - events.size) if events.size > 64 else np.uint64(0)
    while at < end:
        head = s.pool[at]
        ranges, needs = (head >> 32) & 0xFFFF, (head >> 48) & 0xFFFF
        attributes = at + 1 + ((needs + 1) >> 1)
        bounds_at = attributes + ((ranges + 3) >> 2)
        slot = head & SLOT_MASK
        if slot == GAP:
            at = bounds_at + 2 * ranges
            continue
        if needs > 0:
            total = _both_sets(s, b, at, needs, local, among)
            if total > 0:
                count = _check_set(s, b, head, attributes, bounds_at, among, found, count)
            at = bounds_at + 2 * ranges
            continue
        first, second = first_all, second_all
        for i in range(ranges):
            column = b.column_of[attribute_at(s.pool, attributes, i)]
            if column < 0:
                first = second = np.uint64(0)
                break
            low, high = ends[bounds_at + 2 * i], ends[bounds_at + 2 * i + 1]
            first &= _inside(gathered[column], 0, min(lanes, 64), low, high)
            if lanes > 64:
                second &= _inside(gathered[column], 64, lanes, low, high)
            if first | second == 0:
                break
        while first != 0:
            found[count] = (events[lowest_bit(first)] << 32) | slot
            count += 1
            first &= first - np.uint64(1)
        while second != 0:
            found[count] = (events[64 + lowest_bit(second)] << 32) | slot
            count += 1
            second &= second - np.uint64(1)
        at = bounds_at + 2 * ranges
    return count


@inlined
def _inside(numbers: Floats, start: int, stop: int, low: float, high: float) -> np.uint64:
    """Return which of at most 64 numbers lie in a range, as bits."""
    bits = np.uint64(0)
    for j in range(stop - start):
        value = numbers[start + j]
        bits |= np.uint64((low <= value) & (value <= high)) << np.uint64(j)
    return bits


@compiled
def _check_set(
    s: Store, b: Block, head: int, attributes: int, bounds_at: int, among: Words, found: Ints, count: int
) -> int:
    """Check the ranges of a record for every event of a small set."""
    ends = s.pool.view(np.float64)
    ranges = (head >> 32) & 0xFFFF
    for w in range(BLOCK_WORDS):
        word = among[w]
        while word != 0:
            event = (w << 6) + lowest_bit(word)
            word &= word - np.uint64(1)
            matches = True
            i = 0
            while matches and i < ranges:
                column = b.column_of[attribute_at(s.pool, attributes, i)]
                matches = False
                if column >= 0:
                    value = b.values[column, event]
                    matches = (ends[bounds_at + 2 * i] <= value) & (value <= ends[bounds_at + 2 * i + 1])
                i += 1
            if matches:
                found[count] = (event << 32) | (head & SLOT_MASK)
                count += 1
    return count
