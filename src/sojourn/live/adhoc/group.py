"""Devices as processes on this machine, whose segment is parted and joined, and a gate to a fixed network.

    group = Group(folder, ["ann", "bob", "cleo"], fixed=gate.url)
    group.wait_until_ready()
    group.part(["ann", "bob"], ["cleo"])
    group.kill("ann")
    group.stop()

Each device has a list of its own as its segment, so that whom it hears is what its list says.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sojourn.errors import SojournError
from sojourn.live.adhoc.running import Status, read_status

START_S = 120.0
STOP_S = 20.0
CHUNK = 65_536


class GroupError(SojournError):
    """A device did not start, or ended by itself."""


class Group:
    """Device processes that are started, killed, parted and joined."""

    def __init__(
        self, folder: Path, names: Sequence[str], *, fixed: str | None = None, options: Sequence[str] = ()
    ) -> None:
        self._folder = folder
        self._options = (*options, *(() if fixed is None else ("--fixed", fixed)))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._listens: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            self._segment(name).write_text("")
            self.start(name)

    def start(self, name: str) -> None:
        """Start a device, with what its folder holds."""
        listen = self._listens.get(name, "127.0.0.1:0")
        command = [sys.executable, "-m", "sojourn.cli.main", "adhoc", str(self.folder(name))]
        command += ["--segment", str(self._segment(name)), "--listen", listen, *self._options]
        with self.log_path(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own command
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait_until_ready(self) -> None:
        """Wait until every device serves."""
        self.wait(
            lambda: all(self.status(name) is not None for name in self.processes), "every device serves"
        )
        self._listens = {name: self.sure(name).listen for name in self.processes}

    def status(self, name: str) -> Status | None:
        """How a device that runs stands; None before it has said so."""
        process = self.processes[name]
        if process.poll() is not None:
            return None
        found = read_status(self.folder(name))
        return found if found is not None and found.pid == process.pid else None

    def sure(self, name: str) -> Status:
        """How a device stands that is known to run."""
        status = self.status(name)
        if status is None:
            raise GroupError(f"The device {name} does not run; its log is {self.log_path(name)}.")
        return status

    def brokers(self, *names: str) -> list[str]:
        """Those of these devices that are brokers."""
        found = [(name, self.status(name)) for name in names or tuple(self.processes)]
        return [name for name, one in found if one is not None and one.state in ("broker", "merging")]

    def agree(self, *names: str) -> bool:
        """Whether one of these devices is the broker, and all the others know it."""
        found = [self.status(name) for name in names]
        brokers = {None if one is None else one.broker for one in found}
        numbers = {one.number for one in found if one is not None}
        return len(brokers) == 1 and brokers <= numbers and len(self.brokers(*names)) == 1

    def part(self, *islands: Sequence[str]) -> None:
        """From now on devices hear those of their own island, and nobody else."""
        for island in islands:
            for name in island:
                others = [self._listens[other] for other in island if other != name]
                beside = self._segment(name).with_suffix(".new")
                beside.write_text("\n".join(others) + "\n")
                beside.replace(self._segment(name))

    def kill(self, name: str) -> None:
        """End a device without a word (SIGKILL)."""
        self.processes[name].kill()
        self.processes[name].wait()

    def wait(self, is_so: Callable[[], bool], what: str, limit_s: float = START_S) -> float:
        """Wait until something is so; says how long that took."""
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > limit_s:
                raise GroupError(
                    f"After {limit_s:.0f} s it is not so that {what}; logs are in {self._folder}."
                )
            time.sleep(0.05)
        return time.monotonic() - began

    def stop(self) -> None:
        """Ask all to stop, and wait; who does not is killed."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + STOP_S
        for process in self.processes.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def folder(self, name: str) -> Path:
        """Where a device keeps what must not be lost."""
        return self._folder / name

    def log_path(self, name: str) -> Path:
        """Where a device's log is."""
        return self._folder / f"{name}.log"

    def _segment(self, name: str) -> Path:
        return self._folder / f"{name}.segment"


class Gate:
    """A way to a broker that can be opened and shut, as coming into reach of it and leaving would."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self.is_open = False
        self.url = ""

    async def start(self) -> None:
        """Listen, shut at first."""
        self._server = await asyncio.start_server(self._on_client, "127.0.0.1", 0)
        self.url = f"mqtt://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def open(self) -> None:
        """Let everybody through."""
        self.is_open = True

    def shut(self) -> None:
        """Let nobody through, and cut who is."""
        self.is_open = False
        for pipe in self._pipes:
            pipe.cancel()

    def stop(self) -> None:
        """Listen no more."""
        self.shut()
        if self._server is not None:
            self._server.close()

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pipes.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            if self.is_open:
                back, there = await asyncio.open_connection(*self._target)
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pour(reader, there))
                    both.create_task(_pour(back, writer))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass  # one side went, or the gate was shut
        finally:
            self._pipes.discard(task)
            for end in (writer, there):
                if end is not None:
                    with suppress(OSError):
                        end.close()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError
