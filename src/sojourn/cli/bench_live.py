"""`sojourn bench live`: a broker's deliveries a second, latency and memory, beside Mosquitto in the same run.

Both brokers serve the same client program (`bench_live_client.py`) with the same windows, one after the
other in each round; a row's figures are the medians of the rounds. The payload has 256 bytes.

- Deliveries a second, useful ones only: one publisher to one and to ten subscribers at QoS 0 and 1; and ten
  subscribers that each want a fifth of the events, which Sojourn is told by a filter, while Mosquitto's
  subscribers take all and throw the rest away.
  Figures `_per_s` go by the clock; those `_per_cpu_s` by the processor time of the broker alone, which
  matters when others use the machine too.
- Latency at half load: both brokers get half of what the slower of them carries one to one.
- Memory with 10,000 idle connections, each with a subscription.

A machine with two cores runs broker, publisher and subscribers on them: the figures are of all three
together, which is why they are compared as ratios and in the same run.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from sojourn.cli.bench_live_client import Task
from sojourn.cli.benchmarks import Progress, Row
from sojourn.errors import SojournError
from sojourn.live.addresses import FolderBook
from sojourn.live.brokers.fleet import last_line
from sojourn.live.config import parse_address

ROUNDS = 3
SECONDS = 3.0
WARM_UP_S = 0.7
IDLE_CONNECTIONS = 10_000
START_S = STOP_S = 60.0
START_MARGIN_S = 0.2
MOSQUITTO_TRIES = 5


class BenchError(SojournError):
    """A broker or a client of the benchmark did not do its part."""


class Case(NamedTuple):
    """One kind of traffic."""

    name: str
    qos: int
    subscribers: int
    chooses: bool = False


CASES = (
    Case("qos0 1:1", 0, 1),
    Case("qos0 1:10", 0, 10),
    Case("qos1 1:1", 1, 1),
    Case("qos1 1:10", 1, 10),
    Case("qos0 10 want 20%", 0, 10, chooses=True),
)


def find_mosquitto() -> str | None:
    """Return where Mosquitto is; Debian puts it where only root looks."""
    return shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


class Running(NamedTuple):
    """A broker at work."""

    process: subprocess.Popen[bytes]
    port: int
    notes: Path | None = None
    """Where it says how long its loop was held, if it is watched (`bench_floods_broker.py`)."""


@contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a broker's process; whoever waits for it in vain is told what it said."""
    with tempfile.TemporaryFile() as said:
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)  # noqa: S603 - a broker that we name
        try:
            yield started
        except BenchError as error:
            said.seek(0)
            raise BenchError(f"{error} {last_line(said.read().decode(errors='replace'))}") from None
        finally:
            started.terminate()
            try:
                started.wait(STOP_S)
            except subprocess.TimeoutExpired:  # what was measured stands, however long its end takes
                started.kill()
                started.wait()


def wait_for(started: subprocess.Popen[bytes], listens: Callable[[], bool]) -> bool:
    """Wait until a broker listens; return whether it does, and has not ended."""
    until = time.monotonic() + START_S
    while not listens():
        if started.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.05)
    return started.poll() is None


def listens(port: int) -> bool:
    """Whether somebody listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def sojourn_broker() -> Iterator[Running]:
    """Run a single broker of ours on any port; it says itself which that is."""
    with tempfile.TemporaryDirectory() as folder:
        book = FolderBook(folder)
        command = [sys.executable, "-m", "sojourn.cli.main", "serve", "--port", "0", "--addresses", folder]
        with process(command) as started:
            if not wait_for(started, lambda: book.find("B1") is not None):
                raise BenchError("Our broker does not listen:")
            found = book.find("B1")
            assert found is not None
            yield Running(started, parse_address(found.clients, "an address").port)


@contextmanager
def mosquitto_broker() -> Iterator[Running]:
    """Run Mosquitto with the same windows as ours and nothing written to disk.

    It cannot say which port it got, so it is given one, and another if somebody else was faster.
    """
    program = find_mosquitto()
    if program is None:
        raise BenchError("There is no Mosquitto to measure beside; scripts/mosquitto installs it.")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        config = Path(folder) / "mosquitto.conf"
        for _ in range(MOSQUITTO_TRIES):
            port = likely_port()
            config.write_text(
                f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_type error\n"
                "max_inflight_messages 1000\nmax_queued_messages 100000\nset_tcp_nodelay true\n"
            )
            started = stack.enter_context(process([program, "-c", str(config)]))
            if wait_for(started, partial(listens, port)):
                yield Running(started, port)
                return
        raise BenchError(f"{program} does not listen on any of {MOSQUITTO_TRIES} ports:")


def likely_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


BROKERS = {"mosquitto": mosquitto_broker, "sojourn": sojourn_broker}


def _client(task: Task) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sojourn.cli.bench_live_client", msgspec.json.encode(task).decode()]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program


def result(process: subprocess.Popen[str], patience_s: float) -> Row:
    """Return what a client process said at its end."""
    output, _ = process.communicate(timeout=patience_s)
    if process.returncode:
        raise BenchError("A client of the benchmark failed; its message is above.")
    found: Row = json.loads(output.splitlines()[-1])
    return found


def wait_ready(process: subprocess.Popen[str]) -> None:
    """Wait until a client process is ready to begin."""
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise BenchError("A client of the benchmark failed; its message is above.")


def end(process: subprocess.Popen[str]) -> None:
    """End a client process."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def traffic(
    port: int,
    case: Case,
    name: str,
    seconds: float,
    pace_per_s: float = 0.0,
    *,
    publish_port: int | None = None,
) -> Row:
    """Let one publisher and some subscribers talk for a while; return what both say.

    The publisher may be at another broker than the subscribers.
    """
    wanted = [(k % 5 * 20, k % 5 * 20 + 19) for k in range(case.subscribers)] if case.chooses else None
    common: Row = {
        "qos": case.qos,
        "wanted": wanted,
        "warm_up_s": WARM_UP_S,
        "seconds": seconds,
        "stamped": pace_per_s > 0,
    }
    by_filter = case.chooses and name == "sojourn"
    taker = _client(
        Task(role="subscribe", port=port, subscribers=case.subscribers, by_filter=by_filter, **common)
    )
    giver = _client(Task(role="publish", port=publish_port or port, pace_per_s=pace_per_s, **common))
    try:
        for process in (taker, giver):
            wait_ready(process)
        for process in (taker, giver):
            assert process.stdin is not None
            process.stdin.write(f"{time.monotonic() + START_MARGIN_S}\n")
            process.stdin.flush()
        taken = result(taker, seconds + 60)
        return taken | result(giver, 60)
    finally:
        end(taker)
        end(giver)


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return how long a process has used a processor."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(process: subprocess.Popen[bytes]) -> float:
    """Return the memory that a process takes, of this machine's."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in text.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _measure_memory(name: str, connections: int) -> Row:
    with BROKERS[name]() as (process, port, _):
        before = resident_mib(process)
        start = time.monotonic()
        client = _client(Task(role="idle", port=port, count=connections))
        try:
            wait_ready(client)
            taken = time.monotonic() - start
            after = resident_mib(process)
        finally:
            end(client)
    return {"before_mib": before, "mib": after, "connect_s": taken}


def run(
    progress: Progress = lambda _: None,
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    idle_connections: int = IDLE_CONNECTIONS,
) -> list[Row]:
    """Measure every case with both brokers; a row each, with ratios of ours to Mosquitto's."""
    rows: list[Row] = []
    half = 0.0
    for case in CASES:
        row = _throughput_row(case, rounds, seconds, progress)
        rows.append(row)
        if case is CASES[0]:
            half = min(row[f"{name}_per_s"] for name in BROKERS) / 2
    rows.append(_latency_row(half, rounds, seconds, progress))
    memory: Row = {}
    for name in BROKERS:
        progress(f"{idle_connections:,} idle connections, {name}")
        memory |= {f"{name}_{key}": value for key, value in _measure_memory(name, idle_connections).items()}
    rows.append(_row(f"{idle_connections} idle", memory))
    return rows


def _throughput_row(case: Case, rounds: int, seconds: float, progress: Progress) -> Row:
    rates: dict[str, list[float]] = {name: [] for name in BROKERS}
    by_cpu: dict[str, list[float]] = {name: [] for name in BROKERS}
    for number in range(rounds):
        for name, broker in BROKERS.items():
            progress(f"{case.name}, round {number + 1} of {rounds}, {name}")
            with broker() as (process, port, _):
                before = cpu_seconds(process)
                found = traffic(port, case, name, seconds)
                rates[name].append(found["useful"] / seconds)
                by_cpu[name].append(found["useful_in_all"] / max(0.01, cpu_seconds(process) - before))
    row = _row(case.name, {f"{name}_per_s": statistics.median(rates[name]) for name in BROKERS})
    row["ratio"] = row["sojourn_per_s"] / row["mosquitto_per_s"]
    row |= {f"{name}_per_cpu_s": statistics.median(by_cpu[name]) for name in BROKERS}
    row["cpu_ratio"] = row["sojourn_per_cpu_s"] / row["mosquitto_per_cpu_s"]
    return row


def _latency_row(pace_per_s: float, rounds: int, seconds: float, progress: Progress) -> Row:
    found: dict[str, list[Row]] = {name: [] for name in BROKERS}
    for number in range(rounds):
        for name, broker in BROKERS.items():
            progress(f"latency at {pace_per_s:,.0f}/s, round {number + 1} of {rounds}, {name}")
            with broker() as (_, port, _):
                found[name].append(traffic(port, CASES[0], name, seconds, pace_per_s))
    row = _row("latency at half load", {"offered_per_s": pace_per_s})
    for name in BROKERS:
        for key in ("p50_us", "p99_us"):
            row[f"{name}_{key}"] = statistics.median(one.get(key, 0.0) for one in found[name])
    row["p99_ratio"] = row["sojourn_p99_us"] / row["mosquitto_p99_us"]
    return row


def _row(name: str, figures: Row) -> Row:
    return {"case": name} | figures
