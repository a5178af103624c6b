"""The tree with the least overhead, found and proved by branch and bound over linear programmes on HiGHS.

A step takes a set of arcs that are still allowed, solves the programme of `programme.py` with the others
ruled out, and gets two things from it: prices, from which a lower bound on all trees of these arcs is worked
out here, and shares by arc, along which a tree is grown and its overhead counted. If the bound reaches the
best tree known, no better one is among these arcs; otherwise the arc on which most hangs and the programme is
least decided is demanded in one half and ruled out in the other. Nothing rests on the solver's word: neither
its status, nor its objective, nor its search for integers, whose presolve was seen to cut off optimal trees
(versions 1.12 to 1.15.1, on programmes of a hundred columns). A tree counts as optimal only if our bound
meets our count.

The relaxation is tight: of systems of 30 nodes most are proved by the first programme.

Rules: pure computation, one thread, no clock of its own; the limit is a number of seconds the solver keeps.
"""

import heapq
from typing import NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT, require_connected, require_tree
from sojourn.adhoc.tree.overhead import Costs
from sojourn.adhoc.tree.programme import Floats, Problem, Programme, settle, write

GAP = 1e-7
"""Relative distance between tree and bound below which a tree is called optimal; rounding makes 1e-12."""

Allowed = NDArray[np.bool_]
"""By arc: whether it may be used."""


class Solved(NamedTuple):
    """What was found."""

    overhead: float
    bound: float
    """No tree has less overhead than this, but for rounding."""
    proved: bool
    """Whether the two meet."""
    parents: NDArray[np.int64]
    searched: int
    """Linear programmes solved; 1 means that the first relaxation was enough."""

    @property
    def gap(self) -> float:
        """How far the tree may be above the optimum at most, as a share of the bound."""
        return self.overhead / self.bound - 1 if self.bound > 0 else 0.0


def optimum(
    graph: NDArray[np.bool_],
    interests: Subscriptions,
    costs: Costs,
    *,
    start: NDArray[np.int64] | None = None,
    seconds_max: float = 60.0,
) -> Solved:
    """The best tree of a connected system; `start` is a tree that it need not be worse than.

    When time runs out the best tree so far comes back with a bound below it, and is not called proved.
    """
    require_connected(graph)
    if not seconds_max > 0:
        raise AdhocError(f"seconds_max must be above 0, not {seconds_max:g}.")
    problem = settle(graph, interests, costs)
    parents = np.where(graph[ROOT], ROOT, -1).astype(np.int64)
    if not problem.rest:
        return Solved(problem.constant, problem.constant, proved=True, parents=parents, searched=0)
    search = _Search(problem, parents, seconds_max)
    if start is not None:
        require_tree(start, graph)
        search.consider(np.where(graph[ROOT], ROOT, start))
    return search.run()


class _Search:
    """Branch and bound, the most promising set of arcs first."""

    def __init__(self, problem: Problem, parents: NDArray[np.int64], seconds_max: float) -> None:
        self._problem = problem
        self._settled = parents
        self._programme = write(problem)
        self._solver = _Relaxation(self._programme, seconds_max)
        self._child = np.array([child for _, child in problem.arcs])
        self._best = np.inf
        self._parents = parents
        self._searched = 0

    def consider(self, parents: NDArray[np.int64]) -> None:
        """Keep a tree if it is better than the best known."""
        overhead = self._problem.overhead(parents)
        if overhead < self._best:
            self._best, self._parents = overhead, parents.astype(np.int64)

    def run(self) -> Solved:
        everything = np.ones(len(self._problem.arcs), dtype=bool)
        # All costs are at least 0, so the root's overhead is a bound to begin with.
        waiting: list[tuple[float, int, Allowed]] = [(self._problem.constant, 0, everything)]
        closed = np.inf
        number = 0
        while waiting and not self._solver.out_of_time:
            bound, _, allowed = heapq.heappop(waiting)
            if self._beaten(bound):
                closed = min(closed, bound)
                continue
            bound, doubts = self._relax(allowed, bound)
            if self._beaten(bound):
                closed = min(closed, bound)
                continue
            for part in self._split(allowed, doubts):
                number += 1
                heapq.heappush(waiting, (bound, number, part))
        bound = min(self._best, closed, *(entry[0] for entry in waiting))
        return Solved(self._best, bound, self._beaten(bound), self._parents, self._searched)

    def _beaten(self, bound: float) -> bool:
        return bound >= self._best - GAP * max(1.0, abs(self._best))

    def _relax(self, allowed: Allowed, known: float) -> tuple[float, Floats]:
        """A bound on all trees of the allowed arcs, and how much hangs on each arc that is undecided."""
        uppers = np.ones(len(self._programme.costs))
        uppers[self._programme.chosen[~allowed]] = 0.0
        prices, values = self._solver.solve(uppers)
        self._searched += 1
        bound = self._problem.constant + self._programme.bound(prices, uppers)
        shares = np.where(allowed, values[self._programme.chosen], -1.0)
        self.consider(self._grow(shares))
        # An arc with half a share that carries the paths of many decides more than one to a leaf.
        on_paths = self._programme.carries >= 0
        carried = np.bincount(
            self._programme.carries[on_paths], weights=values[on_paths], minlength=len(shares)
        )
        return max(known, bound), np.minimum(shares, 1 - shares) * (1 + carried)

    def _grow(self, shares: Floats) -> NDArray[np.int64]:
        """A tree of allowed arcs, along the greatest shares from what already hangs below the root."""
        parents = self._settled.copy()
        order = np.argsort(-shares, kind="stable")
        left = set(self._problem.rest)
        while left:
            for at in order:
                parent, child = self._problem.arcs[at]
                if child in left and parent not in left and shares[at] >= 0:
                    parents[child] = parent
                    left.remove(child)
                    break
            else:
                raise AssertionError("only arcs are searched that reach everybody")
        return parents

    def _split(self, allowed: Allowed, doubts: Floats) -> list[Allowed]:
        """The same arcs with one of them demanded, and without it; only parts that reach everybody."""
        choices = np.bincount(self._child[allowed], minlength=self._problem.nodes)
        open_arcs = np.flatnonzero(allowed & (choices[self._child] > 1))
        if not len(open_arcs):
            return []  # a single tree, which was counted
        arc = int(open_arcs[np.argmax(doubts[open_arcs])])
        demanded, without = allowed.copy(), allowed.copy()
        demanded[self._child == self._child[arc]] = False
        demanded[arc] = True
        without[arc] = False
        return [part for part in (demanded, without) if self._reaches_everybody(part)]

    def _reaches_everybody(self, allowed: Allowed) -> bool:
        left = set(self._problem.rest)
        arcs = [self._problem.arcs[at] for at in np.flatnonzero(allowed)]
        grown = True
        while left and grown:
            grown = False
            for parent, child in arcs:
                if child in left and parent not in left:
                    left.remove(child)
                    grown = True
        return not left


class _Relaxation:
    """The programme in HiGHS; upper bounds change from one question to the next."""

    def __init__(self, programme: Programme, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._columns = np.arange(len(programme.costs), dtype=np.int32)
        self._rows = len(programme.lows)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(programme.costs), len(programme.lows)
        model.col_cost_ = programme.costs
        model.col_lower_, model.col_upper_ = np.zeros(len(programme.costs)), np.ones(len(programme.costs))
        model.row_lower_, model.row_upper_ = programme.lows, programme.highs
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = programme.starts
        model.a_matrix_.index_ = programme.columns
        model.a_matrix_.value_ = programme.values
        self._solver = highspy.Highs()  # type: ignore[no-untyped-call]  # it annotates some functions only
        self._solver.setOptionValue("output_flag", False)  # noqa: FBT003  the solver's own signature
        self._solver.setOptionValue("threads", 1)
        self._solver.setOptionValue("time_limit", float(seconds_max))
        self._solver.passModel(model)

    @property
    def out_of_time(self) -> bool:
        """Whether the seconds are used up."""
        return float(self._solver.getRunTime()) >= self._seconds_max

    def solve(self, uppers: Floats) -> tuple[Floats, Floats]:
        """Prices by row and values by column, as good as they got; zeros where the solver has none."""
        count = len(self._columns)
        self._solver.changeColsBounds(count, self._columns, np.zeros(count), uppers)
        self._solver.run()
        found = self._solver.getSolution()
        prices, values = np.array(found.row_dual), np.array(found.col_value)
        return (
            prices if len(prices) == self._rows and np.isfinite(prices).all() else np.zeros(self._rows),
            values if len(values) == count and np.isfinite(values).all() else np.zeros(count),
        )
