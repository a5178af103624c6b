"""Figures 4 and 5 of paper 004 redrawn from our own runs, and those that go beyond it.

The paper prints curves and no numbers, so nothing of it is marked. Bars are 95% intervals over seeds.
"""

from functools import partial

import plotly.graph_objects as go

from sojourn.sim.manet.scenario import SCHEMES
from sojourn.studies.drawing import Figure, add_points
from sojourn.studies.manet.parameters import (
    FREEWAY,
    MANHATTAN,
    MAPPED,
    NEAREST,
    NO_HELLO,
    OURS,
    READINGS,
    SIX,
)
from sojourn.studies.manet.table import Table

COLOURS = {
    "r-aodv": "#e08e0b",
    "b-aodv": "#c0392b",
    "r-gpsr": "#85929e",
    "b-gpsr": "#34495e",
    "r-gpsr-map": "#2471a3",
    "b-gpsr-map": "#1e8449",
    OURS: "#7d3c98",
}
DASHES = {"r": "dash", "b": "solid"}
Y_TITLES = {
    "delivery_ratio": "deliveries over those due",
    "delay_ms": "mean delay of deliveries, ms",
    "load_bytes_s": "bytes sent per node and second",
}
PARTS = {
    "subscriptions": ("subscribe", "replica"),
    "advertisements and lists": ("advertise", "list"),
    "events": ("event", "delivery", "copy", "receipt", "offer"),
    "beacons and hellos": ("beacon", "hello"),
    "AODV's requests, replies, errors": ("route request", "route reply", "route error"),
}


def _plain(title: str, y_title: str, x_title: str = "speed, m/s") -> go.Figure:
    figure = go.Figure()
    figure.update_layout(title=title, xaxis_title=x_title, yaxis_title=y_title)
    # Intervals over few seeds reach beyond what a share can be.
    bounds = {"range": [0, 1.02]} if y_title == Y_TITLES["delivery_ratio"] else {"rangemode": "tozero"}
    figure.update_yaxes(**bounds)
    return figure


def _add(figure: go.Figure, table: Table, key: tuple[str, str, str], name: str, **look: str) -> None:
    points = table.line(*key)
    halves = table.intervals(key[0], key[1], "none", key[2])
    colour, dash = look.get("colour", COLOURS[key[1]]), look.get("dash", DASHES[key[1][0]])
    add_points(figure, name, points, halves=[halves[x] for x in points], colour=colour, dash=dash)


def over_speed(table: Table, scenario: str, measure: str, title: str) -> go.Figure:
    """A panel of Figure 4 or 5: the six schemes, and ours."""
    figure = _plain(f"{title}, {scenario}", Y_TITLES[measure])
    for scheme in (*SIX, OURS):
        _add(figure, table, (scenario, scheme, measure), SCHEMES[scheme].title)
    return figure


def composition(table: Table, scenario: str) -> go.Figure:
    """What the load is made of."""
    figure = _plain(f"What is sent, {scenario}", Y_TITLES["load_bytes_s"], "scheme")
    runs = table.runs[table.runs["experiment"] == scenario]
    schemes = (*SIX, OURS)
    for part, kinds in PARTS.items():
        columns = [f"bytes_s {kind}" for kind in kinds if f"bytes_s {kind}" in runs.columns]
        heights = [
            float(runs[runs["series"] == scheme][columns].fillna(0.0).astype(float).sum(axis=1).mean())
            for scheme in schemes
        ]
        figure.add_trace(go.Bar(x=[SCHEMES[scheme].title for scheme in schemes], y=heights, name=part))
    figure.update_layout(barmode="stack")
    return figure


def proximity(table: Table, scenario: str) -> go.Figure:
    """Delivery with and without proximity selection."""
    figure = _plain(f"Any node within K, or the nearest one, {scenario}", Y_TITLES["delivery_ratio"])
    for scheme in MAPPED:
        _add(figure, table, (scenario, scheme, "delivery_ratio"), SCHEMES[scheme].title, dash="solid")
        name = f"{SCHEMES[scheme].title}, nearest node"
        _add(figure, table, (scenario + NEAREST, scheme, "delivery_ratio"), name, dash="dot")
    return figure


def hellos(table: Table, measure: str) -> go.Figure:
    """AODV with hellos, as the RFC has them, and without, as ns-2 has it."""
    figure = _plain("AODV with and without hello", Y_TITLES[measure])
    for scenario in (FREEWAY, MANHATTAN):
        for scheme in ("r-aodv", "b-aodv"):
            title = f"{SCHEMES[scheme].title}, {scenario}"
            _add(figure, table, (scenario, scheme, measure), title, dash="solid")
            _add(figure, table, (scenario + NO_HELLO, scheme, measure), f"{title}, no hello", dash="dot")
    return figure


def read_so(table: Table, reading: str, measure: str, scenario: str) -> go.Figure:
    """The schemes that a reading changes, as it has them and as ours does."""
    what = {"delivery_ratio": "Delivery", "delay_ms": "Delay", "load_bytes_s": "Load"}[measure]
    figure = _plain(f"{what}, {scenario}: {READINGS[reading].title}", Y_TITLES[measure])
    for scheme in READINGS[reading].schemes:
        _add(figure, table, (scenario, scheme, measure), f"{SCHEMES[scheme].title}, ours", dash="solid")
        name = f"{SCHEMES[scheme].title}, read so"
        _add(figure, table, (scenario + reading, scheme, measure), name, dash="dot")
    return figure


def panels(number: str, scenario: str) -> list[Figure[Table]]:
    """The three panels of a figure of the paper."""
    return [
        Figure(
            f"{number}a",
            ("E-void", "E-map", "E-rendezvous-sensitive"),
            partial(over_speed, scenario=scenario, measure="delivery_ratio", title="Delivery over speed"),
        ),
        Figure(
            f"{number}b",
            ("E-delay",),
            partial(over_speed, scenario=scenario, measure="delay_ms", title="Delay over speed"),
        ),
        Figure(
            f"{number}c",
            ("E-load",),
            partial(over_speed, scenario=scenario, measure="load_bytes_s", title="Load over speed"),
        ),
    ]
