"""The reference of a trace's tables, from the schemas that read it."""

from __future__ import annotations

import ast
import inspect

from words import table

from sojourn.pipeline import schemas

TABLES = {
    "runs": "A row for each run.",
    "publications": "A row for each event that was accepted, where and when.",
    "interests": "Who wanted what, and from when to when. A row without `to_s` is replaced by one with it.",
    "clients": "What access policies are asked about a client.",
    "sojourns": "Which client was connected to which broker, and from when to when.",
    "handoffs": "A row for each move of a client between brokers.",
    "deliveries": "A row for each event that a client got.",
    "drops": "A row for each event that a client did not get, and why.",
    "messages": "Single messages between brokers, in simulations that are asked for them.",
    "message_counts": "Messages between brokers, counted by kind and cause.",
    "broker_load": "How much each simulated broker had to do.",
}
HEAD = """# Trace tables

A trace is a folder with one folder a table, `DIR/TABLE/run_id=RUN/part-….parquet`. Simulated and live
runs write the same tables; `run_id` is in the path. `source` and `sequence` together name an event. This
page is made from `sojourn.pipeline.schemas`, which a test compares with what is written.
"""


def page() -> str:
    """The page."""
    notes = _notes()
    parts = [HEAD]
    for name, schema in schemas.TRACE.items():
        rows = [
            (
                f"`{field.name}`",
                field.dataType.simpleString(),
                _about(field.name, notes.get((name, field.name))),
            )
            for field in schema
        ]
        parts += [f"## `{name}`\n", TABLES[name] + "\n", table(("column", "type", "what it is"), rows)]
    return "\n".join(parts)


def _about(column: str, note: str | None) -> str:
    if note is not None:
        return note
    return "seconds since the start of the run" if column.endswith("_s") else ""


def _notes() -> dict[tuple[str, str], str]:
    """The remarks beside columns in the code, by table and column."""
    source = inspect.getsource(schemas)
    lines = source.splitlines()
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "TRACE":
            assert isinstance(node.value, ast.Dict)
            for name, call in zip(node.value.keys, node.value.values, strict=True):
                assert isinstance(name, ast.Constant)
                assert isinstance(call, ast.Call)
                for one in call.keywords:
                    _, mark, note = lines[one.lineno - 1].partition("  # ")
                    if mark and one.arg is not None:
                        found[str(name.value), one.arg] = note
    return found
