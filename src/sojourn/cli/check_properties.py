"""`sojourn check properties`: is every run of a trace ordered, consistent and complete, and if not, why."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sojourn.cli.heartbeat import working
from sojourn.pipeline.places import require_trace

PROPERTIES = ("ordered", "consistent", "complete")


def properties(
    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="The directory of a run, or several; or s3://BUCKET/FOLDER."),
    ],
    *,
    clients: Annotated[bool, typer.Option("--clients", help="One row per client instead of a run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list, nothing else.")] = False,
    master: Annotated[
        str | None, typer.Option(help="A Spark master, such as spark://host:7077; none means this machine.")
    ] = None,
) -> None:
    """Hold what users were shown to the three properties of a replicated system (paper 003)."""
    require_trace(trace)
    console = Console(stderr=True)
    with working(console, "holding deliveries to the properties"):
        # Imported here because the other checks need neither Spark nor Java.
        from sojourn.pipeline.probing import probe
        from sojourn.pipeline.properties_job import judge_trace
        from sojourn.pipeline.session import spark_session
        from sojourn.trace.places import place

        spark = spark_session(master)
        probe(spark, place(trace).absolute())
        rows, problems = judge_trace(spark, trace, by_client=clients)
    for problem in problems:
        console.print(f"{problem.run_id}: {problem.sentence}", markup=False)
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("run", *(("client",) if clients else ()), *PROPERTIES, "why not")
    for row in rows:
        marks = ["✓" if row[name] else "✗" for name in PROPERTIES]
        why = "; ".join(str(row[f"not_{name}"]) for name in PROPERTIES if not row[name])
        table.add_row(row["run_id"], *((row["client"],) if clients else ()), *marks, why)
    Console().print(table)
