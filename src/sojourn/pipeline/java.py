"""A Java that runs Spark: where it is, and which one it is. Needs no Spark itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sojourn.errors import SojournError

JAVA_MAJOR_MIN = 17

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


class SparkStartError(SojournError):
    """Spark cannot start here."""


def find_java() -> Path:
    """Return the home of a Java that runs Spark: JAVA_HOME's, the path's, or the one found at set-up."""
    candidates = []
    if os.environ.get("JAVA_HOME"):
        candidates.append(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path))
    noted = Path(sys.prefix) / ".java-home"
    if noted.is_file():
        candidates.append(Path(noted.read_text().strip()) / "bin" / "java")
    for java in candidates:
        if (java_major(java) or 0) >= JAVA_MAJOR_MIN:
            return java.resolve().parent.parent
    raise SparkStartError(
        f"Spark needs Java {JAVA_MAJOR_MIN} or later: install a runtime (on Debian: apt-get install "
        "openjdk-17-jre-headless) or set JAVA_HOME to one."
    )


def java_major(java: Path) -> int | None:
    """Return the major version of a Java program; None if it is none."""
    try:
        asked = subprocess.run(  # noqa: S603  a Java named by the user or the set-up
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(asked.stderr + asked.stdout)
    if not found:
        return None
    return int(found[2] or 0) if found[1] == "1" else int(found[1])
