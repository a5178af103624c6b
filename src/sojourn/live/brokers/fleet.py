"""All brokers of a configuration, each as a process of its own.

    fleet = Fleet(path, ["B1", "B2"], logs)
    fleet.wait_until_ready()
    …
    fleet.stop()

What a broker says goes to a file of its name. Where it listens is what its address file tells
(`addresses.py`), so a configuration may leave every port to the system. With `reports` each also tells every
second how it is doing (`sojourn serve --status`), and stops by itself when whoever started it has gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from sojourn.errors import SojournError
from sojourn.live.addresses import FolderBook, Listening
from sojourn.live.config import load_config
from sojourn.live.page.status import Report

START_S = 60.0
STOP_S = 15.0
UNREAD_MAX = 65_536
"""Bytes of a line that has no end yet."""

_decode = msgspec.json.Decoder(Report).decode


class FleetError(SojournError):
    """A broker process did not start, or ended by itself."""


class Fleet:
    """Broker processes that are started and stopped together."""

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        logs: Path,
        *,
        options: Sequence[str] = (),
        reports: bool = False,
        addresses: Path | None = None,
    ) -> None:
        self._path = path
        self._logs = logs
        self._book = FolderBook(addresses if addresses is not None else logs)
        self._options = (*options, "--addresses", str(self._book.folder), *(["--status"] if reports else []))
        self._reports = reports
        self._unread: dict[str, bytes] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise FleetError(f"The folder {logs} for logs cannot be made: {error.strerror}.") from None
        try:
            for name in names:
                self._spawn(name, "wb")
        except FleetError:
            self.stop()
            raise

    def _spawn(self, name: str, mode: str) -> None:
        command = [sys.executable, "-m", "sojourn.cli.main", "serve", str(self._path), "--broker", name]
        # A broker that is only just starting reads its configuration anew later (`cli/__init__.py`).
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            self._begin(name, command, mode)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _begin(self, name: str, command: list[str], mode: str) -> None:
        with self._open_log(name, mode) as log:
            process = self.processes[name] = subprocess.Popen(  # noqa: S603 - our own command
                [*command, *self._options],
                stderr=log,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self._reports else None,
            )
        self._unread[name] = b""
        if process.stdout is not None:
            os.set_blocking(process.stdout.fileno(), False)

    def _open_log(self, name: str, mode: str) -> IO[bytes]:
        try:
            return open(self.log_path(name), mode, opener=_for_owner)
        except OSError as error:
            raise FleetError(
                f"The log {self.log_path(name)} cannot be opened: {error.strerror}; `--logs` names another "
                "folder."
            ) from None

    def restart(self, name: str) -> None:
        """Start a broker that has ended again; it comes back from its store, if it has one."""
        process = self.processes[name]
        assert process.poll() is not None, "only what has ended is started again"
        self._spawn(name, "ab")
        if process.stdout is not None:
            process.stdout.close()

    def wait_until_ready(self, on_ready: Callable[[str], Any] = lambda _name: None) -> None:
        """Wait until every broker listens; `on_ready` is told each name once."""
        waiting = list(self.processes)
        until = time.monotonic() + START_S
        while waiting:
            for name in waiting[:]:
                said = self.log(name)
                if self.listening(name) is not None:
                    waiting.remove(name)
                    on_ready(name)
                elif self.processes[name].poll() is not None:
                    self.stop()
                    raise FleetError(f"The broker {name} ended at once: {last_line(said)}")
            if time.monotonic() > until:
                self.stop()
                raise FleetError(f"The broker {waiting[0]} does not listen after {START_S:.0f} s.")
            time.sleep(0.05)

    def report(self, name: str) -> Report | None:
        """The last report of a broker since this was asked before; None if there is no new one."""
        stream = self.processes[name].stdout
        data = self._unread[name] + ((stream.read() or b"") if stream is not None else b"")
        *lines, rest = data.split(b"\n")
        self._unread[name] = rest[-UNREAD_MAX:]
        for line in reversed(lines):
            try:
                return _decode(line)
            except msgspec.MsgspecError:
                continue
        return None

    def listening(self, name: str) -> Listening | None:
        """Where a broker listens; None before the process that runs now has said so."""
        found = self._book.find(name)
        return found if found is not None and found.pid == self.processes[name].pid else None

    def url(self, name: str) -> str:
        """Where the clients of a broker that is ready connect."""
        found = self.listening(name)
        if found is None:
            raise FleetError(f"The broker {name} does not listen; its log is {self.log_path(name)}.")
        return f"mqtt://{found.clients}"

    def log_path(self, name: str) -> Path:
        """Where a broker's log is."""
        return self._logs / f"{name}.log"

    def log(self, name: str) -> str:
        """What a broker has said so far."""
        return self.log_path(name).read_text(errors="replace")

    def ended(self) -> list[str]:
        """The brokers that no longer run."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def has_left(self, name: str) -> bool:
        """Whether the configuration says by now that a broker has left the network."""
        try:
            return name in load_config(self._path).network.left
        except SojournError:
            return False

    def reload(self) -> None:
        """Have all read their configuration anew."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGHUP)

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
            if process.stdout is not None:
                process.stdout.close()


def _for_owner(path: str, flags: int) -> int:
    """Open a file that nobody else can read: logs name clients."""
    return os.open(path, flags, 0o600)


def last_line(text: str) -> str:
    """The last thing that was said."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"
