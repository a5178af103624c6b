"""What executors lack is said in one sentence, and what they need can be sent to them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from sojourn.cli.spark_options import SparkOptionError, settings_of
from sojourn.pipeline.probing import _looker, _no_python, fault
from sojourn.pipeline.shipping import NEEDED, closure, pack
from sojourn.studies.registry import STUDIES

HERE = ".".join(map(str, sys.version_info[:2]))


def seen(**more: Any) -> dict[str, Any]:
    """What a machine with everything says."""
    return {"host": "m1", "python": HERE, "program": "/py", "missing": [], "trace": ""} | more


def test_what_is_missing_is_named_with_the_way_out() -> None:
    """Modules first: where pyarrow is missing, nothing else can be said for sure."""
    assert fault(seen(), "/trace") == ""
    assert "lack numba, pyarrow" in fault(seen(missing=["numba", "pyarrow"], trace="no"), "/trace")
    assert "--ship" in fault(seen(missing=["pyarrow"]), None)
    assert "run Python 2.7" in fault(seen(python="2.7"), None)
    assert "cannot read /trace (there is no such folder)" in fault(
        seen(trace="there is no such folder"), "/trace"
    )
    assert "another Python" in _no_python("…\n[PYTHON_VERSION_MISMATCH] Python in worker …")
    assert "java.io.IOException: no python" in _no_python("x\njava.io.IOException: no python\n at y")


def test_a_task_looks_around(tmp_path: Path) -> None:
    """It tells what it cannot import and whether it sees the trace."""
    assert _looker(("json", "no_such_module"), None, False)(0)["missing"] == ["no_such_module"]
    assert _looker(("json",), str(tmp_path), False)(0)["trace"] == ""
    assert _looker(("json",), str(tmp_path / "none"), False)(0)["trace"] == "there is no such folder"
    assert "Unrecognized" in _looker(("pyarrow",), "zzz://x/y", True)(0)["trace"]


def test_what_runs_of_studies_import_is_shipped() -> None:
    """Whatever a new study brings along; what Spark itself brings, or few have, is left out."""
    program = (
        "import importlib, sys\n"
        f"for study in {sorted(STUDIES)!r}:\n"
        '    importlib.import_module(f\'sojourn.studies.{study.replace("-", "_")}.recording\')\n'
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    of = metadata.packages_distributions()
    imported = {name.lower().replace("_", "-") for top in ran.stdout.split() for name in of.get(top, [])}
    elsewhere = {"sojourn", "pyspark", "py4j", "typing-extensions", "mypy-extensions"}
    optional = {"charset-normalizer", "colorama", "pyyaml", "setuptools"}
    assert imported - elsewhere - optional <= set(closure(NEEDED))


def test_what_is_shipped_can_be_imported_elsewhere(tmp_path: Path) -> None:
    """By an interpreter that has nothing but Python's own library."""
    assert {"pandas", "numpy", "python-dateutil", "six"} <= set(closure(["pandas"]))
    assert "pyspark" not in closure(["pandas", "pyspark"])
    pack(tmp_path / "all.tar.gz", ["msgspec", "numpy"])
    with tarfile.open(tmp_path / "all.tar.gz") as tar:
        tar.extractall(tmp_path / "there", filter="data")
    code = "import msgspec, numpy; print(msgspec.__file__, numpy.ones(3).sum())"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "there")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path / "there"))
    assert done.stdout.endswith("3.0\n")


def test_settings_are_keys_of_sparks() -> None:
    """A slip of the hand is refused before anything starts."""
    assert settings_of(["spark.executor.memory=4g", "spark.x=a=b"]) == {
        "spark.executor.memory": "4g",
        "spark.x": "a=b",
    }
    for wrong in ("spark.executor.memory", "executor.memory=4g", "="):
        with pytest.raises(SparkOptionError, match="--conf is KEY=VALUE"):
            settings_of([wrong])
