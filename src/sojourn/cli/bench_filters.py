"""`sojourn bench filters`: many content filters at work, beside clients that filter themselves.

A thousand clients want events of some parts of a field, each by twenty filters on two numbers, a hundredth of
the field each (`x BETWEEN 120 AND 219 AND y BETWEEN …`); with `--full` two thousand clients have fifty
filters each, which takes minutes to subscribe to. So an event matches one in a hundred of all filters; those
of one client lie around its place, so that one in fifty clients wants it. A client with several filters that
match gets an event once.

The six brokers of the template `building`, without stores, have a sixth of the clients each, and the
publisher at one of them. Beside them stands one Mosquitto that serves all clients. Topics cannot tell what
they want, so there each takes all events and chooses: it looks at the two numbers where they are in the
packet, which is less than any client does that reads packets, first whether they lie in a box around all its
filters, then filter by filter. One Mosquitto and not six with bridges, since bridges would carry every event
five times more.

A publisher keeps a window of QoS 1 publishes under way, deliveries are of QoS 0. What is measured is the time
until all have come that are due by what the filters say, tried one by one; one that is missing is an error.
All connections are of one process, so that two cores are shared by it, the publisher and the brokers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from sojourn.cli import bench_live
from sojourn.cli.bench_filters_client import EVENTS, Task, places, squares
from sojourn.cli.bench_live import BenchError, Running
from sojourn.cli.bench_network import sojourn_network
from sojourn.cli.benchmarks import Progress, Row
from sojourn.live.templates import TEMPLATES

CLIENTS, FILTERS = 1_000, 20
"""How many, and of each of them."""
FULL_CLIENTS, FULL_FILTERS = 2_000, 50
SECONDS = 5.0
FIRST_EVENTS = 100
"""To warm up, and to see how many take so long."""
EVENTS_MAX = 100_000


@contextmanager
def six_of_ours() -> Iterator[list[Running]]:
    """Run the brokers of the building."""
    template = TEMPLATES["building"]
    names = [f"B{number + 1}" for number in range(template.brokers)]
    links = [(f"B{one}", f"B{other}") for one, other in template.links]
    with sojourn_network(names, links, stores=False) as brokers:
        yield brokers


@contextmanager
def one_mosquitto() -> Iterator[list[Running]]:
    """Run one Mosquitto."""
    with bench_live.mosquitto_broker() as broker:
        yield [broker]


SYSTEMS: dict[str, Callable[[], Any]] = {"mosquitto": one_mosquitto, "sojourn": six_of_ours}


def run(
    progress: Progress = lambda _: None,
    *,
    clients: int = CLIENTS,
    filters: int = FILTERS,
    seconds: float = SECONDS,
    full: bool = False,
) -> list[Row]:
    """Measure both; one row, with the ratio of useful deliveries a second."""
    if full:
        clients, filters = FULL_CLIENTS, FULL_FILTERS
    row: Row = {"filters": clients * filters, "clients": clients}
    task = Task(role="", ports=[], clients=clients, filters=filters, by_filter=False)
    progress("which client wants which event, filter by filter")
    wanted, matching = due(task)
    row |= {"filters_matching": matching, "clients_wanting": float(wanted.mean())}
    for name, start in SYSTEMS.items():
        progress(f"{name}: starting")
        with start() as brokers:
            found = _measure(name, brokers, task, wanted, seconds, progress)
        row |= {f"{name}_{key}": value for key, value in found.items()}
    row["ratio"] = row["sojourn_useful_per_s"] / row["mosquitto_useful_per_s"]
    return [row]


def due(task: Task) -> tuple[np.ndarray, float]:
    """By event, how many clients want it; and which share of the filters match an event, on average."""
    x, y = np.array(places(task)).T
    wanted, matching = np.zeros(EVENTS, dtype=np.int64), 0
    for client in range(task.clients):
        left, right, low, high = np.array(squares(task, client)).T[:, :, None]
        matches = (left <= x) & (x <= right) & (low <= y) & (y <= high)
        wanted += matches.any(axis=0)
        matching += int(matches.sum())
    return wanted, matching / (EVENTS * task.clients * task.filters)


def _measure(
    name: str, brokers: list[Running], task: Task, wanted: np.ndarray, seconds: float, progress: Progress
) -> dict[str, float]:
    by_filter = name == "sojourn"
    told = msgspec.structs.replace(task, ports=[one.port for one in brokers], by_filter=by_filter)
    progress(f"{name}: {task.clients:,} clients subscribe")
    began_s = time.monotonic()
    taker = _start(msgspec.structs.replace(told, role="subscribe"))
    giver = _start(msgspec.structs.replace(told, role="publish"))
    try:
        for one in (taker, giver):
            bench_live.wait_ready(one)
        subscribed_s = time.monotonic() - began_s
        first, count, took_s = 0, FIRST_EVENTS, 0.0
        for share in (0.3, 1.0):  # the first time kernels are compiled and caches filled
            took_s, _, _ = _round(taker, giver, wanted, first, count)
            first, count = first + count, _as_many(count / took_s * seconds * share)
        progress(f"{name}: {count:,} events")
        before_s = sum(bench_live.cpu_seconds(one.process) for one in brokers)
        took_s, useful, came = _round(taker, giver, wanted, first, count)
        spent_s = sum(bench_live.cpu_seconds(one.process) for one in brokers) - before_s
        return {
            "useful_per_s": useful / took_s,
            "events_per_s": count / took_s,
            "sent_per_useful": came / useful,
            "cpu_us_each": 1e6 * spent_s / useful,
            "mib": sum(bench_live.resident_mib(one.process) for one in brokers),
            "subscribed_s": subscribed_s,
        }
    finally:
        for one in (taker, giver):
            bench_live.end(one)


def _as_many(count: float) -> int:
    return max(FIRST_EVENTS, min(EVENTS_MAX, int(count)))


def _round(
    taker: subprocess.Popen[str], giver: subprocess.Popen[str], wanted: np.ndarray, first: int, count: int
) -> tuple[float, int, int]:
    """Publish so many events; return how long it took, the useful deliveries, and all deliveries."""
    expected = int(wanted[np.arange(first, first + count) % EVENTS].sum())
    _tell(taker, f"{expected}")
    _tell(giver, f"{first} {count}")
    began, ended = _hear(giver), _hear(taker)
    if ended["missing"]:
        raise BenchError(f"Of {expected:,} deliveries {ended['missing']:,} did not come.")
    return ended["ended_s"] - began["began_s"], ended["useful"], ended["came"]


def _start(task: Task) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sojourn.cli.bench_filters_client", msgspec.json.encode(task).decode()]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> Row:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise BenchError("A client of the benchmark failed; its message is above.")
    found: Row = json.loads(line)
    return found
