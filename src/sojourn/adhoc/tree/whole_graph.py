"""SHOPPARENT on a whole graph at once: nodes take turns until nobody switches any more (section 5), compiled.

A turn of node i: i leaves its parent in thought, so that every neighbour is judged without it (the O^-i of
section 3.2), compares the metric of each neighbour that still has a route to the root, and joins the best. It
stays with its parent unless another is strictly better. The paper does not say what happens between equals:
here the fewer hops win, since every hop is a node that forwards, and then a draw for that pair, in place of
whose answer came first; `ties_by_hops=False` leaves it to the draw alone. RANDOM chooses once, when it joins.
A node that no joined neighbour can hear waits for a later round.

The message-level core of `node.py` takes the same turns to the same trees; a test holds them together.
Randomness comes in as arrays. Sets are words of 64 cells; the measure of a word is eight looked-up sums.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.tree.cells import WORD_BITS, Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT
from sojourn.adhoc.tree.cooling import COLD, Cooling, handicap
from sojourn.adhoc.tree.overhead import Costs
from sojourn.interest.index.compiling import compiled

NHOP, OVHD, COMBO, RANDOM, COMBO_ERR, COMBO_ERR_FLOOR, PATH = range(7)
CODES = {
    "nhop": NHOP,
    "ovhd": OVHD,
    "combo": COMBO,
    "random": RANDOM,
    "comboerr": COMBO_ERR,
    "comboerr-floor": COMBO_ERR_FLOOR,
    "path": PATH,
}

ROUNDS_MAX = 100
"""Rounds after which a tree that still changes is taken as it is and counted as unsettled."""

_BYTES = 8

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]
"""Sets: a row of words by node, or one such row."""


class System(NamedTuple):
    """A graph with its interests, as compiled code wants them."""

    starts: NDArray[np.int64]
    """Neighbours of node i are others[starts[i]:starts[i + 1]]."""
    others: NDArray[np.int64]
    words: NDArray[np.uint64]
    """By node: its inherent subscription."""
    sums: NDArray[np.float64]
    """By byte of a set and value of that byte: the weight of its cells."""
    receive: float
    forward: float


class Rules(NamedTuple):
    """How nodes choose."""

    code: int
    ties_by_hops: bool
    draws: NDArray[np.float64]
    errors: NDArray[np.float64]
    cooling: Cooling


class Grown(NamedTuple):
    """A tree that nodes took turns to build."""

    parents: NDArray[np.int64]
    rounds: int
    settled: bool
    """Whether a whole round went by without a switch."""


def system(graph: NDArray[np.bool_], interests: Subscriptions, costs: Costs) -> System:
    """Pack a graph and its interests."""
    starts = np.concatenate(([0], np.cumsum(graph.sum(axis=1)))).astype(np.int64)
    cells = interests.member.shape[1]
    count = max(1, -(-cells // WORD_BITS))
    padded = np.zeros((len(graph), count * WORD_BITS), dtype=np.uint8)
    padded[:, :cells] = interests.member
    words = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    weights = np.zeros((count * _BYTES, 8))
    weights.reshape(-1)[:cells] = interests.weights
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return System(
        starts,
        np.nonzero(graph)[1].astype(np.int64),
        np.ascontiguousarray(words),
        np.ascontiguousarray(weights @ bits.T.astype(np.float64)),
        float(costs.receive),
        float(costs.forward),
    )


NO_ERRORS: NDArray[np.float64] = np.zeros((1, 2, 1, 1))


def rules(
    metric: str,
    draws: NDArray[np.float64],
    *,
    errors: NDArray[np.float64] = NO_ERRORS,
    ties_by_hops: bool = True,
    cooling: Cooling = COLD,
) -> Rules:
    """How nodes choose by a metric.

    `draws[i, k]` tells equals apart when i shops, and is all that RANDOM looks at. `errors[round, which, i,
    k]` is the relative error in O^+i_k and O^-i_k (section 5.5); after the last round the first comes again.
    """
    return Rules(CODES[metric], ties_by_hops, draws, errors, cooling)


def take_turns(
    given: System,
    chosen: Rules,
    order: NDArray[np.int64],
    *,
    rounds_max: int = ROUNDS_MAX,
    start: NDArray[np.int64] | None = None,
) -> Grown:
    """Build a tree: every round the nodes of `order` take their turns; `start` is a tree to begin from."""
    parents = np.full(len(given.starts) - 1, -1, dtype=np.int64) if start is None else start.copy()
    rounds, settled = _take_turns(given, chosen, order, parents, rounds_max + chosen.cooling.rounds)
    return Grown(parents, int(rounds), bool(settled))


def overhead_of(given: System, parents: NDArray[np.int64]) -> float:
    """The overhead of a tree (section 2.1)."""
    return float(_tree_overhead(given, parents))


@compiled
def _measure(sums: Floats, word: np.uint64, at: int) -> float:
    """The weight of one word of a set, the `at`-th."""
    total = 0.0
    row = at * 8
    while word != 0:
        total += sums[row, word & np.uint64(255)]
        word >>= np.uint64(8)
        row += 1
    return total


@compiled
def _refresh(words: Words, proxied: Words, parents: Ints, start: int) -> None:
    """Work out again what a node and its ancestors proxy, after a child was lost."""
    node = start
    while node >= 0:
        for at in range(words.shape[1]):
            proxied[node, at] = 0
        for child in range(words.shape[0]):
            if parents[child] == node:
                for at in range(words.shape[1]):
                    proxied[node, at] |= words[child, at] | proxied[child, at]
        node = parents[node]


@compiled
def spread(words: Words, proxied: Words, parents: Ints, child: int) -> None:
    """Add what a new child asks for to its ancestors."""
    below, node = child, parents[child]
    while node >= 0:
        for at in range(words.shape[1]):
            proxied[node, at] |= words[below, at] | proxied[below, at]
        below, node = node, parents[node]


@compiled
def _hops(parents: Ints, node: int) -> int:
    """The distance to the root, or -1 without a route."""
    hops = 0
    while node != 0:
        node = parents[node]
        if node < 0:
            return -1
        hops += 1
    return hops


@compiled
def node_overhead_of(given: System, node: int, proxied: Words) -> float:
    """O_node (section 2.1)."""
    total = 0.0
    for at in range(given.words.shape[1]):
        alien = proxied[node, at] & ~given.words[node, at]
        shared = proxied[node, at] & given.words[node, at]
        total += (given.receive + given.forward) * _measure(given.sums, alien, at)
        total += given.forward * _measure(given.sums, shared, at)
    return total


@compiled
def _increase(given: System, proxied: Words, node: int, asked: Words) -> float:
    """How much O_node grows when `asked` joins below it."""
    total = 0.0
    for at in range(given.words.shape[1]):
        new = asked[at] & ~proxied[node, at]
        total += (given.receive + given.forward) * _measure(given.sums, new & ~given.words[node, at], at)
        total += given.forward * _measure(given.sums, new & given.words[node, at], at)
    return total


@compiled
def _path_increase(given: System, proxied: Words, parents: Ints, node: int, asked: Words) -> float:
    """How much the whole tree's overhead grows: the same over every ancestor."""
    rest = asked.copy()
    total = 0.0
    while node >= 0:
        total += _increase(given, proxied, node, rest)
        left = False
        for at in range(given.words.shape[1]):
            rest[at] &= ~(given.words[node, at] | proxied[node, at])
            left = left or rest[at] != 0
        if not left:
            break
        node = parents[node]
    return total


@compiled
def _metric(
    given: System,
    chosen: Rules,
    proxied: Words,
    parents: Ints,
    node: int,
    hops: int,
    asked: Words,
    errors: Floats,
) -> float:
    """The routing metric of a candidate; `errors` are those of this shopper and candidate."""
    if chosen.code == NHOP:
        return float(hops)
    if chosen.code == PATH:
        return _path_increase(given, proxied, parents, node, asked)
    grown = _increase(given, proxied, node, asked)
    if chosen.code == OVHD:
        return grown
    if chosen.code in (COMBO_ERR, COMBO_ERR_FLOOR):
        without = node_overhead_of(given, node, proxied)
        grown = (without + grown) * (1 + errors[0]) - without * (1 + errors[1])
        if chosen.code == COMBO_ERR_FLOOR:
            grown = max(0.0, grown)
    return grown * hops


@compiled
def _shop(
    given: System, chosen: Rules, proxied: Words, parents: Ints, node: int, before: int, round_number: int
) -> int:
    """The best parent of a node that hangs nowhere; `before` if none is strictly better."""
    asked = given.words[node] | proxied[node]
    errors = np.zeros(2)
    best, best_value, best_hops = -1, 0.0, 0
    stay_value, stay_hops = 0.0, 0
    for at in range(given.starts[node], given.starts[node + 1]):
        other = given.others[at]
        hops = _hops(parents, other)
        if hops < 0:
            continue
        draw = chosen.draws[node, other]
        if chosen.code == RANDOM:
            value = draw
        else:
            if chosen.code in (COMBO_ERR, COMBO_ERR_FLOOR):
                layer = round_number % len(chosen.errors)
                errors[0], errors[1] = (
                    chosen.errors[layer, 0, node, other],
                    chosen.errors[layer, 1, node, other],
                )
            value = _metric(given, chosen, proxied, parents, other, hops, asked, errors)
            value += handicap(chosen.cooling, round_number, node, other)
        counted = hops if chosen.ties_by_hops else 0
        if other == before:
            stay_value, stay_hops = value, counted
        better = value < best_value or (value == best_value and counted < best_hops)
        equal = value == best_value and counted == best_hops
        if best < 0 or better or (equal and draw < chosen.draws[node, best]):
            best, best_value, best_hops = other, value, counted
    strictly = best_value < stay_value or (best_value == stay_value and best_hops < stay_hops)
    return best if before < 0 or strictly else before


@compiled
def _turn(given: System, chosen: Rules, proxied: Words, parents: Ints, node: int, round_number: int) -> bool:
    """One node takes its turn; says whether its parent changed."""
    before = parents[node]
    if chosen.code == RANDOM and before >= 0:
        return False
    parents[node] = -1
    if before >= 0:
        _refresh(given.words, proxied, parents, before)
    best = _shop(given, chosen, proxied, parents, node, before, round_number)
    parents[node] = best
    if best >= 0:
        spread(given.words, proxied, parents, node)
    return bool(best != before)


@compiled
def _take_turns(
    given: System, chosen: Rules, order: Ints, parents: Ints, rounds_max: int
) -> tuple[int, bool]:
    proxied = np.zeros_like(given.words)
    for node in range(1, len(parents)):
        if parents[node] >= 0:
            spread(given.words, proxied, parents, node)
    for round_number in range(rounds_max):
        changed = False
        for node in order:
            if node != 0 and _turn(given, chosen, proxied, parents, node, round_number):
                changed = True
        if not changed and round_number >= chosen.cooling.rounds:
            return round_number + 1, True
    return rounds_max, False


@compiled
def _tree_overhead(given: System, parents: Ints) -> float:
    proxied = np.zeros_like(given.words)
    for node in range(1, len(parents)):
        spread(given.words, proxied, parents, node)
    total = 0.0
    for node in range(len(parents)):
        total += node_overhead_of(given, node, proxied)
    return total


assert ROOT == 0, "the compiled code knows the root as 0"
