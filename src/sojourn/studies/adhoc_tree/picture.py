"""The picture of a layout: places, radio range, tree, colour by interest, before and after a node's move."""

import math

import msgspec
import numpy as np
import plotly.graph_objects as go

from sojourn.sim.adhoc.layout import Layout, draw_interests
from sojourn.studies.adhoc_tree import parameters
from sojourn.studies.adhoc_tree.runs import Picture
from sojourn.studies.adhoc_tree.table import Table

EDGE, HEARD, MOVED = "#1e8449", "rgba(128,128,128,0.25)", "#c0392b"


def before_the_move(table: Table) -> go.Figure:
    """The settled tree."""
    drawn = _drawn(table)
    return _draw(drawn, drawn.places, drawn.before, "before the move")


def after_the_move(table: Table) -> go.Figure:
    """The tree after one node went elsewhere."""
    drawn = _drawn(table)
    places = [list(place) for place in drawn.places]
    places[drawn.node] = drawn.place
    return _draw(drawn, places, drawn.after, "after the move")


def _drawn(table: Table) -> Picture:
    for row in table.blocks["move", "", parameters.TIMEOUTS_S[1]]:
        if row.get("picture"):
            return msgspec.json.decode(str(row["picture"]), type=Picture)
    raise KeyError("picture")


def _draw(drawn: Picture, places: list[list[float]], parents: list[int], when: str) -> go.Figure:
    node, reach = drawn.node, drawn.range_m
    layout = Layout(seed=drawn.seed)
    # The interests are the ones drawn for the layout; a move does not change them.
    interests = [each.intervals[0] for each in draw_interests(layout, np.array(drawn.places))]
    centres = [(low + high) / 2 for low, high in interests]
    figure = go.Figure()
    tree = [(child, parent) for child, parent in enumerate(parents) if parent >= 0]
    heard = [
        (one, other)
        for one in range(len(places))
        for other in range(one)
        if math.dist(places[one], places[other]) < reach
        and (one, other) not in tree
        and (other, one) not in tree
    ]
    _lines(figure, "within radio range", heard, places, HEARD, 0.6)
    _lines(figure, "tree", [edge for edge in tree if node not in edge], places, EDGE, 2.0)
    _lines(figure, "tree at the node that moves", [edge for edge in tree if node in edge], places, MOVED, 2.5)
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
            showlegend=False,
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
        template="plotly_white",
        legend={"orientation": "h", "y": -0.2},
    )
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    return figure


def _lines(
    figure: go.Figure,
    name: str,
    edges: list[tuple[int, int]],
    places: list[list[float]],
    colour: str,
    width: float,
) -> None:
    """Many lines as one trace, with a gap after each."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for one, other in edges:
        xs += [places[one][0], places[other][0], None]
        ys += [places[one][1], places[other][1], None]
    figure.add_trace(
        go.Scatter(
            x=xs, y=ys, mode="lines", name=name, hoverinfo="skip", line={"color": colour, "width": width}
        )
    )
