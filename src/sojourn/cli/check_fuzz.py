"""`sojourn check fuzz`: strangers that keep no rule, among honest clients whom the oracle judges."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn.cli.check_live import check_one, faults_of, run_campaign
from sojourn.cli.check_live_telling import Telling
from sojourn.sim.live_check.campaign import Campaign, code_digest
from sojourn.sim.live_check.script import FAULTS, Spec
from sojourn.sim.live_check.strangers import STEPS

STEPS_DEFAULT = 100_000


def fuzz(  # noqa: PLR0913 - one for each option
    *,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help=f"Go on until strangers took so many steps; {STEPS_DEFAULT:,} by default."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds to run.")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seconds: Annotated[float, typer.Option(help="Simulated seconds in which strangers act.")] = 30.0,
    world_steps: Annotated[int, typer.Option(min=1, help="Steps of strangers in one world.")] = 4_000,
    brokers: Annotated[int, typer.Option(min=2, help="How many brokers.")] = 3,
    faults: Annotated[
        str, typer.Option(help=f"all, none, or some of {','.join(FAULTS)}, joined by commas.")
    ] = "client,break,kill",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="How many processes; as many as there are cores if left out.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Keep counts and failures in this file, and go on where it was left."),
    ] = None,
    twice: Annotated[
        bool, typer.Option("--twice", help="Run every seed twice, and compare every byte that was written.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Let strangers connect, subscribe, publish, take over and break off in every wrong way.

    They share a small network of whole live brokers with honest clients that move. Odd and huge values, wrong
    orders, mutated bytes, packets that are cut; two versions of MQTT. Whatever honest clients were promised
    must be kept, nobody may be unserved in the end, everything must be forgotten, and no broker may trip over
    anything. A failure is cut down to its few necessary steps, with the command that repeats it.
    """
    spec = Spec(
        seed=first_seed, seconds=seconds, brokers=brokers, faults=faults_of(faults), hostile=world_steps
    )
    campaign = Campaign(spec, code_digest(), file=state)
    if seeds is None and steps is None:
        steps = STEPS_DEFAULT
    console = Console(stderr=True, highlight=False)
    telling = Telling(console, campaign, seeds=seeds, wanted=steps, unit=STEPS)
    run_campaign(campaign, telling, partial(check_one, None, twice), jobs, state, as_json=as_json)
