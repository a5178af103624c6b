"""The picture of a layout: places, radio range, tree, colour by interest, before and after a node's move."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go

from sojourn.sim.adhoc_layout import Layout, draw_interests
from sojourn.studies.adhoc_tree import parameters
from sojourn.studies.adhoc_tree.table import Table

EDGE, HEARD, MOVED = "#1e8449", "rgba(128,128,128,0.25)", "#c0392b"


def before_the_move(table: Table) -> go.Figure:
    """The settled tree."""
    drawn = _drawn(table)
    return _draw(drawn, drawn["places"], drawn["before"], "before the move")


def after_the_move(table: Table) -> go.Figure:
    """The tree after one node went elsewhere."""
    drawn = _drawn(table)
    places = [list(place) for place in drawn["places"]]
    places[drawn["node"]] = drawn["place"]
    return _draw(drawn, places, drawn["after"], "after the move")


def _drawn(table: Table) -> dict[str, Any]:
    for row in table.blocks["move", "", parameters.TIMEOUTS_S[1]]:
        if row.get("picture"):
            found: dict[str, Any] = json.loads(str(row["picture"]))
            return found
    raise KeyError("picture")


def _draw(drawn: dict[str, Any], places: list[list[float]], parents: list[int], when: str) -> go.Figure:
    node, reach = drawn["node"], drawn["range_m"]
    layout = Layout(seed=drawn["seed"])
    # The interests are the ones drawn for the layout; a move does not change them.
    interests = [each.intervals[0] for each in draw_interests(layout, np.array(drawn["places"]))]
    centres = [(low + high) / 2 for low, high in interests]
    figure = go.Figure()
    for child, parent in enumerate(parents):
        if parent >= 0:
            colour = MOVED if node in (child, parent) else EDGE
            _line(figure, places[child], places[parent], colour, 2.0)
    for one in range(len(places)):
        for other in range(one):
            apart = sum((a - b) ** 2 for a, b in zip(places[one], places[other], strict=True))
            if apart < reach**2 and parents[one] != other and parents[other] != one:
                _line(figure, places[one], places[other], HEARD, 0.6)
    for centre, colour in ((places[0], "#566573"), (places[node], MOVED)):
        x, y = centre
        figure.add_shape(
            type="circle",
            x0=x - reach, y0=y - reach, x1=x + reach, y1=y + reach,
            line={"color": colour, "width": 1, "dash": "dot"},
        )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=[place[0] for place in places],
            y=[place[1] for place in places],
            mode="markers+text",
            text=["root" if each == 0 else str(each) for each in range(len(places))],
            textposition="top center",
            name="nodes",
            customdata=[[low, high] for low, high in interests],
            hovertemplate="node %{text}: interest %{customdata[0]:.1f} to "
            "%{customdata[1]:.1f}<extra></extra>",
            marker={
                "size": [18 if each in (0, node) else 12 for each in range(len(places))],
                "symbol": ["square" if each == 0 else "circle" for each in range(len(places))],
                "color": centres,
                "colorscale": "Viridis",
                "colorbar": {"title": "interest"},
                "line": {"width": [3 if each == node else 1 for each in range(len(places))], "color": MOVED},
            },
        )
    )
    figure.update_layout(
        title=f"Layout and tree {when} of node {node}",
        xaxis_title="x, m",
        yaxis_title="y, m",
        showlegend=False,
    )
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    return figure


def _line(figure: go.Figure, one: list[float], other: list[float], colour: str, width: float) -> None:
    figure.add_shape(
        type="line", x0=one[0], y0=one[1], x1=other[0], y1=other[1],
        line={"color": colour, "width": width}, layer="below",
    )  # fmt: skip
