"""`sojourn bench audit`: how long auditing up to 50 million deliveries takes, beside DuckDB and Spark SQL.

A synthetic trace with known losses, duplicates and swaps (`bench_audit_trace.py`) is audited with a heap of
1.5 GiB on two cores, from files to the summary of the run. What is found must be exactly what was planted,
for us and for both peers (`bench_audit_peers.py`). Starting Spark and a first small audit, which compiles,
are not counted. Traces may be of other shapes (`--shape`): an outage, a skew, more filters. We and DuckDB
take turns, twice, and the better time of each counts: on a virtual machine whoever comes first also pays for
the memory that the machine is handed. DuckDB has a process of its own each time, since what one had in memory
would else count for the other; that process is asked for its time without its start, and for its most memory.
Of ours, Java is counted apart, and what Python processes share is counted once.

Plain Spark runs in a process of its own with Java's own settings, once. A join on the expression tries every
interest with every event, and keeps all that match; it is stopped when it has taken `PLAIN_LIMIT` times as
long as we did, and is then only known to take longer. Above `PLAIN_SPARK_MAX` it is not tried.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from sojourn.cli.bench_audit_peers import CORES, COUNTED, HEAP_GIB
from sojourn.cli.bench_audit_trace import Planted, Shape, write_trace
from sojourn.errors import SojournError
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.session import spark_session

SIZES = (1_000_000, 10_000_000, 50_000_000)
SEED = 1
PLAIN_SPARK_MAX = 10_000_000
PLAIN_LIMIT = 40
"""How many times as long as ours the plain join may take before it is stopped."""
PLAIN_START_S = 60
DUCKDB_S_MAX = 1_800
TURNS = 2
_WARM_UP = 100_000
_SAMPLE_S = 0.2

Progress = Callable[[str], None]


class BenchAuditError(SojournError):
    """A peer failed."""


def run(
    sizes: Sequence[int] = SIZES,
    progress: Progress = lambda _what: None,
    shapes: Sequence[str] = ("plain",),
) -> list[dict[str, Any]]:
    """Measure an audit of each size and shape."""
    wanted = {name: Shape.named(name) for name in shapes}
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as folder:
        spark = spark_session(f"local[{CORES}]", memory_gib=HEAP_GIB)
        write_trace(Path(folder, "warm"), _WARM_UP, SEED, progress)
        progress("warming up")
        audit_trace(spark, Path(folder, "warm"))
        rows = []
        for (name, shape), size in product(wanted.items(), sizes):
            root = Path(folder, str(size))
            planted = write_trace(root, size, SEED, progress, shape)
            rows.append({"shape": name, **_measure(root, size, planted, shape, progress)})
            shutil.rmtree(root)  # the next is larger
        return rows


class _Peak(NamedTuple):
    """The most memory that processes had together, in bytes."""

    python: int = 0
    java: int = 0


class _Taken(NamedTuple):
    """What something took: time, processor time of all processes, and memory at its peak."""

    wall_s: float
    processor_s: float
    peak: _Peak


def _taken(work: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], _Taken]:
    with _peak_memory() as peaks:
        started, worked = time.perf_counter(), _processor_s()
        found = work()
        took = time.perf_counter() - started, _processor_s() - worked
    return found, _Taken(*took, peaks[-1])


def _by_duckdb(root: Path) -> tuple[dict[str, Any], _Taken]:
    found = _peer("duckdb", root, DUCKDB_S_MAX)
    if found is None:
        raise BenchAuditError(f"DuckDB took longer than {DUCKDB_S_MAX} s.")
    return found, _Taken(found["seconds"], found["processor_s"], _Peak(found["peak_bytes"]))


def _measure(root: Path, size: int, planted: Planted, shape: Shape, progress: Progress) -> dict[str, Any]:
    spark = spark_session(f"local[{CORES}]")

    def audit() -> dict[str, Any]:
        report = audit_trace(spark, root, progress=lambda what, _: progress(f"{size:,} deliveries: {what}"))
        return report.runs[0]

    audits, ducks = [], []
    for _ in range(TURNS):
        progress(f"auditing {size:,} deliveries")
        ours, taken = _taken(audit)
        _check("the audit", ours, planted)
        audits.append(taken)
        progress(f"DuckDB on {size:,} deliveries")
        theirs, taken = _by_duckdb(root)
        _check("DuckDB", theirs, planted)
        ducks.append(taken)
    audit_s, duckdb_s = [one.wall_s for one in audits], [one.wall_s for one in ducks]
    assert abs(ours["latency_p50_s"] / theirs["latency_p50_s"] - 1) < 0.02, "percentiles agree"
    row = {
        "deliveries": planted.deliveries,
        "publications": planted.published,
        "interests": shape.interests,
        "expected": planted.expected,
        "lost": ours["lost"],
        "duplicated": ours["duplicated"],
        "out_of_order": ours["out_of_order"],
        "unauthorised": ours["unauthorised"],
        "trace_bytes": planted.bytes,
        "audit_s": min(audit_s),
        "deliveries_per_s": planted.deliveries / min(audit_s),
        "heap_gib": HEAP_GIB,
        "processor_s": min(one.processor_s for one in audits),
        "python_peak_mib": max(one.peak.python for one in audits) / 2**20,
        "java_peak_mib": max(one.peak.java for one in audits) / 2**20,
        "duckdb_s": min(duckdb_s),
        "duckdb_processor_s": min(one.processor_s for one in ducks),
        "duckdb_peak_mib": max(one.peak.python for one in ducks) / 2**20,
        "times_duckdb": min(audit_s) / min(duckdb_s),
        "all_audit_s": audit_s,
        "all_duckdb_s": duckdb_s,
        "plain_spark_s": None,
        "plain_spark_over_audit": None,
        "plain_spark_ended": None,
    }
    if size <= PLAIN_SPARK_MAX and shape == Shape():
        progress(f"plain Spark on {size:,} deliveries")
        limit_s = PLAIN_LIMIT * min(audit_s)
        plain = _peer("plain", root, limit_s + PLAIN_START_S)
        if plain is not None:
            _check("plain Spark", plain, planted)
        plain_s = limit_s if plain is None else plain["seconds"]
        row |= {
            "plain_spark_s": plain_s,
            "plain_spark_over_audit": plain_s / min(audit_s),
            "plain_spark_ended": plain is not None,
        }
    return row


def _check(who: str, found: dict[str, Any], planted: Planted) -> None:
    wrong = {
        name: (found[name], getattr(planted, name))
        for name in COUNTED
        if found[name] != getattr(planted, name)
    }
    assert not wrong, f"{who} did not find what was planted: {wrong}"


def _peer(which: str, root: Path, limit_s: float) -> dict[str, Any] | None:
    """Return what a peer found and how long it took, or None when it took longer than the limit."""
    command = [sys.executable, "-m", "sojourn.cli.bench_audit_peers", which, str(root)]
    # A session of its own, so that the Java process it starts can be ended with it.
    process = subprocess.Popen(  # noqa: S603  our own module
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, complaints = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        raise BenchAuditError(
            f"{which} failed: {(complaints.strip().splitlines() or ['without a word'])[-1]}"
        )
    result: dict[str, Any] = json.loads(output)
    return result


@contextmanager
def _peak_memory() -> Iterator[list[_Peak]]:
    """Watch how much memory processes below this one hold together while the block runs."""
    peaks = [_Peak()]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_S):
            peaks[0] = _Peak(*map(max, peaks[0], _bytes()))  # each at its own peak

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


class _Process(NamedTuple):
    name: str
    parent: int
    ticks: int
    """Processor time, of children that ended too."""
    number: int


def _bytes() -> _Peak:
    sizes = Counter({"(python": 0, "(java": 0})
    for one in _ours():
        for kind in sizes:
            if kind in one.name:
                sizes[kind] += _share_of(one.number)
    return _Peak(sizes["(python"], sizes["(java"])


def _share_of(process: int) -> int:
    """The memory of a process, of what it shares with others its share."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _processor_s() -> float:
    """Processor time so far of this process and of all below it, Java's and those that ended among them."""
    return sum(one.ticks for one in _ours()) / os.sysconf("SC_CLK_TCK")


def _ours() -> list[_Process]:
    """Return this process and all below it."""
    found: dict[int, _Process] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = entry.joinpath("stat").read_text().rpartition(")")
            except OSError:
                continue  # it ended meanwhile
            fields = rest.split()
            ticks = sum(int(field) for field in fields[11:15])
            found[int(entry.name)] = _Process(name, int(fields[1]), ticks, int(entry.name))
    parents = {process: one.parent for process, one in found.items()}
    return [one for process, one in found.items() if _is_below(process, os.getpid(), parents)]


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents:
        if process == ancestor:
            return True
        process = parents[process]
    return False
