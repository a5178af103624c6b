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

from sojourn.interest.index.compiling import compiled, inlined, inner, lowest_bit
from sojourn.interest.index.layout import (
    ATTRIBUTE,
    CHILD,
    GAP,
    HEAD_WORDS,
    HIGH,
    KEY_MAX,
    KEY_MIN,
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
from sojourn.interest.index.vectors import LANES, ROW_WORDS, keep_between, keep_row, lanes_inside, take_row

BLOCK_EVENTS = 1_024
BLOCK_WORDS = ROW_WORDS
CELLS = 4_096
"""Cells of equal width over the numbers of an attribute; a rank lookup starts at its cell."""
FEW = 64
"""Up to so many events are compared one by one rather than by rank."""


class Block(NamedTuple):
    """What the kernels know of a block of events."""

    values: Floats
    """Column by event: numbers, NaN where there is none."""
    column_of: Ints
    """For every range attribute its row in `values`, or -1."""
    ordered: Floats
    """Each column sorted, the NaNs last, at least two of them."""
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
    ordered = np.full((columns, BLOCK_EVENTS + 2), np.nan)
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
def _rank_below(b: Block, column: int, value: float) -> int:
    """Return how many events have a number below the value."""
    cell = _cell(value, b.scales[column, 0], b.scales[column, 1])
    low, high = np.int64(b.cells[column, cell]), np.int64(b.cells[column, cell + 1])
    while high - low > 2:  # rare, unless numbers are bunched
        middle = (low + high) >> 1
        if b.ordered[column, middle] < value:
            low = middle + 1
        else:
            high = middle
    # What lies beyond the cell is above the value, so two steps need no test for its end.
    return int(low + (b.ordered[column, low] < value) + (b.ordered[column, low + 1] < value))


@inlined
def _rank_upto(b: Block, column: int, value: float) -> int:
    """Return how many events have a number up to the value."""
    cell = _cell(value, b.scales[column, 0], b.scales[column, 1])
    low, high = np.int64(b.cells[column, cell]), np.int64(b.cells[column, cell + 1])
    while high - low > 2:
        middle = (low + high) >> 1
        if b.ordered[column, middle] <= value:
            low = middle + 1
        else:
            high = middle
    return int(low + (b.ordered[column, low] <= value) + (b.ordered[column, low + 1] <= value))


@inlined
def _narrow(b: Block, among: Words, column: int, low: float, high: float) -> np.uint64:
    """Keep those events of a set whose number lies in a range; return which of its words have any left."""
    row = column * (BLOCK_EVENTS + 1)
    first = row + _rank_below(b, column, low)
    last = row + _rank_upto(b, column, high)
    return np.uint64(keep_between(among, b.prefixes, first, last))


@inlined
def _emit(among: Words, filled: np.uint64, mark: int, found: Ints, count: int) -> int:
    """Add a pair of event and mark for every event of a set, given which of its words aren't empty.

    Which words these are and how many bits they have is anyone's guess, so branching on it would stall at
    every other word. This loop branches on nothing but its end.
    """
    while filled != 0:
        w = lowest_bit(filled)
        word = among[w]
        found[count] = (((w << 6) + lowest_bit(word)) << 32) | mark
        count += 1
        word &= word - np.uint64(1)
        among[w] = word
        filled ^= np.uint64(word == 0) << np.uint64(w)
    return count


@inlined
def marks_are_keys(s: Store) -> bool:
    """Whether 32 bits hold the distance of every key from the least one."""
    least, most = s.counters[KEY_MIN], s.counters[KEY_MAX]
    return bool(0 <= most - least < SLOT_MASK)  # a difference that overflows is negative


@inlined
def _mark(s: Store, record: int) -> int:
    return int(s.pool[record + 1] - s.counters[KEY_MIN] if marks_are_keys(s) else s.pool[record] & SLOT_MASK)


@compiled
def match_block(s: Store, b: Block) -> Ints:
    """Return the matching pairs of a block as event << 32 | mark, in no order.

    The mark is the distance of the filter's key from the least one when all of these fit 32 bits, and else
    the record's slot (see `marks_are_keys`).
    """
    found = np.empty(1 << 16, np.int64)
    gathered = np.full((b.values.shape[0], FEW), np.nan)
    among = np.empty(BLOCK_WORDS, np.uint64)
    local, node, count = 0, -1, 0
    while True:
        local, node, count = _match_atoms(s, b, gathered, among, found, local, node, count)
        if local == b.atoms.size:
            return found[:count]
        larger = np.empty(2 * found.size + s.nodes[node, RECORDS] * BLOCK_EVENTS, np.int64)
        larger[:count] = found[:count]
        found = larger


@inner
def _match_atoms(
    s: Store, b: Block, gathered: Floats, among: Words, found: Ints, local: int, node: int, count: int
) -> tuple[int, int, int]:
    """Match from an atom and a node of its tree on (-1: the root), until the end or the room is reached."""
    while local < b.atoms.size:
        root = s.atoms[b.atoms[local], ROOT]
        if node < 0:
            node = root
        start, events = b.starts[local], b.starts[local + 1] - b.starts[local]
        if events <= FEW and node >= 0:
            _gather(b, start, events, gathered)
        while node >= 0:
            if events <= FEW and _misses_all(s, b, node, gathered, events):
                node = next_node(s, node, root)
            elif s.nodes[node, KIND] != LEAF:
                node = s.nodes[node, CHILD]
            elif count + s.nodes[node, RECORDS] * events > found.size:
                return local, node, count
            else:
                if events <= FEW:
                    count = _leaf_for_few(s, b, node, local, gathered, among, found, count)
                else:
                    count = _leaf_for_many(s, b, node, local, among, found, count)
                node = next_node(s, node, root)
        local += 1
    return local, node, count


@inner
def _gather(b: Block, start: int, events: int, gathered: Floats) -> None:
    """Put the numbers of an atom's events side by side, filled up to whole vectors."""
    for c in range(gathered.shape[0]):
        for j in range(events):
            gathered[c, j] = b.values[c, b.events[start + j]]
        for j in range(events, (events + LANES - 1) // LANES * LANES):
            gathered[c, j] = np.nan


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
    low, high = s.hulls[node, LOW], s.hulls[node, HIGH]
    inside = 0
    for j in range(events):
        inside += (low <= gathered[column, j]) & (gathered[column, j] <= high)
    return inside == 0


@inlined
def _holding_all(s: Store, b: Block, record: int, needs: int, local: int, among: Words) -> np.uint64:
    """Set `among` to the events that satisfy all atoms of a record; return which of its words have any."""
    take_row(among, b.atom_bits, local)
    filled = keep_row(among, b.atom_bits, local)
    for i in range(needs):
        other = b.local_of[atom_at(s.pool, record, i)]
        if other < 0:
            return np.uint64(0)
        filled = keep_row(among, b.atom_bits, np.int64(other))
    return np.uint64(filled)


@inner
def _leaf_for_many(s: Store, b: Block, leaf: int, local: int, among: Words, found: Ints, count: int) -> int:
    """Match a leaf's records with the events of a frequent atom, by rank."""
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    while at < end:
        head = s.pool[at]
        ranges, needs = (head >> 32) & 0xFFFF, (head >> 48) & 0xFFFF
        attributes = at + HEAD_WORDS + ((needs + 1) >> 1)
        bounds_at = attributes + ((ranges + 3) >> 2)
        filled = _holding_all(s, b, at, needs, local, among)
        i = 0
        while filled != 0 and i < ranges:
            column = b.column_of[attribute_at(s.pool, attributes, i)]
            if column < 0:
                filled = np.uint64(0)
            else:
                low, high = s.ends[bounds_at + 2 * i], s.ends[bounds_at + 2 * i + 1]
                filled = _narrow(b, among, column, low, high)
            i += 1
        if filled != 0 and head & SLOT_MASK != GAP:
            count = _emit(among, filled, _mark(s, at), found, count)
        at = bounds_at + 2 * ranges
    return count


@inner
def _leaf_for_few(
    s: Store, b: Block, leaf: int, local: int, gathered: Floats, among: Words, found: Ints, count: int
) -> int:
    """Match a leaf's records with the few events of an atom, whose numbers lie side by side."""
    at = s.nodes[leaf, OFFSET]
    end = at + s.nodes[leaf, USED]
    start = b.starts[local]
    events = b.starts[local + 1] - start
    everyone = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - events)
    while at < end:
        head = s.pool[at]
        ranges, needs = (head >> 32) & 0xFFFF, (head >> 48) & 0xFFFF
        attributes = at + HEAD_WORDS + ((needs + 1) >> 1)
        bounds_at = attributes + ((ranges + 3) >> 2)
        bits = everyone
        if needs > 0:
            if events <= 16:
                bits = _few_holding_all(s, b, at, needs, start, events)
            else:
                bits = np.uint64(0)
                if head & SLOT_MASK != GAP and _holding_all(s, b, at, needs, local, among) != 0:
                    count = _check_set(s, b, at, attributes, bounds_at, among, found, count)
        if bits != 0:
            bits = _inside_all(s, b, gathered, attributes, bounds_at, ranges, bits)
        if bits != 0 and head & SLOT_MASK != GAP:
            mark = _mark(s, at)
            while bits != 0:
                found[count] = (b.events[start + lowest_bit(bits)] << 32) | mark
                count += 1
                bits &= bits - np.uint64(1)
        at = bounds_at + 2 * ranges
    return count


@inlined
def _few_holding_all(s: Store, b: Block, record: int, needs: int, start: int, events: int) -> np.uint64:
    """Return which of an atom's few events satisfy all further atoms of a record, as bits."""
    bits = (np.uint64(1) << np.uint64(events)) - np.uint64(1)
    for i in range(needs):
        other = b.local_of[atom_at(s.pool, record, i)]
        if other < 0:
            return np.uint64(0)
        holding = np.uint64(0)
        for j in range(events):
            event = b.events[start + j]
            bit = (b.atom_bits[other, event >> 6] >> np.uint64(event & 63)) & np.uint64(1)
            holding |= bit << np.uint64(j)
        bits &= holding
    return bits


@inlined
def _inside_all(
    s: Store, b: Block, gathered: Floats, attributes: int, bounds_at: int, ranges: int, bits: np.uint64
) -> np.uint64:
    """Keep those of up to 64 events, given as bits, whose numbers lie in all ranges of a record."""
    for i in range(ranges):
        column = b.column_of[attribute_at(s.pool, attributes, i)]
        if column < 0:
            return np.uint64(0)
        low, high = s.ends[bounds_at + 2 * i], s.ends[bounds_at + 2 * i + 1]
        inside = np.uint64(0)
        lane = 0
        while lane < 64 and bits >> np.uint64(lane) != 0:
            inside |= lanes_inside(gathered, column * FEW + lane, low, high) << np.uint64(lane)
            lane += LANES
        bits &= inside
        if bits == 0:
            break
    return bits


@inlined
def _check_set(
    s: Store, b: Block, at: int, attributes: int, bounds_at: int, among: Words, found: Ints, count: int
) -> int:
    """Check the ranges of a record for every event of a small set."""
    ends = s.ends
    ranges = (s.pool[at] >> 32) & 0xFFFF
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
                found[count] = (event << 32) | _mark(s, at)
                count += 1
    return count
