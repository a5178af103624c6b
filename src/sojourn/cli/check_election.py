"""`sojourn check election`: random partitions of an ad-hoc network, and whether it heals to one broker.

Each seed is a history of partitions (`sim/election/world.py`). One that does not heal to one broker with
every live subscription, or that loses, doubles or misdirects an event, is printed with the command that
repeats it, and the exit code is 1.
"""

import json
import os
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sojourn.adhoc.election.timing import Meeting
from sojourn.cli.heartbeat import heartbeat
from sojourn.sim.election.history import Healed, History

_DEFAULT = History()
_BLOCK = 20


def election(  # noqa: PLR0913 - each is an option of the command
    seeds: Annotated[int, typer.Option(min=1, help="How many histories, each from its own seed.")] = 1000,
    first_seed: Annotated[int, typer.Option(min=1, help="The first seed; the others follow.")] = 1,
    nodes: Annotated[int, typer.Option(min=2, help="Nodes of the network.")] = _DEFAULT.nodes,
    refresh_s: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two refreshes of a displayer.")
    ] = _DEFAULT.refresh_s,
    loss: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="Share of receptions that the radio loses.")
    ] = _DEFAULT.loss,
    *,
    meeting: Annotated[Meeting, typer.Option(help="What two brokers do that meet.")] = Meeting.MERGE,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Let nodes come into reach of a fixed network now and then.")
    ] = _DEFAULT.fixed,
    kills: Annotated[
        int, typer.Option(min=0, help="How many nodes die, and come back, in each phase.")
    ] = _DEFAULT.kills,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as there are cores if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Heal an ad-hoc network from random partitions and see that one broker has everything."""
    histories = [
        History(
            seed=seed,
            nodes=nodes,
            displayers=max(1, nodes * 6 // 10),
            sources=max(1, nodes * 3 // 10),
            refresh_s=refresh_s,
            loss=loss,
            meeting=meeting.value,
            fixed=fixed,
            kills=kills,
        )
        for seed in range(first_seed, first_seed + seeds)
    ]
    console = Console(stderr=True)
    console.print(f"{seeds} histories from seed {first_seed}: {nodes} nodes, refresh every {refresh_s:g} s.")
    columns = (TextColumn("healing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    found: list[Healed] = []
    with (
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        heartbeat(console, "healing") as beat,
    ):
        task = bar.add_task("healing", total=len(histories))
        for block in _healed(histories, workers or os.cpu_count() or 1):
            found += block
            bar.advance(task, len(block))
            beat.tell("healing", f"{len(found):,} of {len(histories):,} histories")
    faults = [
        (history, healed)
        for history, healed in zip(histories, found, strict=True)
        if fault_of(healed, meeting) is not None
    ]
    if as_json:
        broken = [{"seed": history.seed, "fault": fault_of(healed, meeting)} for history, healed in faults]
        typer.echo(
            json.dumps({"histories": len(found), "healed": len(found) - len(faults), "faults": broken})
        )
        faults_shown = []
    else:
        typer.echo(_summary(found, meeting))
        faults_shown = faults[:10]
    for history, healed in faults_shown:
        again = f"sojourn check election --seeds 1 --first-seed {history.seed} --nodes {nodes}"
        again += f" --refresh-s {refresh_s:g} --loss {loss:g} --meeting {meeting.value} --kills {kills}"
        again += " --fixed" if fixed else ""
        typer.echo(f"seed {history.seed}: {fault_of(healed, meeting)}; to repeat: {again}")
    if faults:
        sys.exit(1)


def fault_of(healed: Healed, meeting: Meeting = Meeting.MERGE) -> str | None:
    """What is wrong with how a network healed, if anything."""
    if healed.brokers != 1 and meeting is Meeting.MERGE:
        return f"{healed.brokers} brokers"
    if healed.missing:
        return f"{healed.missing} live subscriptions are on no broker"
    for name in ("lost", "duplicated", "unwanted"):
        if getattr(healed, name):
            return f"{getattr(healed, name)} events {name}"
    if healed.fixed_lost:
        return f"{healed.fixed_lost} events did not cross to or from the fixed network"
    return "did not stay healed" if healed.healed_s is None else None


def _healed(histories: list[History], workers: int) -> Iterator[list[Healed]]:
    blocks = [histories[at : at + _BLOCK] for at in range(0, len(histories), _BLOCK)]
    if workers == 1 or len(blocks) == 1:
        yield from map(_heal_block, blocks)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_heal_block, blocks)


def _heal_block(histories: list[History]) -> list[Healed]:
    from sojourn.sim.election.world import heal

    return [heal(history) for history in histories]


def _summary(found: list[Healed], meeting: Meeting) -> str:
    good = [healed for healed in found if fault_of(healed, meeting) is None]
    who = "one broker" if meeting is Meeting.MERGE else "brokers that coordinate"
    parts = [f"{len(good)} of {len(found)} histories healed: {who}, every live subscription, nothing lost"]
    times = [h.healed_s for h in good if h.brokers_before > 1 and h.healed_s is not None]
    if times:
        parts.append(
            f"{len(times)} of them had several brokers to merge, which took "
            f"{statistics.median(times):.2f} s (median) and at most {max(times):.2f} s"
        )
    shown = [h.delivered_s for h in good if h.delivered_s is not None]
    if shown:
        owed = sum(healed.owed for healed in good)
        parts.append(f"the last of {owed} events owed was shown within {max(shown):.2f} s")
    deaths = sum(healed.deaths for healed in found)
    if deaths:
        parts.append(f"{deaths} nodes died and came back")
    offered = sum(healed.offered for healed in found)
    if offered:
        doubled = sum(healed.fixed_doubled for healed in found)
        parts.append(
            f"the fixed network has {offered} events, {doubled} of them twice for a subscriber that does not "
            "look at publishers' numbers"
        )
    return "; ".join(parts) + "."
