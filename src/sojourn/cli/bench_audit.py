"""`sojourn bench audit`: how long auditing up to 50 million deliveries takes, beside DuckDB and Spark SQL.

A synthetic trace with known losses, duplicates and swaps (`bench_audit_trace.py`) is audited with a heap of
1.5 GiB on two cores, from files to the summary of the run. What is found must be exactly what was planted,
for us and for both peers (`bench_audit_peers.py`). Starting Spark and a first small audit, which compiles,
are not counted. We and DuckDB take turns, twice, and the better time of each counts: on a virtual machine
whoever comes first also pays for the memory that the machine is handed.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sojourn.cli.bench_audit_peers import CORES, COUNTED, HEAP_GIB, by_duckdb
from sojourn.cli.bench_audit_trace import INTERESTS, Planted, write_trace
from sojourn.errors import SojournError
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.session import spark_session

SIZES = (1_000_000, 10_000_000, 50_000_000)
SEED = 1
PLAIN_SPARK_MAX = 10_000_000
PLAIN_LIMIT = 40
"""How many times as long as ours the plain join may take before it is stopped."""
PLAIN_START_S = 60
TURNS = 2
_WARM_UP = 100_000
_SAMPLE_S = 0.2

Progress = Callable[[str], None]


class BenchAuditError(SojournError):
    """A peer failed."""


def run(sizes: Sequence[int] = SIZES, progress: Progress = lambda _what: None) -> list[dict[str, Any]]:
    """Measure an audit of each size."""
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as folder:
        spark = spark_session(f"local[{CORES}]", memory_gib=HEAP_GIB)
        write_trace(Path(folder, "warm"), _WARM_UP, SEED, progress)
        progress("warming up")
        audit_trace(spark, Path(folder, "warm"))
        rows = []
        for size in sizes:
            root = Path(folder, str(size))
            planted = write_trace(root, size, SEED, progress)
            rows.append(_measure(root, size, planted, progress))
            shutil.rmtree(root)  # the next is larger
        return rows


def _measure(root: Path, size: int, planted: Planted, progress: Progress) -> dict[str, Any]:
    spark = spark_session(f"local[{CORES}]")
    audit_s, duckdb_s = [], []
    with _peak_memory() as peak:
        for _ in range(TURNS):
            progress(f"auditing {size:,} deliveries")
            started = time.perf_counter()
            report = audit_trace(
                spark, root, progress=lambda what, _: progress(f"{size:,} deliveries: {what}")
            )
            audit_s.append(time.perf_counter() - started)
            (ours,) = report.runs
            _check("the audit", ours, planted)
            progress(f"DuckDB on {size:,} deliveries")
            started = time.perf_counter()
            theirs = by_duckdb(root, CORES, root.parent / "spill")
            duckdb_s.append(time.perf_counter() - started)
            _check("DuckDB", theirs, planted)
    assert abs(ours["latency_p50_s"] / theirs["latency_p50_s"] - 1) < 0.02, "percentiles agree"
    row = {
        "deliveries": planted.deliveries,
        "publications": planted.published,
        "interests": INTERESTS,
        "expected": planted.expected,
        "lost": ours["lost"],
        "duplicated": ours["duplicated"],
        "out_of_order": ours["out_of_order"],
        "unauthorised": ours["unauthorised"],
        "trace_bytes": planted.bytes,
        "audit_s": min(audit_s),
        "deliveries_per_s": planted.deliveries / min(audit_s),
        "heap_gib": HEAP_GIB,
        "workers_peak_mib": peak[0] / 2**20,
        "duckdb_s": min(duckdb_s),
        "times_duckdb": min(audit_s) / min(duckdb_s),
        "all_audit_s": audit_s,
        "all_duckdb_s": duckdb_s,
        "plain_spark_s": None,
        "plain_spark_over_audit": None,
        "plain_spark_ended": None,
    }
    if size <= PLAIN_SPARK_MAX:
        progress(f"plain Spark on {size:,} deliveries")
        limit_s = PLAIN_LIMIT * min(audit_s)
        plain = _plain_spark(root, limit_s)
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


def _plain_spark(root: Path, limit_s: float) -> dict[str, Any] | None:
    """Return what plain Spark found and how long it took, or None when it took longer than the limit."""
    command = [sys.executable, "-m", "sojourn.cli.bench_audit_peers", str(root)]
    # A session of its own, so that the Java process it starts can be ended with it.
    process = subprocess.Popen(  # noqa: S603  our own module
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, complaints = process.communicate(timeout=limit_s + PLAIN_START_S)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        raise BenchAuditError(
            f"Plain Spark failed: {(complaints.strip().splitlines() or ['without a word'])[-1]}"
        )
    result: dict[str, Any] = json.loads(output)
    return result


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """Watch how much memory Python processes below this one hold together while the block runs."""
    peak = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_S):
            peak[0] = max(peak[0], _python_bytes())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _python_bytes() -> int:
    parents: dict[int, int] = {}
    held: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = entry.joinpath("stat").read_text().rpartition(")")
            except OSError:
                continue  # it ended meanwhile
            fields = rest.split()
            parents[int(entry.name)] = int(fields[1])
            if "(python" in name:
                held[int(entry.name)] = int(fields[21]) * page
    return sum(size for process, size in held.items() if _is_below(process, os.getpid(), parents))


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents:
        if process == ancestor:
            return True
        process = parents[process]
    return False
