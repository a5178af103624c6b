"""Kernels that turn pairs of event and mark (see `match_block`) into sorted keys for each event."""

from __future__ import annotations

import numpy as np

from sojourn.interest.index.blocks import marks_are_keys
from sojourn.interest.index.compiling import compiled, lowest_bit
from sojourn.interest.index.layout import KEY_MIN, SLOT_MASK, Ints, Store
from sojourn.interest.index.records import key_of


@compiled
def keys_by_event(s: Store, pairs: Ints, events: int) -> tuple[Ints, Ints]:
    """Return where each event's keys start, and the keys, not yet sorted within an event."""
    least = s.counters[KEY_MIN]
    as_keys = marks_are_keys(s)
    offsets = np.zeros(events + 1, np.int64)
    for pair in pairs:
        offsets[(pair >> 32) + 1] += 1
    for event in range(events):
        offsets[event + 1] += offsets[event]
    at = offsets[:-1].copy()
    keys = np.empty(pairs.size, np.int64)
    for pair in pairs:
        event = pair >> 32
        mark = pair & SLOT_MASK
        keys[at[event]] = least + mark if as_keys else key_of(s, mark)
        at[event] += 1
    return offsets, keys


@compiled
def sort_by_bits(offsets: Ints, keys: Ints, least: int, most: int) -> int:
    """Sort each event's keys and drop repetitions, in place, when keys are dense; return how many remain.

    Keys are entered into a bit set with a second one over its words that says which of these to read, and
    read out in order: a few nanoseconds a key, where comparing them would take a logarithm more.
    """
    words = np.zeros(((most - least) >> 6) + 1, np.uint64)
    summary = np.zeros((words.size >> 6) + 1, np.uint64)
    one = np.uint64(1)
    to = 0
    start = offsets[0]
    for event in range(offsets.size - 1):
        for i in range(start, offsets[event + 1]):
            at = keys[i] - least
            words[at >> 6] |= one << np.uint64(at & 63)
            summary[at >> 12] |= one << np.uint64((at >> 6) & 63)
        start = offsets[event + 1]
        for k in range(summary.size):
            upper = summary[k]
            while upper != 0:
                w = (k << 6) + lowest_bit(upper)
                word = words[w]
                words[w] = 0
                while word != 0:
                    keys[to] = least + (w << 6) + lowest_bit(word)
                    to += 1
                    word &= word - one
                upper &= upper - one
            summary[k] = 0
        offsets[event + 1] = to
    return to


@compiled
def drop_repeated(offsets: Ints, keys: Ints) -> int:
    """Drop repetitions from each event's sorted keys, in place; return how many remain."""
    to = 0
    start = offsets[0]
    for event in range(offsets.size - 1):
        stop = offsets[event + 1]
        for i in range(start, stop):
            if i == start or keys[i] != keys[i - 1]:
                keys[to] = keys[i]
                to += 1
        start = stop
        offsets[event + 1] = to
    return to
