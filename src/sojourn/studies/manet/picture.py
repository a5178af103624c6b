"""Single events on their way over the map: a strip of frames that a slider goes through.

A frame shows the roads, the topic's home with its radius K, every node, and each hop of the event: to the
home and on to the subscribers; perimeter walks in another colour.
"""

import msgspec
import plotly.graph_objects as go

from sojourn.adhoc.packets import EVENT, PERIMETER
from sojourn.sim.manet.scenario import SCHEMES, Manet
from sojourn.studies.manet.runs import Frame, Picture, Point
from sojourn.studies.manet.table import Table

Edge = tuple[Point, Point]

TO_HOME, TO_SUBSCRIBER, WALK = "#2471a3", "#1e8449", "#c0392b"

SLIDER_PAD = {"t": 40}
"""Pixels above the slider's words: in a narrow window they would lie over the axis's."""


def strip(table: Table, scenario: str, scheme: str) -> go.Figure:
    """The frames of one drawn run; raises KeyError where there is none."""
    drawn = _drawn(table, scenario, scheme)
    figure = go.Figure()
    frames = drawn.frames
    steps = []
    _line(figure, "roads", [(road[i], road[i + 1]) for road in drawn.roads for i in range(len(road) - 1)],
          "rgba(128,128,128,0.5)", 4.0)  # fmt: skip
    for number, frame in enumerate(frames):
        before = len(figure.data)
        _frame(figure, drawn, frame)
        for trace in figure.data[before:]:
            trace.visible = number == 0
    traces_a_frame = (len(figure.data) - 1) // max(1, len(frames))
    for number, frame in enumerate(frames):
        shown = [True] + [at // traces_a_frame == number for at in range(traces_a_frame * len(frames))]
        steps.append({"method": "restyle", "args": ["visible", shown], "label": f"{frame.time_s:.0f} s"})
    figure.update_layout(
        title=f"Events on their way under {SCHEMES[scheme].title}, {scenario}",
        xaxis_title="x, m",
        yaxis_title="y, m",
        sliders=[
            {
                "active": 0,
                "steps": steps,
                "currentvalue": {"prefix": "an event published at "},
                "pad": SLIDER_PAD,
            }
        ],
    )
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    return figure


def _drawn(table: Table, scenario: str, scheme: str) -> Picture:
    if "picture" not in table.runs.columns:
        raise KeyError("picture")
    runs = table.runs
    chosen = runs[(runs["experiment"] == scenario) & (runs["series"] == scheme) & runs["picture"].notna()]
    if chosen.empty:
        raise KeyError("picture")
    return msgspec.json.decode(str(chosen.iloc[0]["picture"]), type=Picture)


def _frame(figure: go.Figure, drawn: Picture, frame: Frame) -> None:
    places = frame.places
    home_x, home_y = drawn.homes[frame.topic]
    ways: dict[str, list[Edge]] = {"to the home": [], "to subscribers": [], "perimeter walk": []}
    for sender, to, mode, what in frame.hops:
        way = "perimeter walk" if mode == PERIMETER else "to the home" if what == EVENT else "to subscribers"
        ways[way].append((places[sender], places[to]))
    for (name, edges), colour in zip(ways.items(), (TO_HOME, TO_SUBSCRIBER, WALK), strict=True):
        _line(figure, name, edges, colour, 2.5)
    due, publisher = set(frame.due), frame.publisher
    figure.add_trace(
        go.Scatter(
            x=[place[0] for place in places],
            y=[place[1] for place in places],
            mode="markers",
            name="nodes (large: publisher; green: subscribers it is for)",
            text=[f"node {node}" for node in range(len(places))],
            marker={
                "size": [
                    16 if node == publisher else 10 if node in due else 6 for node in range(len(places))
                ],
                "color": [
                    TO_HOME if node == publisher else TO_SUBSCRIBER if node in due else "#85929e"
                    for node in range(len(places))
                ],
            },
        )
    )
    figure.add_trace(
        go.Scatter(
            x=[home_x],
            y=[home_y],
            mode="markers",
            name=f"the topic's home; whoever is within {Manet().proximity_m:g} m acts for it",
            marker={"symbol": "star", "size": 18, "color": "#e08e0b"},
        )
    )


def _line(figure: go.Figure, name: str, edges: list[Edge], colour: str, width: float) -> None:
    """Many lines as one trace, with a gap after each."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for one, other in edges:
        xs += [one[0], other[0], None]
        ys += [one[1], other[1], None]
    figure.add_trace(
        go.Scatter(
            x=xs or [None],
            y=ys or [None],
            mode="lines",
            name=name,
            hoverinfo="skip",
            line={"color": colour, "width": width},
        )
    )
