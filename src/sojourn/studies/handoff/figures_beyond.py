"""Figures beyond paper 001: what mobility costs, prediction, placement, both sides moving, readings."""

import plotly.graph_objects as go

from sojourn.studies.handoff.figures import COLOURS, NAMES, SUBSCRIBERS, add_bars, add_line, plain
from sojourn.studies.handoff.paper import MOBILITIES, SCHEMES, TABLES, THROUGHPUT
from sojourn.studies.handoff.parameters import EVENT_BYTES, OTHER_EVENT_BYTES
from sojourn.studies.means import Table

SHADES = ("#2471a3", "#85c1e9", "#7d3c98", "#c39bd3", "#1e8449")
MEASURES = {
    "copies_per_subscriber": "copies per subscriber",
    "bytes_per_move": "bytes per hand-off",
    "messages_per_move": "messages per hand-off",
    "loss_percent": "loss, %",
    "handoff p50": "median hand-off, ms",
    "unprepared_percent": "hand-offs without a copy, %",
    "throughput": "messages a second",
}
"""What variants are compared by."""


def _cost(table: Table, measure: str, title: str, y_title: str) -> go.Figure:
    figure = plain(title, SUBSCRIBERS, y_title, log_x=True)
    for scheme in SCHEMES:
        add_line(figure, table, ("cost", scheme, "NBR", measure), NAMES[scheme], COLOURS[scheme])
    return figure


def cost_messages(table: Table) -> go.Figure:
    """Messages a hand-off over the population."""
    title = "Cost 1: Hand-off messages between brokers, each hop, neighbour mobility"
    return _cost(table, "messages_per_move", title, "messages per hand-off")


def cost_bytes(table: Table) -> go.Figure:
    """Bytes a hand-off over the population."""
    title = "Cost 2: Bytes between brokers for a hand-off, each hop, neighbour mobility"
    return _cost(table, "bytes_per_move", title, "bytes per hand-off")


def cost_copies(table: Table) -> go.Figure:
    """Copies a subscriber over the population."""
    title = "Cost 3: Copies kept ahead, neighbour mobility"
    return _cost(table, "copies_per_subscriber", title, "copies per subscriber")


def cost_queue(table: Table) -> go.Figure:
    """Bytes stored over the population."""
    return _cost(table, "queued_bytes", "Cost 4: Bytes stored at all brokers together", "bytes")


def _variant(table: Table, key: tuple[str, str, str], x: float, measures: list[str]) -> dict[str, float]:
    return {MEASURES[measure]: table.points(*key, measure)[x] for measure in measures}


def predictor(table: Table) -> go.Figure:
    """The order-2 predictor beside the plain neighbour graph, as multiples of the graph's values."""
    title = "Prediction: Order-2 predictor over the neighbour graph, grid of 25 brokers"
    figure = plain(title, "measure", "multiple of the neighbour graph's")
    measures = ["copies_per_subscriber", "bytes_per_move", "messages_per_move", "handoff p50", "throughput"]
    graph = _variant(table, ("predictor-graph", "graph", "commute"), 100.0, measures)
    masses = sorted(table.points("predictor", "order-2", "commute", "throughput"))
    for mass, shade in zip(masses, SHADES, strict=False):
        ours = _variant(table, ("predictor", "order-2", "commute"), mass, measures)
        add_bars(
            figure,
            f"copies for {mass:.0%} of the probability",
            {name: ours[name] / graph[name] for name in ours if graph[name]},
            colour=shade,
        )
    return figure


def predictor_misses(table: Table) -> go.Figure:
    """What is paid for fewer copies: hand-offs without one, and loss."""
    title = "Prediction's price: Hand-offs that find no copy, and loss"
    figure = plain(title, "who gets copies", "percent")
    masses = sorted(table.points("predictor", "order-2", "commute", "throughput"))
    for measure, shade in (("unprepared_percent", SHADES[0]), ("loss_percent", SHADES[2])):
        values = {"all neighbours": table.points("predictor-graph", "graph", "commute", measure)[100.0]}
        line = table.points("predictor", "order-2", "commute", measure)
        values |= {f"order-2, {mass:.0%}": line[mass] for mass in masses}
        add_bars(figure, MEASURES[measure], values, colour=shade)
    return figure


def placement(table: Table) -> go.Figure:
    """Load-aware placement."""
    title = "Placement: Redirected by load over connected where they are, 200 subscribers, neighbour mobility"
    figure = plain(title, "measure", "by load / where they are")
    measures = ["throughput", "handoff p50", "copies_per_subscriber", "bytes_per_move", "messages_per_move"]
    own = _variant(table, ("placement", "own", "NBR"), 200.0, measures)
    load = _variant(table, ("placement", "load", "NBR"), 200.0, measures)
    ratios = {name: load[name] / own[name] for name in load if own[name]}
    ratios |= {
        "fullest broker": table.points("placement", "load", "NBR", "present_max")[200.0]
        / table.points("placement", "own", "NBR", "present_max")[200.0]
    }
    add_bars(figure, "pro-active", ratios)
    figure.add_hline(y=1.0, line_dash="dot")
    return figure


def both_move(table: Table) -> go.Figure:
    """Publishers and subscribers moving in one run."""
    title = "Both move: Throughput with a publisher that stays or roams, 100 subscribers"
    figure = plain(title, "routing", "messages a second")
    for series, shade in (("still", SHADES[0]), ("moving", SHADES[1])):
        key = [("both", series, routing, "throughput") for routing in ("flooding", "content")]
        values = {name[2]: table.points(*name)[100.0] for name in key}
        halves = [table.intervals(*name)[100.0] for name in key]
        add_bars(figure, f"publisher {series}", values, halves, shade)
    return figure


def readings(table: Table) -> go.Figure:
    """What the paper leaves open, read the other way."""
    title = "Readings: Throughput at 200 subscribers, random mobility, by what the paper leaves open"
    figure = plain(title, "scheme", "messages a second")
    for (experiment, name), shade in zip(
        (
            ("tables", "as in this study"),
            ("cheap-transfers", "a transferred event costs what a match costs"),
            ("slow-pings", "broken links are noticed after two and a half seconds"),
            ("ample", "queues without limit"),
            ("refusing", "full queues refuse what is new"),
        ),
        SHADES,
        strict=True,
    ):
        keys = [(experiment, scheme, "RND", "throughput") for scheme in SCHEMES]
        values = {NAMES[key[1]]: table.points(*key)[200.0] for key in keys}
        add_bars(figure, name, values, [table.intervals(*key)[200.0] for key in keys], shade)
    said = {NAMES[scheme]: THROUGHPUT[scheme, "RND", 200] for scheme in SCHEMES}
    add_bars(figure, "paper", said, colour="#909497")
    return figure


def window(table: Table) -> go.Figure:
    """The other reading of how the publisher is paced."""
    title = "Pacing: Throughput at 200 subscribers by how the publisher is paced"
    figure = plain(title, "scheme and mobility", "messages a second")
    cells = [(scheme, mobility) for scheme in SCHEMES for mobility in MOBILITIES]
    names = [f"{NAMES[scheme]} {mobility}" for scheme, mobility in cells]
    for experiment, name, shade in (
        ("tables", "one event at a time", SHADES[0]),
        ("window", "eight", SHADES[1]),
    ):
        keys = [(experiment, scheme, mobility, "throughput") for scheme, mobility in cells]
        values = [table.points(*key)[200.0] for key in keys]
        halves = [table.intervals(*key)[200.0] for key in keys]
        add_bars(figure, name, dict(zip(names, values, strict=True)), halves, shade)
    said = [THROUGHPUT[scheme, mobility, 200] for scheme, mobility in cells]
    add_bars(figure, "paper", dict(zip(names, said, strict=True)), colour="#909497")
    return figure


def _factor(table: Table, experiment: str, measure: str, title: str, x_title: str, y_title: str) -> go.Figure:
    figure = plain(title, x_title, y_title)
    for scheme in SCHEMES:
        add_line(figure, table, (experiment, scheme, "RND", measure), NAMES[scheme], COLOURS[scheme])
    return figure


def queue_size(table: Table) -> go.Figure:
    """Loss over the queue's size."""
    title = "Factor 1: Loss over the queue's size, 100 subscribers"
    return _factor(table, "queue_mb", "loss_percent", title, "MB a broker", "percent")


def sleep_time(table: Table) -> go.Figure:
    """Throughput over the publisher's pause."""
    title = "Factor 2: Throughput over the publisher's sleep time, 100 subscribers"
    return _factor(table, "sleep_s", "throughput", title, "s", "messages a second")


def bandwidth(table: Table) -> go.Figure:
    """Latency over the radio's bandwidth."""
    title = "Factor 3: Median hand-off over the radio's bandwidth, 100 subscribers"
    return _factor(table, "client_mbps", "handoff p50", title, "Mb/s", "ms")


def disconnected(table: Table) -> go.Figure:
    """Loss over the time that links stay broken."""
    title = "Factor 4: Loss over how long broken links stay broken, 100 subscribers"
    return _factor(table, "disconnect_s", "loss_percent", title, "s", "percent")


def between_brokers(table: Table) -> go.Figure:
    """Loss over the time between two brokers."""
    title = "Factor 5: Loss over how long the way to the next broker takes, 100 subscribers"
    return _factor(table, "handoff_s", "loss_percent", title, "s", "percent")


def _over_size(table: Table, measure: str, title: str, y_title: str) -> go.Figure:
    """A measure at 200 subscribers over the size of an event, and where the paper's number lies."""
    figure = plain(title, "KB an event", y_title)
    sizes = {EVENT_BYTES: "tables"} | {size: f"size-{size}" for size in OTHER_EVENT_BYTES}
    for scheme in SCHEMES:
        keys = {size: (name, scheme, "RND", measure) for size, name in sizes.items()}
        found = {size: key for size, key in keys.items() if 200.0 in table.points(*key)}
        if len(found) < 2:
            raise KeyError(measure)  # a line of one point says nothing about sizes
        figure.add_scatter(
            x=[size / 1024 for size in found],
            y=[table.points(*key)[200.0] for key in found.values()],
            error_y={
                "type": "data",
                "array": [table.intervals(*key)[200.0] for key in found.values()],
                "thickness": 1,
            },
            name=NAMES[scheme],
            mode="lines+markers",
            line={"color": COLOURS[scheme]},
        )
        ends = [size / 1024 for size in (min(found), max(found))]
        figure.add_scatter(
            x=ends,
            y=[TABLES[measure][scheme, "RND", 200]] * 2,
            name=f"{NAMES[scheme]}, paper",
            mode="lines",
            opacity=0.5,
            line={"color": COLOURS[scheme], "dash": "dot", "width": 1},
        )
    return figure


def size_throughput(table: Table) -> go.Figure:
    """Throughput over the size of an event."""
    title = "Size 1: Throughput over the size of an event, 200 subscribers, random mobility"
    return _over_size(table, "throughput", title, "messages a second")


def size_loss(table: Table) -> go.Figure:
    """Loss over the size of an event."""
    title = "Size 2: Loss over the size of an event, 200 subscribers, random mobility"
    return _over_size(table, "loss_percent", title, "percent")


def size_duplicates(table: Table) -> go.Figure:
    """Duplicates over the size of an event."""
    title = "Size 3: Duplicates over the size of an event, 200 subscribers, random mobility"
    return _over_size(table, "duplicates_percent", title, "percent")
