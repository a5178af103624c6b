"""`sojourn audit`: what a run delivered, lost, doubled, reordered or leaked, from its trace.

Totals a run go to standard output, as a table or as one JSON object; what is wrong with a run goes to
standard error, a sentence each, and into the JSON. The exit code is 1 when a run had to be refused. With
`--follow` a run is audited while it goes on (`audit_follow.py`). What is asked is looked at before Spark is
loaded, which takes seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sojourn.cli.heartbeat import Heartbeat, heartbeat
from sojourn.cli.spark_options import Conf, Master, Ship, Ui, session
from sojourn.cli.sweep_bar import time_left
from sojourn.errors import SojournError
from sojourn.pipeline.audit_options import AuditOptions, LiveOptions
from sojourn.pipeline.places import no_trace, require_trace, wanted_folder

if TYPE_CHECKING:
    from sojourn.pipeline.audit_job import AuditReport

DETAILS = {"client": "clients", "broker": "brokers", "window": "windows"}
_DEFAULTS = AuditOptions()
_LIVE = LiveOptions()
_ONLY_IF_SOME = ("allowed", "lost_", "before_", "clock_", "unrecorded_")


class AuditError(SojournError):
    """An audit cannot be made as asked."""


def audit(  # noqa: PLR0913  each is an option of the command
    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="The directory of a run, or several; or s3://BUCKET/FOLDER."),
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="|".join(DETAILS), help="Count also by this; may be repeated."),
    ] = None,
    window_s: Annotated[float, typer.Option(help="Length of a window, in seconds.")] = _DEFAULTS.window_s,
    in_flight_s: Annotated[
        float,
        typer.Option(help="What was published in the last seconds of a run and is missing was in flight."),
    ] = _DEFAULTS.in_flight_s,
    broadcast_filters_max: Annotated[
        int, typer.Option(help="With more filters they are dealt into parts instead of sent to all.")
    ] = _DEFAULTS.broadcast_filters_max,
    master: Master = None,
    conf: Conf = None,
    ui: Ui = False,
    ship: Ship = False,
    incidents: Annotated[
        Path | None,
        typer.Option(
            help="Write every loss, duplicate, disorder, leak and what is unrecorded as Parquet here."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Audit a run that goes on, by the window, until it ends.")
    ] = False,
    run: Annotated[str | None, typer.Option(help="The run to follow, if there are several.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where --follow keeps how far it is; in the trace if left out.")
    ] = None,
    delay_s: Annotated[
        float, typer.Option(help="With --follow: how much later than another a table may be sealed.")
    ] = _LIVE.delay_s,
    patience_s: Annotated[
        float, typer.Option(help="With --follow: how long after its publication a delivery may still come.")
    ] = _LIVE.patience_s,
    every_s: Annotated[
        float, typer.Option(help="With --follow: seconds between looks at the directory.")
    ] = _LIVE.trigger_s,
) -> None:
    """Compare what was delivered with what should have been, for every run of a trace.

    What killed brokers had not written down is said, and unrecorded instead of lost or unauthorised.

    Example: sojourn simulate roaming --trace traces && sojourn audit traces --by broker
    """
    if wrong := [name for name in by or [] if name not in DETAILS]:
        raise AuditError(f"--by may be {', '.join(DETAILS)}, not {wrong[0]!r}.")
    if window_s <= 0:
        raise AuditError(f"--window-s must be above 0, not {window_s}.")
    if follow:
        if by or incidents:
            raise AuditError("--follow counts by window only; leave --by and --incidents out.")
        folder = wanted_folder(trace, "--follow")
        if run is None and not folder.is_dir():
            raise no_trace(folder)
        from sojourn.cli.audit_follow import follow as follow_run

        live = LiveOptions(window_s=window_s, delay_s=delay_s, patience_s=patience_s, trigger_s=every_s)
        spark = partial(session, master, conf, ui=ui, ship=ship)
        follow_run(folder, run_id=run, out=checkpoint, start=spark, options=live, as_json=as_json)
        return
    if run or checkpoint:
        raise AuditError("--run and --checkpoint are for --follow; leave them out, or add it.")
    if incidents is not None and incidents.exists():
        raise AuditError(f"--incidents {incidents} exists; name a directory that does not.")
    require_trace(trace)
    options = AuditOptions(
        window_s=window_s, in_flight_s=in_flight_s, broadcast_filters_max=broadcast_filters_max
    )
    details = tuple(DETAILS[name] for name in dict.fromkeys(by or []))
    console = Console(stderr=True, highlight=False)
    with _bar(console) as tell:
        tell("starting Spark", None)
        from sojourn.pipeline.audit_job import audit_trace
        from sojourn.pipeline.probing import probe
        from sojourn.trace.places import place

        started = session(master, conf, ui=ui, ship=ship)
        tell("looking at executors", None)
        probe(started, place(trace).absolute())
        report = audit_trace(started, trace, options, details=details, incidents=incidents, progress=tell)
    _tell(report, details, console, as_json=as_json)


def _tell(report: AuditReport, details: tuple[str, ...], console: Console, *, as_json: bool) -> None:
    """Say what was found, and what was wrong with the trace; a run that could not be audited is a failure."""
    if as_json:
        typer.echo(json.dumps(_as_object(report, details), default=str))
    else:
        _show(report, details)
    for problem in report.problems:
        refused = " It was not audited." if problem.refused else ""
        console.print(f"{problem.run_id}: {problem.sentence}{refused}", markup=False, soft_wrap=True)
    if any(problem.refused for problem in report.problems):
        raise typer.Exit(1)


def told_by(beat: Heartbeat) -> Callable[[str, float | None], None]:
    """What an audit tells of its progress, as lines from time to time."""
    return lambda what, share: beat.tell(what, "" if share is None else f"{share:.0%}")


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[str, float | None], None]]:
    """Show what is being done while the block runs; say it from time to time where nobody looks."""
    if not console.is_terminal:
        with heartbeat(console) as beat:
            yield told_by(beat)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, left="")
        begun: dict[str, float] = {}

        def tell(what: str, share: float | None) -> None:
            elapsed_s = time.monotonic() - begun.setdefault(what, time.monotonic())
            left_s = elapsed_s * (1 - share) / share if share else None
            total = None if share is None else 1.0
            bar.update(task, description=what, total=total, completed=share or 0.0, left=time_left(left_s))

        yield tell


def _as_object(report: AuditReport, details: tuple[str, ...]) -> dict[str, Any]:
    return {
        "runs": report.runs,
        **{name: getattr(report, name) for name in details},
        "problems": [asdict(problem) for problem in report.problems],
    }


def _show(report: AuditReport, details: tuple[str, ...]) -> None:
    console = Console(highlight=False)
    if report.runs:
        console.print(_table("runs", report.runs, across=len(report.runs) <= 4))
    for name in details:
        console.print(_table(name, getattr(report, name), across=False))


def _table(title: str, rows: list[dict[str, Any]], *, across: bool) -> Table:
    """Make a table with a row a measure when there are few rows, else with a column a measure."""
    table = Table(title=title, title_justify="left", show_header=not across)
    names = [name for name in rows[0] if any(_is_telling(name, row[name]) for row in rows)] if rows else []
    if across:
        for _ in range(len(rows) + 1):
            table.add_column(justify="right", overflow="fold")
        for name in names:
            table.add_row(name, *(_cell(row[name]) for row in rows))
    else:
        for name in names:
            table.add_column(name, justify="right", overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row[name]) for name in names))
    return table


def _is_telling(name: str, value: object) -> bool:
    """Whether a value is worth a line: "lost 0" is, "lost for this reason 0" is not."""
    return value is not None and not (value == 0 and name.startswith(_ONLY_IF_SOME))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
