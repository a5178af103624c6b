"""`sojourn plan`: how many brokers for so many subscribers, from a measured run.

Example: sojourn plan traces --subscribers 5000 --rate 50
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from sojourn.cli.heartbeat import working
from sojourn.cli.spark_options import Conf, Master, Ship, Ui, session
from sojourn.pipeline.places import require_trace

if TYPE_CHECKING:
    from sojourn.pipeline.capacity import Measured, Plan


def plan(  # noqa: PLR0913 - options of the command
    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="Directory of a measured run's trace; or s3://BUCKET/FOLDER."),
    ],
    subscribers: Annotated[
        int, typer.Option("--subscribers", "-k", help="How many subscribers to plan for.")
    ],
    rate: Annotated[
        float | None, typer.Option(help="Events published a second in all; as measured if left out.")
    ] = None,
    stay: Annotated[
        float | None, typer.Option(help="Mean seconds at one broker; as measured if left out.")
    ] = None,
    busy: Annotated[float, typer.Option(help="Share of its time the most crowded broker may be busy.")] = 0.7,
    graph: Annotated[
        Path | None, typer.Option(help="Also write the learnt neighbour graph here, for brokers to load.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
    *,
    ui: Ui = False,
    ship: Ship = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Tell how many brokers K subscribers need at a mobility and rate, from a measured run.

    Example: sojourn plan traces --subscribers 5000 --rate 50
    """
    require_trace(trace)
    with working(Console(stderr=True), "loading Spark"):
        from sojourn.mobility.learnt_graph import encode_graph
        from sojourn.pipeline.capacity import Wish, measure
        from sojourn.pipeline.capacity import plan as make_plan
        from sojourn.pipeline.probing import probe
        from sojourn.pipeline.tables import open_trace
    wish = Wish(clients=subscribers, publications_per_s=rate, stay_s=stay, busy_max=busy)
    found = open_trace(trace)
    for problem in found.problems:
        Console(stderr=True).print(f"{problem.run_id}: {problem.sentence}", highlight=False)
    with working(Console(stderr=True), "measuring the run on Spark"):
        spark = session(master, conf, ui=ui, ship=ship)
        probe(spark, found.root)
        measured, learnt = measure(spark, found)
    answer = make_plan(measured, wish)
    if graph is not None:
        graph.write_bytes(encode_graph(learnt))
    if as_json:
        typer.echo(msgspec.json.encode(answer).decode())
        return
    _show(answer, Console())


def _show(answer: Plan, console: Console) -> None:
    console.print(
        f"{answer.answer.brokers} brokers for {answer.wish.clients} subscribers: the most crowded one "
        f"then has {answer.answer.clients:.1f} of them on average "
        f"and is busy {answer.answer.busy:.0%} of its time.",
        highlight=False,
    )
    table = Table("brokers", "subscribers at the most crowded", "busy", "deliveries/s there")
    for step in answer.beside:
        table.add_row(
            str(step.brokers), f"{step.clients:.1f}", f"{step.busy:.1%}", f"{step.deliveries_per_s:.1f}"
        )
    console.print(table)
    for line in _grounds(answer.measured):
        console.print(line, highlight=False)


def _grounds(measured: Measured) -> list[str]:
    """What the plan rests on, in sentences."""
    what = (
        f"Measured: {measured.clients} clients at {measured.brokers} brokers, "
        f"{measured.publications_per_s:.2f} events/s published, {measured.deliveries_per_s:.2f} delivered; "
        f"a stay lasts {measured.stay_s:.1f} s, a move {measured.away_s:.1f} s."
    )
    crowded = "in the long run" if measured.long_run else "as seen; the run is too short for a long run"
    line = f"a line over clients has R2 {measured.load_r2:.2f}"
    how = f"all work shared out, since {line}" if measured.shared_out else line
    load = (
        f"Busy share = {measured.base:.4g} + {measured.per_client:.4g} x clients ({how}); control "
        f"messages are {measured.control_share:.0%} of all; the most crowded broker "
        f"has {measured.crowding:.2f} times the mean ({crowded})."
    )
    if measured.curve is None:
        return [what, load]
    a, b, c, d = measured.curve.coefficients
    curve = (
        f"Throughput = {a:.4g} x^3 {b:+.4g} x^2 {c:+.4g} x {d:+.4g} (R2 {measured.curve.r2:.3f}), measured "
        f"for x from {measured.curve.low:.1f} to {measured.curve.high:.1f} clients."
    )
    return [what, load, curve]
