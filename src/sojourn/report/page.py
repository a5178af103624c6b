"""One HTML file a study: what was run, each figure, and the claims it bears on with their evidence.

The page carries its own script and style, so that it opens from a disk without a network, prints, and reads
on a phone. It is given plain data and knows no study.
"""

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs


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


class Page(NamedTuple):
    """All that a report shows."""

    title: str
    summary: str
    facts: Sequence[tuple[str, str]]
    charts: Sequence[Chart]
    claims: Sequence[ClaimRow]


_STYLE = """
:root { --ink: #1d2733; --pale: #f4f6f8; --line: #d5dbe1; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; max-width: 76rem;
  padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .92rem; }
.facts dt { font-weight: 600; } .facts dd { margin: 0; overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; }
.chart { border: 1px solid var(--line); border-radius: 6px; padding: .4rem; break-inside: avoid;
  min-width: 0; }
.bears { font-size: .82rem; padding: 0 .6rem .4rem; } .bears a { margin-right: .6rem; white-space: nowrap; }
.claim { border-left: 5px solid var(--line); background: var(--pale); margin: .8rem 0; padding: .5rem .9rem;
  break-inside: avoid; overflow-wrap: anywhere; }
.claim.holds { border-color: #1e8449; } .claim.differs { border-color: #c0392b; }
.claim.notyet { border-color: #b7950b; }
.claim h3 { font-size: 1rem; margin: 0; }
.verdict { font-weight: 700; text-transform: uppercase; font-size: .8rem; }
.holds .verdict { color: #1e8449; } .differs .verdict { color: #c0392b; } .notyet .verdict { color: #8a6d00; }
.claim p { margin: .25rem 0; } details table { font-size: .85rem; border-collapse: collapse; }
details td { border-bottom: 1px solid var(--line); padding: .1rem .8rem .1rem 0; }
@media print { body { max-width: none; } .charts { display: block; } .chart { margin-bottom: 1rem; } }
@media (max-width: 34rem) { body { padding: .5rem; font-size: 15px; } .facts { grid-template-columns: 1fr; } }
"""


def render(page: Page) -> str:
    """The whole page as text."""
    verdicts = {claim.id: claim.verdict for claim in page.claims}
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{_text(page.title)}</title><style>{_STYLE}</style>",
        f"<script>{get_plotlyjs()}</script></head><body>",
        f"<h1>{_text(page.title)}</h1><p>{_text(page.summary)}</p>",
        _facts(page.facts),
        '<h2>Figures</h2><div class="charts">',
        *(_chart(chart, verdicts) for chart in page.charts),
        "</div><h2>Claims</h2>",
        *(_claim(claim) for claim in page.claims),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts)
    return f'<dl class="facts">{rows}</dl>'


def _chart(chart: Chart, verdicts: dict[str, str]) -> str:
    drawn = chart.figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"figure-{chart.anchor}",
        default_height="420px",
        config={"responsive": True, "displaylogo": False},
    )
    bears = " ".join(
        f'<a href="#{_text(claim)}">{_text(claim)}: {_text(verdicts.get(claim, "not yet"))}</a>'
        for claim in chart.claims
    )
    return f'<div class="chart">{drawn}<div class="bears">{bears}</div></div>'


def _claim(claim: ClaimRow) -> str:
    kind = claim.verdict.replace(" ", "")
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>" for name, value in claim.measured
    )
    numbers = f"<details><summary>Measured</summary><table>{rows}</table></details>" if rows else ""
    return (
        f'<section class="claim {kind}" id="{_text(claim.id)}">'
        f'<h3>{_text(claim.id)} <span class="verdict">{_text(claim.verdict)}</span></h3>'
        f"<p>{_text(claim.says)}</p><p><em>Check:</em> {_text(claim.check)}</p>"
        f"<p><em>Evidence:</em> {_text(claim.evidence)}</p>{numbers}</section>"
    )


def _text(value: str) -> str:
    return html.escape(value, quote=True)
