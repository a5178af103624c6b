"""`sojourn check live`: networks of whole live brokers, broken in every way that a seed decides."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sojourn.errors import SojournError
from sojourn.sim.live_check.check import Found, check, run
from sojourn.sim.live_check.mutations import broken
from sojourn.sim.live_check.script import FAULTS, Script, Spec
from sojourn.sim.live_check.shrink import shrink

EXIT_FAILED = 1
STEPS_SHOWN_MAX = 60
SEEDS_A_WORKER_MIN = 4
"""Fewer are checked sooner than further processes start."""


class CheckError(SojournError):
    """The options of `sojourn check live` do not fit together."""


def live(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 100,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    seconds: Annotated[
        float, typer.Option(help="Simulated seconds in which clients move and things break.")
    ] = 120.0,
    brokers: Annotated[
        int | None, typer.Option(min=2, help="How many brokers; drawn from the seed if left out.")
    ] = None,
    faults: Annotated[
        str, typer.Option(help=f"all, none, or some of {','.join(FAULTS)}, joined by commas.")
    ] = "all",
    twice: Annotated[
        bool, typer.Option("--twice", help="Run every seed twice, and compare every byte that was written.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    broken_by: Annotated[
        str | None,
        typer.Option("--broken", help="Break the brokers by a known mistake, to see that it is found."),
    ] = None,
) -> None:
    """Let clients publish, subscribe and roam over brokers that are killed, cut off, and lose what they know.

    Real MQTT packets between clients and brokers, real frames between brokers; links that break, stall and
    part, processes killed between any two effects, with their store, with a store that lost its last lines,
    without it, disks that fill, clocks that are wrong. Whatever was acknowledged must arrive once and in
    order; retained values agree; when the faults stop, everything is served, and in the end forgotten. A
    failure is cut down to its few necessary steps, with the command that repeats it. A seed takes a few
    seconds of processor time.
    """
    console = Console(stderr=True, highlight=False)
    wanted = _faults(faults)
    specs = [
        Spec(seed=seed, seconds=seconds, brokers=brokers, faults=wanted)
        for seed in range(first_seed, first_seed + seeds)
    ]
    counts: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        _checked(specs, broken_by, twice=twice) as checked,
        Progress(*columns, console=console, transient=True) as bar,
    ):
        task = bar.add_task("hand-offs", total=len(specs))
        for found in checked:
            counts.update(found.counts)
            excused.update(found.excused)
            if found.failure is not None:
                bar.update(task, description=f"shortening seed {found.spec.seed}")
                short = shrink(found, run_script=partial(_run, broken_by))
                bar.stop()
                _show(found, short, broken_by)
                raise typer.Exit(EXIT_FAILED)
            bar.update(task, advance=1, description=f"{counts['hand-offs']} hand-offs")
    if as_json:
        typer.echo(
            json.dumps({"seeds": seeds, "counts": dict(sorted(counts.items())), "excused": dict(excused)})
        )
        return
    _tell(seeds, counts, excused)


def _faults(text: str) -> tuple[str, ...]:
    if text in ("all", "none"):
        return FAULTS if text == "all" else ()
    wanted = tuple(text.split(","))
    unknown = [one for one in wanted if one not in FAULTS]
    if unknown:
        raise CheckError(f"--faults may be all, none or some of {', '.join(FAULTS)}, not {unknown[0]!r}.")
    return wanted


def _check(broken_by: str | None, twice: bool, spec: Spec) -> Found:  # noqa: FBT001 - mapped over processes
    with broken(broken_by):
        found = check(spec)
        if not twice or found.failure is not None:
            return found
        again = check(spec)
    if again.digest == found.digest:
        return found
    return Found(
        spec=spec,
        script=found.script,
        failure="The same seed wrote other bytes the second time.",
        kind="other bytes",
        trace="",
        digest=again.digest,
        counts=found.counts,
        excused=found.excused,
    )


def _run(broken_by: str | None, script: Script) -> Found:
    with broken(broken_by):
        return run(script)


@contextmanager
def _checked(specs: list[Spec], broken_by: str | None, *, twice: bool) -> Iterator[Iterator[Found]]:
    """What each check found, in the order of the seeds; many of them keep all cores busy."""
    job = partial(_check, broken_by, twice)
    workers = min(os.cpu_count() or 1, len(specs) // SEEDS_A_WORKER_MIN)
    if workers < 2:
        yield map(job, specs)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        yield pool.map(job, specs)
    finally:
        pool.shutdown(cancel_futures=True)  # after a failure, what is running ends and nothing else begins


def _show(found: Found, short: Found, broken_by: str | None) -> None:
    script = short.script
    typer.echo(f"seed {found.spec.seed}: {found.failure}")
    if found.trace:
        typer.echo(found.trace)
    typer.echo(f"Cut down from {len(found.script.steps)} steps to {len(script.steps)}: {short.failure}")
    links = ", ".join(f"B{one}-B{other}" for one, other in script.links)
    typer.echo(f"{script.brokers} brokers linked {links}; {script.scheme}, {script.routing}.")
    for step in script.steps[:STEPS_SHOWN_MAX]:
        typer.echo(f"  {step}")
    if len(script.steps) > STEPS_SHOWN_MAX:
        typer.echo(f"  and {len(script.steps) - STEPS_SHOWN_MAX} more steps")
    option = f" --broken {broken_by}" if broken_by is not None else ""
    typer.echo(f"To repeat it: {found.spec.command()}{option}")


def _tell(seeds: int, counts: Counter[str], excused: Counter[str]) -> None:
    for name, count in sorted(counts.items()):
        typer.echo(f"{count:>12,}  {name}")
    for name, count in sorted(excused.items()):
        typer.echo(f"{count:>12,}  not judged: {name}")
    typer.echo(
        f"{seeds} seeds, {counts['hand-offs']} hand-offs, {counts['deliveries']} deliveries: "
        "0 lost, 0 doubled, 0 out of order, nobody stuck, nothing left behind."
    )
