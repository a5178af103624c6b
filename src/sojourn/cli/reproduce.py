"""`sojourn reproduce`: measure a study's claims and write figures, verdicts and a report.

This file only joins parts: the study says what to run and what it means, the sweep runs it on Spark (or in
plain processes), the report package makes the page. A study that was interrupted goes on where it stopped:
the finished runs stand in the directory `store` of its output.
"""

import json
import logging
import signal
import threading
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from sojourn.cli.heartbeat import working
from sojourn.cli.sweep_bar import SweepBar, sweep_bar
from sojourn.errors import SojournError
from sojourn.report.page import Chart, ClaimRow, DataTable, Entry, Page, render, render_index
from sojourn.studies import runner
from sojourn.studies.captions import caption_of, tidy, with_notes
from sojourn.studies.claims import Claim, Verdict, claims_of
from sojourn.studies.papers import paper_of
from sojourn.studies.registry import STUDIES, Study
from sojourn.studies.reproduction import page, read_all, readings_table

INDEX = "Each study measures what one paper claims, on the code that ships."

_COLOURS = {"holds": "green", "differs": "red", "not yet": "yellow"}


class ReproduceError(SojournError):
    """A study cannot be run as asked."""


class InterruptedStudyError(ReproduceError):
    """Somebody pressed Ctrl-C."""

    exit_code = 130


class _Engine(NamedTuple):
    """What runs the simulations."""

    workers: int | None
    """Plain processes; None means Spark."""
    master: str | None
    trace: bool
    conf: list[str] | None = None
    ui: bool = False
    ship: bool = False

    def __str__(self) -> str:
        return f"{self.workers} plain processes" if self.workers else f"Spark on {self.master or 'local[*]'}"


def reproduce(  # noqa: PLR0913 - options of the command
    study_name: Annotated[str, typer.Argument(metavar="STUDY", help=f"One of: {', '.join(STUDIES)}, all.")],
    scale: Annotated[
        str,
        typer.Option(
            help="How much to run: smoke (whether it works: minutes), quick (fewer seeds and shorter runs: "
            "minutes to an hour) or paper (as the paper: longer); the bar tells the time that is left."
        ),
    ] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds a configuration; the scale's own if left out.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="This many plain processes, not Spark: no tables are kept.")
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master URL; all cores of this machine if left out.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for tables, figures, verdicts and report.")] = Path(
        "results"
    ),
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's; may be repeated."),
    ] = None,
    *,
    ui: Annotated[bool, typer.Option("--ui", help="Serve Spark's own page, and say where.")] = False,
    ship: Annotated[
        bool, typer.Option("--ship", help="Send all that tasks need to executors without it.")
    ] = False,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Keep every run's trace, for `sojourn audit`, in the directory trace."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as one JSON object, and no table.")
    ] = False,
) -> None:
    """Measure every claim of a study and write figures, verdicts and report.html.

    A run that was interrupted goes on where it was, with the same command. Example:

    sojourn reproduce handoff --scale smoke
    """
    if study_name not in (*STUDIES, "all"):
        raise ReproduceError(f"study may be {', '.join(STUDIES)} or all, not {study_name!r}.")
    if workers is not None and (master is not None or trace or conf or ui or ship):
        raise ReproduceError("workers and options of Spark exclude each other: plain processes, or Spark.")
    wanted = list(STUDIES.values()) if study_name == "all" else [STUDIES[study_name]]
    for study in wanted:
        study.scale_named(scale)
    console = Console(stderr=True)
    engine = _Engine(workers, master, trace, conf, ui, ship)
    again = f"sojourn reproduce {study_name} --scale {scale}" + (f" --seeds {seeds}" if seeds else "")
    again += " --trace" if trace else ""
    entries, failures = [], []
    verdicts: dict[str, Any] = {}
    for study in wanted:
        folder = out / study.name if study_name == "all" else out
        chosen = study.scale_named(scale)
        console.print(f"{study.name} at scale {scale}: {study.what_is_run(chosen, seeds)}; {engine}.")
        try:
            outcome = _run(study, chosen, seeds, engine, folder, console)
        except KeyboardInterrupt:
            raise InterruptedStudyError(_how_to_go_on(engine, folder)) from None
        with working(console, "drawing figures"):
            written = [
                *study.write_results(outcome, folder, study.name),
                *_write_figures(study, outcome, folder, again),
            ]
        if as_json:
            verdicts[study.name] = [msgspec.to_builtins(verdict) for verdict in outcome.verdicts]
        else:
            _show(outcome, Console())
        console.print(
            f"Wrote {', '.join(path.name for path in written)} into {folder} in {outcome.seconds:.0f} s."
        )
        entries.append(_entry(study, outcome))
        if study_name == "all":  # anew after each, so that there is one whenever we are stopped
            index = render_index("Sojourn: all studies", INDEX, entries)
            (out / "index.html").write_text(index, encoding="utf-8")
            (out / "reproduction.md").write_text(page(read_all(out)), encoding="utf-8")
        if outcome.failed:
            failures.append(
                f"{outcome.failed} of {outcome.distinct_runs} runs failed; their errors and seeds stand in "
                f"{folder / 'runs.parquet'}."
            )
    if as_json:
        typer.echo(json.dumps(verdicts))
    console.print(f"To repeat: {again}")
    if failures:
        raise ReproduceError(" ".join(failures))


def _how_to_go_on(engine: _Engine, folder: Path) -> str:
    if engine.workers is not None:
        return "Interrupted. Runs in plain processes are not kept: the same command begins anew."
    return (
        f"Interrupted. The runs that were finished are kept in {folder / 'store'}: the same command goes on "
        "from there."
    )


def _run(study: Study, scale: Any, seeds: int | None, engine: _Engine, folder: Path, console: Console) -> Any:
    with sweep_bar(console) as bar:
        if engine.workers is None:
            return _run_on_spark(study, scale, seeds, engine, folder, bar)

        def sweep(specs: list[runner.RunSpec]) -> list[runner.Row]:
            bar.begin(_distinct(specs), "starting processes")
            return runner.run_grid(specs, study.simulate, workers=engine.workers, progress=bar)

        return study.run(scale, seeds, sweep, None)


def _distinct(specs: list[runner.RunSpec]) -> int:
    """How many runs there are; equal scenarios are one."""
    return len({spec.run_id for spec in specs})


def _run_on_spark(
    study: Study, scale: Any, seeds: int | None, engine: _Engine, folder: Path, bar: SweepBar
) -> Any:
    # Imported here because plain processes need neither Spark nor Java.
    from sojourn.cli.spark_options import session
    from sojourn.pipeline.probing import NEEDED_BY_STUDIES, probe
    from sojourn.studies import spark_runner

    record = _recording(study, traced=engine.trace)
    how = spark_runner.measuring_of(study.measuring)
    address = folder.resolve().as_uri()
    traces = f"{address}/trace" if engine.trace else None
    places = spark_runner.Places(f"{address}/store", f"{address}/measures", traces)
    known: dict[str, Any] = {}

    def sweep(specs: list[runner.RunSpec]) -> list[runner.Row]:
        # Spark takes its time to start, so what there is to do is told before.
        bar.begin(_distinct(specs), "starting Spark")
        spark = _interruptible(session(engine.master, engine.conf, ui=engine.ui, ship=engine.ship))
        folder.mkdir(parents=True, exist_ok=True)
        probe(spark, folder.resolve(), NEEDED_BY_STUDIES)
        found = spark_runner.run_grid_on_spark(spark, specs, record, how, places, progress=bar)
        spark_runner.write_definitions(how, folder / "definitions.json")
        known.update(spark=spark, specs=specs, measured=found.measures)
        return found.rows

    def means(_runs: Any, _by: Any, wanted: list[str]) -> Any:
        return spark_runner.means_on_spark(known["spark"], known["specs"], known["measured"], wanted)

    return study.run(scale, seeds, sweep, means)


def _interruptible(spark: Any) -> Any:
    """Have Ctrl-C end this program as it ends others: PySpark's own handler first asks Java, and fails."""

    def end(*_signal: object) -> None:
        logging.disable(logging.CRITICAL)  # Py4J would log where in the wire protocol it was
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, end)
    return spark


def _recording(study: Study, *, traced: bool) -> Any:
    """The function that tasks call: it records facts, and a whole trace if that is wanted."""
    if traced and study.record_traced is None:
        raise ReproduceError(f"{study.name} keeps no traces; leave --trace out.")
    wanted = study.record_traced if traced and study.record_traced else study.record
    module, name = wanted.split(":")
    return getattr(import_module(module), name)


def _write_figures(study: Study, outcome: Any, out: Path, command: str) -> list[Path]:
    """Each figure as a page of its own beside one copy of the script, and all of them in the report."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    charts = []
    for figure, drawn in study.charts(outcome):
        missing = tidy(drawn)
        if not drawn.data:
            continue
        drawn.write_html(folder / f"figure-{figure.number}.html", include_plotlyjs="directory")
        caption = with_notes(caption_of(study.name, figure.number), drawn, missing, study.over)
        charts.append(Chart(figure.number, drawn, figure.claims, caption))
    page = Page(
        title=study.title,
        summary=study.summary(outcome),
        facts=study.facts(outcome),
        charts=charts,
        claims=claim_rows(study.name, outcome.verdicts),
        command=command,
        tables=[*study.tables(outcome), *_readings(outcome)],
        paper=paper_of(study.name).cited,
        undrawn=undrawn(study, [chart.anchor for chart in charts]),
    )
    report = out / "report.html"
    report.write_text(render(page), encoding="utf-8")
    return [folder, report]


def _readings(outcome: Any) -> list[DataTable]:
    """The verdict of every reading on every claim that it touches, as one table."""
    table = readings_table(outcome.verdicts)
    if table is None:
        return []
    note = (
        "What the paper leaves open was read in several ways. The study's verdicts rest on the first row; "
        "none was chosen because of its verdict. An empty cell is a claim that a reading does not touch."
    )
    return [DataTable("readings", "Readings against claims", *table, note)]


def undrawn(study: Study, drawn: list[str]) -> list[tuple[str, str]]:
    """The figures that have no points, and what they would show; nothing where all are drawn."""
    return [
        (figure.number, caption_of(study.name, figure.number))
        for figure in study.figures
        if figure.number not in drawn
    ]


def _entry(study: Study, outcome: Any) -> Entry:
    verdicts = [verdict.verdict for verdict in outcome.verdicts]
    summary, paper = study.summary(outcome), paper_of(study.name).cited
    return Entry(study.title, f"{study.name}/report.html", summary, verdicts, paper)


def claim_rows(study_name: str, verdicts: list[Verdict]) -> list[ClaimRow]:
    """Verdicts beside what the ledger says, as the report shows them."""
    claims = claims_of(study_name)
    return [
        ClaimRow(
            verdict.id,
            claims[verdict.id].says,
            verdict.check,
            verdict.verdict,
            _whole_evidence(verdict, claims[verdict.id]),
            [(name, str(value)) for name, value in verdict.measured.items()],
        )
        for verdict in verdicts
    ]


def _whole_evidence(verdict: Verdict, claim: Claim) -> str:
    """The evidence with its margin and, where the verdict is `differs`, where the paper says it, and why."""
    parts = [verdict.evidence]
    if verdict.margin is not None and verdict.margin.said:
        parts.append(f"Margin: {verdict.margin.said}.")
    if verdict.cause:
        parts += [f"The paper says so in {claim.where}." if claim.where else "", f"Why: {verdict.cause}"]
    return " ".join(part for part in parts if part)


def _show(outcome: Any, console: Console) -> None:
    table = Table("claim", "verdict", "evidence")
    for verdict in outcome.verdicts:
        colour = _COLOURS[verdict.verdict]
        tie = " (tie)" if verdict.tied and verdict.verdict != "not yet" else ""
        table.add_row(verdict.id, f"[{colour}]{verdict.verdict}[/{colour}]{tie}", verdict.evidence)
    console.print(table)
