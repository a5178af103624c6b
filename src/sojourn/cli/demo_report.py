"""The demonstration's report: one page with what the audit found, scheme beside scheme."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import plotly.graph_objects as go

from sojourn.report.page import Chart, Page, render

COUNTED = {
    "published": "published",
    "expected": "expected",
    "delivered": "delivered",
    "lost": "lost",
    "duplicated": "duplicated",
    "out_of_order": "out of order",
}
WRONG = {"lost": "lost", "duplicated": "duplicated", "out_of_order": "out of order"}


def write_report(path: Path, runs: Mapping[str, Mapping[str, float]], settings: Mapping[str, float]) -> Path:
    """Write the page and return where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page = Page(
        title="Six live brokers and phones that move",
        summary="The same people walk the same ways through the building, once for each scheme; every event "
        "that a phone should have got was compared with what it got.",
        facts=[(name, f"{value:g}") for name, value in settings.items()] + _facts(runs),
        charts=[_wrong(runs), _handoffs(runs)],
        claims=[],
        command="sojourn demo",
    )
    path.write_text(render(page))
    return path


def _facts(runs: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
    return [
        (scheme, ", ".join(f"{row[key]:,} {label}" for key, label in COUNTED.items()))
        for scheme, row in runs.items()
    ]


def _wrong(runs: Mapping[str, Mapping[str, float]]) -> Chart:
    figure = go.Figure()
    for key, label in WRONG.items():
        shares = [100 * row[key] / max(1, row["expected"]) for row in runs.values()]
        figure.add_bar(name=label, x=list(runs), y=shares)
    figure.update_layout(
        title="What went wrong", yaxis_title="% of expected deliveries", barmode="group", xaxis_title="scheme"
    )
    return Chart("wrong", figure, (), "Lost, duplicated and out of order, by scheme.")


def _handoffs(runs: Mapping[str, Mapping[str, float]]) -> Chart:
    figure = go.Figure()
    for part in ("p50", "p90", "p99"):
        times = [row.get(f"handoff_wait_{part}_s") for row in runs.values()]
        figure.add_bar(name=part, x=list(runs), y=[None if time is None else 1e3 * time for time in times])
    figure.update_layout(
        title="From arriving to having everything",
        yaxis_title="milliseconds",
        barmode="group",
        xaxis_title="scheme",
    )
    return Chart("handoffs", figure, (), "Time of a hand-off; durable subscriptions hand nothing over.")
