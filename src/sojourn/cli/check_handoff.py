"""Runs what `sojourn check handoff` asks for: small worlds of moving subscribers, on all cores."""

import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sojourn.cli.heartbeat import heartbeat
from sojourn.sim.handoff_check.check import Found, check, shorten
from sojourn.sim.handoff_check.script import CHECKED_SCHEMES, ROUTINGS, CheckSpec

EXIT_FAILED = 1
STEPS_SHOWN_MAX = 60
WORLDS_A_WORKER_MIN = 32
"""Fewer are checked sooner than further processes start."""


def check_handoffs(
    seeds: int, first_seed: int, scheme: str | None, routing: str | None, seconds: float, *, as_json: bool
) -> None:
    """Check the worlds of these seeds one after the other; end at the first that fails, cut down."""
    console = Console(stderr=True, highlight=False)
    specs = list(_specs(seeds, first_seed, scheme, routing, seconds))
    handoffs = deliveries = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        _checked(specs) as checked,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
        heartbeat(console, "checking") as beat,
    ):
        task = bar.add_task("hand-offs", total=len(specs))
        for done, found in enumerate(checked, 1):
            handoffs += found.handoffs
            deliveries += found.deliveries
            if found.failure is not None:
                bar.update(task, description=f"shortening seed {found.spec.seed}")
                beat.tell(f"shortening seed {found.spec.seed}")
                if as_json:
                    _tell(seeds, len(specs), handoffs, deliveries, found)
                else:
                    _show(found, shorten(found))
                raise typer.Exit(EXIT_FAILED)
            bar.update(task, advance=1, description=f"{handoffs} hand-offs")
            beat.tell("checking", f"{done:,} of {len(specs):,} worlds, {handoffs:,} hand-offs")
    if as_json:
        _tell(seeds, len(specs), handoffs, deliveries, None)
        return
    typer.echo(
        f"{seeds} seeds, {len(specs)} worlds, {handoffs} hand-offs, {deliveries} deliveries: "
        "0 lost, 0 doubled, 0 out of order, no copy left behind."
    )


def _tell(seeds: int, worlds: int, handoffs: int, deliveries: int, broken: Found | None) -> None:
    """The outcome as one JSON object, with the first failure if there is one."""
    told: dict[str, object] = {
        "seeds": seeds,
        "worlds": worlds,
        "handoffs": handoffs,
        "deliveries": deliveries,
    }
    told["failure"] = None if broken is None else broken.failure
    told["repeat"] = None if broken is None else broken.command()
    typer.echo(json.dumps(told))


@contextmanager
def _checked(specs: list[CheckSpec]) -> Iterator[Iterator[Found]]:
    """What each check found, in the order of the seeds; many of them keep all cores busy."""
    workers = min(os.cpu_count() or 1, len(specs) // WORLDS_A_WORKER_MIN)
    if workers < 2:
        yield map(check, specs)
        return
    # Not forked: a copy of this process would share its sockets, and Spark's, if it has any.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        yield pool.map(check, specs, chunksize=4)
    finally:
        pool.shutdown(cancel_futures=True)  # after a failure, what is running ends and nothing else begins


def _specs(
    seeds: int, first_seed: int, scheme: str | None, routing: str | None, seconds: float
) -> Iterator[CheckSpec]:
    kinds = list(product((scheme,) if scheme else CHECKED_SCHEMES, (routing,) if routing else ROUTINGS))
    for seed, (one_scheme, one_routing) in product(range(first_seed, first_seed + seeds), kinds):
        yield CheckSpec(seed=seed, scheme=one_scheme, routing=one_routing, duration_s=seconds)


def _show(found: Found, short: Found) -> None:
    spec, script = found.spec, short.script
    typer.echo(f"seed {spec.seed}, {spec.scheme}, {spec.routing}: {found.failure}.")
    typer.echo(f"Cut down from {len(found.script.steps)} steps to {len(script.steps)}: {short.failure}.")
    links = [f"{one}-{other}" for one, near in enumerate(script.graph) for other in near if one < other]
    typer.echo(f"Brokers linked {', '.join(links)}; publishers at {[at for at, _ in script.publishers]}.")
    for step in script.steps[:STEPS_SHOWN_MAX]:
        typer.echo(f"  {step}")
    if len(script.steps) > STEPS_SHOWN_MAX:
        typer.echo(f"  and {len(script.steps) - STEPS_SHOWN_MAX} more steps")
    typer.echo(f"To repeat it: {found.command()}")
