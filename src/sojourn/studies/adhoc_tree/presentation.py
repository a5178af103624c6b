"""What a person is shown of the study: its figures and the constants behind them."""

from sojourn.sim.adhoc.layout import Layout
from sojourn.studies import base
from sojourn.studies.adhoc_tree import checks_beyond, figures, parameters, picture
from sojourn.studies.adhoc_tree.parameters import Scale
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.drawing import Figure
from sojourn.studies.wording import more, numbered, span

Outcome = base.Outcome[Scale, Table]

TITLE = "Which tree to build without infrastructure (paper 002)"

FIGURES = (
    Figure("5-before", ("C-layout", "C-mobility"), picture.before_the_move),
    Figure("5-after", ("C-mobility",), picture.after_the_move),
    Figure("8", ("C-fig8",), figures.figure_8),
    Figure("9", ("C-fig9",), figures.figure_9),
    Figure("10", ("C-fig10",), figures.figure_10),
    Figure("10-exact", ("C-fig10",), figures.figure_10_exact),
    Figure("10-large", ("C-fig10",), figures.figure_10_large),
    Figure("11", ("C-fig11",), figures.figure_11),
    Figure("12", ("C-fig12",), figures.figure_12),
    Figure("13", ("C-fig13",), figures.figure_13),
    Figure("mobility", ("C-mobility",), figures.mobility_figure),
    Figure("roaming", (), figures.roaming_figure),
    Figure("roaming-work", (), figures.roaming_work),
    Figure("neighbours", ("C-layout",), figures.neighbours_figure),
    Figure("spread", ("C-layout", "C-fig9"), figures.sensitivity_figure),
    Figure("interests", ("C-layout", "C-fig9"), figures.interests_figure),
    Figure("ties", ("C-fig8",), figures.ties_figure),
)


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


def what_is_run(scale: Scale, seeds: int | None) -> str:
    """Half a sentence on how much that is."""
    return f"{numbered('layouts', seeds or scale.seeds)} per point, {parameters.ORDERS} orders of turns each"


def constants(outcome: Outcome) -> list[tuple[str, str]]:
    """The constants of the study, and what the paper leaves open."""
    base, scale = Layout(), outcome.scale
    return [
        ("scale", f"{scale.name}: {what_is_run(scale, outcome.seeds)}"),
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
