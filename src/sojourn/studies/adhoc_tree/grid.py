"""The grid of the ad-hoc tree study: every task that some figure or claim of paper 002 needs.

Layout seeds are 1, 2, 3, … at every point, so that all algorithms, lengths, ranges and models see the same
nodes in the same places. A point's layouts are cut into blocks of `parameters.BLOCK`, one task each.
"""

from typing import Any, NamedTuple

import msgspec

from sojourn.sim.adhoc.layout import Layout
from sojourn.sim.adhoc.mobility import Roaming
from sojourn.studies.adhoc_tree import parameters
from sojourn.studies.adhoc_tree.parameters import Scale
from sojourn.studies.adhoc_tree.runs import Run
from sojourn.studies.runner import RunSpec, specify

FOUR = ("random", "nhop", "ovhd", "combo")
WRONG = ("combo", "nhop", "comboerr", "comboerr-fresh", "comboerr-one", "comboerr-floor")
BASE = Layout()


class Point(NamedTuple):
    """One point of one line of a figure, and how many layouts it takes."""

    experiment: str
    series: str
    axis: str
    x: float
    run: Run
    layouts: int
    block: int
    cost: float
    """Estimated milliseconds per layout."""


def _with(**changes: object) -> Layout:
    return msgspec.structs.replace(BASE, **changes)


def _line(
    experiment: str, series: str, axis: str, x: float, layouts: int, metrics: tuple[str, ...], **more: Any
) -> Point:
    layout = more.pop("layout")
    run = Run(kind="lines", layout=layout, metrics=metrics, **more)
    return Point(experiment, series, axis, x, run, layouts, parameters.BLOCK, 5.0 * len(metrics))


def points(scale: Scale, layouts: int) -> list[Point]:
    """All points of the study."""
    return [
        *_figures(scale, layouts),
        *_isolating(scale, layouts),
        *_sensitivity(scale, layouts),
        *_optima(scale),
        *_messages(scale),
    ]


def _figures(scale: Scale, layouts: int) -> list[Point]:
    """Figures 8, 9 and 11 to 13."""
    found = [_line("fig8", "", "l", x, layouts, FOUR, layout=_with(length=x)) for x in scale.lengths]
    for receive in (1.0, 0.0):
        found += [
            _line(
                "fig9", f"r={receive:g}", "R", x, layouts, FOUR[1:], layout=_with(range_m=x), receive=receive
            )
            for x in scale.ranges_m
        ]
    for series, changes in _models().items():
        found += [
            _line("fig11", series, "l", x, layouts, ("nhop", "combo"), layout=_with(length=x, **changes))
            for x in scale.lengths
        ]
    found += [_line("fig12", "", "sigma", x, layouts, WRONG, layout=BASE, error=x) for x in scale.errors]
    found += [
        _line("fig13", "", "b", float(b), layouts, FOUR, layout=_with(model="tt", branching=b))
        for b in scale.branchings
    ]
    return found


def _models() -> dict[str, dict[str, object]]:
    moved = {f"ni-xmod {s:g}": {"model": "ni-xmod", "offset_sigma": s} for s in parameters.SIGMAS}
    return {"ni-x": {"model": "ni-x"}, **moved, "ni-r": {"model": "ni-r"}}


def _isolating(scale: Scale, layouts: int) -> list[Point]:
    """What tells one possible reason for a difference from the paper from another; one thing changes each."""
    wide = _with(length=parameters.WIDE_LENGTH)
    found = [
        _line("wide", f"r={receive:g}", "R", wide.range_m, layouts, FOUR[1:], layout=wide, receive=receive)
        for receive in (1.0, 0.0)
    ]
    half = max(1, layouts // 2)
    found += [_line("wide-errors", "", "sigma", x, half, WRONG, layout=wide, error=x) for x in scale.errors]
    found += [
        _line("dealt", "", "l", x, layouts, ("nhop", "combo"), layout=_with(length=x, model="ni-x-dealt"))
        for x in scale.lengths
    ]
    return found


def _sensitivity(scale: Scale, layouts: int) -> list[Point]:
    """What our choices do where the paper gives none: spreads, the range of centres, ties."""
    half = max(1, layouts // 2)
    pair = ("nhop", "combo")
    found = [
        _line("spread", f"{spread:g}", "R", x, half, pair, layout=_with(radius_spread_m=spread, range_m=x))
        for spread in (10.0, 20.0, 40.0)
        for x in (60.0, 80.0, 140.0)
    ]
    found += [
        _line("lengths", "", "spread of lengths", share, half, pair, layout=_with(length_spread=share))
        for share in (0.0, 0.25, 0.5)
    ]
    found += [
        _line("centres", "", "range of centres", width, half, pair, layout=_with(centre_range=width))
        for width in (150.0, 250.0, 350.0)
    ]
    drawn = ("nhop-draw", "ovhd-draw", "combo-draw")
    found += [_line("ties", "draw", "l", x, half, drawn, layout=_with(length=x)) for x in scale.lengths]
    return found


def _optima(scale: Scale) -> list[Point]:
    """Figure 10, and the optimum of larger systems."""
    small = _with(
        nodes_per_cluster=parameters.SMALL_NODES,
        cluster_distance_m=2 * BASE.cluster_distance_m,
        node_distance_m=2 * BASE.node_distance_m,
        radius_spread_m=2 * BASE.radius_spread_m,
        range_m=parameters.SMALL_RANGE_M,
        connected_at_m=parameters.SMALL_RANGE_M,
    )
    found = [
        Point(
            "fig10", "", "l", x, Run(kind="small", layout=msgspec.structs.replace(small, length=x)),
            scale.small, parameters.BLOCK, 40.0,
        )
        for x in scale.lengths
    ]  # fmt: skip
    every = ("nhop", "ovhd", "combo", "path", "cool")
    for series, count, changes in (
        ("R=80 l=25", scale.exact, {}),
        ("R=60 l=25", scale.exact_elsewhere, {"range_m": 60.0}),
        ("R=100 l=25", scale.exact_elsewhere, {"range_m": 100.0}),
        ("R=80 l=10", scale.exact_elsewhere, {"length": 10.0}),
        ("R=80 l=50", scale.exact_elsewhere, {"length": 50.0}),
    ):
        run = Run(kind="exact", layout=_with(**changes), metrics=every)
        found.append(Point("exact", series, "seed", 0.0, run, count, 4, 1500.0))
    sixty, large = (
        _at_the_same_density(parameters.SIXTY_CLUSTERS),
        _at_the_same_density(parameters.LARGE_CLUSTERS),
    )
    run = Run(kind="exact", layout=sixty, metrics=every, solver_s=parameters.SIXTY_SECONDS)
    found.append(Point("sixty", "", "seed", 0.0, run, scale.sixty, 1, 60_000.0))
    run = Run(kind="large", layout=large, metrics=(*every, "cool-long"), orders=1)
    found.append(Point("large", "", "seed", 0.0, run, scale.large, 1, 4000.0))
    return found


def _at_the_same_density(clusters: int) -> Layout:
    return _with(
        clusters=clusters,
        cluster_distance_m=BASE.cluster_distance_m * (clusters / BASE.clusters) ** 0.5,
        connected_at_m=parameters.LARGE_CONNECTED_M,
    )


def _messages(scale: Scale) -> list[Point]:
    """The experiments on the message-level protocol."""
    found = []
    for timeout_s in parameters.TIMEOUTS_S:
        for series, at_once in (("", True), ("beacons", False)):
            drawn = at_once and timeout_s == parameters.TIMEOUTS_S[1]
            run = Run(kind="move", layout=BASE, timeout_s=timeout_s, news_at_once=at_once, picture=drawn)
            found.append(Point("move", series, "timeout", timeout_s, run, scale.moves, 10, 1000.0))
    for speed in parameters.SPEEDS_M_S:
        roaming = Roaming(speed_m_s=speed, warmup_s=scale.warmup_s, duration_s=scale.duration_s)
        run = Run(kind="roam", layout=BASE, roaming=roaming)
        found.append(Point("roam", "", "speed", speed, run, scale.roams, 1, 3000.0))
    shared = Run(kind="shared", layout=BASE)
    found.append(Point("shared", "", "seed", 0.0, shared, scale.shared, 1, 4000.0))
    return found


def grid(scale: Scale, seeds: int | None = None) -> list[RunSpec]:
    """Every task of the study; `seeds` overrides the layouts per point of the graph-level figures."""
    return [
        _spec(point, first)
        for point in points(scale, seeds or scale.seeds)
        for first in range(0, point.layouts, point.block)
    ]


def _spec(point: Point, first: int) -> RunSpec:
    count = min(point.block, point.layouts - first)
    seed = point.run.layout.seed + first
    layout = msgspec.structs.replace(point.run.layout, seed=seed)
    # Only one trial of a point is drawn: the first.
    run = msgspec.structs.replace(
        point.run, layout=layout, layouts=count, picture=point.run.picture and first == 0
    )
    return specify(
        run,
        experiment=point.experiment,
        series=point.series,
        axis=point.axis,
        x=point.x,
        seed=seed,
        cost=point.cost * count,
    )
