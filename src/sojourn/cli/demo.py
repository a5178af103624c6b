"""`sojourn demo`: six brokers, two hundred phones that move between them, and what Spark finds in the trace.

`sojourn demo adhoc` is another story (`demo_adhoc.py`): devices that meet where there is no broker.

The brokers are processes, the phones real MQTT clients on sockets, the movement that of paper 001's building.
The same people walk the same ways three times, once for each scheme; then one Spark job audits all runs.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sojourn.cli.audit import told_by
from sojourn.cli.demo_building import demo_building
from sojourn.cli.demo_report import write_report
from sojourn.cli.demo_walkers import Crowd, Plan, walk
from sojourn.cli.heartbeat import Heartbeat, heartbeat
from sojourn.cli.serve_all import Keeper, wait_for_links
from sojourn.errors import SojournError
from sojourn.live.brokers.fleet import Fleet
from sojourn.live.links.secret import SECRET_NAME, write_secret
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.audit_options import AuditOptions
from sojourn.pipeline.session import spark_session

LINKS_S = 60.0
SCHEMES = ("proactive", "reactive", "durable")
ROWS = (
    ("published", "published"),
    ("expected", "expected deliveries"),
    ("delivered", "delivered"),
    ("lost", "lost"),
    ("duplicated", "duplicated"),
    ("out_of_order", "out of order"),
    ("moves", "moves to another broker"),
    ("handoffs", "hand-offs completed"),
    ("handoff_wait_p50_s", "hand-off p50, ms"),
    ("handoff_wait_p99_s", "hand-off p99, ms"),
)


class DemoError(SojournError):
    """The demonstration cannot run."""


class Which(Enum):
    """The demonstrations."""

    BUILDING = "building"
    ADHOC = "adhoc"


def demo(  # noqa: PLR0913 - each is an option of the command
    which: Annotated[
        Which,
        typer.Argument(metavar="WHICH", help="building: phones that move; adhoc: devices without a broker."),
    ] = Which.BUILDING,
    *,
    clients: Annotated[int, typer.Option(min=1, max=2_000, help="Phones.")] = 200,
    seconds: Annotated[float, typer.Option(min=1, help="Length of the pro-active run.")] = 60.0,
    others_seconds: Annotated[float, typer.Option(min=1, help="Length of the two others.")] = 30.0,
    pace: Annotated[float, typer.Option(min=1, help="How much faster than people they walk.")] = 10.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Events a second.")] = 20.0,
    seed: Annotated[int, typer.Option(help="Decides who walks where.")] = 1,
    out: Annotated[Path, typer.Option(help="Where traces, logs and the report go.")] = Path("demo-out"),
    coordinate: Annotated[
        bool, typer.Option("--coordinate", help="adhoc: let brokers that meet coordinate, and not merge.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what the audit found as one JSON object.")
    ] = False,
) -> None:
    """Let phones move between six live brokers, and audit what each of them got."""
    console = Console(highlight=False, stderr=as_json)
    began = time.monotonic()
    if which is Which.ADHOC:
        _adhoc(console, out, coordinate=coordinate, as_json=as_json)
        return
    run = f"{int(time.time()):x}"
    trace = out / f"trace-{run}"
    console.print(
        f"{clients} phones walk through a building of six brokers, {pace:g} times as fast as people do; one "
        f"publisher, {rate:g} events a second; everybody wants one kind of news in five."
    )
    crowds: dict[str, Crowd] = {}
    with heartbeat(console) as beat:
        for scheme in SCHEMES:
            length = seconds if scheme == "proactive" else others_seconds
            how = clients, pace, rate, seed
            crowds[scheme] = _run(console, beat, scheme, length, how, out / run, trace)
        console.print("Spark audits the traces of all three runs …")
        beat.tell("starting Spark")
        report = audit_trace(spark_session(), trace, AuditOptions(), progress=told_by(beat))
    rows = {str(row["run_id"]): dict(row) for row in report.runs}
    missing = [scheme for scheme in SCHEMES if scheme not in rows]
    if missing:
        raise DemoError(f"The trace has no run {missing[0]!r}; look into {out / run}.")
    for scheme, crowd in crowds.items():
        rows[scheme]["moves"] = crowd.moves
    if as_json:
        typer.echo(json.dumps(rows, default=str))
    _show(console, rows)
    console.print(
        "A phone that moves on before it has everything completes no hand-off. Durable sessions hand nothing "
        "over: what waited for a phone at the broker that it left stays there, and counts as lost."
    )
    path = write_report(out / "report.html", rows, {"clients": clients, "pace": pace, "rate": rate})
    console.print(
        f"\n[bold]{path}[/bold] has the figures; [bold]sojourn audit {trace}[/bold] audits the trace again. "
        f"That took {time.monotonic() - began:.0f} s."
    )
    bad = [name for name in ("lost", "duplicated", "out_of_order") if rows["proactive"][name]]
    if bad:
        raise DemoError(
            f"The pro-active run has {rows['proactive'][bad[0]]} events {bad[0]}; see {out / run}."
        )


def _adhoc(console: Console, out: Path, *, coordinate: bool, as_json: bool) -> None:
    from sojourn.cli.demo_adhoc import DemoAdhocError, meet, show

    folder = out / f"adhoc-{int(time.time()):x}"
    console.print("Six devices in two groups, with no broker; everybody publishes, and wants everything.")
    with heartbeat(console) as beat:
        found = asyncio.run(meet(console, beat, folder, seconds=5.0, rate=5.0, coordinate=coordinate))
    if as_json:
        typer.echo(json.dumps(found))
    show(console, found)
    if found.wrong:
        raise DemoAdhocError(f"{found.wrong} events were lost or doubled; logs are in {folder}.")
    console.print("Nothing was lost, and nothing came twice.")


def _run(
    console: Console,
    beat: Heartbeat,
    scheme: str,
    length: float,
    how: tuple[int, float, float, int],
    out: Path,
    trace: Path,
) -> Crowd:
    clients, pace, rate, seed = how
    folder = out / scheme
    folder.mkdir(parents=True, exist_ok=True)
    config = demo_building(scheme, str(trace.absolute()), scheme)
    path = folder / "building.toml"
    path.write_text(config.text)
    write_secret(folder / SECRET_NAME)
    fleet = Fleet(path, config.names, folder, reports=True)
    with Live(console=console, transient=True) as live:

        def now(stage: str, crowd: Crowd | None = None) -> None:
            live.update(Text(f"{stage} …") if crowd is None else _line(scheme, crowd, length * rate))
            beat.tell(stage, "" if crowd is None else _figures(crowd))

        def walking(crowd: Crowd) -> None:
            doing = "waiting for what is under way" if crowd.is_over else f"{length:g} s of walking"
            now(f"{scheme}: {doing}", crowd)

        now(f"{scheme}: starting six brokers")
        fleet.wait_until_ready()
        # Events cross no sooner than links stand: without them the first ones would be told to some only.
        wait_for_links(Keeper(fleet, console.print), threading.Event(), console.print, LINKS_S)
        first = fleet.listening(config.names[0])
        if first is not None and first.page is not None:
            console.print(f"{scheme}: watch it at [bold]http://{first.page}/[/bold]")
        urls = [fleet.url(name) for name in config.names]
        plan = Plan(urls=urls, clients=clients, seconds=length, rate=rate, pace=pace, seed=seed)
        try:
            crowd = asyncio.run(walk(plan, walking))
        finally:
            now(f"{scheme}: stopping the brokers")
            ended = fleet.ended()
            fleet.stop()
    if ended:
        raise DemoError(
            f"The broker {ended[0]} ended during the run; its log is {folder / (ended[0] + '.log')}."
        )
    console.print(
        f"{scheme}: {crowd.published:,} events, {crowd.moves:,} moves to another broker by {clients} phones "
        f"in {length:g} s"
    )
    return crowd


def _line(scheme: str, crowd: Crowd, of: float) -> Text:
    share = min(1.0, crowd.published / of) if of else 1.0
    bar = "█" * round(24 * share) + "░" * (24 - round(24 * share))
    return Text(f"{scheme} {bar} {_figures(crowd)}")


def _figures(crowd: Crowd) -> str:
    return (
        f"{crowd.published:,} published · {crowd.received:,} received · "
        f"{crowd.moves:,} moves · {crowd.connected} connected"
    )


def _show(console: Console, rows: dict[str, dict[str, float]]) -> None:
    table = Table("", *SCHEMES, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for key, label in ROWS:
        values = [rows[scheme].get(key) for scheme in SCHEMES]
        table.add_row(label, *(_cell(key, value) for value in values))
    console.print(table)


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return "-"
    if key.endswith("_s"):
        return f"{1e3 * value:,.1f}"
    text = f"{value:,}"
    return f"[green]{text}[/green]" if not value and key in ("lost", "duplicated", "out_of_order") else text
