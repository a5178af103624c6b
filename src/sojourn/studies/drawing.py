"""What the figures of all studies share: what a figure is, how it looks when it is empty, and its lines."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import plotly.graph_objects as go

TableT = TypeVar("TableT")


class Figure(NamedTuple, Generic[TableT]):
    """One figure and the claims it bears on."""

    number: str
    claims: tuple[str, ...]
    draw: Callable[[TableT], go.Figure]
    """From the study's table; raises KeyError or ValueError where it has no points for it."""


def empty(title: str, x_title: str, y_title: str, **layout: object) -> go.Figure:
    """A figure without lines; its title may hold its number, before a colon."""
    return go.Figure().update_layout(
        title=title,
        xaxis_title=x_title,
        yaxis_title=y_title,
        template="plotly_white",
        legend={"orientation": "h", "y": -0.25},
        **layout,
    )


def add_points(
    figure: go.Figure,
    name: str,
    points: Mapping[float, float],
    *,
    halves: Sequence[float] | None = None,
    colour: str = "#2471a3",
    dash: str = "solid",
) -> None:
    """One line through its points, with half the width of their intervals where there are any."""
    figure.add_scatter(
        x=list(points),
        y=list(points.values()),
        name=name,
        mode="lines+markers",
        error_y={"type": "data", "array": list(halves)} if halves is not None else None,
        line={"color": colour, "dash": dash},
    )
