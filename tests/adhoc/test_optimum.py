"""OPT twice: enumeration and the exact solver agree, no tree beats them, and the bound lies below."""

import numpy as np
import pytest

from sojourn.adhoc.tree.bound import lower_bound
from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import AdhocError, neighbours, require_tree
from sojourn.adhoc.tree.cooling import Cooling
from sojourn.adhoc.tree.enumeration import best_of_all
from sojourn.adhoc.tree.optimum import optimum
from sojourn.adhoc.tree.overhead import Costs, tree_overhead
from sojourn.adhoc.tree.turns import overhead_of, rules, system, take_turns
from sojourn.sim.adhoc_layout import Layout, draw_positions, draw_subscriptions
from sojourn.sim.streams import Streams


def _small(seed: int, model: str) -> tuple[np.ndarray, Subscriptions]:
    layout = Layout(
        seed=seed, nodes_per_cluster=3, cluster_distance_m=200, node_distance_m=160, radius_spread_m=40,
        connected_at_m=180, range_m=180, model=model,  # type: ignore[arg-type]  # parametrised
    )  # fmt: skip
    places = draw_positions(layout)
    return neighbours(places, layout.range_m), draw_subscriptions(layout, places)


@pytest.mark.parametrize("model", ["ni-r", "ni-x", "tt"])
@pytest.mark.parametrize("receive", [0.0, 1.0, 0.5])
def test_enumeration_and_solver_agree(model: str, receive: float) -> None:
    """On nine nodes both find the same overhead, the solver with a proof, and a tree that has it."""
    costs = Costs(receive=receive)
    for seed in range(1, 9):
        graph, interests = _small(seed, model)
        given = system(graph, interests, costs)
        every, solved = best_of_all(given), optimum(graph, interests, costs)
        assert solved.proved
        assert solved.overhead == pytest.approx(every.overhead, rel=1e-9)
        assert solved.bound == pytest.approx(solved.overhead, rel=1e-6)
        require_tree(solved.parents, graph)
        assert overhead_of(given, solved.parents) == pytest.approx(every.overhead, rel=1e-9)
        assert lower_bound(graph, interests, costs) <= every.overhead * (1 + 1e-9)


def test_thirty_nodes_are_solved_and_nothing_is_better() -> None:
    """The solver proves the optimum of the paper's system; every algorithm's tree costs at least that."""
    layout = Layout(seed=3)
    places = draw_positions(layout)
    graph, interests = neighbours(places, layout.range_m), draw_subscriptions(layout, places)
    given = system(graph, interests, Costs())
    stream = Streams(3).fresh("turns")
    draws, order = stream.random((30, 30)), stream.permutation(30)
    grown = {
        name: take_turns(given, rules(name, draws), order).parents
        for name in ("random", "nhop", "ovhd", "combo", "path")
    }
    grown["cool"] = take_turns(given, rules("path", draws, cooling=Cooling(50.0, 200, 3)), order).parents
    solved = optimum(graph, interests, Costs(), start=grown["combo"])
    assert solved.proved
    for parents in grown.values():
        require_tree(parents, graph)
        assert overhead_of(given, parents) >= solved.overhead - 1e-6
        exact = tree_overhead(parents.tolist(), interests.sets(), Costs())
        assert overhead_of(given, parents) == exact
    assert overhead_of(given, grown["cool"]) <= overhead_of(given, grown["combo"])
    assert lower_bound(graph, interests, Costs()) <= solved.overhead


def test_limits_are_sentences() -> None:
    """Too many trees, no time and no route are refused."""
    everybody = np.ones((14, 14), dtype=bool)
    np.fill_diagonal(everybody, val=False)
    nothing = Subscriptions(np.zeros((14, 0), dtype=bool), np.zeros(0))
    with pytest.raises(AdhocError, match="too many to enumerate"):
        best_of_all(system(everybody, nothing, Costs()))
    with pytest.raises(AdhocError, match="seconds_max must be above 0"):
        optimum(everybody, nothing, Costs(), seconds_max=0)
    alone = np.zeros((3, 3), dtype=bool)
    three = Subscriptions(np.zeros((3, 0), dtype=bool), np.zeros(0))
    for solve in (lambda: optimum(alone, three, Costs()), lambda: best_of_all(system(alone, three, Costs()))):
        with pytest.raises(AdhocError, match="not connected"):
            solve()
    assert optimum(everybody, nothing, Costs()).overhead == 0
