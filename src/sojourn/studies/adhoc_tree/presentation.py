"""What a person is shown of the study: its figures and the constants behind them."""

import plotly.graph_objects as go

from sojourn.sim.adhoc.layout import Layout
from sojourn.studies import base
from sojourn.studies.adhoc_tree import checks_beyond, figures, parameters, picture
from sojourn.studies.adhoc_tree.figures import Figure
from sojourn.studies.adhoc_tree.study import Outcome
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.wording import more, numbered, span

TITLE = "Which tree to build without infrastructure (paper 002)"

FIGURES = (
    Figure("5-before", "Layout and tree", ("C-layout", "C-mobility"), picture.before_the_move),
    Figure("5-after", "The same after a move", ("C-mobility",), picture.after_the_move),
    Figure("8", "Overhead over l", ("C-fig8",), figures.figure_8),
    Figure("9", "Ratios over R", ("C-fig9",), figures.figure_9),
    Figure("10", "Small systems", ("C-fig10",), figures.figure_10),
    Figure("10-exact", "Thirty nodes", ("C-fig10",), figures.figure_10_exact),
    Figure("10-large", "Improvement", ("C-fig10",), figures.figure_10_large),
    Figure("11", "Correlation", ("C-fig11",), figures.figure_11),
    Figure("12", "Errors", ("C-fig12",), figures.figure_12),
    Figure("13", "Topic tree", ("C-fig13",), figures.figure_13),
    Figure("mobility", "One node moves", ("C-mobility",), figures.mobility_figure),
    Figure("roaming", "All roam", (), figures.roaming_figure),
    Figure("roaming-work", "Work while roaming", (), figures.roaming_work),
    Figure("neighbours", "Spread and neighbours", ("C-layout",), figures.neighbours_figure),
    Figure("spread", "Spread and ratios", ("C-layout", "C-fig9"), figures.sensitivity_figure),
    Figure("interests", "Interests and ratios", ("C-layout", "C-fig9"), figures.interests_figure),
    Figure("ties", "Ties", ("C-fig8",), figures.ties_figure),
)


def charts(outcome: Outcome) -> list[tuple[Figure, go.Figure]]:
    """Every figure that the outcome has points for."""
    found = []
    for figure in FIGURES:
        try:
            found.append((figure, figure.draw(outcome.table)))
        except (KeyError, ValueError):
            continue  # its runs failed; the claims that need them say so
    return found


def summary(outcome: Outcome) -> str:
    """What was found, and how much of the paper holds."""
    return base.summary(outcome, finding, runs="tasks", over="layouts")


def finding(table: Table) -> str:
    """SP-COMBO's trees beside those of the simpler metrics, and beside the best possible ones."""
    ratios = {name: table.ratio_line("fig8", "", name).values() for name in ("random", "nhop", "ovhd")}
    said = {name: span(found) for name, found in ratios.items()}
    text = (
        f"Beside trees built by SP-COMBO, counting hops alone costs {said['nhop']} times as much, overhead "
        f"alone {said['ovhd']} times and parents at random {said['random']} times, by how wide interests are."
    )
    xs = table.xs("fig10")
    if xs:
        excess = max(float(table.list_of("excess", "fig10", "", x).mean()) for x in xs)
        text += (
            f" In systems of nine nodes SP-COMBO's cost {more(excess)} than the best possible, on average."
        )
    return text


def facts(outcome: Outcome) -> list[tuple[str, str]]:
    """The constants of the study, what the paper leaves open, and how long it took."""
    base, scale = Layout(), outcome.scale
    return [
        (
            "scale",
            (
                f"{scale.name}: {numbered('layouts', outcome.seeds)} a point, {parameters.ORDERS} orders of "
                "turns each"
            ),
        ),
        (
            "layout",
            (
                f"{base.clusters} clusters of {base.nodes_per_cluster} nodes, mean distances "
                f"{base.cluster_distance_m:g} and {base.node_distance_m:g}, range {base.range_m:g} (Table "
                f"3); spread {base.radius_spread_m:g} and connected at {base.connected_at_m:g} are ours"
            ),
        ),
        (
            "interests",
            (
                f"mean length {base.length:g} (Table 3); spread of lengths {base.length_spread:g} of the "
                f"mean and centres over {base.centre_range:g} are ours: that range gives the paper's overlap "
                "of 36% at l = 50"
            ),
        ),
        ("between equals", "fewer hops, then a draw; the paper says nothing (figure ties shows both)"),
        (
            "steady state",
            "turns in one random order a run, until a round passes without a switch, at most 100",
        ),
        ("roaming", _roaming(outcome)),
        ("several publishers", _shared(outcome)),
        ("unsettled", _unsettled(outcome)),
        ("wall time", f"{outcome.seconds:.0f} s"),
    ]


def _roaming(outcome: Outcome) -> str:
    try:
        return checks_beyond.where_the_tree_stops(outcome.table)
    except (KeyError, ValueError, ZeroDivisionError):
        return "not measured"


def _shared(outcome: Outcome) -> str:
    try:
        ways = outcome.table.by_algorithm("shared", "", 0.0)
    except KeyError:
        return "not measured"
    shared, own = float(ways["shared"].mean()), float(ways["own"].mean())
    return (
        f"an event for every unit of the number axis costs {shared:.0f} over the one shared tree, up to "
        "the root with "
        f"shortcuts down, and {own:.0f} over a tree for each of {parameters.PUBLISHERS} publishers"
    )


def _unsettled(outcome: Outcome) -> str:
    """How many trees still changed after the last round, by algorithm."""
    counts: dict[str, float] = {}
    totals: dict[str, int] = {}
    for row in (row for blocks in outcome.table.blocks.values() for row in blocks):
        for name, value in row.items():
            if name.startswith("unsettled ") and value is not None:
                algorithm = name.removeprefix("unsettled ")
                counts[algorithm] = counts.get(algorithm, 0.0) + float(value)
                totals[algorithm] = totals.get(algorithm, 0) + 1
    shown = [f"{name} {count:.0f}" for name, count in sorted(counts.items()) if count]
    return "trees that still changed after the last round: " + (", ".join(shown) or "none")
