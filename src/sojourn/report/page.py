"""One HTML file for each study: what was found, each figure, and the claims it bears on with their evidence.

A page carries its own script, style and data, so that it opens from a disk without a network, prints, follows
the reader's light or dark theme, and reads on a phone. A content security policy forbids it any request.

Rules: pages are given plain data and know no study; all text is escaped; the same data give the same bytes.
Not here: how figures are drawn from measures (each study's own business), where pages are written to.
"""

import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from sojourn.report.numbers import number_table, short

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)
FEW_COLUMNS_MAX = 8
"""Columns that stand beside one another in any window but a phone's."""
VERDICTS = ("holds", "differs", "not yet")
NARROW_PLACES_MAX = 12
"""Names along an axis that a figure of half the page's width has room for."""


class ClaimRow(NamedTuple):
    """A claim and the verdict on it."""

    id: str
    says: str
    check: str
    verdict: str
    evidence: str
    measured: Sequence[tuple[str, str]]


class Chart(NamedTuple):
    """A figure and the ids of the claims that it bears on."""

    anchor: str
    figure: go.Figure
    claims: tuple[str, ...]
    caption: str = ""


class DataTable(NamedTuple):
    """A table that a study makes from its measures."""

    anchor: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Page(NamedTuple):
    """All that a report shows."""

    title: str
    summary: str
    facts: Sequence[tuple[str, str]]
    charts: Sequence[Chart]
    claims: Sequence[ClaimRow]
    command: str = ""
    """What repeats the study."""
    tables: Sequence[DataTable] = ()
    paper: str = ""
    """The paper whose claims are measured, in one line."""
    undrawn: Sequence[tuple[str, str]] = ()
    """Figures without points: their numbers, and what they would show."""


class Entry(NamedTuple):
    """One study in the index."""

    title: str
    href: str
    summary: str
    verdicts: Sequence[str]
    paper: str = ""


def render(page: Page) -> str:
    """The whole page of a study as text."""
    verdicts = {claim.id: claim.verdict for claim in page.claims}
    contents = [("#figures-of", "Figures")] if page.charts else []
    contents += [(f"#{table.anchor}", table.title) for table in page.tables]
    contents += [("#claims", "Claims")] if page.claims else []
    contents += [("#facts", "How it was measured")]
    body = [
        _header(page.title, page.summary, [claim.verdict for claim in page.claims], contents, page.paper),
        "<main>",
        _charts(page.charts, verdicts),
        _undrawn(page.undrawn),
        *map(_table, page.tables),
        _claims(page.claims),
        _facts(page.facts, page.command),
        "</main>",
        "<footer>Everything on this page is in this one file: it needs no network.</footer>",
    ]
    return _document(page.title, body, _figure_data(page.charts))


def render_index(title: str, summary: str, entries: Sequence[Entry]) -> str:
    """The page that leads to every study's report."""
    every = [verdict for entry in entries for verdict in entry.verdicts]
    cards = [
        f'<section class="study"><h3><a href="{_text(entry.href)}">{_text(entry.title)}</a></h3>'
        f"{_paper(entry.paper)}<p>{_text(entry.summary)}</p>{_tally(entry.verdicts)}</section>"
        for entry in entries
    ]
    start = '<main><h2>Studies</h2><div class="studies">'
    return _document(title, [_header(title, summary, every, []), start, *cards, "</div></main>"], None)


# ------------------------------------------------------------------------------ parts


def _document(title: str, body: Iterable[str], figures: str | None) -> str:
    files = resources.files("sojourn.report")
    style = files.joinpath("style.css").read_text(encoding="utf-8")
    scripts = []
    if figures is not None:
        script = files.joinpath("script.js").read_text(encoding="utf-8")
        scripts = [
            f'<script type="application/json" id="figures">{figures}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{script}</script>",
        ]
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{_text(title)}</title>\n<style>\n{style}</style></head>\n<body>",
        *body,
        *scripts,
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _header(
    title: str,
    summary: str,
    verdicts: Sequence[str],
    contents: Sequence[tuple[str, str]],
    paper: str = "",
) -> str:
    links = "".join(f'<a href="{href}">{_text(name)}</a>' for href, name in contents)
    nav = f'<nav class="contents" aria-label="Contents">{links}</nav>' if links else ""
    button = '<button class="theme" type="button" hidden>light / dark</button>' if links else ""
    return (
        f'<header><div class="top"><p class="eyebrow">Sojourn report</p>{button}</div>'
        f'<h1>{_text(title)}</h1>{_paper(paper)}<p class="lede">{_text(summary)}</p>{_tally(verdicts)}{nav}'
        "</header>"
    )


def _paper(paper: str) -> str:
    return f'<p class="paper">{_text(paper)}</p>' if paper else ""


def _undrawn(figures: Sequence[tuple[str, str]]) -> str:
    """Which figures have nothing to show, and why."""
    if not figures:
        return ""
    rows = "".join(f"<dt>{_text(number)}</dt><dd>{_text(what)}</dd>" for number, what in figures)
    count = "1 figure is" if len(figures) == 1 else f"{len(figures)} figures are"
    return (
        f'<details class="undrawn"><summary>{count} not drawn: the runs are not part of this scale, or failed'
        f'</summary><dl class="facts">{rows}</dl></details>'
    )


def _tally(verdicts: Sequence[str]) -> str:
    """How many claims hold, differ and are open: as a bar and in words; nothing where there are none."""
    if not verdicts:
        return ""
    counts = [(name, sum(verdict == name for verdict in verdicts)) for name in VERDICTS]
    bar = "".join(
        f'<span class="{_kind(name)}" style="flex:{share}"></span>' for name, share in counts if share
    )
    words = "".join(
        f'<li><span class="verdict {_kind(name)}">{name}</span> <b>{count}</b></li>' for name, count in counts
    )
    return f'<div class="tally" aria-hidden="true">{bar}</div><ul class="counts">{words}</ul>'


def _charts(charts: Sequence[Chart], verdicts: dict[str, str]) -> str:
    if not charts:
        return ""
    drawn = "".join(_chart(chart, verdicts) for chart in charts)
    return f'<h2 id="figures-of">Figures</h2><div class="charts">{drawn}</div>'


def _chart(chart: Chart, verdicts: dict[str, str]) -> str:
    number, title = _title(chart)
    badges = "".join(
        f'<a class="badge {_kind(verdicts.get(claim, "not yet"))}" href="#{_text(claim)}">{_text(claim)}</a>'
        for claim in chart.claims
    )
    caption = f"<div>{_text(chart.caption)}</div>" if chart.caption else ""
    wide = " wide" if _places(chart.figure) > NARROW_PLACES_MAX else ""
    return (
        f'<figure class="chart{wide}"><span class="number">{_text(number)}</span><h3>{_text(title)}</h3>'
        f'<div class="plot" id="figure-{_text(chart.anchor)}" role="img" aria-label="{_text(title)}"></div>'
        f'<figcaption>{caption}<div class="badges">{badges}</div>{number_table(chart.figure)}</figcaption>'
        "</figure>"
    )


def _places(figure: go.Figure) -> int:
    """How many named places there are along a figure's lower axis; 0 where it is an axis of numbers."""
    return len(
        {x for trace in figure.data for x in (trace.x if trace.x is not None else ()) if isinstance(x, str)}
    )


def _title(chart: Chart) -> tuple[str, str]:
    """A figure's number and its title; the title may hold both, with a colon between."""
    whole = str(chart.figure.layout.title.text or f"Figure {chart.anchor}")
    number, colon, title = whole.partition(": ")
    if colon:
        return number, title[:1].upper() + title[1:]
    return (f"Figure {chart.anchor}" if chart.anchor[:1].isdigit() else ""), whole


def _table(table: DataTable) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in table.columns)
    body = "".join(_table_row(table.columns, row) for row in table.rows)
    note = f'<p class="check">{_text(table.note)}</p>' if table.note else ""
    many = " many" if len(table.columns) > FEW_COLUMNS_MAX else ""
    return (
        f'<h2 id="{_text(table.anchor)}">{_text(table.title)}</h2>{note}<div class="scroll" tabindex="0" '
        f'role="region" aria-label="{_text(table.title)}"><table class="numbers found{many}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _table_row(columns: Sequence[str], row: Sequence[str]) -> str:
    """One row; each cell knows its column's name, for windows so narrow that a row is a card."""
    cells = (
        f'<td data-name="{_text(name)}">{_text(cell)}</td>' for name, cell in zip(columns, row, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _claims(claims: Sequence[ClaimRow]) -> str:
    if not claims:
        return ""
    names = ("Claim", "Verdict", "What the paper says", "What we measured")
    head = f"<thead><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr></thead>"
    rows = "".join(map(_claim, claims))
    return f'<h2 id="claims">Claims</h2><table class="claims">{head}<tbody>{rows}</tbody></table>'


def _claim(claim: ClaimRow) -> str:
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(short(value))}</td></tr>" for name, value in claim.measured
    )
    numbers = (
        f'<details><summary>{len(claim.measured)} numbers</summary><div class="scroll">'
        f'<table class="numbers pairs">{rows}</table></div></details>'
        if rows
        else ""
    )
    return (
        f'<tr id="{_text(claim.id)}"><td class="id"><b>{_text(claim.id)}</b></td>'
        f'<td class="judged"><span class="verdict {_kind(claim.verdict)}">{_text(claim.verdict)}</span></td>'
        f'<td class="says"><p>{_text(claim.says)}</p><p class="check">Check: {_text(claim.check)}</p></td>'
        f"<td><p>{_text(claim.evidence)}</p>{numbers}</td></tr>"
    )


def _facts(facts: Iterable[tuple[str, str]], command: str) -> str:
    rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts)
    if command:
        rows += f"<dt>to repeat</dt><dd><code>{_text(command)}</code></dd>"
    return f'<h2 id="facts">How it was measured</h2><dl class="facts">{rows}</dl>'


def _figure_data(charts: Sequence[Chart]) -> str:
    """Every figure's data as JSON that can stand inside a script element."""
    figures = {f"figure-{chart.anchor}": json.loads(chart.figure.to_json()) for chart in charts}
    for figure in figures.values():
        figure["layout"].pop("template", None)
    # "</script" or "<!--" in a label would end the element early.
    return json.dumps(figures, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")


def _kind(verdict: str) -> str:
    return verdict.replace(" ", "") if verdict in VERDICTS else "notyet"


def _text(value: str) -> str:
    return html.escape(value, quote=True)
