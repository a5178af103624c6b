"""`sojourn tables`: what the tables of a trace mean, and those that follow from one.

Example: sojourn tables; sojourn tables traces --into tables
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from sojourn.cli.heartbeat import heartbeat
from sojourn.cli.spark_options import Conf, Master, Ship, Ui, session
from sojourn.errors import SojournError
from sojourn.pipeline.derived_rows import ALL, described
from sojourn.pipeline.places import require_trace

if TYPE_CHECKING:
    from sojourn.pipeline.derived_job import Made

FAULTS_SHOWN = 20


class TablesError(SojournError):
    """Tables cannot be made as asked."""


def tables(  # noqa: PLR0913 - options of the command
    trace: Annotated[
        str | None,
        typer.Argument(metavar="TRACE", help="Make the tables that follow from this trace; or s3://…"),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Where to: a folder that is new, or that such tables are in.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Explain this table alone.")] = None,
    master: Master = None,
    conf: Conf = None,
    *,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Make them also for runs whose rows cannot be what happened.")
    ] = False,
    ui: Ui = False,
    ship: Ship = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain the tables of a trace, or make those that follow from one.

    Example: sojourn tables traces --into tables
    """
    if trace is None:
        _explain(table, as_json=as_json)
        return
    if into is None:
        raise TablesError("Say with --into where the tables are to be.")
    require_trace(trace)
    console = Console(stderr=True, highlight=False)
    with heartbeat(console) as beat:
        beat.tell("starting Spark")
        from sojourn.pipeline.derived_job import make_tables
        from sojourn.pipeline.probing import probe
        from sojourn.trace.places import place

        spark = session(master, conf, ui=ui, ship=ship)
        probe(spark, place(trace).absolute())
        made = make_tables(spark, trace, into.absolute(), beat.tell, anyway=anyway)
    if as_json:
        told = {"new": made.new, "kept": made.kept, "refused": made.refused, "missing": made.missing}
        typer.echo(json.dumps({**told, "faults": [fault._asdict() for fault in made.faults]}))
    else:
        typer.echo(f"{into}: {len(made.new)} runs made, {len(made.kept)} were there.")
    _complain(made, console, anyway=anyway)


def _complain(made: Made, console: Console, *, anyway: bool) -> None:
    for run_id, sentence in made.refused.items():
        console.print(f"{run_id}: {sentence}", markup=False, soft_wrap=True)
    for run_id, sentences in made.missing.items():
        for sentence in sentences:
            console.print(f"{run_id}: {sentence}", markup=False, soft_wrap=True)
    for fault in made.faults[:FAULTS_SHOWN]:
        console.print(f"{fault.run_id}: {fault.sentence}.", markup=False, soft_wrap=True)
    if len(made.faults) > FAULTS_SHOWN:
        console.print(f"… and {len(made.faults) - FAULTS_SHOWN} more.")
    bad = {fault.run_id for fault in made.faults}
    if bad and not anyway:
        raise TablesError(
            f"{len(bad)} of the runs have rows that cannot be what happened, and were left out; mend them, "
            "or add --anyway."
        )
    if made.refused:
        raise typer.Exit(1)


def _explain(only: str | None, *, as_json: bool) -> None:
    if only is not None and only not in ALL:
        raise TablesError(f"--table may be {', '.join(ALL)}, not {only!r}.")
    told = [described(name) for name in ALL if only in (None, name)]
    if as_json:
        typer.echo(json.dumps(told))
        return
    console = Console(highlight=False)
    for about in told:
        shown = Table(title=f"{about['table']} ({about['layer']}): {about['is']}", title_justify="left")
        for heading in ("column", "type", "means"):
            shown.add_column(heading, overflow="fold")
        for column in about["columns"]:
            kind = column["type"] + (" or null" if column["null"] else "")
            shown.add_row(column["column"], kind, column["means"])
        console.print(shown)
