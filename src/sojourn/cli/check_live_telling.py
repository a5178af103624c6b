"""What `sojourn check live` says: while it runs, when it is stopped, and in the end."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from sojourn.cli.heartbeat import Heartbeat
from sojourn.sim.live_check.campaign import HAND_OFFS, Campaign, Part
from sojourn.sim.live_check.check import Found
from sojourn.sim.live_check.mutation_run import Hunt
from sojourn.sim.live_check.running import Ran

STEPS_SHOWN_MAX = 60


class Telling:
    """How far a check is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(
        self,
        console: Console,
        campaign: Campaign,
        *,
        seeds: int | None,
        wanted: int | None,
        unit: str = HAND_OFFS,
    ) -> None:
        """Tell how many seeds were run, or how many were counted of what is wanted (`unit`)."""
        self.seeds, self.wanted, self.unit = seeds, wanted, unit
        self._console, self._campaign = console, campaign
        columns = (TextColumn("{task.description}"), BarColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._task: TaskID | None = None
        self._beat = Heartbeat(console)
        self._began_s = time.monotonic()
        self._done_before = self._done
        self._counted_before = campaign.count(unit)

    @property
    def is_enough(self) -> bool:
        """Whether as many as were wanted have been counted."""
        return self.wanted is not None and self._counted >= self.wanted

    @property
    def _counted(self) -> int:
        return self._campaign.count(self.unit)

    @property
    def _done(self) -> int:
        return self._campaign.seeds if self.wanted is None else self._counted

    @property
    def _wanted(self) -> int:
        return self.wanted or self.seeds or 1

    def __enter__(self) -> Self:
        if self._campaign.seeds:
            self.say(f"Going on after {self._campaign.seeds:,} seeds, {self._counted:,} {self.unit}.")
        if self._console.is_terminal:
            self._bar.start()
            self._task = self._bar.add_task(self._text(), total=self._wanted, completed=self._done)
        self._beat.tell("checking")
        self._beat.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._beat.stop()
        self._bar.stop()

    def took(self, world: Ran[Found]) -> None:
        """Note a world that ended."""
        if world.found.failure is not None:
            self.say(f"Seed {world.found.spec.seed} failed: {world.found.failure}")
        if self._task is not None:
            self._bar.update(self._task, description=self._text(), completed=min(self._done, self._wanted))
        else:
            self._beat.tell("checking", self._text())

    def say(self, text: str) -> None:
        """Say a line, above the bar if there is one."""
        self._console.print(text, markup=False, soft_wrap=True)

    def stopped(self, file: Path | None) -> None:
        """Say how far it came, and how to go on."""
        how = (
            f"the same command goes on from {file}"
            if file is not None
            else "with --state FILE it could go on"
        )
        self.say(f"Stopped after {self._campaign.seeds:,} seeds, {self._counted:,} {self.unit}; {how}.")

    def _text(self) -> str:
        campaign = self._campaign
        text = f"{campaign.seeds:,} seeds, {self._counted:,} {self.unit}"
        if campaign.failures:
            text += f", {len(campaign.failures)} failed"
        passed_s = time.monotonic() - self._began_s
        done = self._done - self._done_before
        if passed_s <= 0 or not done:
            return text
        rate = (self._counted - self._counted_before) / passed_s
        left_s = (self._wanted - self._done) * passed_s / done
        return f"{text}, {rate:.0f} a second, {_duration(max(0.0, left_s))} left"


def show_failure(found: Found, short: Found, broken_by: str | None) -> None:
    """Show a failure, as short as it got, and the command that repeats it."""
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


def tell_campaign(campaign: Campaign, unit: str = HAND_OFFS) -> None:
    """Say what all worlds came to, and what came of each version of the code if there were several."""
    parts = campaign.state.parts
    counts: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
        excused.update(part.excused)
    for name, count in sorted(counts.items()):
        typer.echo(f"{count:>12,}  {name}")
    for name, count in sorted(excused.items()):
        typer.echo(f"{count:>12,}  not judged: {name}")
    for part in parts:
        typer.echo(_part_text(part, unit))
    counted, deliveries = campaign.count(unit), counts["deliveries"]
    start = f"{campaign.seeds:,} seeds, {counted:,} {unit}, {deliveries:,} deliveries: "
    if not campaign.failures:
        typer.echo(f"{start}0 lost, 0 doubled, 0 out of order, nobody stuck, nothing left behind.")
        return
    typer.echo(f"{start}{len(campaign.failures)} seeds failed.")
    for failure in campaign.failures:
        typer.echo(f"seed {failure.seed}: {failure.failure}\n  {failure.command}")


def tell_hunt(hunt: Hunt) -> bool:
    """Say which mistakes were found, and after how many seeds; return whether all were."""
    rows = list(hunt.rows())
    width = max(len(name) for name, _, _ in rows)
    for name, place, text in rows:
        found = f"found after {place:>3} seeds  {text}" if place is not None else "not found"
        typer.echo(f"{name:<{width}}  {found}")
    for seed in sorted(hunt.failed_whole):
        typer.echo(f"Seed {seed} does not count: whole brokers fail it too.")
    missing = [name for name, place, _ in rows if place is None]
    typer.echo(f"{len(rows) - len(missing)} of {len(rows)} mistakes found in {len(hunt.specs)} seeds.")
    return not missing


def _part_text(part: Part, unit: str) -> str:
    counted = part.counts.get(unit, 0)
    rate = counted / part.processor_s if part.processor_s else 0.0
    return (
        f"code {part.code}: {part.seeds:,} seeds, {counted:,} {unit} in "
        f"{_duration(part.processor_s)} of processor time ({rate:.0f} a second), {len(part.failures)} failed"
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
