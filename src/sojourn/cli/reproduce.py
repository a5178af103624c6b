"""`sojourn reproduce`: measure a study's claims and write figures, verdicts and a report.

This file only joins parts: the study says what to run and what it means, the runner runs it, the report
package makes the page.
"""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from sojourn.errors import SojournError
from sojourn.report.page import Chart, ClaimRow, Page, render
from sojourn.studies import runner
from sojourn.studies.claims import Verdict, claims_of
from sojourn.studies.publisher_mobility import measures, presentation, study
from sojourn.studies.publisher_mobility.parameters import Scale, scale_named
from sojourn.studies.publisher_mobility.study import Outcome

STUDIES = (study.NAME,)

_COLOURS = {"holds": "green", "differs": "red", "not yet": "yellow"}


class ReproduceError(SojournError):
    """A study cannot be run as asked."""


def reproduce(
    study_name: Annotated[str, typer.Argument(metavar="STUDY", help=f"One of: {', '.join(STUDIES)}.")],
    scale: Annotated[
        str, typer.Option(help="How much to run: smoke (seconds), quick (minutes) or paper (half an hour).")
    ] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds a configuration; the scale's own if left out.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores if left out.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master URL; local processes if left out.")] = None,
    out: Annotated[Path, typer.Option(help="Directory for tables, figures, verdicts and report.")] = Path(
        "results"
    ),
) -> None:
    """Measure every claim of a study and write figures, verdicts and report.html."""
    if study_name not in STUDIES:
        raise ReproduceError(f"study may be {', '.join(STUDIES)}, not {study_name!r}.")
    if master is not None:
        raise ReproduceError("master is not served by this version; leave it out to run in local processes.")
    chosen = scale_named(scale)
    console = Console(stderr=True)
    slots = workers or os.cpu_count() or 1
    console.print(
        f"{study_name} at scale {scale}: seeds 1 to {seeds or chosen.seeds}, {chosen.warmup_s:g} s warm-up, "
        f"{chosen.duration_s:g} s measured, {slots} processes."
    )
    outcome = _run(chosen, seeds, slots, console)
    written = study.write_results(outcome, out)
    written += _write_figures(outcome, out)
    _show(outcome, Console())
    again = f"sojourn reproduce {study_name} --scale {scale}" + (f" --seeds {seeds}" if seeds else "")
    console.print(f"Wrote {', '.join(path.name for path in written)} into {out} in {outcome.seconds:.0f} s.")
    console.print(f"To repeat: {again}")
    if outcome.failed:
        raise ReproduceError(
            f"{outcome.failed} of {outcome.distinct_runs} runs failed; their errors and seeds stand in "
            f"{out / 'runs.parquet'}."
        )


def _run(chosen: Scale, seeds: int | None, slots: int, console: Console) -> Outcome:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[all]} runs"),
        TextColumn("{task.fields[running]} running, {task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("simulating", total=1.0, done=0, all="?", running=0, failed=0, left="")

        def sweep(specs: list[runner.RunSpec]) -> list[runner.Row]:
            return runner.run_grid(
                specs, measures.simulate, workers=slots, progress=lambda now: _advance(bar, task, now)
            )

        return study.run(chosen, sweep=sweep, seeds=seeds)


def _advance(bar: Progress, task: TaskID, now: runner.Progress) -> None:
    left = "" if now.left_s is None else f"{now.left_s // 60:.0f} min {now.left_s % 60:02.0f} s left"
    bar.update(
        task,
        completed=now.share,
        done=now.done,
        all=now.total,
        running=now.running,
        failed=now.failed,
        left=left,
    )


def _write_figures(outcome: Outcome, out: Path) -> list[Path]:
    """Each figure as a page of its own beside one copy of the script, and all of them in the report."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    charts = []
    for figure, drawn in presentation.charts(outcome):
        drawn.write_html(folder / f"figure-{figure.number}.html", include_plotlyjs="directory")
        charts.append(Chart(figure.number, drawn, figure.claims))
    page = Page(
        title=presentation.TITLE,
        summary=presentation.summary(outcome),
        facts=presentation.facts(outcome),
        charts=charts,
        claims=claim_rows(study.NAME, outcome.verdicts),
    )
    report = out / "report.html"
    report.write_text(render(page), encoding="utf-8")
    return [folder, report]


def claim_rows(study_name: str, verdicts: list[Verdict]) -> list[ClaimRow]:
    """Verdicts beside what the ledger says, as the report shows them."""
    claims = claims_of(study_name)
    return [
        ClaimRow(
            verdict.id,
            claims[verdict.id].says,
            verdict.check,
            verdict.verdict,
            verdict.evidence,
            [(name, str(value)) for name, value in verdict.measured.items()],
        )
        for verdict in verdicts
    ]


def _show(outcome: Outcome, console: Console) -> None:
    table = Table("claim", "verdict", "evidence")
    for verdict in outcome.verdicts:
        colour = _COLOURS[verdict.verdict]
        table.add_row(verdict.id, f"[{colour}]{verdict.verdict}[/{colour}]", verdict.evidence)
    console.print(table)
