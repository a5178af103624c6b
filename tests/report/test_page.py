"""A report is one file that is complete, escaped and the same each time."""

import json
import re

import plotly.graph_objects as go
import pytest

from sojourn.report.numbers import number_table, short
from sojourn.report.page import Chart, ClaimRow, Entry, Page, render, render_index


def figure(title: str = "Figure 4a: Message cost", *, log: bool = False) -> go.Figure:
    """Two lines with intervals, and a mark."""
    drawn = go.Figure()
    drawn.add_scatter(
        x=[50, 250], y=[10.0, 52000.0], error_y={"type": "data", "array": [1.0, None]}, name="standard"
    )
    drawn.add_scatter(x=[50, 100], y=[1.0, 2.0], name="<b>delayed</b>")
    drawn.add_vline(x=150, annotation_text="paper: collapse")
    drawn.update_layout(title=title, xaxis_title="publishers", yaxis_title="messages")
    if log:
        drawn.update_yaxes(type="log")
    return drawn


def page(charts: int = 2) -> Page:
    """A page with hostile texts in every place."""
    evil = '</script><script>alert("x")</script>'
    return Page(
        title=f"Study {evil}",
        summary="One & two.",
        facts=[("seed", evil)],
        charts=[Chart(f"4{'abc'[at]}", figure(log=bool(at)), ("A-one", "A-two")) for at in range(charts)],
        claims=[
            ClaimRow("A-one", evil, "x < 1", "holds", "0.5 & less", [("ratio @ 50", "12.3456789")]),
            ClaimRow("A-two", "says", "check", "differs", "evidence", []),
            ClaimRow("A-three", "says", "check", "not yet", "evidence", [("flag", "True")]),
        ],
        command="sojourn reproduce",
    )


def test_everything_is_on_the_page() -> None:
    """Figures, claims with verdict and evidence, facts and the command that repeats it."""
    text = render(page())
    for wanted in ("A-one", "A-two", "A-three", "12.35", "sojourn reproduce", "Message cost", "52,000"):
        assert wanted in text
    assert text.count('class="plot"') == 2
    assert re.findall(r'<span class="verdict (\w+)">[\w ]+</span> <b>(\d)', text) == [
        ("holds", "1"),
        ("differs", "1"),
        ("notyet", "1"),
    ]


def test_a_page_without_claims_does_not_speak_of_any() -> None:
    """No empty table, no tally of nothing, no link to either."""
    text = render(page()._replace(claims=[]))
    body = text.partition("<header>")[2]
    assert "Claims" not in body
    assert 'class="counts"' not in body
    assert 'class="tally"' not in body


def test_texts_cannot_break_out() -> None:
    """What is not ours is escaped, in the page and in the figures' data."""
    text = render(page())
    assert "<script>alert" not in text
    assert "<b>delayed" not in text
    data = re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert set(json.loads(data[1])) == {"figure-4a", "figure-4b"}


def test_the_same_data_are_the_same_bytes() -> None:
    """Nothing random or dated is in a page."""
    assert render(page()) == render(page())


def test_nothing_is_loaded_from_elsewhere() -> None:
    """No element names another file, and the policy forbids it."""
    text = render(page())
    head = text[: text.index('<script type="application/json"')]
    assert not re.search(r'(src|href)="(?!#|data:)', head)
    assert "default-src 'none'" in head


def test_the_index_leads_to_every_report() -> None:
    """One card a study, with its tally."""
    text = render_index(
        "All", "Five.", [Entry("A", "a/report.html", "s", ["holds"]), Entry("B", "b/report.html", "t", [])]
    )
    assert 'href="a/report.html"' in text
    assert 'href="b/report.html"' in text
    assert "Plotly" not in text


def test_a_page_without_figures_is_a_page() -> None:
    """A study that could not draw still shows its claims."""
    assert "A-one" in render(page(charts=0))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.1235"),
        (12345.6, "12,346"),
        ("text", "text"),
        (True, "True"),
        ("inf", "infinite"),
        (float("nan"), ""),
        (3, "3"),
    ],
)
def test_numbers_are_short(value: object, shown: str) -> None:
    """Four digits are what a reader can use."""
    assert short(value) == shown


def test_a_figure_is_a_table_too() -> None:
    """One row a value of x; a line without a point there has an empty cell."""
    table = number_table(figure())
    assert "10 ± 1" in table
    assert "<td>100</td><td></td><td>2</td>" in table
    assert "paper" not in table
    assert number_table(go.Figure()) == ""
    roads = go.Figure(go.Scatter(x=[1, 2, None, 1, 1], y=[0, 0, None, 5, 6], mode="lines"))
    assert number_table(roads) == "", "a picture comes back to the same x, and its gaps are no numbers"


def test_what_is_not_drawn_is_explained_and_the_paper_is_named() -> None:
    """Figures without points are listed with what they would show; captions and the paper are on the page."""
    whole = page()._replace(paper="A. Author, “A < B”, 2005", undrawn=[("5a", "Loss & more.")])
    whole = whole._replace(charts=[whole.charts[0]._replace(caption="What <it> shows.")])
    text = render(whole)
    assert '<p class="paper">A. Author, “A &lt; B”, 2005</p>' in text
    assert "1 figure is not drawn" in text
    assert "<dt>5a</dt><dd>Loss &amp; more.</dd>" in text
    assert "What &lt;it&gt; shows." in text
    assert "not drawn" not in render(page())


def test_a_figure_with_many_names_is_as_wide_as_the_page() -> None:
    """Names along an axis that half a page has no room for are not cut off."""
    drawn = go.Figure()
    drawn.add_bar(x=[f"cell {number}" for number in range(13)], y=list(range(13)), name="ours")
    assert 'class="chart wide"' in render(page()._replace(charts=[Chart("2", drawn, ())]))
    assert 'class="chart wide"' not in render(page())
