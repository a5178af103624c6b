"""Many seeds over hours: what is still to be run, what came of the rest, and a file that survives a kill.

A campaign counts what its worlds did, apart for each version of the code that they went through (a digest of
our own sources), so that nobody takes the hand-offs of one version for those of another. The file is written
whole after every world. A seed that failed is tried again when the code has changed since.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import sojourn
from sojourn.errors import SojournError
from sojourn.sim.live_check.check import Found
from sojourn.sim.live_check.script import Spec

VERSION = 1
HAND_OFFS = "hand-offs"
_CODE = (
    "errors.py",
    "interest",
    "routing",
    "mobility",
    "edge",
    "mqtt",
    "broker",
    "sim/clock.py",
    "sim/live_check",
)
"""What a world goes through, below the package."""


class StateError(SojournError):
    """The file of a campaign cannot be used."""


class Failure(msgspec.Struct):
    """A world that failed."""

    seed: int
    failure: str
    command: str
    """What repeats it."""


class Part(msgspec.Struct):
    """What one version of the code came to."""

    code: str
    """The digest of its sources."""
    seeds: int = 0
    processor_s: float = 0.0
    counts: dict[str, int] = {}
    excused: dict[str, int] = {}
    failures: list[Failure] = []


class State(msgspec.Struct):
    """What the file holds."""

    spec: Spec
    """What all worlds share; its seed is the first."""
    parts: list[Part] = []
    done: list[tuple[int, int]] = []
    """Seeds that were run, as ranges: the first, and the one after the last."""
    version: int = VERSION


class Campaign:
    """One campaign, kept in a file or only in memory."""

    def __init__(self, spec: Spec, code: str, file: Path | None = None) -> None:
        """Begin, or go on where the file was left."""
        self._file = file
        self.state = State(spec)
        if file is not None and file.exists():
            self.state = _read(file, spec)
        self._part = next((part for part in self.state.parts if part.code == code), None) or Part(code)
        self._again = [
            failure.seed for part in self.state.parts if part.code != code for failure in part.failures
        ]
        """Seeds that failed before the code changed."""
        self._next = spec.seed
        if file is not None:
            _see_that_it_can_be_written(file)

    def count(self, name: str) -> int:
        """Return how often something was counted, whatever the code."""
        return sum(part.counts.get(name, 0) for part in self.state.parts)

    @property
    def hand_offs(self) -> int:
        """Return how many hand-offs there were."""
        return self.count(HAND_OFFS)

    @property
    def seeds(self) -> int:
        """Return how many worlds were run."""
        return sum(part.seeds for part in self.state.parts)

    @property
    def failures(self) -> list[Failure]:
        """Return the worlds that failed, and were not run again by other code since."""
        return [failure for part in self.state.parts for failure in part.failures]

    def as_dict(self) -> dict[str, Any]:
        """Return what the file holds, with the sums over all code, ready for JSON."""
        counts: Counter[str] = Counter()
        excused: Counter[str] = Counter()
        for part in self.state.parts:
            counts.update(part.counts)
            excused.update(part.excused)
        sums = {"seeds": self.seeds, "counts": dict(sorted(counts.items())), "excused": dict(excused)}
        return sums | {"by_code": msgspec.to_builtins(self.state.parts)}

    def specs(self) -> Iterator[Spec]:
        """Yield what is still to be run: what failed with other code, then seeds without end."""
        again, self._again = self._again, []
        done = sorted(self.state.done)
        for seed in again:
            yield replace(self.state.spec, seed=seed)
        while True:
            for low, high in done:
                if low <= self._next < high:
                    self._next = high
            yield replace(self.state.spec, seed=self._next)
            self._next += 1

    def took(self, found: Found, processor_s: float) -> None:
        """Note what came of a seed."""
        part, seed = self._part, found.spec.seed
        if part not in self.state.parts:
            self.state.parts.append(part)
        for other in self.state.parts:
            other.failures = [failure for failure in other.failures if failure.seed != seed]
        part.seeds += 1
        part.processor_s += processor_s
        part.counts = dict(sorted((Counter(part.counts) + found.counts).items()))
        part.excused = dict(sorted((Counter(part.excused) + found.excused).items()))
        if found.failure is not None:
            part.failures.append(Failure(seed, found.failure, found.spec.command()))
        self.state.done = _with(self.state.done, seed)
        self._save()

    def _save(self) -> None:
        if self._file is None:
            return
        beside = self._file.with_name(self._file.name + ".new")
        with beside.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self.state)))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._file)


def code_digest() -> str:
    """Return a digest of all code of ours that a world goes through, and of the Python below it."""
    root = Path(sojourn.__file__).parent
    digest = hashlib.blake2b(platform.python_version().encode(), digest_size=6)
    for name in _CODE:
        top = root / name
        for file in sorted(top.rglob("*.py")) if top.is_dir() else [top]:
            if file.name != Path(__file__).name:
                digest.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _read(file: Path, spec: Spec) -> State:
    try:
        state = msgspec.json.decode(file.read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError) as error:
        raise StateError(
            f"{file} is not the state of a check ({error}): name another file with --state, or delete it."
        ) from None
    if state.version != VERSION:
        raise StateError(
            f"{file} is of version {state.version}, not {VERSION}: name another file with --state."
        )
    if state.spec != spec:
        raise StateError(
            f"{file} belongs to `{state.spec.command()}`, with other options than these: "
            "give the same ones, or name another file with --state."
        )
    return state


def _see_that_it_can_be_written(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab"):
            pass
    except OSError as error:
        raise StateError(f"{file} cannot be written ({error.strerror}): name another with --state.") from None
    if not file.stat().st_size:
        file.unlink()  # it is written whole after the first world


def _with(ranges: list[tuple[int, int]], seed: int) -> list[tuple[int, int]]:
    """Return ranges that hold one more seed."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted([*ranges, (seed, seed + 1)]):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged
