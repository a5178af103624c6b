"""The reference of a trace's tables and of those that follow from them, from what declares them."""

from __future__ import annotations

from words import table

from sojourn.pipeline.derived_rows import ALL, CONCLUDED, FOLLOWS, described
from sojourn.pipeline.schemas import rows_schema

HEAD = """# Trace tables

A trace is a folder with one folder per table, `DIR/TABLE/run_id=RUN/part-….parquet`. Simulated and live
runs write the same tables; `run_id` is in the path. `source` and `sequence` together name an event. Times are
seconds since the start of the run. A *cause* is the move that set something off. `sojourn tables` prints the
same. This page is made from `sojourn.trace.rows` and `sojourn.pipeline.derived_rows`, which declare them.
"""
LAYERS = {
    FOLLOWS: "# What follows from it\n\nMade by `sojourn tables TRACE --into DIR`, by run.\n",
    CONCLUDED: "# What is concluded\n",
}


def page() -> str:
    """The page."""
    parts = [HEAD]
    begun = set()
    for name, about in ALL.items():
        if about.layer in LAYERS and about.layer not in begun:
            parts.append(LAYERS[about.layer])
        begun.add(about.layer)
        told = described(name)
        kinds = {field.name: field.dataType.simpleString() for field in rows_schema(about.row)}
        rows = [
            (f"`{column['column']}`", kinds[column["column"]], column["means"]) for column in told["columns"]
        ]
        parts += [f"## `{name}`\n", told["is"] + "\n", table(("column", "type", "what it is"), rows)]
    return "\n".join(parts)
