"""What figures of all studies share."""

from sojourn.studies.drawing import Figure, add_points, empty
from sojourn.studies.marks import MUTED, paper_line, paper_points


def test_a_line_has_its_points_and_intervals() -> None:
    """In their order; without halves there are no bars."""
    figure = empty("8: Overhead", "l", "overhead", barmode="group")
    add_points(figure, "ours", {1.0: 5.0, 2.0: 4.0}, halves=[0.5, 0.25], colour="#123456", dash="dot")
    add_points(figure, "alone", {1.0: 3.0})
    line, alone = figure.data
    assert (line.name, list(line.x), list(line.y)) == ("ours", [1.0, 2.0], [5.0, 4.0])
    assert (list(line.error_y.array), line.line.color, line.line.dash) == ([0.5, 0.25], "#123456", "dot")
    assert alone.error_y.array is None
    layout = figure.layout
    assert (layout.title.text, layout.xaxis.title.text, layout.yaxis.title.text) == (
        "8: Overhead", "l", "overhead",
    )  # fmt: skip
    assert layout.barmode == "group"


def test_a_figure_is_drawn_from_a_table() -> None:
    """It knows its number and the claims it bears on."""
    figure: Figure[str] = Figure("8", ("C-fig8",), lambda table: empty(table, "x", "y"))
    assert figure.draw("of this table").layout.title.text == "of this table"


def test_what_is_the_papers_looks_like_no_measurement_of_ours() -> None:
    """Dotted lines and lone points, grey, with the paper named."""
    figure = empty("", "x", "y")
    paper_line(figure, "paper: at most 8", y=8.0)
    paper_line(figure, "paper: half", x=0.5)
    paper_points(figure, "standard", [1.0], [2.0])
    assert [shape.line.color for shape in figure.layout.shapes] == [MUTED, MUTED]
    assert [shape.line.dash for shape in figure.layout.shapes] == ["dot", "dot"]
    assert [(trace.name, trace.mode, trace.marker.color) for trace in figure.data] == [
        ("standard, paper", "markers", MUTED)
    ]
