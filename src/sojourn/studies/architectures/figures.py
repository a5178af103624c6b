"""The study's figures. Paper 003 prints no curves, so all of them are ours; points are means over seeds."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from sojourn.studies.architectures import parameters
from sojourn.studies.architectures.grid import PLAIN
from sojourn.studies.architectures.quenching import break_even, ratios
from sojourn.studies.architectures.table import Table
from sojourn.studies.drawing import add_points, empty

PALETTE = ("#1e8449", "#2471a3", "#7d3c98", "#e08e0b", "#c0392b", "#566573", "#117a65")
UNWANTED = "share of events that nobody wants"
CHANGES = "subscription changes for each event of a source"


def _add(figure: go.Figure, name: str, points: Mapping[float, float], at: int, dash: str = "solid") -> None:
    add_points(figure, name, points, colour=PALETTE[at % len(PALETTE)], dash=dash)


def quench_bytes(table: Table) -> go.Figure:
    """Bytes on sources' links with quenching over those without."""
    figure = empty("Bytes on sources' links, quenched over plain", UNWANTED, "ratio")
    for at, churn in enumerate(table.churns()):
        _add(figure, f"{churn:g} changes an event", dict(ratios(table, churn, "eager")), at)
    figure.add_hline(y=1, line_dash="dot", annotation_text="above: quenching costs more")
    return figure


def quench_work(table: Table) -> go.Figure:
    """What quenching makes a source do for an event."""
    figure = empty("Work of a source: attributes compared for an event", UNWANTED, "comparisons an event")
    experiment = f"quench {table.churns()[0]:g}"
    for at, mode in enumerate((PLAIN, *parameters.QUENCH_MODES)):
        work = table.line(experiment, mode, "comparisons_per_event")
        share = table.line(experiment, mode, "unmatched_share")
        _add(figure, mode, {share[x]: work[x] for x in work}, at)
    return figure


def break_even_lines(table: Table) -> go.Figure:
    """The unwanted share from which on quenching pays, over the churn."""
    figure = empty(
        "Break-even: above a line quenching pays, below it does not",
        CHANGES,
        "unwanted share at which both cost the same",
        yaxis_range=[0, 1.05],
    )
    churns = table.churns()
    for at, mode in enumerate(parameters.QUENCH_MODES):
        points = {churn: break_even(ratios(table, churn, mode)) for churn in churns}
        _add(figure, mode, {churn: share for churn, share in points.items() if share <= 1}, at)
    for at, price in enumerate(parameters.COMPARISON_PRICES[1:]):
        points = {churn: break_even(ratios(table, churn, "eager", price)) for churn in churns}
        kept = {churn: share for churn, share in points.items() if share <= 1}
        _add(figure, f"eager, a comparison costs {price:g} bytes", kept, at + 3, "dot")
    return figure


def offline(table: Table) -> go.Figure:
    """Interesting events that a disconnected source lost."""
    figure = empty(
        "A source away: interesting events lost",
        f"buffer, of {parameters.OFFLINE_EVENTS} events",
        "share lost",
    )
    for at, series in enumerate(table.series("offline")):
        wanted = table.line("offline", series, "interesting")
        for what, dash in (("quench", "solid"), ("oldest", "dot")):
            lost = table.line("offline", series, f"lost_{what}")
            points = {x: lost[x] / wanted[x] if wanted[x] else 0.0 for x in lost}
            _add(figure, f"{what} first, {series}", points, at, dash)
    return figure


def _by_brokers(table: Table, measure: str, title: str, y_title: str) -> go.Figure:
    figure = empty(title, "brokers", y_title, xaxis_type="log", yaxis_type="log")
    for at, name in enumerate(("broadcast", "flooding", "multicast")):
        points = table.line("brokers", name, measure)
        if measure not in ("event_hops", "interest_hops"):
            points = table.line("brokers", "central", measure) | points
        _add(figure, name, points, at)
    return figure


def matching(table: Table) -> go.Figure:
    """Subscriptions that a broker holds an event against, over the number of brokers."""
    figure = _by_brokers(
        table, "compared_mean", "Matching at a broker for each event published", "subscriptions compared"
    )
    one = table.line("brokers", "central", "compared_mean")[1.0]
    brokers = sorted({1.0, *table.xs("brokers", "broadcast")})
    _add(figure, "one broker's over M", {m: one / m for m in brokers}, 5, "dot")
    return figure


def traffic(table: Table) -> go.Figure:
    """Hops of an event between brokers."""
    return _by_brokers(table, "event_hops", "Traffic: hops of an event between brokers", "hops per event")


def knowledge(table: Table) -> go.Figure:
    """What a broker must know."""
    return _by_brokers(
        table, "entries_mean", "Knowledge: subscriptions in a broker's table", "subscriptions known"
    )


def selectivity(table: Table) -> go.Figure:
    """Multicast traffic over broadcast traffic, by how much a subscription wants."""
    figure = empty(
        f"Multicast over broadcast, {parameters.SCALING_BROKERS} brokers",
        "values that a subscription covers, of 1000",
        "ratio of event hops",
        xaxis_type="log",
    )
    broad = table.line("selectivity", "broadcast", "event_hops")
    pruned = table.line("selectivity", "multicast", "event_hops")
    _add(figure, "multicast over broadcast", {x: pruned[x] / broad[x] for x in broad}, 0)
    return figure


def queues(table: Table) -> go.Figure:
    """Bytes sent to a displayer that comes back."""
    figure = empty("Bytes at reconnection", "events missed", "bytes sent", xaxis_type="log", yaxis_type="log")
    for at, policy in enumerate(parameters.QUEUE_POLICIES):
        _add(figure, policy, table.line("queues", policy, "bytes_sent"), at)
    return figure


def replication(table: Table) -> go.Figure:
    """What users miss, by number of replicas and filter."""
    figure = empty(
        "Replication: events that a user misses",
        "share of copies lost on the way to a broker",
        "share missed",
    )
    for at, series in enumerate(("1 broker", "2 brokers", "3 brokers")):
        for name, dash in (("duplicates", "solid"), ("ordered", "dot")):
            missed = table.line("replicas", series, f"{name} missed")
            wanted = table.line("replicas", series, f"{name} matching")
            if series == "1 broker" and name == "ordered":
                continue  # the same: one broker delivers in order
            points = {x: missed[x] / wanted[x] for x in missed}
            _add(figure, f"{series}, {name} filter" if at else series, points, at, dash)
    return figure


def healing(table: Table) -> go.Figure:
    """Time from the healing of the network until one broker has everything."""
    figure = empty("Ad-hoc broker: time to heal", "refresh period, s", "seconds")
    xs = table.xs("refresh", "")
    healed = {x: table.listed("healed_s", "refresh", "", x).given for x in xs}
    shown = {x: table.listed("delivered_s", "refresh", "", x).given for x in xs}
    _add(figure, "one broker, all subscriptions: median", {x: float(np.median(healed[x])) for x in xs}, 0)
    _add(figure, "the same, slowest history", {x: float(healed[x].max()) for x in xs}, 0, "dot")
    _add(figure, "all events owed shown: median", {x: float(np.median(shown[x])) for x in xs}, 1)
    _add(figure, "the same, slowest history", {x: float(shown[x].max()) for x in xs}, 1, "dot")
    return figure


def waiting(table: Table) -> go.Figure:
    """How long events wait for a displayer that has come back, by way of coordination."""
    figure = empty("Moving displayers: seconds until an event is shown", "", "seconds, mean over runs")
    names = table.series("roam")
    values = [table.mean("held_mean_s", "roam", name) for name in names]
    figure.add_trace(go.Bar(x=names, y=values, name="mean wait", marker={"color": PALETTE[1]}))
    return figure
