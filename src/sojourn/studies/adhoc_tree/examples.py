"""The four worked examples of paper 002, computed by the code that ships."""

from typing import NamedTuple

from sojourn.adhoc.tree.metrics import Candidate, Station, combo
from sojourn.adhoc.tree.overhead import Costs, tree_overhead
from sojourn.interest.measure import MeasuredSet


class Example(NamedTuple):
    """A number the paper works out, and ours."""

    name: str
    paper: float
    ours: float


def examples() -> list[Example]:
    """Examples 1 to 4: overheads of Figure 2, metrics and overheads of Figure 4 (the root is node 0 here)."""
    nothing, every, half = MeasuredSet(), MeasuredSet.of([(0, 10)]), MeasuredSet.of([(0, 5)])
    one, two = MeasuredSet.of([(0, 1)]), MeasuredSet.of([(1, 2)])
    costs = Costs()

    def metrics(third: MeasuredSet) -> tuple[float, float]:
        root = Station(nothing, every)
        by_3 = Candidate(2, (Station(third, nothing), Station(every, third), root), 0.0)
        by_5 = Candidate(4, (Station(half, nothing), root), 0.0)
        return combo(by_3, every, costs), combo(by_5, every, costs)

    third_3, third_5 = metrics(nothing)
    fourth_3, fourth_5 = metrics(every)
    five = [nothing, every, every, every, half]
    return [
        Example(
            "example 2, both below the root", 4, float(tree_overhead([-1, 0, 0], [nothing, one, two], costs))
        ),
        Example(
            "example 2, one below the other", 6, float(tree_overhead([-1, 0, 1], [nothing, one, two], costs))
        ),
        Example("example 3, metric of node 3", 40, third_3),
        Example("example 3, metric of node 5", 15, third_5),
        Example("example 4, metric of node 3", 20, fourth_3),
        Example("example 4, metric of node 5", 15, fourth_5),
        Example("example 4, tree a", 45, float(tree_overhead([-1, 0, 1, 4, 0], five, costs))),
        Example("example 4, tree b", 40, float(tree_overhead([-1, 0, 1, 2, 0], five, costs))),
    ]
