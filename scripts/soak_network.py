"""The brokers that `kill_brokers.py` kills: a template of `sojourn init` under `sojourn serve --all`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from missing_events import LostStore
from plain_clients import Place

from sojourn.broker.settings import Settings
from sojourn.broker.tree import overlay_of
from sojourn.live.addresses import FolderBook, Listening
from sojourn.live.config import read_config

SOJOURN = [sys.executable, "-m", "sojourn.cli.main"]
START_S = 240.0
STOP_S = 30.0
LOOK_S = 0.05
HELD = {
    "sojourn_stored_events": "events stored for clients that move",
    "sojourn_queue_bytes": "bytes in queues of sessions",
    "sojourn_link_queue_frames": "frames for neighbours",
    "sojourn_waiting_turns": "turns that wait for copies",
}
"""What a broker may still have for somebody, by metric."""


class Network:
    """The brokers under `serve --all`."""

    def __init__(
        self,
        folder: Path,
        template: str,
        *,
        any_ports: bool,
        copies: int = 0,
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        path = folder / "brokers.toml"
        subprocess.run([*SOJOURN, "init", template, str(path)], check=True)
        if any_ports:
            path.write_text(re.sub(r'"127\.0\.0\.1:\d+"', '"127.0.0.1:0"', path.read_text()))
        text = path.read_text()
        wider = "".join(f"{name} = {value}\n" for name, value in limits.items())
        text = text.replace("[limits]\n", f"[limits]\n{wider}")
        text = re.sub(r'^# (addresses = "addresses")', r"\1", text, flags=re.MULTILINE)
        path.write_text(re.sub(r"^(# )?copies = \d+$", f"copies = {copies}", text, flags=re.MULTILINE))
        self.names = re.findall(r'^name = "(.*)"$', text, re.MULTILINE)
        config = read_config(path.read_text())
        self._near = {name: _near(config.settings(name)) for name in self.names}
        logs = folder / "logs"
        self.said = folder / "serve.log"
        self.book = FolderBook(folder / "addresses")
        with self.said.open("wb") as log:
            self.process = subprocess.Popen(
                [*SOJOURN, "serve", str(path), "--all", "--logs", str(logs), "--log", "json"],
                stderr=log,
                stdout=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
            )

    def wait_until_ready(self) -> None:
        """Wait until all brokers are linked."""
        until = time.monotonic() + START_S
        while "Ctrl-C stops them all" not in self.said.read_text():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"The brokers did not start: {self.said.read_text()}")
            time.sleep(LOOK_S)

    def places(self) -> list[Place]:
        """Where the brokers listen."""
        found = (self.book.find(name) for name in self.names)
        places = [Place(one.broker, *_split(one.clients)) for one in found if one is not None]
        assert places, f"some broker has said in {self.book.folder} where it listens"
        return places

    def listening(self, name: str) -> Listening:
        """Where a broker listens, and its process."""
        found = self.book.find(name)
        assert found is not None, f"{name} has said where it listens"
        return found

    def kill(self, name: str) -> int:
        """Kill a broker; return its process id."""
        pid = self.listening(name).pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return pid

    def hold_back(self) -> None:
        """Let no broker be started again for now."""
        self.process.send_signal(signal.SIGSTOP)

    def let_back(self) -> None:
        """Let them be started again."""
        self.process.send_signal(signal.SIGCONT)

    def takeovers(self) -> int:
        """How often a broker was played by another process than its own, as the logs of those tell."""
        found: set[tuple[str, ...]] = set()
        for name in self.names:
            text = (self.folder / "logs" / f"{name}.log").read_text()
            found.update(re.findall(r'"(\S+) is played by (\S+) from term (\d+) on', text))
        return len(found)

    def delete_store(self, name: str, pid: int) -> str:
        """Remove the store of a broker that is down, and say whether that was in time."""
        while _runs(pid):
            time.sleep(0.005)
        for path in (self.folder / "stores").glob(f"{name}*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return "deleted" if self.listening(name).pid == pid else "deleted too late"

    def linked_s(self, name: str, since_s: float) -> float | None:
        """When a broker had been linked to each neighbour once since a moment, as its own log tells.

        Not when all links are up: by then the next broker may have been killed.
        """
        found: dict[str, float] = {}
        for line in (self.folder / "logs" / f"{name}.log").read_text().splitlines():
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                if said.get("event") == "link" and said["up"] and said["broker"] == name:
                    at_s = datetime.fromisoformat(said["at"]).timestamp()
                    if at_s >= since_s:
                        found.setdefault(said["peer"], at_s)
        return max(found.values()) if found.keys() >= self._near[name] else None

    def reported_losses(self) -> list[LostStore]:
        """What brokers say was lost with stores, once for each store: the most that a neighbour knew of."""
        found: dict[tuple[str, str], LostStore] = {}
        for name in self.names:
            for line in (self.folder / "logs" / f"{name}.log").read_text().splitlines():
                with contextlib.suppress(ValueError):
                    said = json.loads(line)
                    if "lost_store" in said:
                        one = LostStore(said["lost_store"], said["sessions"], said["events"])
                        key = (one.broker, said["memory"])
                        found[key] = max(found.get(key, one), one, key=lambda each: each.events)
        named = {broker for broker, memory in found if memory}
        # Who had just been started itself does not know what the store was called, nor what was in it.
        return [one for (broker, memory), one in found.items() if memory or broker not in named]

    def is_whole(self) -> bool:
        """Whether every broker is at work, and all its copies hold everything."""
        return not self.not_whole()

    def not_whole(self) -> list[str]:
        """Say of each broker that is not at work, or whose copies lack something, how it stands."""
        found = []
        for name in self.names:
            said = self.metrics(name)
            if said is None:
                found.append(f"{name} does not answer")
            elif said.get("sojourn_copies_whole") != said.get("sojourn_copies_wanted", -1.0):
                found.append(f"{name} waits for copies with {said.get('sojourn_waiting_turns', 0):g} turns")
        return found

    def held(self) -> tuple[int, list[str]]:
        """How many events and frames brokers still have for somebody, and where; what they lack is lost."""
        count, found = 0, []
        for name in self.names:
            said = self.metrics(name) or {}
            for key, what in HELD.items():
                if waits := int(said.get(key, 0)):
                    count += waits
                    found.append(f"{name} has {waits} {what}")
        return count, found

    def metrics(self, name: str) -> dict[str, float] | None:
        """What a broker says of itself, sums of what has several labels; None if it says nothing."""
        found = self.book.find(name)
        if found is None or found.metrics is None or not _runs(found.pid):
            return None
        try:
            with urllib.request.urlopen(f"http://{found.metrics}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except (OSError, ValueError):
            return None
        sums: dict[str, float] = {}
        for key, value in re.findall(r"^(sojourn_\w+)(?:\{[^}]*\})? (\S+)$", text, re.MULTILINE):
            sums[key] = sums.get(key, 0.0) + float(value)
        return sums

    @property
    def gave_up(self) -> bool:
        """Whether a broker was given up, or the whole command ended."""
        return self.process.poll() is not None or "given up" in self.said.read_text()

    def stop(self) -> None:
        """End all brokers."""
        self.let_back()
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _near(settings: Settings) -> set[str]:
    """Return the neighbours that a broker is linked to: routing uses a tree of the links in the file."""
    number = settings.brokers.index(settings.name)
    return {settings.brokers[one] for one in overlay_of(settings).neighbours[number]}


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _runs(pid: int) -> bool:
    """Whether a process lives; one that has ended and was not looked at yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def began_s(pid: int) -> float:
    """When a process began, as of `time.time`."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # since the machine was started
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - up_s + began
