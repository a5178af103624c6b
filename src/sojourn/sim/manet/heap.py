"""The compiled clock of a mobile network: a binary heap keyed (time, order), and a small random generator.

Events of one instant happen in the order in which they were planned, as in `clock.py`. The generator is
SplitMix64: one word of state, seeded from the run's named stream.
"""

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.kernels import hot, inner
from sojourn.sim.manet.state import HEAP_SIZE, ORDER, OVERFLOW, Net

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
    heap = net.heap
    at = net.run[0].numbers[HEAP_SIZE]
    if at >= len(heap):
        net.run[0].numbers[OVERFLOW] += 1
        return
    net.run[0].numbers[HEAP_SIZE] = at + 1
    order = net.run[0].numbers[ORDER]
    net.run[0].numbers[ORDER] = order + 1
    while at > 0:
        above = (at - 1) >> 1
        if heap[above].time_s <= time_s:
            break  # an equal time was planned before, so its order is lower
        _move(net, above, at)
        at = above
    happening = heap[at]
    happening.time_s, happening.order, happening.kind = time_s, order, kind
    happening.a, happening.b, happening.c = a, b, c


@hot
def _move(net: Net, source: int, to: int) -> None:
    """Move an entry of the heap; field by field, since whole records are copied byte by byte."""
    there, here = net.heap[to], net.heap[source]
    there.time_s, there.order, there.kind = here.time_s, here.order, here.kind
    there.a, there.b, there.c = here.a, here.b, here.c


@hot
def drop_first(net: Net) -> None:
    """Take the first event off the heap; it stands at index 0 until then."""
    heap = net.heap
    size = net.run[0].numbers[HEAP_SIZE] - 1
    net.run[0].numbers[HEAP_SIZE] = size
    if size == 0:
        return
    time_s, order = heap[size].time_s, heap[size].order
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size:
            # Which of the two comes first nobody can guess: a sum is quicker than a branch.
            sooner = heap[right].time_s < heap[below].time_s
            tied = heap[right].time_s == heap[below].time_s
            below += sooner | (tied & (heap[right].order < heap[below].order))
        if time_s < heap[below].time_s or (time_s == heap[below].time_s and order < heap[below].order):
            break
        _move(net, below, at)
        at = below
    if at != size:
        _move(net, size, at)
