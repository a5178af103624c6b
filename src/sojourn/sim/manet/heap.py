"""The compiled clock of a mobile network: binary heaps keyed (time, order), and a small random generator.

What the radio does next, most of which is microseconds away, has a heap of its own: among timers of seconds
it would be sifted through all of them. The next event is the first of the two.

Events of one instant happen in the order in which they were planned, as in `clock.py`. The generator is
SplitMix64: one word of state, seeded from the run's named stream.
"""

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.kernels import hot, inner
from sojourn.sim.manet.state import ATTEMPT, ENQUEUE, LATE, ORDER, OVERFLOW, SOON, Net

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@inner
def _mixed(word: np.uint64) -> float:
    """A number from 0 to below 1 from the generator's word."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    word = word ^ (word >> _S31)
    return float(word >> _S11) * 2.0**-53


@inner
def uniform(state: NDArray[np.uint64]) -> float:
    """A random number from 0 to below 1."""
    state[0] += _GAMMA
    return _mixed(state[0])


@inner
def draw(net: Net) -> float:
    """The next random number of a network."""
    net.run[0].random += _GAMMA
    return _mixed(net.run[0].random)


@inner
def plan(net: Net, time_s: float, kind: int, a: int, b: int, c: int) -> None:
    """Have something happen at a time."""
    which = SOON if ATTEMPT <= kind <= ENQUEUE else LATE
    at = net.run[0].heap_sizes[which]
    if at >= net.heap.shape[1]:
        net.run[0].numbers[OVERFLOW] += 1
        return
    net.run[0].heap_sizes[which] = at + 1
    order = net.run[0].numbers[ORDER]
    net.run[0].numbers[ORDER] = order + 1
    while at > 0:
        above = (at - 1) >> 1
        if net.heap[which, above].time_s <= time_s:
            break  # an equal time was planned before, so its order is lower
        _move(net, which, above, at)
        at = above
    happening = net.heap[which, at]
    happening.time_s, happening.order, happening.kind = time_s, order, kind
    happening.a, happening.b, happening.c = a, b, c


@hot
def _move(net: Net, which: int, source: int, to: int) -> None:
    """Move an entry of a heap; field by field, since whole records are copied byte by byte."""
    there, here = net.heap[which, to], net.heap[which, source]
    there.time_s, there.order, there.kind = here.time_s, here.order, here.kind
    there.a, there.b, there.c = here.a, here.b, here.c


@hot
def next_heap(net: Net) -> int:
    """The heap whose first event is the next; -1 if nothing is planned."""
    sizes = net.run[0].heap_sizes
    if sizes[SOON] == 0:
        return LATE if sizes[LATE] > 0 else -1
    if sizes[LATE] == 0:
        return SOON
    soon, late = net.heap[SOON, 0], net.heap[LATE, 0]
    if soon.time_s < late.time_s or (soon.time_s == late.time_s and soon.order < late.order):
        return SOON
    return LATE


@hot
def drop_first(net: Net, which: int) -> None:
    """Take the first event off a heap; it stands at index 0 until then."""
    size = net.run[0].heap_sizes[which] - 1
    net.run[0].heap_sizes[which] = size
    if size == 0:
        return
    heap, last = net.heap, net.heap[which, size]
    time_s, order = last.time_s, last.order
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size:
            # Which of the two comes first nobody can guess: a sum is quicker than a branch.
            left, right = heap[which, below], heap[which, below + 1]
            tied = right.time_s == left.time_s
            below += (right.time_s < left.time_s) | (tied & (right.order < left.order))
        first = heap[which, below]
        if time_s < first.time_s or (time_s == first.time_s and order < first.order):
            break
        _move(net, which, below, at)
        at = below
    if at != size:
        _move(net, which, size, at)
