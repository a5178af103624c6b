"""`sojourn bench start`: how long brokers take to listen, what they take at rest, and `sojourn --help`.

A single broker, then the six of the template `building` at once, with stores, each from the start of its
process until it says where it listens; the medians of some rounds. Memory is what a process takes of the
machine's when nobody has connected yet.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from sojourn.cli import bench_live
from sojourn.cli.bench_roam import sojourn_building
from sojourn.cli.benchmarks import Progress, Row

ROUNDS = 5
AIMS = {"help_s": 0.5, "one_broker_s": 1.0, "six_brokers_s": 3.0, "mib_a_broker": 100.0}


def run(progress: Progress = lambda _: None, *, rounds: int = ROUNDS) -> list[Row]:
    """Measure some starts; a row of medians, one of the longest, and one of what we aim at."""
    kinds: tuple[Callable[[], dict[str, float]], ...] = (_help, _one, _six)
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        for kind in kinds:
            progress(f"round {number + 1} of {rounds}")
            for key, value in kind().items():
                found.setdefault(key, []).append(value)
    return [
        {"": "median"} | {key: statistics.median(values) for key, values in found.items()},
        {"": "most"} | {key: max(values) for key, values in found.items()},
        {"": "aim"} | AIMS,
    ]


def _help() -> dict[str, float]:
    began_s = time.monotonic()
    command = [sys.executable, "-m", "sojourn.cli.main", "--help"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own program
    return {"help_s": time.monotonic() - began_s}


def _one() -> dict[str, float]:
    began_s = time.monotonic()
    with bench_live.sojourn_broker():
        return {"one_broker_s": time.monotonic() - began_s}


def _six() -> dict[str, float]:
    began_s = time.monotonic()
    with sojourn_building("proactive") as brokers:
        took_s = time.monotonic() - began_s
        return {
            "six_brokers_s": took_s,
            "mib_a_broker": max(bench_live.resident_mib(one.process) for one in brokers),
        }
