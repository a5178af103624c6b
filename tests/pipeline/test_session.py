import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sojourn.interest.render import SPARK_SETTINGS
from sojourn.pipeline.java import SparkStartError, find_java
from sojourn.pipeline.session import package_zip, spark_session


def _fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    java.chmod(0o755)
    return home


def test_the_settings_the_language_needs_are_on(spark: SparkSession) -> None:
    """Every session reads filters as the rest of Sojourn does, with Arrow and adaptive execution."""
    for name, value in {**SPARK_SETTINGS, "spark.sql.adaptive.enabled": "true"}.items():
        assert spark.conf.get(name) == value
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_there_is_room_for_the_code_of_a_long_session(spark: SparkSession) -> None:
    """A session that follows a live system compiles for days; Java dies when it has nowhere to put that."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    code = [pool.getUsage().getMax() for pool in pools if "Code" in pool.getName()]
    assert sum(code) >= 200 * 2**20


def test_the_same_master_gives_the_same_session(spark: SparkSession) -> None:
    """Asking again hands out the session there is, with the further settings applied."""
    again = spark_session("local[2]", settings={"spark.sql.shuffle.partitions": "3"})
    assert again is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    spark.conf.set("spark.sql.shuffle.partitions", "4")


def test_java_home_comes_first_then_the_path_then_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java is looked for in three places in order, and one that is too old is passed over."""
    old, new = _fake_java(tmp_path / "old", "11.0.2"), _fake_java(tmp_path / "new", "21.0.1")
    noted = _fake_java(tmp_path / "noted", "17.0.9")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / ".java-home").write_text(f"{noted}\n")
    monkeypatch.setenv("JAVA_HOME", str(new))
    monkeypatch.setenv("PATH", str(old / "bin") + ":/bin")
    assert find_java() == new
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert find_java() == noted
    (tmp_path / ".java-home").unlink()
    with pytest.raises(SparkStartError, match=r"needs Java 17 or later: install"):
        find_java()


def test_the_package_travels_as_a_zip_that_imports() -> None:
    """An interpreter that has the zip alone on its path imports the package from it."""
    zipped = package_zip()
    assert "sojourn/errors.py" in zipfile.ZipFile(zipped).namelist()
    code = "import sojourn.errors; print(sojourn.errors.__file__)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": str(zipped)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith(str(zipped))


def test_a_session_starts_without_a_word(tmp_path: Path) -> None:
    """Starting, using and ending a session writes nothing to either output."""
    code = (
        "from sojourn.pipeline.session import spark_session\n"
        "spark = spark_session('local[1]', memory_gib=1.0)\n"
        "assert spark.range(3).count() == 3\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (ran.stdout, ran.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []
