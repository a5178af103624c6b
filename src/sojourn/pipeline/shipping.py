"""Our code and what it needs, packed for executors that have nothing of it.

The package goes as a zip that Python imports from (`session.package_zip`); its dependencies hold compiled
libraries, which Python can only load from files, so they go as an archive that Spark unpacks beside each
executor. The executors need the same Python and the same kind of machine as this one; `probing` says so.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from sojourn.errors import SojournError

NEEDED = ("highspy", "mqtt5", "msgspec", "numba", "numpy", "pandas", "pyarrow", "sqlglot", "scipy")
"""What tasks of audits, plans and studies import, and all that these need."""
FOLDER = "sojourn-dependencies"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class ShippingError(SojournError):
    """What executors need cannot be packed."""


def shipped(wanted: Iterable[str] = NEEDED) -> dict[str, str]:
    """Pack what executors need; return the settings by which a session sends it."""
    folder = Path(tempfile.mkdtemp(prefix="sojourn-shipped-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "dependencies.tar.gz"
    pack(archive, wanted)
    return {"spark.archives": f"{archive}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def pack(archive: Path, wanted: Iterable[str]) -> None:
    """Write the installed files of some distributions, and of all that they need, into an archive."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for name in closure(wanted):
            files = metadata.distribution(name).files
            if files is None:
                raise ShippingError(f"{name} does not say which files it has: install it anew with pip.")
            for file in files:
                kept = (
                    ".." not in file.parts and "__pycache__" not in file.parts and "tests" not in file.parts
                )
                where = Path(str(file.locate()))
                if kept and where.is_file():
                    tar.add(where, str(file), recursive=False)


def closure(wanted: Iterable[str]) -> list[str]:
    """Return some distributions and all that they need, as far as it is installed."""
    waiting, found = list(wanted), set()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found or name == "pyspark":
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # of another system or Python, or an extra that nobody asked for
        found.add(name)
        waiting += [match[0] for need in needs if "extra ==" not in need and (match := _NAME.match(need))]
    return sorted(found)
