"""`sojourn bench roam`: how long clients that move wait for what was stored for them.

The six brokers of the template `building`, with stores, hold a thousand sessions; so does one Mosquitto with
persistence, to which its clients merely connect again. Walkers move sessions, one after the other each, and
measure the time from CONNECT to the event that was published meanwhile:

- one walker with a rest after each move, whose sessions are away for some moves of others, as those of people
  on their way are: the times on brokers with nothing else to do;
- the same with sessions that come back at once, while brokers still deal with their leaving;
- several at once without a rest, for the hand-offs a second that are held.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sojourn.cli import bench_live
from sojourn.cli.bench_live import BenchError, Running
from sojourn.cli.bench_network import sojourn_network
from sojourn.cli.bench_roam_client import Walk
from sojourn.cli.benchmarks import Progress, Row
from sojourn.live.templates import TEMPLATES

SESSIONS = 1_000
SECONDS = 20.0
WALKERS = 4
PAUSE_S = 0.02
"""How long a walker that is alone rests after a move: what it measures is not what it left to be done."""
AWAY = 4
"""For how many moves of others a session is away; each of them takes the rest, and a little more."""
PATIENCE_S = 120.0
"""How long after the time a walker may take to say how it was."""
PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "p99_9_ms": 99.9}


@contextmanager
def sojourn_building(scheme: str) -> Iterator[list[Running]]:
    """Run the brokers of the building."""
    template = TEMPLATES["building"]
    names = [f"B{number + 1}" for number in range(template.brokers)]
    links = [(f"B{one}", f"B{other}") for one, other in template.links]
    with sojourn_network(names, links, scheme=scheme) as brokers:
        yield brokers


@contextmanager
def one_mosquitto(_scheme: str) -> Iterator[list[Running]]:
    """Run one Mosquitto that keeps sessions."""
    program = bench_live.find_mosquitto()
    if program is None:
        raise BenchError("There is no Mosquitto to measure beside; scripts/mosquitto installs it.")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for _ in range(bench_live.MOSQUITTO_TRIES):
            port = bench_live.likely_port()
            config = Path(folder) / "mosquitto.conf"
            config.write_text(
                f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_type error\npersistence true\n"
                f"persistence_location {folder}/\nset_tcp_nodelay true\n"
            )
            started = stack.enter_context(bench_live.process([program, "-c", str(config)]))
            if bench_live.wait_for(started, lambda port=port: bench_live.listens(port)):  # type: ignore[misc]  # mypy infers no default of a lambda
                yield [Running(started, port)]
                return
        raise BenchError(f"{program} does not listen on any of {bench_live.MOSQUITTO_TRIES} ports:")


SYSTEMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "proactive": (sojourn_building, "proactive"),
    "reactive": (sojourn_building, "reactive"),
    "mosquitto": (one_mosquitto, ""),
}


def near_of(brokers: int) -> list[list[int]]:
    """For each broker of the building, which are next to it."""
    if brokers == 1:
        return [[]]
    near: list[list[int]] = [[] for _ in range(brokers)]
    for one, other in TEMPLATES["building"].links:
        near[one - 1].append(other - 1)
        near[other - 1].append(one - 1)
    return near


def run(
    progress: Progress = lambda _: None, *, sessions: int = SESSIONS, seconds: float = SECONDS
) -> list[Row]:
    """Measure all systems; a row for each number of walkers and kind of move."""
    rows: list[Row] = []
    for name, (start, scheme) in SYSTEMS.items():
        progress(f"{name}: starting brokers")
        with start(scheme) as brokers:
            for walkers, away in ((1, AWAY), (1, 0), (WALKERS, 0)):
                progress(f"{name}: {sessions:,} sessions, {walkers} on the move for {seconds:.0f} s")
                rows += _measure(name, brokers, walkers, away, sessions, seconds)
    return rows


def _measure(
    name: str, brokers: list[Running], walkers: int, away: int, sessions: int, seconds: float
) -> list[Row]:
    found, spent_s = _walk(f"{name}-{walkers}-{away}", brokers, walkers, away, sessions // walkers, seconds)
    away_ms = 1e3 * float(np.mean([value for one in found for value in one["away_s"]]))
    lost = sum(one["sessions_lost"] for one in found)
    moves = sum(len(one["near"]) + len(one["far"]) for one in found)
    rows = []
    for kind in ("near", "far"):
        took = np.array([value for one in found for value in one[kind]])
        if not took.size:
            continue
        row: Row = {"system": name, "walkers": walkers, "away_ms": away_ms, "to": kind}
        row["moves"] = int(took.size)
        row |= {key: float(np.percentile(took, at)) * 1e3 for key, at in PERCENTILES.items()}
        row |= {"handoffs_per_s": moves / seconds, "cpu_ms_each": 1e3 * spent_s / max(1, moves)}
        row["sessions_lost"] = lost
        rows.append(row)
    if name == "mosquitto":
        for row in rows:
            row["to"] = "the same broker"
    return rows


def _walk(
    name: str, brokers: list[Running], walkers: int, away: int, sessions: int, seconds: float
) -> tuple[list[Row], float]:
    """Let walkers move; return what each says, and the processor time of all brokers meanwhile."""
    ports = [one.port for one in brokers]
    near = near_of(len(ports))
    walks = [
        Walk(
            name=f"{name}-{number}",
            ports=ports,
            near=near,
            sessions=sessions,
            pause_s=PAUSE_S if walkers == 1 else 0.0,
            away=away,
        )
        for number in range(walkers)
    ]
    processes = [
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "sojourn.cli.bench_roam_client", msgspec.json.encode(walk).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for walk in walks
    ]
    try:
        for process in processes:
            bench_live.wait_ready(process)
        before_s = sum(bench_live.cpu_seconds(one.process) for one in brokers)
        until_s = time.monotonic() + bench_live.START_MARGIN_S + seconds
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{until_s}\n")
            process.stdin.flush()
        found = [bench_live.result(process, seconds + PATIENCE_S) for process in processes]
        return found, sum(bench_live.cpu_seconds(one.process) for one in brokers) - before_s
    finally:
        for process in processes:
            bench_live.end(process)
