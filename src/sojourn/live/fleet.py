"""All brokers of a configuration, each as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sojourn.errors import SojournError

START_S = 60.0
STOP_S = 15.0


class FleetError(SojournError):
    """A broker process did not start, or ended by itself."""


class Fleet:
    """Broker processes that are started and stopped together."""

    def __init__(self, path: Path, names: Sequence[str], logs: Path) -> None:
        self._path = path
        self._logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in names:
            self._spawn(name)

    def _spawn(self, name: str) -> None:
        command = [sys.executable, "-m", "sojourn.cli.main", "serve", str(self._path), "--broker", name]
        with (self._logs / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own command
                command, stderr=log, stdin=subprocess.DEVNULL
            )

    def wait_until_ready(self, on_ready: Callable[[str], Any] = lambda _name: None) -> None:
        """Wait until every broker listens; `on_ready` is told each name once."""
        waiting = list(self.processes)
        until = time.monotonic() + START_S
        while waiting:
            for name in waiting[:]:
                said = self.log(name)
                if " listens on " in said:
                    waiting.remove(name)
                    on_ready(name)
                elif self.processes[name].poll() is not None:
                    self.stop()
                    raise FleetError(f"The broker {name} ended at once: {_last_line(said)}")
            if time.monotonic() > until:
                self.stop()
                raise FleetError(f"The broker {waiting[0]} does not listen after {START_S:.0f} s.")
            time.sleep(0.05)

    def log(self, name: str) -> str:
        """What a broker has said so far."""
        return (self._logs / f"{name}.log").read_text(errors="replace")

    def ended(self) -> list[str]:
        """The brokers that no longer run."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

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


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
