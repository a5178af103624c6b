"""Captions, notes about empty lines and intervals, and the papers behind the studies."""

import math

import plotly.graph_objects as go
import pytest

from sojourn.cli.reproduce import undrawn
from sojourn.errors import SojournError
from sojourn.studies.captions import caption_of, tidy, with_notes
from sojourn.studies.papers import paper_of
from sojourn.studies.registry import STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_has_a_caption(name: str) -> None:
    """A sentence that ends, for each figure of each study; one that is not drawn is named with it."""
    study = STUDIES[name]
    for figure in study.figures:
        assert caption_of(name, figure.number).endswith("."), figure.number
    numbers = [figure.number for figure in study.figures]
    assert undrawn(study, numbers) == []
    assert undrawn(study, numbers[1:]) == [(numbers[0], caption_of(name, numbers[0]))]


def _figure(halves: list[float], ys: list[float]) -> go.Figure:
    drawn = go.Figure()
    drawn.add_scatter(x=[1, 2], y=ys, name="ours", error_y={"type": "data", "array": halves})
    drawn.add_scatter(x=[], y=[], name="never run")
    return drawn


def test_bars_are_explained_only_where_there_are_some() -> None:
    """With several seeds there are intervals, with one there are none and nobody speaks of them."""
    several, alone = _figure([0.1, 0.2], [1.0, 2.0]), _figure([math.nan, math.nan], [1.0, 2.0])
    assert tidy(several) == tidy(alone) == ["never run"]
    assert [trace.name for trace in several.data] == ["ours"]
    assert "95% intervals over seeds" in with_notes("A.", several, [], "seeds")
    assert "95%" not in with_notes("A.", alone, [], "seeds")
    assert alone.data[0].error_y.array is None, "bars without a length would be drawn as dashes"
    assert with_notes("A.", alone, ["never run"], "seeds") == "A. Without points at this scale: never run."


def test_a_figure_of_zeros_says_so() -> None:
    """It looks empty, and is not."""
    zeros = _figure([math.nan, math.nan], [0.0, 0.0])
    tidy(zeros)
    assert "Every value is 0" in with_notes("A.", zeros, [], "seeds")


def test_lines_of_one_point_are_explained() -> None:
    """A dot in an empty field looks like a mistake."""
    dots = go.Figure(go.Scatter(x=[4], y=[2.0], mode="lines+markers", name="ours"))
    assert with_notes("A.", dots, [], "seeds") == "A. Each line has one point at this scale."
    bars = go.Figure(go.Bar(x=["a"], y=[2.0]))
    assert with_notes("A.", bars, [], "seeds") == "A."


def test_a_figure_with_a_slider_keeps_the_places_of_its_lines() -> None:
    """The slider shows and hides lines by their places, so none is taken out, and none is named."""
    drawn = _figure([0.1, 0.2], [1.0, 2.0])
    drawn.update_layout(sliders=[{"steps": [{"method": "restyle", "args": ["visible", [True, False]]}]}])
    assert tidy(drawn) == []
    assert [trace.name for trace in drawn.data] == ["ours", "never run"]


def test_every_study_names_its_paper() -> None:
    """Authors, title and year where they are known, and a mark where the title is not printed in our text."""
    cited = {name: paper_of(name).cited for name in STUDIES}
    assert cited["handoff"].startswith("A. Gaddah, T. Kunz, “Extending mobility")
    assert [name for name, text in cited.items() if text.endswith("(title as known)")] == [
        "publisher-mobility",
        "adhoc-tree",
        "architectures",
    ]
    assert "no title or author" in cited["manet"]
    with pytest.raises(SojournError, match="study may be"):
        paper_of("nothing")
