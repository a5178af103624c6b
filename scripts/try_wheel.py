"""Tries somebody else's first minutes: the wheel alone in a clean environment, broker and client at work.

    scripts/python scripts/try_wheel.py [--json]

Needs a Python with its venv module and nothing else: pip fetches what builds the wheel. Builds the wheel,
installs it and nothing else with pip, and measures what that takes: megabytes, seconds until a broker
listens, its memory at rest, an event from `pub` over the broker to `sub`, six linked brokers. Beside each
time stands the processor time, which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

ROOT = Path(__file__).resolve().parent.parent
WAIT_S = 120.0
BUILT_FROM = ("src", "pyproject.toml", "README.md", "LICENSE")
QUIET = ("--quiet", "--disable-pip-version-check")
NOT_OURS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")
"""What a clean environment has before anything is installed."""

Result = TypeVar("Result")


class Trial:
    """What was measured, in the order in which it was."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}

    def time(self, what: str, act: Callable[[], Result]) -> Result:
        """Do something and note how long it took, and the processor time of the commands that ended in it."""
        began, used = time.perf_counter(), _processor_s()
        found = act()
        self.figures[f"{what}, s"] = round(time.perf_counter() - began, 2)
        if _processor_s() - used > 0.01:
            self.figures[f"{what}, processor s"] = round(_processor_s() - used, 2)
        return found


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(folder: Path) -> Path:
    """Build the wheel of the tree as it is."""
    source = folder / "source"
    source.mkdir()
    for name in BUILT_FROM:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    workshop = folder / "workshop"
    subprocess.run([sys.executable, "-m", "venv", workshop], check=True)
    python = workshop / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "wheel", *QUIET, "--no-deps", "--wheel-dir", folder, source], check=True
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path) -> None:
    """Make a clean environment and install the wheel there, with what it asks for."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", *QUIET, wheel],
        stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip


def megabytes(environment: Path) -> float:
    """What was installed, without what every environment has."""
    (packages,) = environment.glob("lib/python*/site-packages")
    ours = [path for path in packages.iterdir() if not path.name.startswith(NOT_OURS)]
    files = [file for path in ours for file in (path.rglob("*") if path.is_dir() else [path])]
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)


def read_until(stream: IO[str], pattern: str) -> re.Match[str]:
    """Read lines until one has what is looked for."""
    until = time.monotonic() + WAIT_S
    for line in stream:
        found = re.search(pattern, line)
        if found is not None:
            return found
        if time.monotonic() > until:
            break
    raise SystemExit(f"Nothing said {pattern!r}.")


def resting_mb(process: int) -> float:
    """The memory of a process at rest."""
    status = Path(f"/proc/{process}/status").read_text()
    return round(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024, 1)


def children_of(process: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def used_s(process: int) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return round((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 2)


class Shell:
    """The installed command, run in a folder of its own."""

    def __init__(self, sojourn: Path, folder: Path) -> None:
        self._sojourn, self._folder = sojourn, folder

    def run(self, *arguments: str) -> str:
        """Run a command to its end; return what it printed."""
        done = subprocess.run(
            [self._sojourn, *arguments],
            cwd=self._folder, env=_clean(), capture_output=True, text=True, check=True, timeout=WAIT_S,
        )  # fmt: skip
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [self._sojourn, *arguments],
            cwd=self._folder, env=_clean(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


def say_of(process: subprocess.Popen[str]) -> IO[str]:
    """What a command says to people."""
    assert process.stderr is not None
    return process.stderr


def try_broker(trial: Trial, shell: Shell) -> None:
    """One broker, and an event from one shell to another."""
    trial.time("sojourn --help", lambda: shell.run("--help"))
    broker = shell.start("serve", "--port", "0")
    try:
        url = trial.time("a broker listens", lambda: read_until(say_of(broker), r"(mqtt://[^ ]+)"))[1]
        trial.figures["a broker listens, processor s"] = used_s(broker.pid)
        trial.figures["its memory, MB"] = resting_mb(broker.pid)
        reader = shell.start("sub", url, "speed > 80", "--count", "1")
        trial.time("sub is subscribed", lambda: read_until(say_of(reader), "subscribed"))
        event = '{"speed": 93}'
        trial.time(
            "an event from pub to sub", lambda: (shell.run("pub", url, "cars/7", event), reader.wait(WAIT_S))
        )
        assert reader.stdout is not None
        assert reader.stdout.read() == f"cars/7 {event}\n", "the event came as it went"
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.wait(WAIT_S)


def try_six(trial: Trial, shell: Shell, folder: Path) -> None:
    """The six brokers of a building on free ports, until the links between them stand."""
    path = folder / "building.toml"
    shell.run("init", "building", str(path))
    path.write_text(re.sub(r'"127\.0\.0\.1:\d+"', '"127.0.0.1:0"', path.read_text()))
    fleet = shell.start("serve", str(path), "--all", "--logs", str(folder / "logs"))
    trial.time("six linked brokers are ready", lambda: read_until(say_of(fleet), "ready"))
    brokers = children_of(fleet.pid)
    trial.figures["six linked brokers are ready, processor s"] = round(
        sum(map(used_s, [*brokers, fleet.pid])), 2
    )
    trial.figures["memory of the largest, MB"] = max(map(resting_mb, brokers))
    fleet.send_signal(signal.SIGTERM)
    fleet.communicate(timeout=WAIT_S)


def _clean() -> dict[str, str]:
    """The variables of this process without those that lead to another environment."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_"))}


def main() -> None:
    """Try everything, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    trial = Trial()
    with tempfile.TemporaryDirectory(prefix="sojourn-wheel-") as name:
        folder = Path(name)
        environment = folder / "environment"
        wheel = trial.time("building the wheel", lambda: build(folder))
        trial.figures["the wheel, MB"] = round(wheel.stat().st_size / 1e6, 2)
        began = time.perf_counter()
        trial.time("making the environment and pip install", lambda: install(wheel, environment))
        trial.figures["installed, MB"] = megabytes(environment)
        shell = Shell(environment / "bin" / "sojourn", folder)
        try_broker(trial, shell)
        trial.figures["from nothing to broker and client at work, s"] = round(time.perf_counter() - began, 2)
        try_six(trial, shell, folder)
        trial.figures["load of the machine"] = round(os.getloadavg()[0], 1)
    if as_json:
        print(json.dumps(trial.figures))
        return
    wide = max(map(len, trial.figures))
    for what, value in trial.figures.items():
        print(f"{what:<{wide}}  {value:>8}")


if __name__ == "__main__":
    main()
