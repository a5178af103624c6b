"""What executors on other machines lack, found out before a job is blamed on the trace.

`probe` has a few tasks look around: which Python they are, which of our dependencies they can import, whether
they see the trace. What is missing is one sentence that names the machine and the way out. The tasks' code
uses nothing but Python's own library, since nothing else may be there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from sojourn.errors import SojournError
from sojourn.pipeline.session import is_local
from sojourn.trace.places import Place, RemotePath

NEEDED = ("msgspec", "numba", "numpy", "pandas", "pyarrow", "sqlglot")
"""What tasks of an audit import."""
NEEDED_BY_STUDIES = (*NEEDED, "highspy")
"""What runs of studies import."""
LOOKS_MAX = 16
"""Tasks that look around."""


class ExecutorError(SojournError):
    """Executors cannot do what they are asked for."""


def probe(spark: SparkSession, trace: Place | None = None, needed: Iterable[str] = NEEDED) -> None:
    """Refuse to start a job whose tasks lack something; nothing is asked where Spark is this very process."""
    if is_remote() or is_local(spark.sparkContext.master or ""):
        return
    context = spark.sparkContext
    looks = min(LOOKS_MAX, max(2, 2 * context.defaultParallelism))
    seen = _looker(tuple(needed), None if trace is None else str(trace), isinstance(trace, RemotePath))
    try:
        found = context.parallelize(range(looks), looks).map(seen).collect()
    except (PySparkException, Py4JJavaError) as error:
        raise ExecutorError(_no_python(str(error))) from None
    for one in found:
        sentence = fault(one, None if trace is None else str(trace))
        if sentence:
            raise ExecutorError(sentence)


def fault(seen: Mapping[str, Any], trace: str | None) -> str:
    """Say what is missing on a machine; nothing if all is there."""
    where, mine = f"The executors on {seen['host']}", ".".join(map(str, sys.version_info[:2]))
    if seen["missing"]:
        extra = "spark" if set(seen["missing"]) <= set(NEEDED) else "studies"
        return (
            f"{where} lack {', '.join(seen['missing'])} (for {seen['program']}, Python {seen['python']}): "
            f"install `sojourn[{extra}]` there, or send what is needed along with --ship."
        )
    if seen["python"] != mine:
        return f"{where} run Python {seen['python']} and this is {mine}: set PYSPARK_PYTHON to the same one."
    if trace is not None and seen["trace"]:
        return (
            f"{where} cannot read {trace} ({seen['trace']}): put it where all machines see it under one "
            "name, or name an address such as s3://bucket/traces."
        )
    return ""


def _looker(needed: tuple[str, ...], trace: str | None, is_address: bool) -> Callable[[int], dict[str, Any]]:  # noqa: FBT001 - it travels
    """Return what a task runs: a function within a function travels whole, without this module."""

    def look(_number: int) -> dict[str, Any]:
        import importlib  # noqa: PLC0415 - elsewhere
        import os  # noqa: PLC0415 - at the executor
        import platform  # noqa: PLC0415 - at the executor
        import sys as its  # noqa: PLC0415 - at the executor

        missing, said = [], ""
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError:
                missing.append(name)
        if trace is not None and not missing:
            if is_address:
                from pyarrow import fs  # noqa: PLC0415 - at the executor

                try:
                    files, at = fs.FileSystem.from_uri(trace)
                    is_there = files.get_file_info(at).type != fs.FileType.NotFound
                    said = "" if is_there else "there is nothing"
                except Exception as error:  # noqa: BLE001 - whatever it is, it is to be told
                    said = (str(error).splitlines() or [type(error).__name__])[0][:200]
            elif not os.path.isdir(trace):  # noqa: PTH112 - as executors have it
                said = "there is no such folder"
        return {
            "host": platform.node(),
            "python": ".".join(map(str, its.version_info[:2])),
            "program": its.executable,
            "missing": missing,
            "trace": said,
        }

    return look


def _no_python(said: str) -> str:
    """The sentence for executors that cannot even run a task."""
    version = next((line for line in said.splitlines() if "PYTHON_VERSION_MISMATCH" in line), "")
    if version:
        mine = ".".join(map(str, sys.version_info[:2]))
        return f"The executors run another Python than {mine}: set PYSPARK_PYTHON to the same everywhere."
    lines = [line.strip() for line in said.splitlines() if "Exception" in line or "Error" in line]
    return (
        f"The executors run no task ({(lines or ['no word of why'])[0][:200]}): check PYSPARK_PYTHON and the "
        "cluster's own log."
    )
