"""What stands under each figure of a report, and which figures have nothing to show.

The captions are data (`captions.toml` beside this file). A line without points is taken out of its figure and
named in the caption; a figure without any is not drawn, and the report says why.
"""

import math
import tomllib
from functools import cache
from importlib import resources
from numbers import Real
from typing import Any


@cache
def _captions() -> dict[str, dict[str, str]]:
    text = resources.files("sojourn.studies").joinpath("captions.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def caption_of(study: str, number: str) -> str:
    """What a figure of a study shows."""
    return _captions()[study][number]


def tidy(chart: Any) -> list[str]:
    """Take lines without points, and bars without a length, out of a figure; return those lines' names.

    A figure with a slider keeps all its lines: the slider shows and hides them by their places.
    """
    if chart.layout.sliders:
        return []
    names = [trace.name or "a line" for trace in chart.data if not _has_points(trace)]
    chart.data = [trace for trace in chart.data if _has_points(trace)]
    for trace in chart.data:
        for bars in ("error_x", "error_y"):
            if getattr(trace, bars, None) is not None and not _has_bars(trace, bars):
                trace[bars] = None
    return names


def with_notes(caption: str, chart: Any, missing: list[str], over: str) -> str:
    """A caption with what its bars are, if there are any, and what there is nothing to see of."""
    notes = [caption]
    if any(_has_bars(trace, bars) for trace in chart.data for bars in ("error_x", "error_y")):
        notes.append(f"Bars are 95% intervals over {over}.")
    if not any(y for trace in chart.data for y in trace.y if _is_number(y)):
        notes.append("Every value is 0, so that nothing rises above the axis.")
    drawn = [trace for trace in chart.data if "lines" in (getattr(trace, "mode", None) or "")]
    if drawn and all(sum(map(_is_number, trace.y)) == 1 for trace in drawn):
        notes.append("Each line has one point at this scale.")
    if missing:
        notes.append(f"Without points at this scale: {', '.join(missing)}.")
    return " ".join(notes)


def _has_points(trace: Any) -> bool:
    ys = getattr(trace, "y", None)
    return ys is not None and any(_is_number(y) for y in ys)


def _has_bars(trace: Any, name: str) -> bool:
    bars = getattr(trace, name, None)
    halves = bars.array if bars is not None else None
    return halves is not None and any(_is_number(half) for half in halves)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
