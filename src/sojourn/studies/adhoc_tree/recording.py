"""What a task of the study records: the facts that `measuring.py` computes its measures from.

| table | rows, `at` the seed of a layout |
|---|---|
| `observations` | by algorithm and order of turns the `overhead` of its tree, and whether it was `unsettled`; of a layout its `degree`, `overlap`, `variation`; where it was enumerated or solved `least`, `solved`, `proved`, `gap`, `searched`, `trees`, a lower `bound`; of a move `stable`, `seconds`, `hops`, `hops_after`, `moved` and `fresh` overhead; by publisher the `cost` over a `shared` tree and its `own`; of a run with everybody on the move what was `wanted`, `delivered`, `worked`, `events`, `control`, `switches`, `roamed_s` |
| `runs` | the task |
"""  # noqa: E501  a table

from collections.abc import Callable, Iterator

import msgspec

from sojourn.adhoc.tree.bound import lower_bound
from sojourn.adhoc.tree.enumeration import best_of_all
from sojourn.adhoc.tree.node import Timing
from sojourn.adhoc.tree.optimum import optimum
from sojourn.pipeline.sweep import Outcome
from sojourn.sim.adhoc.mobility import move_one, roam
from sojourn.studies.adhoc_tree.runs import (
    Drawn,
    Kind,
    Run,
    layouts_of,
    overlap,
    picture_of,
    shared_costs,
    variation,
)
from sojourn.studies.recorded import from_rows
from sojourn.studies.runner import run_id_of

STUDY = "adhoc-tree"
Fact = tuple[str, str, int, float]
"""What, of which, at which seed, and the number."""


def record(spec_json: str) -> Outcome:
    """Carry out the task of a JSON text and record what its measures are made of."""
    run = msgspec.json.decode(spec_json, type=Run)
    texts: dict[str, str] = {}
    rows = list(_moves(run, texts) if run.kind == "move" else KINDS[run.kind](run))
    about = ("sim", STUDY, run.layout.seed, spec_json, None, 0.0, 0.0, None)
    return Outcome(texts, from_rows(run_id_of(spec_json), {"observations": rows, "runs": [about]}))


def _grown(run: Run, drawn: Drawn, names: tuple[str, ...]) -> Iterator[Fact]:
    """Every tree that algorithms grew in a layout."""
    at = drawn.layout.seed
    for name in names:
        drawn.unsettled = 0
        for overhead in drawn.overheads(name):
            yield "overhead", name, at, overhead
        if run.kind in ("lines", "large"):
            yield "unsettled", name, at, float(drawn.unsettled)


def _lines(run: Run) -> Iterator[Fact]:
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        yield "degree", "", layout.seed, float(drawn.graph.sum(axis=1).mean())
        yield "overlap", "", layout.seed, overlap(drawn.interests)
        yield "variation", "", layout.seed, variation(drawn.graph, drawn.interests)
        yield from _grown(run, drawn, run.metrics)


def _small(run: Run) -> Iterator[Fact]:
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        every = best_of_all(drawn.given)
        solved = optimum(drawn.graph, drawn.interests, drawn.costs, seconds_max=run.solver_s)
        yield "least", "", layout.seed, every.overhead
        yield "trees", "", layout.seed, float(every.trees)
        yield "solved", "", layout.seed, solved.overhead
        yield "proved", "", layout.seed, float(solved.proved)
        yield from _grown(run, drawn, ("combo",))


def _exact(run: Run) -> Iterator[Fact]:
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        yield from _grown(run, drawn, run.metrics)
        assert drawn.best is not None
        solved = optimum(
            drawn.graph, drawn.interests, drawn.costs, start=drawn.best[1], seconds_max=run.solver_s
        )
        yield "least", "", layout.seed, solved.overhead
        yield "proved", "", layout.seed, float(solved.proved)
        yield "gap", "", layout.seed, solved.gap
        yield "searched", "", layout.seed, float(solved.searched)
        yield "bound", "", layout.seed, lower_bound(drawn.graph, drawn.interests, drawn.costs)


def _large(run: Run) -> Iterator[Fact]:
    for layout in layouts_of(run):
        drawn = Drawn(layout, run)
        yield "bound", "", layout.seed, lower_bound(drawn.graph, drawn.interests, drawn.costs)
        yield from _grown(run, drawn, run.metrics)


def _moves(run: Run, texts: dict[str, str]) -> Iterator[Fact]:
    timing = Timing(timeout_s=run.timeout_s, news_at_once=run.news_at_once)
    for layout in layouts_of(run):
        moved = move_one(layout, timing)
        if run.picture and not texts:
            texts["picture"] = picture_of(run, moved)
        yield "stable", "", layout.seed, float(moved.stable)
        yield "seconds", "", layout.seed, float(moved.seconds)
        yield "hops", "", layout.seed, float(moved.hops_before)
        yield "hops_after", "", layout.seed, float(moved.hops_after)
        yield "moved", "", layout.seed, float(moved.overhead)
        yield "fresh", "", layout.seed, float(moved.overhead_fresh)


def _roam(run: Run) -> Iterator[Fact]:
    assert run.roaming is not None
    found, at = roam(run.layout, Timing(timeout_s=run.timeout_s), run.roaming), run.layout.seed
    yield "wanted", "", at, float(found.wanted)
    yield "events", "", at, float(found.events)
    yield "delivered", "tree", at, float(found.tree_delivered)
    yield "delivered", "flood", at, float(found.flood_delivered)
    yield "worked", "tree", at, float(found.tree_overhead)
    yield "worked", "flood", at, float(found.flood_overhead)
    yield "control", "", at, float(found.control_said + found.control_heard)
    yield "switches", "", at, float(found.switches)
    yield "roamed_s", "", at, found.seconds


def _shared(run: Run) -> Iterator[Fact]:
    for further, ways in enumerate(shared_costs(run)):
        for way, costs in ways.items():
            for cost in costs:
                yield "cost", way, run.layout.seed + further, float(cost)


KINDS: dict[Kind, Callable[[Run], Iterator[Fact]]] = {
    "lines": _lines,
    "small": _small,
    "exact": _exact,
    "large": _large,
    "roam": _roam,
    "shared": _shared,
}
