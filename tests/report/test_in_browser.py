"""A report opened in a real browser draws every figure, complains of nothing and asks nobody."""

import subprocess
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from sojourn.report.page import Chart, render
from sojourn.studies.means import Table
from sojourn.studies.publisher_mobility.figures import FIGURES

HERE = Path(__file__).parent
DRAWN = "[...document.querySelectorAll('.plot')].every(plot => plot.dataset.drawn === 'yes')"


def _sibling(name: str) -> ModuleType:
    """A module beside this one; tests are files, not a package."""
    spec = util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


browser, pages = _sibling("browser"), _sibling("test_page")


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    """A tab of a fresh headless Chromium."""
    command = browser.find_chromium()
    if command is None:
        subprocess.run([HERE.parents[1] / "scripts" / "browser"], check=False, timeout=250)
        command = browser.find_chromium()
    if command is None:
        pytest.skip("no Chromium, and it may not be installed here: run scripts/browser to see why")
    with browser.chromium(command) as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with two figures."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(pages.page()), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_figure_is_drawn_quietly(tab: Any, report: Path, width: int, theme: str) -> None:
    """On a desk and a phone, by day and by night: lines drawn, no complaint, no request, no overflow."""
    tab.events.clear()
    tab.resize(width, 900)
    tab.theme(theme)
    tab.open(report)
    tab.wait_for(DRAWN)
    lines = tab.value(
        "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.scatterlayer .trace').length)"
    )
    assert lines == [2, 2]
    assert tab.value("document.querySelectorAll('.plot .annotation').length") == 2
    assert tab.value("document.documentElement.scrollWidth") <= width
    boxes = tab.value(
        "[...document.querySelectorAll('.plot .main-svg')].map(s => s.getBoundingClientRect().right)"
    )
    assert max(boxes) <= width
    assert tab.complaints() == []
    assert tab.requests() == [report.as_uri()]


def test_every_figure_of_a_study_is_drawn(tab: Any, tmp_path: Path) -> None:
    """The publisher-mobility study's own figures, on made-up means, all have their lines and marks."""
    table = made_up_table()
    charts = [Chart(figure.number, figure.draw(table), figure.claims) for figure in FIGURES]
    path = tmp_path / "report.html"
    path.write_text(render(pages.page()._replace(charts=charts)), encoding="utf-8")
    tab.events.clear()
    tab.resize(1280, 900)
    tab.open(path)
    tab.wait_for(DRAWN)
    lines = tab.value(
        "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.scatterlayer .trace').length)"
    )
    assert lines == [len(figure.lines) for figure in FIGURES]
    marks = tab.value("document.querySelectorAll('.plot .annotation').length")
    assert marks == sum(len(figure.marks) for figure in FIGURES)
    assert tab.complaints() == []
    assert tab.requests() == [path.as_uri()]


def made_up_table() -> Table:
    """Means that grow with x, for every line of every figure."""
    rows = [
        (
            figure.experiment,
            line.protocol,
            line.computations,
            "axis",
            float(x),
            figure.measure,
            10.0 + x,
            0.5,
            2,
        )
        for figure in FIGURES
        for line in figure.lines
        for x in (1, 2, 3)
    ]
    names = ["experiment", "series", "computations", "axis", "x", "measure", "mean", "interval", "runs"]
    return Table(pd.DataFrame(rows, columns=names))


def test_the_theme_button_turns_the_page(tab: Any, report: Path) -> None:
    """A click changes the page's ground and the figures' ink, another turns it back."""
    tab.theme("light")
    tab.open(report)
    tab.wait_for(DRAWN)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = tab.value(ground)
    tab.value("document.querySelector('.theme').click()")
    assert tab.value(ground) != before
    tab.value("document.querySelector('.theme').click()")
    assert tab.value(ground) == before


def test_it_prints(tab: Any, report: Path, tmp_path: Path) -> None:
    """A printed report is a few pages, with nothing said on the console."""
    tab.events.clear()
    tab.resize(1280, 900)
    tab.open(report)
    tab.wait_for(DRAWN)
    tab.pdf(tmp_path / "report.pdf")
    data = (tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert 1 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") <= 5
    assert tab.complaints() == []


def test_a_page_that_misbehaves_is_noticed(tab: Any, tmp_path: Path) -> None:
    """The watch works: an exception, a console error and a request are all seen."""
    tab.events.clear()
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<script>console.error('no');</script><img src='http://127.0.0.1:9/x.png'>"
        "<script>throw Error('oh')</script>"
    )
    tab.open(bad)
    said = " ".join(tab.complaints())
    assert "no" in said
    assert "oh" in said
    assert "http://127.0.0.1:9/x.png" in tab.requests()
