"""What one task of the study does: a specification, and the function that carries it out.

A run of kind `lines` evaluates a block of layouts with several algorithms on the graph level; `small`,
`exact` and `large` hold them to the optimum or a bound; `move` and `roam` run the message-level protocol;
`shared` lets several nodes publish. Values by layout come back as JSON text, since a point's mean, its
interval and its worst case are all wanted later.

The measures here are for plain processes. On Spark tasks record facts (`recording.py`) and measures are
computed from those (`measuring.py`); `tests/studies/test_facts.py` holds the two to the same numbers.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.tree.bound import lower_bound
from sojourn.adhoc.tree.cells import Subscriptions
from sojourn.adhoc.tree.connectivity import ROOT, neighbours
from sojourn.adhoc.tree.cooling import COLD, Cooling
from sojourn.adhoc.tree.enumeration import best_of_all
from sojourn.adhoc.tree.node import Choosing, Timing
from sojourn.adhoc.tree.optimum import optimum
from sojourn.adhoc.tree.overhead import Costs
from sojourn.adhoc.tree.whole_graph import NO_ERRORS, System, overhead_of, rules, system, take_turns
from sojourn.sim.adhoc.layout import Layout, draw_positions, draw_subscriptions
from sojourn.sim.adhoc.mobility import Moved, Roaming, move_one, roam
from sojourn.sim.adhoc.world import AdhocWorld
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams
from sojourn.studies.adhoc_tree import parameters
from sojourn.studies.runner import Row

DISAGREEMENT = 1e-6
"""Optima further apart than this are not the same: all lengths are multiples of 1.5e-5."""

Kind = Literal["lines", "small", "exact", "large", "move", "roam", "shared"]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All it takes to repeat one task."""

    kind: Kind
    layout: Layout
    """Its seed is the first one; the others follow."""
    layouts: int = 1
    metrics: tuple[str, ...] = ()
    """Algorithms: the metrics of `adhoc.tree`; `cool` for the improved one, `cool-long` for the same with
    more patience; `comboerr-fresh` with new errors
    at every turn, `comboerr-one` with the same error in both overheads; and with `-draw` behind it a metric
    whose ties a draw breaks."""
    # The study's constants are part of the specification: results of other constants are other results.
    orders: int = parameters.ORDERS
    cooling_heat: float = parameters.COOLING_HEAT
    cooling_rounds: int = parameters.COOLING_ROUNDS
    cooling_long: int = parameters.COOLING_LONG
    fresh_layers: int = parameters.FRESH_LAYERS
    publishers: int = parameters.PUBLISHERS
    receive: float = 1.0
    error: float = 0.0
    """Standard deviation of the error in COMBOerr."""
    timeout_s: float = 3.5
    news_at_once: bool = True
    """Whether nodes tell of changes at once, or with their next beacon."""
    solver_s: float = parameters.SOLVER_SECONDS
    """The exact solver's limit for one system."""
    roaming: Roaming | None = None
    picture: bool = False
    """Whether a move is to be drawn."""


def simulate(spec_json: str) -> Row:
    """Carry out one task and return its numbers."""
    run = msgspec.json.decode(spec_json, type=Run)
    return KINDS[run.kind](run)


def layouts_of(run: Run) -> Iterable[Layout]:
    """The layouts of a task, by ascending seed."""
    return (
        msgspec.structs.replace(run.layout, seed=run.layout.seed + further) for further in range(run.layouts)
    )


# ------------------------------------------------------------------------------ graph level


class Drawn:
    """One drawn system and what algorithms make of it."""

    def __init__(self, layout: Layout, run: Run) -> None:
        self.layout, self.run = layout, run
        self.places = draw_positions(layout)
        self.graph = neighbours(self.places, layout.range_m)
        self.interests = draw_subscriptions(layout, self.places)
        self.costs = Costs(receive=run.receive)
        self.given: System = system(self.graph, self.interests, self.costs)
        self.best: tuple[float, NDArray[np.int64]] | None = None
        self.unsettled = 0

    def overheads(self, name: str) -> list[float]:
        """An algorithm's overhead in each of several random orders of turns."""
        return [self._grow(name, order) for order in range(self.run.orders)]

    def _grow(self, name: str, number: int) -> float:
        stream = Streams(self.layout.seed).fresh("turns", number)
        nodes = len(self.places)
        order, draws = stream.permutation(nodes), stream.random((nodes, nodes))
        metric = name.removesuffix("-draw")
        cooling, errors, rounds_max = COLD, NO_ERRORS, 100
        if metric.startswith("cool"):
            heat = self.run.cooling_heat * (1 + self.run.receive) * self.layout.length
            rounds = self.run.cooling_long if metric == "cool-long" else self.run.cooling_rounds
            metric, cooling = "path", Cooling(heat, rounds, number)
        elif metric.startswith("comboerr"):
            fresh, one = metric == "comboerr-fresh", metric == "comboerr-one"
            metric = metric if metric == "comboerr-floor" else "comboerr"
            layers = self.run.fresh_layers if fresh else 1
            errors = stream.normal(0, self.run.error, (layers, 2, nodes, nodes))
            if one:
                errors[:, 1] = errors[:, 0]
            rounds_max = layers if fresh else rounds_max
        chosen = rules(metric, draws, errors=errors, ties_by_hops=not name.endswith("-draw"), cooling=cooling)
        grown = take_turns(self.given, chosen, order, rounds_max=rounds_max)
        overhead = overhead_of(self.given, grown.parents)
        self.unsettled += not grown.settled
        if self.best is None or overhead < self.best[0]:
            self.best = (overhead, grown.parents)
        return overhead


def _lines(run: Run) -> Row:
    """Mean overhead by algorithm and layout."""
    values: dict[str, list[float]] = {name: [] for name in run.metrics}
    degrees, overlaps, variations = [], [], []
    unsettled = dict.fromkeys(run.metrics, 0)
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        degrees.append(float(drawn.graph.sum(axis=1).mean()))
        overlaps.append(overlap(drawn.interests))
        variations.append(variation(drawn.graph, drawn.interests))
        for name in run.metrics:
            drawn.unsettled = 0
            values[name].append(float(np.mean(drawn.overheads(name))))
            unsettled[name] += drawn.unsettled
    row: Row = {
        "values": json.dumps(values),
        "degrees": json.dumps(degrees),
        "overlaps": json.dumps(overlaps),
        "variations": json.dumps(variations),
    }
    return row | {f"unsettled {name}": count for name, count in unsettled.items()}


def overlap(interests: Subscriptions) -> float:
    """The share of pairs of nodes whose interests overlap."""
    member = interests.member.astype(np.int64)
    shared = member @ member.T > 0
    count = len(member)
    return float((shared.sum() - np.trace(shared)) / (count * (count - 1)))


def variation(graph: NDArray[np.bool_], interests: Subscriptions) -> float:
    """How differently a node's neighbours share its interest: the spread of the shared part, over nodes."""
    member = interests.member.astype(float)
    shared = (member * interests.weights) @ member.T
    own = np.diag(shared)
    wanting = own > 0
    parts = shared[wanting] / own[wanting, None]
    spreads = [part[heard].std() for part, heard in zip(parts, graph[wanting], strict=True) if heard.any()]
    return float(np.mean(spreads)) if spreads else 0.0


def _small(run: Run) -> Row:
    """The best of all spanning trees, by enumeration and by the solver, beside SP-COMBO."""
    excess, worst, trees, apart, proved = [], [], [], [], []
    optima: list[float] = []
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        every = best_of_all(drawn.given)
        solved = optimum(drawn.graph, drawn.interests, drawn.costs, seconds_max=run.solver_s)
        runs = drawn.overheads("combo")
        optima.append(every.overhead)
        excess.append(_over(float(np.mean(runs)), every.overhead))
        worst.append(_over(max(runs), every.overhead))
        trees.append(every.trees)
        apart.append(abs(solved.overhead - every.overhead))
        proved.append(solved.proved)
    return {
        "optima": json.dumps(optima),
        "excess": json.dumps(excess),
        "worst": json.dumps(worst),
        "trees": json.dumps(trees),
        "compared": len(apart),
        "proved": sum(proved),
        "disagreed": sum(each > DISAGREEMENT for each in apart),
        "apart_max": max(apart, default=0.0),
    }


def _exact(run: Run) -> Row:
    """The proved optimum of each system, and how far above it every algorithm ends."""
    values: dict[str, list[float]] = {name: [] for name in run.metrics}
    worst: dict[str, list[float]] = {name: [] for name in run.metrics}
    optima, proved, searched, bounds, gaps = [], [], [], [], []
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        runs = {name: drawn.overheads(name) for name in run.metrics}
        assert drawn.best is not None
        solved = optimum(
            drawn.graph,
            drawn.interests,
            drawn.costs,
            start=drawn.best[1],
            seconds_max=run.solver_s,
        )
        optima.append(solved.overhead)
        proved.append(solved.proved)
        gaps.append(solved.gap)
        searched.append(solved.searched)
        bounds.append(lower_bound(drawn.graph, drawn.interests, drawn.costs) / solved.overhead)
        for name, found in runs.items():
            values[name].append(_over(float(np.mean(found)), solved.overhead))
            worst[name].append(_over(max(found), solved.overhead))
    return {
        "values": json.dumps(values),
        "worst": json.dumps(worst),
        "optima": json.dumps(optima),
        "proved": sum(proved),
        "gaps": json.dumps(gaps),
        "searched": json.dumps(searched),
        "bounds": json.dumps(bounds),
    }


def _over(value: float, least: float) -> float:
    return value / least - 1 if least else 0.0


def _large(run: Run) -> Row:
    """Every algorithm's overhead over the lower bound, in systems too large to solve."""
    values: dict[str, list[float]] = {name: [] for name in run.metrics}
    unsettled = dict.fromkeys(run.metrics, 0)
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        bound = lower_bound(drawn.graph, drawn.interests, drawn.costs)
        for name in run.metrics:
            drawn.unsettled = 0
            values[name].append(float(np.mean(drawn.overheads(name))) / bound)
            unsettled[name] += drawn.unsettled
    return {"values": json.dumps(values)} | {f"unsettled {name}": count for name, count in unsettled.items()}


# ------------------------------------------------------------------------------ message level


def _move(run: Run) -> Row:
    """Trials in which one node moves."""
    timing = Timing(timeout_s=run.timeout_s, news_at_once=run.news_at_once)
    moves = [move_one(layout, timing) for layout in layouts_of(run)]
    row: Row = {
        "stable": json.dumps([float(moved.stable) for moved in moves]),
        "seconds": json.dumps([moved.seconds for moved in moves]),
        "hops": json.dumps([moved.hops_before for moved in moves]),
        "hops_after": json.dumps([moved.hops_after for moved in moves]),
        "cost": json.dumps([moved.overhead / moved.overhead_fresh for moved in moves]),
    }
    if run.picture:
        row["picture"] = picture_of(run, moves[0])
    return row


class Picture(msgspec.Struct, frozen=True):
    """What it takes to draw a move."""

    node: int
    """The one that moves."""
    places: list[list[float]]
    place: list[float]
    """Where it goes."""
    before: list[int]
    """By node: its parent before the move."""
    after: list[int]
    range_m: float
    sizes: list[float]
    """By node: how much it wants; where its interest lies is drawn again from the seed."""
    seed: int


def picture_of(run: Run, moved: Moved) -> str:
    """The picture of a move: a `Picture` as JSON."""
    interests = draw_subscriptions(run.layout, moved.places)
    drawn = Picture(
        node=moved.node,
        places=moved.places.tolist(),
        place=moved.place.tolist(),
        before=moved.parents_before.tolist(),
        after=moved.parents_after.tolist(),
        range_m=run.layout.range_m,
        sizes=(interests.member @ interests.weights).tolist(),
        seed=run.layout.seed,
    )
    return json.dumps(msgspec.to_builtins(drawn))


def _roam(run: Run) -> Row:
    """One run with everybody on the move."""
    assert run.roaming is not None
    found = roam(run.layout, Timing(timeout_s=run.timeout_s), run.roaming)
    events = max(1, found.events)
    return {
        "tree_ratio": found.tree_delivered / max(1, found.wanted),
        "flood_ratio": found.flood_delivered / max(1, found.wanted),
        "tree_overhead": found.tree_overhead / events,
        "flood_overhead": found.flood_overhead / events,
        "tree_per_delivery": found.tree_overhead / max(1, found.tree_delivered),
        "flood_per_delivery": found.flood_overhead / max(1, found.flood_delivered),
        "control_per_s": (found.control_said + found.control_heard) / found.seconds,
        "switches_per_s": found.switches / found.seconds,
    }


def _shared(run: Run) -> Row:
    """Several nodes publish every cell: over one shared tree with shortcuts, and over a tree each."""
    ways: dict[str, list[float]] = {"shared": [], "own": []}
    for found in shared_costs(run):
        for way, each in found.items():
            ways[way].append(float(np.mean(each)))
    return {"values": json.dumps(ways)}


def shared_costs(run: Run) -> Iterator[dict[str, list[float]]]:
    """By layout: what each publisher's events cost over the shared tree, and over its own."""
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        stream = Streams(layout.seed).fresh("publishers")
        chosen = stream.choice(np.arange(1, len(drawn.places)), run.publishers, replace=False)
        publishers = [int(node) for node in chosen]
        world = AdhocWorld(
            Radio(drawn.places, layout.range_m),
            drawn.interests.sets(),
            stream,
            choosing=[Choosing()] * len(drawn.places),
            roots=(ROOT, *publishers),
        )
        for tree in (ROOT, *publishers):
            world.take_turns(range(len(drawn.places)), tree)
        yield {
            way: [
                world.publish_all(node, drawn.interests, ROOT if way == "shared" else node, drawn.costs)
                for node in publishers
            ]
            for way in ("shared", "own")
        }


KINDS: dict[Kind, Callable[[Run], Row]] = {
    "lines": _lines,
    "small": _small,
    "exact": _exact,
    "large": _large,
    "move": _move,
    "roam": _roam,
    "shared": _shared,
}
