"""The paper's figures 4 to 11 redrawn from our own runs, with 95% intervals and the paper's stated numbers.

A figure is a row of data here, drawn by one method. What the paper prints as a curve but not as a
number is not copied: only numbers that its text or axes state are marked.
"""

import math
from typing import NamedTuple

import plotly.graph_objects as go

from sojourn.studies.means import Table
from sojourn.studies.publisher_mobility.grid import FOUR, Line, lines

COLOURS = {
    "standard": "#c0392b",
    "prefetching": "#e08e0b",
    "proxy": "#2471a3",
    "delayed": "#1e8449",
    "prefetch-delayed": "#7d3c98",
    "proxy+delayed": "#566573",
}
DASHES = {"none": "solid", "fast": "dash", "complex": "dot"}
SYMBOLS = {"none": "circle", "fast": "square", "complex": "diamond"}
RINGS = {"delayed": ("circle-open", 12), "proxy+delayed": ("square-open", 11)}
"""Lines that often lie on another one: their markers are rings around the other's."""


class Mark(NamedTuple):
    """A number the paper states, as a horizontal or vertical line with a label."""

    value: float
    label: str
    vertical: bool = False


class Figure(NamedTuple):
    """One figure of the paper, as data; it draws itself."""

    number: str
    title: str
    experiment: str
    lines: tuple[Line, ...]
    measure: str
    y_title: str
    x_title: str
    claims: tuple[str, ...]
    divisor: float = 1.0
    log: bool = False
    marks: tuple[Mark, ...] = ()

    def draw(self, table: Table) -> go.Figure:
        """The figure with its intervals and marks."""
        chart = go.Figure()
        several_models = len({line.computations for line in self.lines}) > 1
        several_protocols = len({line.protocol for line in self.lines}) > 1
        for line in self.lines:
            wanted = (self.experiment, line.protocol, line.computations, self.measure)
            points, halves = table.points(*wanted), table.intervals(*wanted)
            name = " ".join(
                word
                for word, shown in ((line.protocol, several_protocols), (line.computations, several_models))
                if shown
            )
            chart.add_scatter(
                x=list(points),
                y=[value / self.divisor for value in points.values()],
                error_y={
                    "type": "data",
                    "array": [half / self.divisor for half in halves.values()],
                    "thickness": 1,
                },
                name=name or line.protocol,
                mode="lines+markers",
                line={
                    "color": COLOURS[line.protocol],
                    "dash": DASHES[line.computations] if several_models else "solid",
                },
                marker=_marker(line, several_models=several_models),
            )
        for mark in self.marks:
            crowded = mark.vertical and any(not other.vertical for other in self.marks)
            _add_mark(chart, mark, log=self.log, lower_px=LABEL_PX if crowded else 0)
        chart.update_layout(
            title=f"Figure {self.number}: {self.title}" if self.number[0].isdigit() else self.title,
            xaxis_title=self.x_title,
            yaxis_title=self.y_title,
            template="plotly_white",
            legend={"orientation": "h", "y": -0.25},
            margin={"l": 60, "r": 20, "t": 60, "b": 60},
        )
        if self.log:
            chart.update_yaxes(type="log")
        else:
            chart.update_yaxes(rangemode="tozero")
        return chart


LABEL_PX = 18
"""How far down a vertical mark's label goes where a horizontal mark has one too: on a phone they meet."""
EVERY = ("none", "fast", "complex")
PUBLISHERS = "publishers"
SPEED = "publisher speed, km/h"
OVERSHOOT = "overshoot, brokers"
LOCALITY = "publication locality, share of publishers"
COST = "control messages a minute (each hop)"
TIME = "mean tree rebuilding time, ms"
SECONDS = "mean tree rebuilding time, s"

FIGURES = (
    Figure(
        "4a",
        "Message cost over publishers, no computations",
        "publishers",
        lines((*FOUR, "prefetching", "proxy+delayed"), ("none",)),
        "messages_per_min",
        COST,
        PUBLISHERS,
        ("A-fig4a-linear", "A-fig4a-tenfold", "A-fig4a-prefetching", "A-fig4a-order", "A-combination"),
        log=True,
    ),
    Figure(
        "4b",
        "Rebuilding time over publishers, no computations",
        "publishers",
        lines((*FOUR, "proxy+delayed"), ("none",)),
        "rebuild_ms",
        TIME,
        PUBLISHERS,
        ("A-fig4b-order", "A-fig4b-flat", "A-combination"),
    ),
    Figure(
        "5a",
        "Rebuilding time over publishers, fast class",
        "publishers",
        lines((*FOUR, "proxy+delayed"), ("fast",)),
        "rebuild_ms",
        TIME,
        PUBLISHERS,
        ("A-fig5a-order-of-magnitude",),
        log=True,
    ),
    Figure(
        "5b",
        "Rebuilding time over publishers, complex class",
        "publishers",
        lines((*FOUR, "proxy+delayed"), ("complex",)),
        "rebuild_ms",
        SECONDS,
        PUBLISHERS,
        ("A-fig5b-collapse",),
        divisor=1000.0,
        log=True,
        marks=(
            Mark(60.0, "paper: standard above 60 s at 250"),
            Mark(150.0, "paper: collapse after 150", vertical=True),
        ),
    ),
    Figure(
        "5c",
        "Prefetch-delayed under each class of computations",
        "publishers",
        lines(("prefetch-delayed",), EVERY),
        "rebuild_ms",
        TIME,
        PUBLISHERS,
        ("A-fig5c-even-the-best",),
        log=True,
    ),
    Figure(
        "6a",
        "Message cost over speed, no computations",
        "speed",
        lines(FOUR, ("none",)),
        "messages_per_min",
        COST,
        SPEED,
        ("A-fig6a-speed-cost",),
        log=True,
    ),
    Figure(
        "6b",
        "Rebuilding time over speed, no computations",
        "speed",
        lines(FOUR, ("none",)),
        "rebuild_ms",
        TIME,
        SPEED,
        ("A-fig6b-speed-time-flat",),
    ),
    Figure(
        "7a",
        "Rebuilding time over speed, complex class",
        "speed",
        lines(FOUR, ("complex",)),
        "rebuild_ms",
        SECONDS,
        SPEED,
        ("A-fig7-speed-complex",),
        divisor=1000.0,
        log=True,
    ),
    Figure(
        "7b",
        "Standard under each class of computations over speed",
        "speed",
        lines(("standard",), EVERY),
        "rebuild_ms",
        TIME,
        SPEED,
        ("A-fig7-speed-complex",),
        log=True,
    ),
    Figure(
        "8a",
        "Message cost of patrols over the overshoot",
        "overshoot",
        lines((*FOUR, "proxy+delayed"), ("none",)),
        "messages_per_min",
        COST,
        OVERSHOOT,
        ("A-fig8-overshoot",),
    ),
    Figure(
        "8b",
        "Rebuilding time of patrols over the overshoot",
        "overshoot",
        lines(("proxy", "prefetch-delayed", "proxy+delayed"), ("none",)),
        "rebuild_ms",
        TIME,
        OVERSHOOT,
        ("A-fig8-overshoot",),
        marks=(Mark(3.0, "paper: proxy meets prefetch-delayed", vertical=True),),
    ),
    Figure(
        "9a",
        "Rebuilding time of patrols, fast class",
        "overshoot",
        lines(("proxy", "prefetch-delayed"), ("fast",)),
        "rebuild_ms",
        TIME,
        OVERSHOOT,
        ("A-fig9-overshoot-computed",),
        marks=(Mark(2.0, "paper: they meet", vertical=True),),
    ),
    Figure(
        "9b",
        "Rebuilding time of patrols, complex class",
        "overshoot",
        lines(("proxy", "prefetch-delayed"), ("complex",)),
        "rebuild_ms",
        TIME,
        OVERSHOOT,
        ("A-fig9-overshoot-computed",),
        marks=(Mark(1.0, "paper: about equal", vertical=True),),
    ),
    Figure(
        "10a",
        "Message cost over publication locality, no computations",
        "locality",
        lines((*FOUR, "proxy+delayed"), ("none",)),
        "messages_per_min",
        COST,
        LOCALITY,
        ("A-fig10-locality",),
        log=True,
    ),
    Figure(
        "10b",
        "Rebuilding time over publication locality, no computations",
        "locality",
        lines((*FOUR, "proxy+delayed"), ("none",)),
        "rebuild_ms",
        TIME,
        LOCALITY,
        ("A-fig10-locality",),
        marks=(Mark(0.9, "paper: proxy fastest", vertical=True),),
    ),
    Figure(
        "10c",
        "Rebuilding time over publication locality, complex class",
        "locality",
        lines((*FOUR, "proxy+delayed"), ("complex",)),
        "rebuild_ms",
        SECONDS,
        LOCALITY,
        ("A-fig10-locality",),
        divisor=1000.0,
        log=True,
    ),
    Figure(
        "8c",
        "The same with arrivals at own proxies as zeros",
        "overshoot",
        lines(("proxy", "prefetch-delayed", "proxy+delayed"), ("none",)),
        "rebuild_all_ms",
        TIME,
        OVERSHOOT,
        ("A-fig8-overshoot", "A-fig9-overshoot-computed"),
        marks=(Mark(3.0, "paper: proxy meets prefetch-delayed", vertical=True),),
    ),
    Figure(
        "proxies",
        "Message cost of patrols over the number of proxies",
        "proxies",
        lines(("proxy", "prefetch-delayed"), ("none",)),
        "messages_per_min",
        COST,
        "proxies of a publisher that patrols nine brokers",
        ("A-fig8-overshoot",),
    ),
    Figure(
        "teardown",
        "Teardown time over publishers, no computations",
        "publishers",
        lines((*FOUR, "proxy+delayed"), ("none",)),
        "teardown_ms",
        "mean time to tear a tree down, ms",
        PUBLISHERS,
        ("A-fig4b-order",),
    ),
    Figure(
        "11",
        "Delivery ratio of standard, one event every two seconds",
        "delivery",
        lines(("standard",), EVERY),
        "delivery_ratio",
        "delivered / expected",
        PUBLISHERS,
        ("A-fig11-delivery",),
        marks=(Mark(1.0, "paper: about 100% without computations"),),
    ),
)


def _marker(line: Line, *, several_models: bool) -> dict[str, str | int]:
    if several_models:
        return {"symbol": SYMBOLS[line.computations], "size": 7}
    symbol, size = RINGS.get(line.protocol, ("circle", 7))
    return {"symbol": symbol, "size": size}


def _add_mark(chart: go.Figure, mark: Mark, *, log: bool, lower_px: int) -> None:
    style = {"line_dash": "dot", "line_color": "#888888"}
    if mark.vertical:
        chart.add_vline(
            x=mark.value,
            annotation_text=mark.label,
            annotation_position="top right",
            annotation_yshift=-lower_px,
            **style,
        )
        return
    chart.add_hline(y=mark.value, **style)
    # On a logarithmic axis Plotly places shapes by value but annotations by exponent.
    chart.add_annotation(
        text=mark.label,
        x=0,
        xref="x domain",
        xanchor="left",
        y=math.log10(mark.value) if log else mark.value,
        yanchor="top",
        showarrow=False,
    )
