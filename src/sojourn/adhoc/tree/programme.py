"""The search for the best tree as a linear programme, and bounds that hold whatever a solver says.

Two facts make it small:
1. The root forwards everything that anybody else wants, whatever the tree: its overhead is a constant. So a
   neighbour of the root loses nothing by hanging there, and all of them do; parents are to be chosen for the
   `rest` only.
2. Cells that the same nodes of the rest want travel together; they form one group, with one cost a node.

x[i,j] = 1 if i is the parent of j. For each t of the rest, p[t,i,j] is a unit of flow from the root's
neighbours to t over chosen arcs: the path of t. u[t,i], the flow of t out of i, is then 1 if i is an ancestor
of t. A node forwards a group if it is an ancestor of any t that wants it: z[i,g] >= u[t,i]. Minimise the sum
of cost[i,g] z[i,g]; the cost of a cell is f, and r more if node i does not want it itself (section 2.1).

Every spanning tree is a point of this programme with x of zeros and ones, and costs there what it costs.

Bounds. All variables lie between 0 and 1 (or 0 where an arc is ruled out). By weak duality any prices y on
the rows give a lower bound, y·b + Σ min(0, c - yA); optimal prices give the best one, wrong ones a poor one,
never a false one. So a solver is asked for prices and is not believed about anything else.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT
from sojourn.adhoc.tree.overhead import Costs

Floats = NDArray[np.float64]


class Problem(NamedTuple):
    """The system with its root's neighbours settled."""

    nodes: int
    rest: list[int]
    arcs: list[tuple[int, int]]
    """Parent and child."""
    wants: NDArray[np.bool_]
    """By position in `rest` and group."""
    cost: Floats
    """By node and group: the overhead of forwarding it."""
    constant: float
    """The root's overhead."""

    def overhead(self, parents: NDArray[np.int64]) -> float:
        """The overhead of the tree in which the rest have these parents and all others hang at the root."""
        forwards = np.zeros(self.cost.shape, dtype=bool)
        waiting = set(self.rest)
        for position, target in enumerate(self.rest):
            node = target
            while node in waiting:
                node = int(parents[node])
                forwards[node] |= self.wants[position]
        return self.constant + float(self.cost[forwards].sum())


class Programme(NamedTuple):
    """Minimise costs·v with lows <= A v <= highs and 0 <= v <= 1; A by rows."""

    costs: Floats
    lows: Floats
    highs: Floats
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Floats
    chosen: NDArray[np.int64]
    """The column of x by arc."""
    carries: NDArray[np.int64]
    """By column of a path: the arc it goes over; -1 by any other column."""

    def bound(self, prices: Floats, uppers: Floats) -> float:
        """What no point of the programme with these upper bounds costs less than."""
        # A price of the wrong sign on a row that is open on that side would promise infinity; 0 promises 0.
        usable = np.where(np.isfinite(self.lows), prices, np.minimum(prices, 0.0))
        usable = np.where(np.isfinite(self.highs), usable, np.maximum(usable, 0.0))
        sides = np.where(usable > 0, self.lows, self.highs)
        from_rows = float((usable[usable != 0] * sides[usable != 0]).sum())
        paid = np.bincount(
            self.columns,
            weights=self.values * np.repeat(usable, np.diff(self.starts)),
            minlength=len(self.costs),
        )
        return from_rows + float((np.minimum(self.costs - paid, 0.0) * uppers).sum())


def settle(graph: NDArray[np.bool_], interests: Subscriptions, costs: Costs) -> Problem:
    """Hang the root's neighbours at the root, and group what travels together."""
    nodes = len(graph)
    rest = [node for node in range(1, nodes) if not graph[ROOT, node]]
    member, weights = interests.member, interests.weights
    each = weights * (costs.forward + costs.receive * ~member)
    constant = float(each[ROOT][member[1:].any(axis=0)].sum())
    wanted = member[rest].any(axis=0)
    wants, which = np.unique(member[rest][:, wanted], axis=1, return_inverse=True)
    cost = np.zeros((nodes, wants.shape[1]))
    np.add.at(cost.T, which.reshape(-1), each[:, wanted].T)
    arcs = [(int(parent), node) for node in rest for parent in np.flatnonzero(graph[node])]
    return Problem(nodes, rest, arcs, wants, cost, constant)


class _Draft:
    """Columns and rows as they are written down."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.carries: list[int] = []
        self.lows: list[float] = []
        self.highs: list[float] = []
        self.starts = [0]
        self.columns: list[int] = []
        self.values: list[float] = []

    def column(self, cost: float = 0.0, carries: int = -1) -> int:
        self.costs.append(cost)
        self.carries.append(carries)
        return len(self.costs) - 1

    def row(self, low: float, high: float, plus: list[int], minus: list[int]) -> None:
        self.lows.append(low)
        self.highs.append(high)
        self.columns += [*plus, *minus]
        self.values += [1.0] * len(plus) + [-1.0] * len(minus)
        self.starts.append(len(self.columns))


def write(problem: Problem) -> Programme:
    """The programme of the module's text."""
    draft = _Draft()
    chosen = [draft.column() for _ in problem.arcs]
    into: dict[int, list[int]] = {node: [] for node in problem.rest}
    out: dict[int, list[int]] = {}
    for at, (parent, child) in enumerate(problem.arcs):
        into[child].append(at)
        out.setdefault(parent, []).append(at)
    forwards = {
        (node, group): draft.column(float(problem.cost[node, group]))
        for node in out
        for group in range(problem.wants.shape[1])
    }
    for node in problem.rest:
        draft.row(1.0, 1.0, [chosen[at] for at in into[node]], [])
    for position, target in enumerate(problem.rest):
        path: dict[int, int] = {}
        for at, (parent, child) in enumerate(problem.arcs):
            if child == target:
                path[at] = chosen[at]
            elif parent != target:
                path[at] = draft.column(carries=at)
                draft.row(-np.inf, 0.0, [path[at]], [chosen[at]])
        for node in problem.rest:
            if node != target:
                arriving = [path[at] for at in into[node] if at in path]
                leaving = [path[at] for at in out.get(node, ()) if at in path]
                draft.row(0.0, 0.0, arriving, leaving)
        groups = np.flatnonzero(problem.wants[position])
        for node, arcs in out.items():
            leaving = [path[at] for at in arcs if at in path]
            for group in groups if leaving else ():
                draft.row(0.0, np.inf, [forwards[node, int(group)]], leaving)
    return Programme(
        np.array(draft.costs),
        np.array(draft.lows),
        np.array(draft.highs),
        np.array(draft.starts, dtype=np.int64),
        np.array(draft.columns, dtype=np.int64),
        np.array(draft.values),
        np.array(chosen, dtype=np.int64),
        np.array(draft.carries, dtype=np.int64),
    )
