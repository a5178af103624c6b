"""Follows a page of the documentation word for word: types its commands, and compares what is printed.

What a fenced block means, in the order of the page and all in one folder:

    console                  `$ ` a command, `> ` what goes on; then what it prints. `…` stands for anything
    console title="…"        a terminal of its own, where a command may go on: what it has printed so far is
                             compared. Without a command: what it prints next. `^C` interrupts it
    python                   a program that ends well and prints what `# ` says beside each `print`
    python title="car.py"    a file that commands use; `toml` likewise
    toml                     a piece of a configuration that a broker takes
    sh                       needs what tests have not (a container engine): bash must be able to read it
    text                     a picture or a pattern, not to be run

Every page has an address of its own on loopback, so that the ports of the page are always free.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sojourn.live.config import read_config

PATIENCE_S = 200.0
"""For one command; the slowest seen on a busy machine took 15 s."""
LOOK_S = 0.05
HOST = "127.0.0.1"
ROOT = Path(__file__).parent.parent.parent
SOURCES = ("deploy", "examples")
"""Folders of the sources that readers have before them."""
FENCE = re.compile(r"^```(\S+)?[ ]*(?:title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"console", "python", "toml", "sh", "text"}
_numbers = itertools.count(1)


class Block(NamedTuple):
    """One fenced block."""

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [Block(*found) for found in FENCE.findall(page)]


def own_host() -> str:
    """An address on loopback that nothing else of these tests has."""
    number = os.getpid() * 64 + next(_numbers) % 64
    return f"127.{1 + (number >> 16) % 254}.{(number >> 8) & 255}.{1 + number % 254}"


class Step(NamedTuple):
    """A command, or None to go on with the last one, and what is printed."""

    command: str | None
    printed: list[str]


def steps(text: str) -> Iterator[Step]:
    """The commands of a console with what each prints."""
    command: str | None = None
    printed: list[str] = []
    is_first = True
    for line in text.splitlines():
        if line.startswith("$ "):
            if not is_first:
                yield Step(command, printed)
            command, printed = line[2:], []
        elif line.startswith("> ") and command is not None and not printed:
            command += "\n" + line[2:]
        else:
            printed.append(line)
        is_first = False
    yield Step(command, printed)


def pattern(printed: list[str]) -> str:
    """A regular expression for what stands in a page."""
    parts = []
    for line in printed:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n")
    return "".join(parts)


class Terminal:
    """A place where one command runs at a time, and may go on."""

    def __init__(self, folder: Path, notes: Path, host: str) -> None:
        self._folder, self._notes, self._host = folder, notes, host
        self._process: subprocess.Popen[bytes] | None = None
        self._out = notes
        self._read = 0

    def type(self, command: str) -> None:
        """Begin a command."""
        self.stop()
        self._out = self._notes / f"{next(_numbers)}.txt"
        self._read = 0
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(
                ["/bin/bash", "-c", command.replace(HOST, self._host)],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=surroundings(),
                start_new_session=True,
            )

    def interrupt(self) -> None:
        """Ctrl-C."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGINT)

    def new_text(self) -> str:
        """What was printed and not compared yet, with the address that the page knows."""
        text = self._out.read_bytes()[self._read :].decode()
        return text.replace(self._host, HOST)

    def wait_for(self, printed: list[str], *, to_the_end: bool) -> None:
        """Wait until what the page says was printed."""
        assert self._process is not None
        expected = re.compile(pattern(printed))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            ended = self._process.poll() is not None
            text = self.new_text()
            found = (expected.fullmatch if to_the_end else expected.match)(text)
            if (found and not to_the_end) or ended:
                break
            assert time.monotonic() < deadline, f"never printed {printed}, but\n{text}"
            time.sleep(LOOK_S)
        assert found, f"printed\n{text}\ninstead of\n" + "\n".join(printed)
        self._read += len(text[: found.end()].replace(HOST, self._host).encode())
        if to_the_end:
            refuses = any(line.startswith("sojourn: ") for line in printed)
            assert self._process.returncode == 0 or refuses, f"ended with {self._process.returncode}: {text}"

    def stop(self) -> None:
        """End what still runs."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        self._process = None


def surroundings() -> dict[str, str]:
    """The environment of a reader who has installed Sojourn."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": "100", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}


class Reader:
    """Somebody who does what a page says."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._notes = folder / "here", folder / "notes"
        self._folder.mkdir()
        self._notes.mkdir()
        for name in SOURCES:
            (self._folder / name).symlink_to(ROOT / name)
        self._host = own_host()
        self._terminals: dict[str, Terminal] = {}

    def follow(self, page: str) -> None:
        """Do everything, and stop what goes on."""
        try:
            for block in blocks(page):
                self.do(block)
        finally:
            for terminal in self._terminals.values():
                terminal.stop()

    def do(self, block: Block) -> None:
        """Do what one block says."""
        text = block.text.replace(HOST, self._host)
        if block.language == "console":
            self._console(block)
        elif block.title:
            (self._folder / block.title).write_text(text)
        elif block.language == "python":
            self._program(block.text, text)
        elif block.language == "toml":
            alone = "" if "[[brokers]]" in text else '\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
            read_config(text + alone, f"a block: {text}")
        elif block.language == "sh":
            subprocess.run(["/bin/bash", "-n", "-c", block.text], check=True)

    def _program(self, written: str, text: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", text],
            cwd=self._folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env=surroundings(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        expected = re.findall(r"print\(.*\)  # ([^:\n]+)", written)
        assert done.stdout.splitlines() == expected

    def _console(self, block: Block) -> None:
        terminal = self._terminals.setdefault(block.title, Terminal(self._folder, self._notes, self._host))
        for step in steps(block.text):
            printed = step.printed
            if step.command is not None:
                terminal.type(step.command)
            if "^C" in printed:
                before, printed = printed[: printed.index("^C")], printed[printed.index("^C") + 1 :]
                terminal.wait_for(before, to_the_end=False)
                terminal.interrupt()
                terminal.wait_for([*printed, "…"], to_the_end=True)
            else:
                terminal.wait_for(printed, to_the_end=not block.title)
            if step.command is not None and step.command.startswith("sojourn init "):
                self._move_in()

    def _move_in(self) -> None:
        """Give brokers of a new configuration the address of this page."""
        for path in self._folder.glob("*.toml"):
            path.write_text(path.read_text().replace(HOST, self._host))
