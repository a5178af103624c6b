"""`sojourn demo adhoc`: devices that meet without a broker, and what their users got.

Six devices are processes on one network segment, in two groups out of each other's range; each has one
application, a real MQTT client of its door, that publishes and wants everything. Each group elects a broker.
One of the two is killed (SIGKILL) and comes back; the groups meet; then the devices reach a fixed broker,
where somebody listens and talks as well. In the end every application has to have every event once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sojourn.cli.heartbeat import Heartbeat
from sojourn.errors import SojournError
from sojourn.live.adhoc.group import Gate, Group
from sojourn.live.brokers.fleet import Fleet
from sojourn.live.client.client import Client

NAMES = ("ann", "bob", "cleo", "dan", "eve", "finn")
FIXED = "at the fixed broker"
SETTLE_S = 60.0
PATIENCE_S = 300.0
REFRESH_S = 0.5


class DemoAdhocError(SojournError):
    """The demonstration failed, or found something lost or doubled."""


@dataclass(slots=True)
class Application:
    """A real client: what it published, and what it got."""

    name: str
    client: Client
    published: int = 0
    got: list[tuple[str, int]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def open(self) -> None:
        """Connect and ask for everything."""
        await self.client.connect()
        await self.client.subscribe(topic="talk/#")
        self.tasks.append(asyncio.create_task(self._read()))

    def talk(self, rate: float, until: asyncio.Event) -> None:
        """Publish until it is told to stop."""
        self.tasks.append(asyncio.create_task(self._talk(rate, until)))

    async def _read(self) -> None:
        async for event in self.client:
            self.got.append((event.topic.removeprefix("talk/"), int(event.attributes["n"])))

    async def _talk(self, rate: float, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.client.publish(f"talk/{self.name}", {"n": self.published}, qos=1)
            self.published += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(1 / rate):
                    await until.wait()

    async def close(self) -> None:
        """Go."""
        for task in self.tasks:
            task.cancel()
        await self.client.close()


class Found(dict[str, dict[str, int]]):
    """By application: what it should have got, got, lost, had twice, and had in another order."""

    @property
    def wrong(self) -> int:
        """Lost and doubled, all together."""
        return sum(row["lost"] + row["doubled"] for row in self.values())


def judge(applications: Sequence[Application]) -> Found:
    """Compare what everybody published with what everybody got."""
    everything = {(one.name, n) for one in applications for n in range(one.published)}
    found = Found()
    for one in applications:
        times = Counter(one.got)
        last: dict[str, int] = {}
        disordered = 0
        for source, n in one.got:
            disordered += n < last.get(source, -1)
            last[source] = max(n, last.get(source, -1))
        found[one.name] = {
            "published": one.published,
            "expected": len(everything),
            "got": len(times),
            "lost": len(everything - times.keys()),
            "doubled": sum(count - 1 for count in times.values()),
            "out of order": disordered,
        }
    return found


async def meet(
    console: Console, beat: Heartbeat, out: Path, *, seconds: float, rate: float, coordinate: bool
) -> Found:
    """Play the story; what a phase lasts and how often everybody talks are given."""
    fleet = _fixed_broker(out / "fixed")
    gate = Gate(*_host_and_port(fleet.url("F")))
    await gate.start()
    options = ("--refresh-s", str(REFRESH_S), "--meeting", "coordinate" if coordinate else "merge")
    group = Group(out / "devices", NAMES, fixed=gate.url, options=options)
    applications: list[Application] = []
    stop = asyncio.Event()
    try:
        beat.tell("starting six devices")
        await asyncio.to_thread(group.wait_until_ready)
        for name in NAMES:
            client = Client(group.sure(name).door, client_id=f"app-{name}", patience_s=PATIENCE_S)
            applications.append(Application(name, client))
        there = Client(fleet.url("F"), client_id="app-fixed", patience_s=PATIENCE_S)
        applications.append(Application(FIXED, there))
        for one in applications:
            await one.open()
        story = _Story(console, beat, group, gate, applications, seconds, coordinate=coordinate)
        await story.play(rate, stop)
        return judge(applications)
    finally:
        stop.set()
        for one in applications:
            with suppress(OSError, SojournError, TimeoutError):
                await one.close()
        gate.stop()
        await asyncio.to_thread(group.stop)
        await asyncio.to_thread(fleet.stop)


class _Story:
    """What happens, phase by phase, and what is said of it."""

    def __init__(
        self,
        console: Console,
        beat: Heartbeat,
        group: Group,
        gate: Gate,
        applications: list[Application],
        seconds: float,
        *,
        coordinate: bool,
    ) -> None:
        self._console = console
        self._beat = beat
        self._group = group
        self._gate = gate
        self._applications = applications
        self._seconds = seconds
        self._coordinate = coordinate
        self._began = time.monotonic()

    async def play(self, rate: float, stop: asyncio.Event) -> None:
        """All phases."""
        group, one, other = self._group, NAMES[:3], NAMES[3:]
        group.part(one, other)
        for application in self._applications[:-1]:
            application.talk(rate, stop)
        await self._until(lambda: group.agree(*one) and group.agree(*other), "both groups have a broker")
        killed = group.brokers(*one)[0]
        self._say(f"two groups out of range: {killed} and {group.brokers(*other)[0]} are elected")
        await asyncio.sleep(self._seconds)
        await asyncio.to_thread(group.kill, killed)
        rest = [name for name in one if name != killed]
        await self._until(lambda: group.agree(*rest), "the others have a new broker")
        self._say(f"{killed} was killed: {group.brokers(*rest)[0]} is elected by the others")
        await asyncio.sleep(self._seconds)
        group.start(killed)
        await self._until(lambda: group.status(killed) is not None, f"{killed} is back")
        group.part(NAMES)
        if self._coordinate:
            self._say(f"{killed} is back and the groups meet: {', '.join(group.brokers())} coordinate")
        else:
            await self._until(lambda: group.agree(*NAMES), "all have one broker")
            self._say(f"{killed} is back and the groups meet: {group.brokers()[0]} is the broker of all")
        await asyncio.sleep(self._seconds)
        self._gate.open()
        await self._until(lambda: any(group.sure(name).reaches_fixed for name in NAMES), "a device is there")
        self._applications[-1].talk(rate, stop)  # from now on, for who is first in reach
        self._say("the fixed network is in reach")
        await asyncio.sleep(self._seconds)
        stop.set()
        self._say("nobody publishes any more; what is under way is waited for")
        await self._settle()

    async def _settle(self) -> None:
        """Wait until everybody has everything, or until nothing has come to anybody for long."""
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < SETTLE_S:
            found = judge(self._applications)
            if not any(row["lost"] for row in found.values()):
                await asyncio.sleep(2 * REFRESH_S)  # what would come twice comes now
                return
            came = sum(len(one.got) for one in self._applications)
            if came != seen:
                seen, since = came, time.monotonic()
            await asyncio.sleep(0.2)

    async def _until(self, is_so: object, what: str) -> None:
        self._beat.tell(f"until {what}")
        assert callable(is_so)
        await asyncio.to_thread(self._group.wait, is_so, what)

    def _say(self, text: str) -> None:
        published = sum(one.published for one in self._applications)
        self._console.print(f"{time.monotonic() - self._began:5.1f} s  {text} ({published:,} published)")


def show(console: Console, found: Found) -> None:
    """Print what everybody got."""
    columns = list(next(iter(found.values())))
    table = Table("application", *columns, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in found.items():
        table.add_row(name, *(f"{row[column]:,}" for column in columns))
    console.print(table)


def _fixed_broker(folder: Path) -> Fleet:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fixed.toml"
    path.write_text('[[brokers]]\nname = "F"\nlisten = "127.0.0.1:0"\nstore = "store"\n')
    fleet = Fleet(path, ["F"], folder)
    fleet.wait_until_ready()
    return fleet


def _host_and_port(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("mqtt://").rpartition(":")
    return host, int(port)
