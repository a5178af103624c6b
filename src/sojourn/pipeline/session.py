"""The one place that makes a Spark session.

`spark_session()` is local by default: all cores, a heap sized to the machine, on loopback. With `master` it
runs on any cluster, whose machines need Python with our dependencies and Java: the package itself is sent to
them as a zip. With SPARK_REMOTE set and no master named it connects by Spark Connect instead.

Rules: every setting that the pipeline relies on is here; a session is quiet (what the Java process says goes
to a temporary file, which is shown only when Spark does not start); an existing session is handed out again
when it has the same master, and replaced otherwise. Not here: reading, writing, stopping.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.utils import is_remote

import sojourn
from sojourn.interest.render import SPARK_SETTINGS
from sojourn.pipeline.java import SparkStartError, find_java

HEAP_GIB_MIN, HEAP_GIB_MAX = 1.0, 8.0
HEAP_SHARE = 0.25
"""Of the machine's memory; the Python workers, who hold the filter index, need their part too."""

SQL_SETTINGS = {
    **SPARK_SETTINGS,
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.session.timeZone": "UTC",
}
"""What every session has, also one that lives elsewhere and is reached by Spark Connect."""

_KEEP_BYTES = str(256 << 20)
"""Memory that a Python worker keeps when it is free, for its next array."""

TASK_FAILURES_MAX = 4
"""Failures of one task before its job fails; Spark's own default on a cluster."""

HOST_TASKS_MAX = 1_000
"""Rows of a range whose partitions tell, by Spark Connect, how many tasks a cluster runs side by side."""

_CONTEXT_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""These write to standard error what an exception says anyway."""


def spark_session(
    master: str | None = None,
    *,
    memory_gib: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session: on this machine, or on `master`, or where SPARK_REMOTE says.

    `memory_gib` is the heap of the driver, which in a local session is all of Spark's; None means a quarter
    of the machine's memory, between 1 and 8 GiB; it counts only before this process has started Spark.
    `settings` come last and win.
    """
    if master is None and os.environ.get("SPARK_REMOTE"):
        return _remote_session(settings or {})
    wanted = _with_retries(master or "local[*]")
    active = SparkSession.getActiveSession()
    if active is not None:
        if active.sparkContext.master == wanted:
            _apply(active, settings or {})
            return active
        active.stop()
    _prepare_environment(wanted)
    builder = SparkSession.builder.master(wanted).appName("sojourn")
    for name, value in {**_static_settings(wanted, memory_gib), **SQL_SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    with _java_output_kept() as log:
        try:
            spark = builder.getOrCreate()
        except (PySparkException, RuntimeError, OSError) as error:
            said = log.read_text(errors="replace").strip().splitlines()[-1:] or [str(error)]
            raise SparkStartError(
                f"Spark did not start on {wanted} ({said[0]}): check --master and Java."
            ) from error
    spark.sparkContext.setLogLevel("ERROR")
    for name in _CONTEXT_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not is_local(wanted):
        spark.sparkContext.addPyFile(str(package_zip()))
    return spark


class Carried(NamedTuple):
    """What stands in for a broadcast by Spark Connect: it travels with the function that uses it."""

    value: Any


def shared(spark: SparkSession, value: Any) -> Any:
    """Give tasks something to read from, as `.value`: once a machine, or with the task by Spark Connect."""
    return Carried(value) if is_remote() else spark.sparkContext.broadcast(value)


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks can run side by side, about."""
    if not is_remote():
        return int(spark.sparkContext.defaultParallelism)
    many = spark.range(HOST_TASKS_MAX).select(sf.spark_partition_id()).distinct().count()
    return max(1, int(many))


def is_local(master: str) -> bool:
    """Whether a master is this very process."""
    return master == "local" or master.startswith("local[")


def package_zip() -> Path:
    """Write the sojourn package as a zip for executors, once a process, and return where it is."""
    folder = Path(tempfile.mkdtemp(prefix="sojourn-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = Path(sojourn.__file__).parent
    target = folder / "sojourn.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(root.parent))
    return target


def machine_memory_gib() -> float:
    """Return the memory this process may use: the machine's, or its control group's limit if lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else ""
    return float(min(total, int(text)) if text.isdigit() else total) / 2**30


# -------------------------------------------------------------------------- settings

CODE_CACHE_MIB = 240
"""What Java reserves for compiled code when both its compilers are at work."""


def _static_settings(master: str, memory_gib: float | None) -> dict[str, str]:
    """Settings that a session is born with and cannot change."""
    heap = memory_gib or min(HEAP_GIB_MAX, max(HEAP_GIB_MIN, HEAP_SHARE * machine_memory_gib()))
    chosen = {
        "spark.driver.memory": f"{round(heap * 1024)}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "sojourn-warehouse"),
        # The work is done in Arrow and NumPy; what Java does is brief, and the second compiler costs it more
        # than it gives: a small audit takes half the time without. With one compiler Java reserves 48 MiB
        # for what it compiled, and a session that goes on for long dies when that is full.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC "
        f"-XX:ReservedCodeCacheSize={CODE_CACHE_MIB}m",
        # Python workers make and drop large arrays all the time; memory given back and asked for anew each
        # time costs an audit several hundred thousand page faults a worker.
        "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": _KEEP_BYTES,
        "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": _KEEP_BYTES,
        # A local Spark makes a partition a core; small shuffles are joined by adaptive execution anyway.
        "spark.sql.shuffle.partitions": str(_cores(master) * 4) if is_local(master) else "200",
    }
    if _is_loopback(master):
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return chosen


def _with_retries(master: str) -> str:
    """Let a local Spark try a failed task again, as a cluster does; by itself it gives up at once.

    A run that takes its Python process down with it is then told from the others (see `sweep`).
    """
    plain = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{plain[1] or 1},{TASK_FAILURES_MAX}]" if plain else master


def _cores(master: str) -> int:
    named = re.match(r"local\[(\d+)", master)
    return int(named[1]) if named else (1 if master == "local" else os.cpu_count() or 1)


def _is_loopback(master: str) -> bool:
    return is_local(master) or urlsplit(master).hostname in {"127.0.0.1", "localhost", "::1"}


def _prepare_environment(master: str) -> None:
    """Tell the Java process and the Python workers where they are, by the only way they read it."""
    os.environ["JAVA_HOME"] = str(find_java())
    if _is_loopback(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Workers on this machine run the interpreter that has our dependencies; elsewhere it may not be.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _apply(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)


def _remote_session(settings: Mapping[str, str]) -> SparkSession:
    try:
        spark = SparkSession.builder.appName("sojourn").getOrCreate()
    except (PySparkException, ImportError) as error:
        raise SparkStartError(
            f"SPARK_REMOTE is set but Spark Connect is not usable ({error}): pip install 'pyspark[connect]', "
            "or unset it to run on this machine."
        ) from error
    _apply(spark, {**SQL_SETTINGS, **settings})
    spark.addArtifact(str(package_zip()), pyfile=True)
    return spark


@contextmanager
def _java_output_kept() -> Iterator[Path]:
    """Let a Java process started meanwhile write its standard error to a file, and name the file.

    It prints warnings that no logging setting reaches, and keeps what it was started with for life.
    """
    sys.stderr.flush()
    handle, name = tempfile.mkstemp(prefix="sojourn-spark-", suffix=".log")
    atexit.register(Path(name).unlink, missing_ok=True)
    kept = os.dup(2)
    os.dup2(handle, 2)
    try:
        yield Path(name)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(handle)
