"""`sojourn bench crowd`: brokers with ten thousand connected sessions each, of which many move.

Two brokers with stores, linked, hold ten thousand sessions each, with a subscription each. In a minute a
thousand of each broker's sessions move to the other one, and events are published for all of them. Stated are
what a session takes of the brokers' memory, how long their loops were held at once at the most while clients
came and while they moved, how long a client that moved waited for the event that was published meanwhile, and
what was lost, which is to be nothing.

The connections are of two processes and two addresses, since a process may have 20,000 files on many machines
(`ulimit -n`) and a broker lets 10,000 connections of one address in by default.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import NamedTuple

import msgspec
import numpy as np

from sojourn.cli import bench_live
from sojourn.cli.bench_crowd_client import Part
from sojourn.cli.bench_live import BenchError, Running
from sojourn.cli.bench_network import sojourn_network
from sojourn.cli.benchmarks import Progress, Row

BROKERS = ("B1", "B2")
SESSIONS = 10_000
"""Of each broker."""
MOVES_A_MINUTE = 1_000
"""Of each broker's sessions."""
EVENTS_PER_S = 200.0
SECONDS = 60.0
PARTS = 2
PATIENCE_S = 300.0
PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "p99_9_ms": 99.9}


def run(
    progress: Progress = lambda _: None,
    *,
    sessions: int = SESSIONS,
    moves_a_minute: float = MOVES_A_MINUTE,
    seconds: float = SECONDS,
) -> list[Row]:
    """Measure one crowd; one row."""
    count = sessions * len(BROKERS)
    progress("starting brokers")
    with sojourn_network(BROKERS, [BROKERS], is_watched=True) as brokers:
        before = [bench_live.resident_mib(one.process) for one in brokers]
        progress(f"{count:,} clients connect")
        began_s = time.monotonic()
        parts = _parts(brokers, count, moves_a_minute * len(BROKERS) / 60, seconds)
        try:
            for one in parts:
                bench_live.wait_ready(one)
            connected_s = time.monotonic() - began_s
            after = [bench_live.resident_mib(one.process) for one in brokers]
            coming = [_longest(one, resets=True) for one in brokers]
            cpu_s = sum(bench_live.cpu_seconds(one.process) for one in brokers)
            progress(f"{moves_a_minute * len(BROKERS):,.0f} of them move in a minute, for {seconds:.0f} s")
            for one in parts:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            found = [bench_live.result(one, seconds + PATIENCE_S) for one in parts]
            cpu_s = sum(bench_live.cpu_seconds(one.process) for one in brokers) - cpu_s
            moving = [_longest(one) for one in brokers]
        finally:
            for one in parts:
                bench_live.end(one)
    took = np.array([value for one in found for value in one.pop("took_s")])
    sums = {key: sum(one[key] for one in found) for key in found[0]}
    row: Row = {"sessions_a_broker": sessions, "connected_s": connected_s}
    row["kib_a_session"] = 1024 * (sum(after) - sum(before)) / count
    row["mib_a_broker"] = max(after)
    for name, longest in (("coming", coming), ("moving", moving)):
        row[f"longest_turn_{name}_s"] = max(one.held_s for one in longest)
        row[f"longest_cpu_{name}_s"] = max(one.cpu_s for one in longest)
    row |= {"cpu_share": cpu_s / seconds} | sums
    row |= {key: float(np.percentile(took, at)) * 1e3 for key, at in PERCENTILES.items() if took.size}
    return [row]


def _parts(
    brokers: list[Running], sessions: int, moves_per_s: float, seconds: float
) -> list[subprocess.Popen[str]]:
    parts = [
        Part(
            name=f"part-{number}",
            ports=[one.port for one in brokers],
            source=f"127.0.0.{number + 2}",
            sessions=sessions // PARTS,
            moves_per_s=moves_per_s / PARTS,
            events_per_s=EVENTS_PER_S / PARTS,
            seconds=seconds,
        )
        for number in range(PARTS)
    ]
    return [
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "sojourn.cli.bench_crowd_client", msgspec.json.encode(part).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in parts
    ]


class _Longest(NamedTuple):
    """The longest turn of a broker's loop, and the most that one used of the processor."""

    held_s: float
    cpu_s: float


def _longest(broker: Running, *, resets: bool = False) -> _Longest:
    """What a broker's longest turns were since it began or was reset."""
    assert broker.notes is not None, "it is watched"
    if not bench_live.wait_for(broker.process, broker.notes.exists):  # the first note takes a moment
        raise BenchError("A broker that is watched notes nothing:")
    found = json.loads(broker.notes.read_text())
    if resets:
        broker.notes.with_suffix(".reset").touch()
    return _Longest(float(found["longest_s"]), float(found["longest_cpu_s"]))
