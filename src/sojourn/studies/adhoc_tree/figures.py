"""Figures 8 to 13 of paper 002 redrawn from our own runs, and those that go beyond it.

What the paper prints as a curve but not as a number is not copied: only numbers that its text states are
marked. Bars are 95% intervals over layouts.
"""

import numpy as np
import plotly.graph_objects as go

from sojourn.studies.adhoc_tree import checks_beyond, differences, parameters
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.adhoc_tree.trials import moves
from sojourn.studies.drawing import add_points, empty
from sojourn.studies.marks import paper_line

COLOURS = {
    "random": "#c0392b",
    "nhop": "#e08e0b",
    "ovhd": "#2471a3",
    "combo": "#1e8449",
    "path": "#7d3c98",
    "cool": "#566573",
    "comboerr": "#2471a3",
    "comboerr-fresh": "#7d3c98",
    "comboerr-one": "#1e8449",
    "comboerr-floor": "#c0392b",
}
NAMES = {
    "random": "RANDOM",
    "nhop": "SP-NHOP",
    "ovhd": "SP-OVHD",
    "combo": "SP-COMBO",
    "path": "exact growth of the whole tree",
    "cool": "cooled shopping",
    "cool-long": "cooled shopping, patient",
    "comboerr": "SP-COMBOerr",
    "comboerr-fresh": "SP-COMBOerr, new errors every turn",
    "comboerr-one": "SP-COMBOerr, one error for both overheads",
    "comboerr-floor": "SP-COMBOerr, increases below 0 counted as 0",
}
PALETTE = ("#1e8449", "#2471a3", "#7d3c98", "#e08e0b", "#c0392b")
LENGTH = "mean interval length l"


def _overheads(table: Table, experiment: str, title: str, x_title: str) -> go.Figure:
    figure = empty(title, x_title, "tree overhead")
    for name in ("random", "nhop", "ovhd", "combo"):
        points = table.mean_line(experiment, "", name)
        halves = [table.half_width(experiment, "", x, name, None) for x in points]
        add_points(figure, NAMES[name], points, halves=halves, colour=COLOURS[name])
    return figure


def _ratio(figure: go.Figure, table: Table, key: tuple[str, str], name: str, label: str, **look: str) -> None:
    points = table.ratio_line(*key, name)
    halves = [table.half_width(*key, x, name, "combo") for x in points]
    add_points(figure, label, points, halves=halves, **look)


def figure_8(table: Table) -> go.Figure:
    """Overhead over the interval length."""
    return _overheads(table, "fig8", "Overhead over the mean interval length (NI-R)", LENGTH)


def figure_9(table: Table) -> go.Figure:
    """Ratios to SP-COMBO over the radio range."""
    figure = empty("Overhead over SP-COMBO's, by radio range", "radio range R", "ratio to SP-COMBO")
    for series, dash in (("r=1", "solid"), ("r=0", "dot")):
        for name in ("nhop", "ovhd"):
            label = f"{NAMES[name]}, {series.replace('=', ' = ')}"
            _ratio(figure, table, ("fig9", series), name, label, colour=COLOURS[name], dash=dash)
    paper_line(figure, "paper: SP-NHOP about 1.30 at 80", y=1.30)
    return figure


def figure_10(table: Table) -> go.Figure:
    """Excess over the optimum in small systems."""
    figure = empty(
        "SP-COMBO above the optimum, nine nodes at range 180", LENGTH, "excess over the optimum, %"
    )
    xs = table.xs("fig10")
    excess = {x: 100 * table.list_of("excess", "fig10", "", x) for x in xs}
    add_points(figure, "mean", {x: float(excess[x].mean()) for x in xs}, colour=COLOURS["combo"])
    add_points(figure, "worst system", {x: float(excess[x].max()) for x in xs}, colour=COLOURS["random"])
    paper_line(figure, "paper: at most 8", y=8)
    paper_line(figure, "paper: never above 15", y=15)
    return figure


def figure_10_exact(table: Table) -> go.Figure:
    """How excess is distributed over thirty-node systems."""
    title = "Excess over the proved optimum, 30 nodes at range 80, l = 25"
    figure = empty(title, "share of systems, %", "excess over the optimum, %")
    for name, values in table.by_algorithm("exact", checks_beyond.BASE, 0.0).items():
        ordered = np.sort(100 * values)
        shares = 100 * (np.arange(len(ordered)) + 1) / len(ordered)
        points = dict(zip(shares.tolist(), ordered.tolist(), strict=True))
        add_points(figure, NAMES[name], points, colour=COLOURS[name])
    return figure


def figure_10_large(table: Table) -> go.Figure:
    """Thirty nodes over the optimum, three hundred over the bound."""
    figure = empty("Improved shopping, 30 and 300 nodes", "algorithm", "overhead, relative")
    base = table.by_algorithm("exact", checks_beyond.BASE, 0.0)
    large = table.by_algorithm("large", "", 0.0)
    figure.add_trace(
        go.Bar(
            x=[NAMES[name] for name in base],
            y=[1 + float(values.mean()) for values in base.values()],
            name="30 nodes, over the optimum",
        )
    )
    figure.add_trace(
        go.Bar(
            x=[NAMES[name] for name in large],
            y=[float(values.mean()) for values in large.values()],
            name="300 nodes, over a loose lower bound",
        )
    )
    return figure


def figure_11(table: Table) -> go.Figure:
    """What geographic correlation does."""
    figure = empty("SP-NHOP over SP-COMBO, by where interests come from", LENGTH, "ratio to SP-COMBO")
    names = ["ni-x", *(f"ni-xmod {sigma:g}" for sigma in parameters.SIGMAS), "ni-r"]
    for name, colour in zip(names, PALETTE, strict=True):
        _ratio(figure, table, ("fig11", name), "nhop", name.upper(), colour=colour)
    _ratio(figure, table, ("dealt", ""), "nhop", "NI-X, centres dealt out", colour=PALETTE[0], dash="dot")
    return figure


def figure_12(table: Table) -> go.Figure:
    """What a wrong event distribution does."""
    title = "A wrong event distribution"
    figure = empty(title, "standard deviation of the relative error", "ratio to SP-COMBO")
    for name in (*differences.READINGS, "nhop"):
        _ratio(figure, table, ("fig12", ""), name, NAMES[name], colour=COLOURS[name])
    paper_line(figure, "paper: they cross at about 0.4", x=0.4, position="top left")
    return figure


def figure_13(table: Table) -> go.Figure:
    """Overhead over the topic tree's branching."""
    return _overheads(table, "fig13", "Overhead over the topic tree's branching factor (TT)", "branching b")


def mobility_figure(table: Table) -> go.Figure:
    """How long the tree takes to come to rest after one node moved, by timeout and by hops."""
    figure = empty("One node moves: time until the tree is stable", "parent timeout, s, or hops", "seconds")
    for series, label, dash in (("", "news at once", "solid"), ("beacons", "news by beacons", "dot")):
        trials = moves(table, series)
        if trials is None:
            raise KeyError("move")
        by_timeout = {
            t: float(trials["seconds"][trials["timeout"] == t].mean()) for t in table.xs("move", series)
        }
        add_points(figure, f"by parent timeout, {label}", by_timeout, colour=COLOURS["combo"], dash=dash)
        for name, where, colour in (("hops", "old", "nhop"), ("hops_after", "new", "ovhd")):
            points = differences.seconds_by(trials, name)
            add_points(
                figure, f"by hops at the {where} place, {label}", points, colour=COLOURS[colour], dash=dash
            )
    return figure


def roaming_figure(table: Table) -> go.Figure:
    """What roaming does to deliveries."""
    figure = empty("All nodes roam: share of deliveries made", "speed, m/s", "delivery ratio")
    found = checks_beyond.roaming(table)
    add_points(figure, "SP-COMBO tree", found["tree_ratio"], colour=COLOURS["combo"])
    add_points(figure, "flooding", found["flood_ratio"], colour=COLOURS["random"])
    return figure


def roaming_work(table: Table) -> go.Figure:
    """What roaming does to work."""
    figure = empty("All nodes roam: work beyond own interests", "speed, m/s", "units of work")
    found = checks_beyond.roaming(table)
    for name, label, colour in (
        ("tree_per_delivery", "tree, per delivery", "combo"),
        ("flood_per_delivery", "flooding, per delivery", "random"),
        ("control_per_s", "tree, control messages said and heard per second", "nhop"),
    ):
        add_points(figure, label, found[name], colour=COLOURS[colour])
    figure.update_yaxes(type="log")
    return figure


def sensitivity_figure(table: Table) -> go.Figure:
    """What the spread of the radii does, which the paper does not give."""
    figure = empty("Our choice of spread: SP-NHOP over SP-COMBO", "radio range R", "ratio to SP-COMBO")
    for name, colour in zip(table.series("spread"), PALETTE, strict=False):
        _ratio(figure, table, ("spread", name), "nhop", f"spread {name}", colour=colour)
    return figure


def neighbours_figure(table: Table) -> go.Figure:
    """The same for the number of neighbours."""
    figure = empty("Our choice of spread: neighbours", "radio range R", "neighbours per node")
    for name, colour in zip(table.series("spread"), PALETTE, strict=False):
        xs = table.xs("spread", name)
        points = {x: float(table.list_of("degrees", "spread", name, x).mean()) for x in xs}
        add_points(figure, f"spread {name}", points, colour=colour)
    for y in (5.2, 21.3):
        paper_line(figure, f"paper: {y:g}", y=y)
    return figure


def interests_figure(table: Table) -> go.Figure:
    """What the spread of lengths and the range of centres do."""
    figure = empty(
        "Our choice of interests: SP-NHOP over SP-COMBO",
        "spread of lengths, or range of centres / 250",
        "ratio to SP-COMBO",
    )
    lengths = table.ratio_line("lengths", "", "nhop")
    centres = {x / 250: ratio for x, ratio in table.ratio_line("centres", "", "nhop").items()}
    add_points(figure, "by the spread of lengths, share of l", lengths, colour=PALETTE[0])
    add_points(figure, "by the range of centres, multiples of 250", centres, colour=PALETTE[1])
    return figure


def ties_figure(table: Table) -> go.Figure:
    """What happens between equal metrics, which the paper does not say."""
    figure = empty("Between equals: fewer hops, or a draw", LENGTH, "ratio to SP-COMBO under the same rule")
    for name in ("nhop", "ovhd"):
        _ratio(figure, table, ("fig8", ""), name, f"{NAMES[name]}, fewer hops", colour=COLOURS[name])
        points = table.ratio_line("ties", "draw", f"{name}-draw", "combo-draw")
        add_points(figure, f"{NAMES[name]}, draw", points, colour=COLOURS[name], dash="dot")
    return figure
