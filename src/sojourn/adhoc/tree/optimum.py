"""The tree with the least overhead, found and proved by a mixed-integer programme on HiGHS.

The programme. Two facts make it small:
1. The root forwards everything that anybody else wants, whatever the tree: its overhead is a constant. So a
   neighbour of the root loses nothing by hanging there, and all of them do; parents are to be chosen for the
   `rest` only.
2. Cells that the same nodes of the rest want travel together; they form one group, with one cost a node.

x[i,j] = 1 if i is the parent of j. For each t of the rest, p[t,i,j] is a unit of flow from the root's
neighbours to t over chosen arcs: the path of t. u[t,i], the flow of t out of i, is then 1 if i is an ancestor
of t. A node forwards a group if it is an ancestor of any t that wants it: z[i,g] >= u[t,i]. Minimise the sum
of cost[i,g] z[i,g]; the cost of a cell is f, and r more if node i does not want it itself (section 2.1).

Only x need be integer: a spanning tree fixes all paths. Flows also keep circles out, since a node in a circle
has no path. The relaxation is tight: systems of 30 nodes are mostly proved at the first node of the search.

Rules: pure computation, one thread, no clock of its own; the limit is a number of seconds the solver keeps.
"""

from typing import NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT, AdhocError, require_connected
from sojourn.adhoc.tree.overhead import Costs

GAP = 1e-9
"""Relative distance between tree and bound at which the solver calls a tree optimal."""


class Solved(NamedTuple):
    """What the solver found."""

    overhead: float
    bound: float
    """No tree has less overhead than this."""
    proved: bool
    """Whether the two meet."""
    parents: NDArray[np.int64]
    searched: int
    """Nodes of the search tree; 1 means that the relaxation was enough."""


class _Problem(NamedTuple):
    """The system with its root's neighbours settled."""

    nodes: int
    rest: list[int]
    arcs: list[tuple[int, int]]
    wants: NDArray[np.bool_]
    """By position in `rest` and group."""
    cost: NDArray[np.float64]
    """By node and group: the overhead of forwarding it."""
    constant: float
    """The root's overhead."""


class _Programme:
    """Columns and rows as they are written down."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.integer: list[bool] = []
        self.lows: list[float] = []
        self.highs: list[float] = []
        self.starts = [0]
        self.columns: list[int] = []
        self.values: list[float] = []

    def column(self, cost: float = 0.0, *, integer: bool = False) -> int:
        self.costs.append(cost)
        self.integer.append(integer)
        return len(self.costs) - 1

    def row(self, low: float, high: float, plus: list[int], minus: list[int]) -> None:
        self.lows.append(low)
        self.highs.append(high)
        self.columns += [*plus, *minus]
        self.values += [1.0] * len(plus) + [-1.0] * len(minus)
        self.starts.append(len(self.columns))

    def model(self) -> highspy.HighsLp:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.costs), len(self.lows)
        model.col_cost_ = np.array(self.costs)
        model.col_lower_, model.col_upper_ = np.zeros(len(self.costs)), np.ones(len(self.costs))
        model.row_lower_, model.row_upper_ = np.array(self.lows), np.array(self.highs)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(self.starts)
        model.a_matrix_.index_ = np.array(self.columns)
        model.a_matrix_.value_ = np.array(self.values)
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[integer] for integer in self.integer]
        return model


class _Columns(NamedTuple):
    """Where the variables are."""

    chosen: list[int]
    """x by arc."""
    path: dict[tuple[int, int], int]
    """p by target and arc."""
    forwards: dict[tuple[int, int], int]
    """z by node and group."""


def optimum(
    graph: NDArray[np.bool_],
    interests: Subscriptions,
    costs: Costs,
    *,
    start: NDArray[np.int64] | None = None,
    seconds_max: float = 60.0,
) -> Solved:
    """The best tree of a connected system; `start` is a tree the search may begin with."""
    require_connected(graph)
    if not seconds_max > 0:
        raise AdhocError(f"seconds_max must be above 0, not {seconds_max:g}.")
    problem = _settle(graph, interests, costs)
    parents = np.where(graph[ROOT], ROOT, -1).astype(np.int64)
    if not problem.rest:
        return Solved(problem.constant, problem.constant, proved=True, parents=parents, searched=0)
    programme, columns = _write(problem)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # it ships annotations for some functions only
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("time_limit", float(seconds_max)),
        ("mip_rel_gap", GAP),
        ("mip_abs_gap", GAP),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(programme.model())
    if start is not None:
        begin = highspy.HighsSolution()
        begin.col_value = _as_columns(problem, columns, start, len(programme.costs))
        solver.setSolution(begin)
    solver.run()
    info = solver.getInfo()
    values = np.array(solver.getSolution().col_value)
    if not len(values) or not np.isfinite(info.objective_function_value):
        raise AdhocError(f"no tree was found within {seconds_max:g} s: raise seconds_max or pass a start.")
    for at, (parent, child) in enumerate(problem.arcs):
        if values[columns.chosen[at]] > 0.5:
            parents[child] = parent
    return Solved(
        problem.constant + info.objective_function_value,
        problem.constant + info.mip_dual_bound,
        solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
        parents,
        max(1, int(info.mip_node_count)),
    )


def _settle(graph: NDArray[np.bool_], interests: Subscriptions, costs: Costs) -> _Problem:
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
    return _Problem(nodes, rest, arcs, wants, cost, constant)


def _write(problem: _Problem) -> tuple[_Programme, _Columns]:
    """The programme of the module's text."""
    programme = _Programme()
    chosen = [programme.column(integer=True) for _ in problem.arcs]
    into: dict[int, list[int]] = {node: [] for node in problem.rest}
    out: dict[int, list[int]] = {}
    for at, (parent, child) in enumerate(problem.arcs):
        into[child].append(at)
        out.setdefault(parent, []).append(at)
    forwards = {
        (node, group): programme.column(float(problem.cost[node, group]))
        for node in out
        for group in range(problem.wants.shape[1])
    }
    for node in problem.rest:
        programme.row(1.0, 1.0, [chosen[at] for at in into[node]], [])
    path: dict[tuple[int, int], int] = {}
    for position, target in enumerate(problem.rest):
        for at, (parent, child) in enumerate(problem.arcs):
            if child == target:
                path[target, at] = chosen[at]
            elif parent != target:
                path[target, at] = programme.column()
                programme.row(-np.inf, 0.0, [path[target, at]], [chosen[at]])
        for node in problem.rest:
            if node != target:
                arriving = [path[target, at] for at in into[node] if (target, at) in path]
                leaving = [path[target, at] for at in out.get(node, ()) if (target, at) in path]
                programme.row(0.0, 0.0, arriving, leaving)
        groups = np.flatnonzero(problem.wants[position])
        for node, arcs in out.items():
            leaving = [path[target, at] for at in arcs if (target, at) in path]
            for group in groups if leaving else ():
                programme.row(0.0, np.inf, [forwards[node, int(group)]], leaving)
    return programme, _Columns(chosen, path, forwards)


def _as_columns(
    problem: _Problem, columns: _Columns, parents: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """A tree as values of the variables."""
    values = np.zeros(count)
    number = {arc: at for at, arc in enumerate(problem.arcs)}
    for node in problem.rest:
        values[columns.chosen[number[int(parents[node]), node]]] = 1.0
    for position, target in enumerate(problem.rest):
        groups = np.flatnonzero(problem.wants[position])
        node = target
        while node in problem.rest:
            parent = int(parents[node])
            values[columns.path[target, number[parent, node]]] = 1.0
            for group in groups:
                values[columns.forwards[parent, int(group)]] = 1.0
            if parent not in problem.rest:
                break  # a neighbour of the root: it hangs there in the programme
            node = parent
    return values
