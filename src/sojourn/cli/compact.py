"""`sojourn compact`: a trace of many small segments written again as few large ones.

Example: sojourn compact trace --into compacted
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn.cli.heartbeat import working
from sojourn.pipeline.places import require_trace


def compact(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="Directory of a trace; or s3://BUCKET/FOLDER.")
    ],
    into: Annotated[Path, typer.Option(help="The folder to write it into; the trace stays as it is.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print an object of JSON a run.")] = False,
) -> None:
    """Write a trace of many small segments again as few large ones, one per table and run.

    Example: sojourn compact trace --into compacted
    """
    require_trace(trace)
    console = Console(stderr=True, highlight=False)
    with working(console, "looking at files") as tell:
        from sojourn.pipeline.compacting import compact as write_again

        done, looked_at = write_again(trace, into, tell)
    for run in done:
        if as_json:
            typer.echo(json.dumps(run._asdict()))
        elif run.was_there:
            typer.echo(f"{run.run_id}: was there, {run.rows:,} rows.")
        else:
            typer.echo(f"{run.run_id}: {run.segments:,} segments became {run.tables}, {run.rows:,} rows.")
    refused = [problem for problem in looked_at.problems if problem.refused]
    for problem in refused:
        console.print(f"{problem.run_id}: {problem.sentence} It was left out.", markup=False, soft_wrap=True)
    if refused:
        raise typer.Exit(1)
