"""`sojourn check replicas`: two live brokers watch the same subscriptions, and one is killed with `kill -9`.

Sources publish a stream to both replicas. Two displayers connect to both, one with the filter `duplicates`
and one with `ordered` (paper 003, section 5). In the middle of the stream one replica is killed, and later it
is started again, empty. Then every event is looked for: none may be missing that a filter promises, none
doubled, and `ordered` must show each source's events in order. It may drop events for good, when the
replica that came back is ahead of the other; they are counted.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sojourn.cli.heartbeat import heartbeat
from sojourn.live.brokers.fleet import Fleet, FleetError, last_line
from sojourn.live.client.replicas import Dropped, ReplicaClient

EXIT_FAILED = 1
REPLICAS = ("R1", "R2")
FILTERS = ("duplicates", "ordered")
UNDER_WAY_MAX = 100
"""Events of one source that wait for an answer."""
AHEAD_MAX = 4_000
"""Events that the sources may be ahead of the slowest displayer."""
PATIENCE_S = 30.0
"""How long nothing new may be shown before the rest counts as missed."""


class Stream(NamedTuple):
    """What is to be tried."""

    events: int = 100_000
    sources: int = 4
    kill_at: float = 0.5
    """The share of the stream after which a replica is killed."""
    restart_at: float | None = 0.6
    """The share after which it is started again; None leaves it dead."""


class Verdict(NamedTuple):
    """What one displayer saw of the stream."""

    filter: str
    shown: int
    missed: int
    doubled: int
    out_of_order: int
    dropped: Dropped

    @property
    def fault(self) -> str | None:
        """What breaks the filter's promise, if anything does."""
        if self.doubled:
            return f"{self.doubled} events were shown twice"
        if self.filter == "ordered" and self.out_of_order:
            return f"{self.out_of_order} events were shown out of order"
        if self.missed != self.dropped.late:
            return f"{self.missed - self.dropped.late} events are missing"
        return None


class Displayer:
    """One displayer, and how often it was shown each event of each source."""

    def __init__(self, name: str, urls: list[str], stream: Stream) -> None:
        self.client = ReplicaClient(urls, filter=name, client_id=f"displayer-{name}")
        self.name = name
        self.counts = [bytearray(_share(stream, source)) for source in range(stream.sources)]
        self.shown = self.out_of_order = 0
        self._last = [-1] * stream.sources

    @property
    def done(self) -> int:
        """How many events it has seen or will not see."""
        return self.shown + self.client.dropped.late

    async def watch(self) -> None:
        """Count what comes."""
        await self.client.connect()
        await self.client.subscribe(topic="stream/+")

    async def read(self) -> None:
        """Count what is shown."""
        async for event in self.client:
            source, number = event.attributes["source"], event.attributes["number"]
            counts = self.counts[source]
            counts[number] = min(255, counts[number] + 1)
            self.out_of_order += number < self._last[source]
            self._last[source] = number
            self.shown += 1

    def verdict(self) -> Verdict:
        """What it saw in the end."""
        missed = sum(counts.count(0) for counts in self.counts)
        doubled = sum(len(counts) - counts.count(0) - counts.count(1) for counts in self.counts)
        return Verdict(self.name, self.shown, missed, doubled, self.out_of_order, self.client.dropped)


class Trial:
    """One stream, from its beginning to the last event that is shown."""

    def __init__(self, stream: Stream, fleet: Fleet, urls: list[str]) -> None:
        self.stream, self.fleet = stream, fleet
        self.urls = urls
        self.published = 0
        self.displayers = [Displayer(name, urls, stream) for name in FILTERS]

    async def run(self, on_progress: Callable[[int], None]) -> list[Verdict]:
        """Publish, kill, restart, and wait for the rest."""
        for displayer in self.displayers:
            await displayer.watch()
        tasks = [asyncio.create_task(displayer.read()) for displayer in self.displayers]
        try:
            sources = asyncio.gather(*(self._publish(source) for source in range(self.stream.sources)))
            breaking = asyncio.create_task(self._break(sources))
            moved, last = time.monotonic(), -1
            while last < self.stream.events and (not sources.done() or time.monotonic() < moved + PATIENCE_S):
                await asyncio.sleep(0.05)
                done = min(displayer.done for displayer in self.displayers)
                if done > last:
                    moved, last = time.monotonic(), done
                    on_progress(done)
            await sources
            await breaking
            # What was missing would have come by now; what comes twice comes after its first copy.
            await asyncio.sleep(0.5)
        finally:
            for displayer in self.displayers:
                await displayer.client.close()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [displayer.verdict() for displayer in self.displayers]

    async def _publish(self, source: int) -> None:
        async with ReplicaClient(self.urls, client_id=f"source-{source}") as client:
            room = asyncio.Semaphore(UNDER_WAY_MAX)
            async with asyncio.TaskGroup() as group:

                async def send(number: int) -> None:
                    try:
                        await client.publish(f"stream/{source}", {"source": source, "number": number})
                    finally:
                        room.release()

                for number in range(_share(self.stream, source)):
                    await room.acquire()
                    await self._let_catch_up()
                    self.published += 1
                    group.create_task(send(number))

    async def _let_catch_up(self) -> None:
        """Wait for the slowest displayer; brokers keep only so much for it."""
        while self.published - min(one.done for one in self.displayers) > AHEAD_MAX:  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.002)

    async def _break(self, sources: asyncio.Future[list[None]]) -> None:
        stream, name = self.stream, REPLICAS[0]
        await self._reached(stream.kill_at, sources)
        self.fleet.processes[name].kill()
        if stream.restart_at is not None:
            await self._reached(stream.restart_at, sources)
            self.fleet.processes[name].wait()
            self.fleet.restart(name)

    async def _reached(self, share: float, sources: asyncio.Future[list[None]]) -> None:
        while self.published < share * self.stream.events and not sources.done():  # noqa: ASYNC110 - a count
            await asyncio.sleep(0.002)


def _share(stream: Stream, source: int) -> int:
    """How many of the events a source publishes."""
    return stream.events // stream.sources + (source < stream.events % stream.sources)


def try_replicas(
    stream: Stream, folder: Path, on_progress: Callable[[int], None] = lambda _done: None
) -> list[Verdict]:
    """Start two brokers that know nothing of one another, run a stream over both, and say what was seen."""
    tables = [f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\n' for name in REPLICAS]
    path = folder / "replicas.toml"
    path.write_text("\n".join(tables))
    fleet = Fleet(path, REPLICAS, folder)
    try:
        fleet.wait_until_ready()
        trial = Trial(stream, fleet, [fleet.url(name) for name in REPLICAS])
        verdicts = uvloop.run(trial.run(on_progress))
        dead = [name for name in fleet.ended() if name != REPLICAS[0] or stream.restart_at is not None]
        if dead:
            raise FleetError(f"The replica {dead[0]} ended by itself: {last_line(fleet.log(dead[0]))}")
        return verdicts
    finally:
        fleet.stop()


def replicas(
    events: Annotated[int, typer.Option(min=10, help="Events of the stream.")] = 100_000,
    sources: Annotated[int, typer.Option(min=1, max=50, help="Publishers that share them.")] = 4,
    *,
    restart: Annotated[
        bool, typer.Option(help="Start the killed replica again after three fifths of the stream.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Kill one of two live replicas in the middle of a stream, and look for every event."""
    stream = Stream(events, sources, restart_at=Stream().restart_at if restart else None)
    console = Console(stderr=True, highlight=False)
    again = ", and starts again empty after three fifths" if restart else ""
    console.print(f"{events:,} events of {sources} sources; replica R1 is killed half-way{again}.")
    began = time.monotonic()
    columns = (TextColumn("shown"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        heartbeat(console, "starting two replicas") as beat,
    ):
        task = bar.add_task("shown", total=events)

        def tell(done: int) -> None:
            bar.update(task, completed=done)
            beat.tell("streaming", f"{done:,} of {events:,} shown")

        verdicts = try_replicas(stream, Path(folder), tell)
    faults = [(verdict.filter, verdict.fault) for verdict in verdicts if verdict.fault is not None]
    if as_json:
        rows = [
            {**verdict._asdict(), "dropped": verdict.dropped._asdict(), "fault": verdict.fault}
            for verdict in verdicts
        ]
        typer.echo(json.dumps({"events": events, "displayers": rows}))
        if faults:
            raise typer.Exit(EXIT_FAILED)
        return
    for verdict in verdicts:
        typer.echo(
            f"{verdict.filter}: {verdict.shown:,} shown, {verdict.missed:,} missed, {verdict.doubled:,} "
            f"doubled, {verdict.out_of_order:,} out of order; dropped {verdict.dropped.copies:,} copies and "
            f"{verdict.dropped.late:,} events that came too late to be in order."
        )
    for name, fault in faults:
        typer.echo(f"The filter {name} broke its promise: {fault}.")
    console.print(f"That took {time.monotonic() - began:.0f} s.")
    if faults:
        raise typer.Exit(EXIT_FAILED)
