"""A figure's points as a table, for those who cannot see the drawing or want the numbers."""

import html
import math
from typing import Any

import plotly.graph_objects as go


def number_table(figure: go.Figure) -> str:
    """All points of a figure in a fold-out table: one row per value of x, one column per line.

    A picture, whose lines have gaps and come back to the same x, is no table.
    """
    lines = [trace for trace in figure.data if getattr(trace, "x", None) is not None and len(trace.x)]
    if not lines or any(x is None for trace in lines for x in trace.x):
        return ""
    xs = sorted({x for trace in lines for x in trace.x}, key=_order)
    cells = [_cells(trace) for trace in lines]
    axis = figure.layout.xaxis.title.text or "x"
    head = "".join(f"<th>{_text(str(name))}</th>" for name in (axis, *(trace.name or "" for trace in lines)))
    rows = "".join(_row([short(x), *(column.get(x, "") for column in cells)]) for x in xs)
    return (
        "<details><summary>Numbers</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Numbers">'
        f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def short(value: object) -> str:
    """A number in four significant digits, nothing for what is none; anything else as it is."""
    try:
        number = float(str(value))
    except ValueError:
        return str(value)
    if isinstance(value, bool):
        return str(value)
    if not math.isfinite(number):
        return "" if math.isnan(number) else "infinite"
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def _row(cells: list[str]) -> str:
    return f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _cells(trace: Any) -> dict[object, str]:
    halves = trace.error_y.array if trace.error_y is not None and trace.error_y.array is not None else ()
    cells = {}
    for at, (x, y) in enumerate(zip(trace.x, trace.y, strict=True)):
        half = halves[at] if at < len(halves) else None
        known = half is not None and math.isfinite(float(half))
        cells[x] = f"{short(y)} ± {short(float(f'{half:.2g}'))}" if known else short(y)
    return cells


def _order(x: Any) -> tuple[int, float, str]:
    """Numbers in their order, before all texts in theirs."""
    return (0, float(x), "") if isinstance(x, int | float) else (1, 0.0, str(x))


def _text(value: str) -> str:
    return html.escape(value, quote=True)
