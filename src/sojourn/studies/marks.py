"""What a paper says, drawn into our figures: dotted and grey, so that nobody takes it for our measurement."""

from collections.abc import Sequence

import plotly.graph_objects as go

MUTED = "#909497"
"""The colour of everything that is a paper's."""


def paper_line(
    figure: go.Figure,
    text: str,
    *,
    x: float | None = None,
    y: float | None = None,
    position: str = "top right",
) -> None:
    """A line at a number that a paper states, with what it says there."""
    style = {
        "line_dash": "dot",
        "line_color": MUTED,
        "annotation_text": text,
        "annotation_font_color": MUTED,
        "annotation_position": position,
    }
    if x is not None:
        figure.add_vline(x=x, **style)
    if y is not None:
        figure.add_hline(y=y, **style)


def paper_points(
    figure: go.Figure, name: str, x: Sequence[float], y: Sequence[float], symbol: str = "x"
) -> None:
    """Points that a paper states."""
    figure.add_scatter(
        x=list(x),
        y=list(y),
        name=f"{name}, paper",
        mode="markers",
        marker={"symbol": symbol, "size": 9, "color": MUTED},
    )
