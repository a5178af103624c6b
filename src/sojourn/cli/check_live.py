"""`sojourn check live`: networks of whole live brokers, broken in every way that a seed decides."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn.cli.check_live_telling import Telling, show_failure, tell_campaign, tell_hunt
from sojourn.cli.heartbeat import working
from sojourn.errors import SojournError
from sojourn.sim.live_check.campaign import Campaign, code_digest
from sojourn.sim.live_check.check import Found, check, run
from sojourn.sim.live_check.mutation_run import Hunt, run_task
from sojourn.sim.live_check.mutations import broken
from sojourn.sim.live_check.running import ran
from sojourn.sim.live_check.script import FAULTS, Script, Spec
from sojourn.sim.live_check.shrink import shrink

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
SEEDS_DEFAULT = 100
SEEDS_A_JOB_MIN = 4
"""Fewer are checked sooner than further processes start."""


class CheckError(SojournError):
    """The options of `sojourn check live` do not fit together."""


def live(  # noqa: PLR0913 - one for each option
    *,
    seeds: Annotated[
        int | None, typer.Option(min=1, help=f"How many seeds to run; {SEEDS_DEFAULT} if nothing is said.")
    ] = None,
    hand_offs: Annotated[
        int | None, typer.Option(min=1, help="Go on with further seeds until so many hand-offs were counted.")
    ] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seconds: Annotated[
        float, typer.Option(help="Simulated seconds in which clients move and things break.")
    ] = 120.0,
    brokers: Annotated[
        int | None, typer.Option(min=2, help="How many brokers; drawn from the seed if left out.")
    ] = None,
    faults: Annotated[
        str, typer.Option(help=f"all, none, or some of {','.join(FAULTS)}, joined by commas.")
    ] = "all",
    restless: Annotated[
        bool,
        typer.Option(
            "--restless",
            help="Let clients move on about ten times as often, among as many faults a second: "
            "more hand-offs in a second of processor time.",
        ),
    ] = False,
    copies: Annotated[
        int,
        typer.Option(
            min=0,
            help="Let so many machines hold a copy of each broker's journal; machines then also lose their "
            "disks, cannot see each other, and play each other's brokers.",
        ),
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="How many processes; as many as there are cores if left out.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Keep counts and failures in this file, go on after a failure, and go on where the same "
            "command was stopped or killed."
        ),
    ] = None,
    twice: Annotated[
        bool, typer.Option("--twice", help="Run every seed twice, and compare every byte that was written.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
    broken_by: Annotated[
        str | None,
        typer.Option("--broken", help="Break the brokers by a known mistake, to see that it is found."),
    ] = None,
    mutations: Annotated[
        bool,
        typer.Option(
            "--mutations", help="Break the brokers by every known mistake, and say which is found when."
        ),
    ] = False,
) -> None:
    """Let clients publish, subscribe and roam over brokers that are killed, cut off, and lose what they know.

    Real MQTT packets between clients and brokers, real frames between brokers; links that break, stall and
    part, processes killed between any two effects, with their store, with a store that lost its last lines,
    without it, disks that fill, clocks that are wrong. Whatever was acknowledged must arrive once and in
    order; retained values agree; when the faults stop, everything is served, and in the end forgotten. A
    failure is cut down to its few necessary steps, with the command that repeats it. A seed takes a few
    seconds of processor time.
    """
    if state is not None and (broken_by is not None or mutations):
        raise CheckError(
            "--state keeps what whole brokers did: leave out --broken and --mutations, or --state."
        )
    spec = Spec(
        seed=first_seed,
        seconds=seconds,
        brokers=brokers,
        faults=faults_of(faults),
        restless=restless,
        copies=copies,
    )
    if mutations:
        _hunt(spec, seeds or SEEDS_DEFAULT, jobs or _jobs(seeds))
        return
    campaign = Campaign(spec, code_digest(), file=state)
    if seeds is None and hand_offs is None:
        seeds = SEEDS_DEFAULT
    telling = Telling(Console(stderr=True, highlight=False), campaign, seeds=seeds, wanted=hand_offs)
    run_campaign(
        campaign, telling, partial(check_one, broken_by, twice), jobs, state, broken_by, as_json=as_json
    )


def run_campaign(
    campaign: Campaign,
    telling: Telling,
    job: partial[Found],
    jobs: int | None,
    state: Path | None,
    broken_by: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Run a campaign, say what came of it, and leave with the code that fits."""
    try:
        failed = _run_all(campaign, telling, job, jobs or _jobs(telling.seeds), stops=state is None)
    except KeyboardInterrupt:
        telling.stopped(state)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if failed is not None:
        telling.say(f"Seed {failed.spec.seed} failed; shortening it.")
        short = shrink(failed, run_script=partial(_run, broken_by))
        show_failure(failed, short, broken_by)
        raise typer.Exit(EXIT_FAILED)
    if as_json:
        typer.echo(json.dumps(campaign.as_dict()))
    else:
        tell_campaign(campaign, telling.unit)
    if campaign.failures:
        raise typer.Exit(EXIT_FAILED)


def _run_all(
    campaign: Campaign, telling: Telling, job: partial[Found], jobs: int, *, stops: bool
) -> Found | None:
    """Run what is wanted; return the first world that failed, if that is to end everything."""
    specs = campaign.specs()
    if telling.seeds is not None:
        specs = islice(specs, max(0, telling.seeds - campaign.seeds))
    with telling, ran(job, specs, jobs) as worlds:
        while not telling.is_enough:
            world = next(worlds, None)
            if world is None:
                break
            campaign.took(world.found, world.processor_s)
            telling.took(world)
            if world.found.failure is not None and stops:
                return world.found
    return None


def _hunt(spec: Spec, seeds: int, jobs: int) -> None:
    """Look for every known mistake; one that is not found is a failure of the check itself."""
    console = Console(stderr=True, highlight=False)
    hunt = Hunt([replace(spec, seed=spec.seed + place) for place in range(seeds)])
    with working(console, "looking for mistakes") as tell, ran(run_task, hunt.tasks(), jobs) as worlds:
        for world in worlds:
            hunt.took(world.found)
            left = sum(place is None for _, place, _ in hunt.rows())
            tell(f"seed {world.found[1].spec.seed}, {left} mistakes not found yet")
    if not tell_hunt(hunt):
        raise typer.Exit(EXIT_FAILED)


def _jobs(seeds: int | None) -> int:
    cores = os.cpu_count() or 1
    return cores if seeds is None else max(1, min(cores, seeds // SEEDS_A_JOB_MIN))


def faults_of(text: str) -> tuple[str, ...]:
    """Read which faults are wanted."""
    if text in ("all", "none"):
        return FAULTS if text == "all" else ()
    wanted = tuple(text.split(","))
    unknown = [one for one in wanted if one not in FAULTS]
    if unknown:
        raise CheckError(f"--faults may be all, none or some of {', '.join(FAULTS)}, not {unknown[0]!r}.")
    return wanted


def check_one(broken_by: str | None, twice: bool, spec: Spec) -> Found:  # noqa: FBT001 - mapped over processes
    """Run the world of a specification, or run it twice and compare."""
    with broken(broken_by):
        found = check(spec)
        if not twice or found.failure is not None:
            return found
        again = check(spec)
    if again.digest == found.digest:
        return found
    text = "The same seed wrote other bytes the second time."
    return replace(again, failure=text, kind="other bytes")


def _run(broken_by: str | None, script: Script) -> Found:
    with broken(broken_by):
        return run(script)
