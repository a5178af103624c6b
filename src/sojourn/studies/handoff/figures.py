"""Tables 2 to 4 and Figures 5 to 8 and 11 to 13 of paper 001, from our own runs beside the paper's numbers.

What the paper prints as a curve but not as a number is not copied: only numbers that its text or tables state
are marked. Bars are 95% intervals over seeds.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from sojourn.studies.drawing import empty
from sojourn.studies.handoff import chains, paper
from sojourn.studies.handoff.measures import SHARES
from sojourn.studies.handoff.paper import MOBILITIES, POPULATIONS, SCHEMES
from sojourn.studies.handoff.table import BROKERS
from sojourn.studies.marks import MUTED, paper_line, paper_points
from sojourn.studies.means import Table

COLOURS = {"durable": "#e08e0b", "reactive": "#c0392b", "proactive": "#1e8449"}
NAMES = {"durable": "durable", "reactive": "reactive", "proactive": "pro-active"}
OURS, PAPER = "#2471a3", MUTED
SYMBOLS = {"durable": "x", "reactive": "diamond-open", "proactive": "square-open"}
"""Of the paper's points, which all have one colour."""
SUBSCRIBERS = "subscribers"


def plain(title: str, x_title: str, y_title: str, *, log_x: bool = False, log_y: bool = False) -> go.Figure:
    """An empty figure; its title may hold its number, before a colon."""
    figure = empty(title, x_title, y_title, barmode="group")
    figure.update_xaxes(type="log" if log_x else None)
    figure.update_yaxes(**({"type": "log"} if log_y else {"rangemode": "tozero"}))
    return figure


def add_line(
    figure: go.Figure,
    table: Table,
    key: tuple[str, str, str, str],
    name: str,
    colour: str,
    times: float = 1.0,
) -> None:
    """One line with its intervals."""
    points, halves = table.points(*key), table.intervals(*key)
    if not points:
        raise KeyError(key)
    figure.add_scatter(
        x=list(points),
        y=[times * value for value in points.values()],
        error_y={"type": "data", "array": [times * half for half in halves.values()], "thickness": 1},
        name=name,
        mode="lines+markers",
        line={"color": colour},
    )


def add_bars(
    figure: go.Figure,
    name: str,
    values: Mapping[str, float],
    halves: Sequence[float] | None = None,
    colour: str = OURS,
) -> None:
    """Bars by name, with intervals if there are any."""
    bars = {"type": "data", "array": list(halves), "thickness": 1} if halves is not None else None
    figure.add_bar(x=list(values), y=list(values.values()), name=name, error_y=bars, marker={"color": colour})


def schemes_over(table: Table, measure: str, title: str, y_title: str, times: float = 1.0) -> go.Figure:
    """A measure of the three schemes over the population, random mobility."""
    figure = plain(title, SUBSCRIBERS, y_title)
    for scheme in SCHEMES:
        add_line(figure, table, ("tables", scheme, "RND", measure), NAMES[scheme], COLOURS[scheme], times)
    return figure


def _table(table: Table, measure: str, title: str, y_title: str) -> go.Figure:
    """One of the paper's tables, cell by cell beside ours."""
    said = paper.TABLES[measure]
    ours, halves, theirs = {}, [], {}
    for scheme in SCHEMES:
        for mobility in MOBILITIES:
            for count in POPULATIONS:
                cell = f"{NAMES[scheme]} {mobility} {count}"
                ours[cell] = table.points("tables", scheme, mobility, measure)[float(count)]
                halves.append(table.intervals("tables", scheme, mobility, measure)[float(count)])
                theirs[cell] = said[scheme, mobility, count]
    figure = plain(title, "scheme, mobility, subscribers", y_title)
    add_bars(figure, "ours", ours, halves)
    add_bars(figure, "paper", theirs, colour=PAPER)
    return figure


def table_2(table: Table) -> go.Figure:
    """Subscriber throughput."""
    return _table(table, "throughput", "Table 2: Subscriber throughput", "messages a second")


def table_3(table: Table) -> go.Figure:
    """Message loss."""
    return _table(table, "loss_percent", "Table 3: Message loss", "percent of the messages owed")


def table_4(table: Table) -> go.Figure:
    """Message duplication."""
    return _table(
        table, "duplicates_percent", "Table 4: Message duplication", "percent of the messages received"
    )


def figure_5a(table: Table) -> go.Figure:
    """End-to-end latency."""
    return schemes_over(table, "latency_ms", "Figure 5a: End-to-end latency", "seconds", 0.001)


def figure_5b(table: Table) -> go.Figure:
    """Throughput over the population, with the paper's points."""
    figure = schemes_over(table, "throughput", "Figure 5b: Subscriber throughput", "messages a second")
    for scheme in SCHEMES:
        said = [paper.THROUGHPUT[scheme, "RND", count] for count in POPULATIONS]
        paper_points(figure, NAMES[scheme], POPULATIONS, said, SYMBOLS[scheme])
    return figure


def figure_5c(table: Table) -> go.Figure:
    """How much came by state transfer."""
    figure = plain("Figure 5c: Consumed by state transfer", SUBSCRIBERS, "percent of the messages consumed")
    for scheme in ("reactive", "proactive"):
        key = ("tables", scheme, "RND", "transferred_percent")
        add_line(figure, table, key, NAMES[scheme], COLOURS[scheme])
    low, high = paper.TRANSFERRED_PERCENT
    paper_line(figure, "", y=low)
    paper_line(figure, f"paper: reactive {low:g} to {high:g}% at 200", y=high)
    return figure


def figure_6(table: Table) -> go.Figure:
    """Distribution of hand-off times."""
    title = "Figure 6: Hand-off times at 200 subscribers, random mobility"
    figure = plain(title, "seconds from request to first message", "share of hand-offs, %", log_x=True)
    for scheme in SCHEMES:
        times, halves = [], []
        for share in SHARES:
            key = ("tables", scheme, "RND", f"handoff p{share}")
            times.append(table.points(*key)[200.0] / 1000)
            halves.append(table.intervals(*key)[200.0] / 1000)
        figure.add_scatter(
            x=times,
            y=list(SHARES),
            error_x={"type": "data", "array": halves, "thickness": 1},
            name=NAMES[scheme],
            mode="lines+markers",
            line={"color": COLOURS[scheme]},
        )
        seconds, share_said = paper.HANDOFF_POINTS[scheme]
        paper_points(figure, NAMES[scheme], [seconds], [100 * share_said], SYMBOLS[scheme])
    return figure


def _frequency(table: Table, measure: str, title: str, y_title: str) -> go.Figure:
    figure = plain(title, "scheme", y_title)
    for connect_s, colour in ((60.0, "#2471a3"), (150.0, "#85c1e9")):
        values = {NAMES[s]: table.points("frequency", s, "RND", measure)[connect_s] for s in SCHEMES}
        halves = [table.intervals("frequency", s, "RND", measure)[connect_s] for s in SCHEMES]
        add_bars(figure, f"connected for {connect_s:g} s on average", values, halves, colour)
    return figure


def figure_7a(table: Table) -> go.Figure:
    """Throughput by how often subscribers move."""
    return _frequency(
        table, "throughput", "Figure 7a: Throughput and hand-off frequency", "messages a second"
    )


def figure_7b(table: Table) -> go.Figure:
    """Loss by how often subscribers move."""
    return _frequency(table, "loss_percent", "Figure 7b: Loss and hand-off frequency", "percent")


def figure_7c(table: Table) -> go.Figure:
    """Duplicates by how often subscribers move."""
    return _frequency(table, "duplicates_percent", "Figure 7c: Duplicates and hand-off frequency", "percent")


def _by_broker(table: Table, what: str, title: str, y_title: str) -> go.Figure:
    figure = plain(title, "broker", y_title)
    for mobility, colour in zip(MOBILITIES, ("#2471a3", "#85c1e9"), strict=True):
        means, halves = chains.measured(table, mobility, what)
        add_bars(figure, mobility, means, list(halves.values()), colour)
    return figure


def figure_8a(table: Table) -> go.Figure:
    """Processing time by broker."""
    title = "Figure 8a: Processing time of an event by broker, pro-active, 200 subscribers"
    return _by_broker(table, "event_ms", title, "ms")


def figure_8b(table: Table) -> go.Figure:
    """Throughput by broker."""
    title = "Figure 8b: Throughput by broker, pro-active, 200 subscribers"
    return _by_broker(table, "routed", title, "messages a second")


def figure_11(table: Table) -> go.Figure:
    """The cubic over our own points, beside the paper's."""
    curve = chains.fit_curve(table)
    figure = plain(
        f"Figure 11: A cubic through our brokers, R2 = {curve.r2:.4f}",
        "connected subscribers at a broker",
        "messages a second",
    )
    xs = [x for x, _ in curve.points]
    grid = np.linspace(0, max(xs), 40).tolist()
    figure.add_scatter(x=xs, y=[y for _, y in curve.points], name="our brokers", mode="markers")
    figure.add_scatter(x=grid, y=[curve.at(x) for x in grid], name="our cubic", mode="lines")
    figure.add_scatter(
        x=grid,
        y=[chains.PAPER_CURVE.at(x) for x in grid],
        name=f"the paper's cubic, R2 = {paper.CUBIC_R2}",
        mode="lines",
        line={"color": PAPER, "dash": "dot"},
    )
    return figure


def _extrapolated(table: Table, mobility: str, title: str) -> go.Figure:
    means, halves = chains.measured(table, mobility)
    curve = chains.fit_curve(table)
    figure = plain(title, "broker", "messages a second")
    add_bars(figure, "measured", means, list(halves.values()))
    add_bars(figure, "from the chain and our cubic", chains.predicted(curve, mobility), colour="#85c1e9")
    said = chains.predicted(chains.PAPER_CURVE, mobility)
    add_bars(figure, "from the chain and the paper's cubic", said, colour=PAPER)
    return figure


def figure_12(table: Table) -> go.Figure:
    """Brokers under random mobility."""
    return _extrapolated(table, "RND", "Figure 12: Throughput by broker, random mobility, 200 subscribers")


def figure_13(table: Table) -> go.Figure:
    """Brokers under neighbour mobility."""
    return _extrapolated(table, "NBR", "Figure 13: Throughput by broker, neighbour mobility, 200 subscribers")


def occupancy_figure(table: Table) -> go.Figure:
    """Where subscribers are: the chain and the simulation."""
    title = "Occupancy: Subscribers at each broker, neighbour mobility"
    figure = plain(title, "broker", "share of subscribers")
    present, halves = chains.measured(table, "NBR", "present")
    count = chains.POPULATION
    add_bars(
        figure, "simulated", {b: v / count for b, v in present.items()}, [h / count for h in halves.values()]
    )
    said = dict(zip(BROKERS, paper.NEIGHBOUR_OCCUPANCY, strict=True))
    add_bars(figure, "paper, Table 5", said, colour=PAPER)
    return figure
