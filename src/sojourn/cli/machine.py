"""What benchmarks were measured on: the machine, its cores, and the versions that matter."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from sojourn import __version__

CPU_INFO = Path("/proc/cpuinfo")
PLACES = ":/usr/sbin:/usr/local/sbin"
"""Where Mosquitto may be besides; Debian puts it where only root looks."""


def machine() -> dict[str, str | int | float | None]:
    """Tell what a measurement that begins now is made on; what cannot be found out is None."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sojourn": __version__,
        "mosquitto": _mosquitto(),
        "load": round(os.getloadavg()[0], 1),
    }


def sentence(found: dict[str, str | int | float | None]) -> str:
    """Put it in one line; the load is that of the minute before, by whoever else uses the machine."""
    return (
        f"On {found['cores']} cores of {found['processor']}, {found['system']}; Python {found['python']}, "
        f"Sojourn {found['sojourn']}, Mosquitto {found['mosquitto'] or 'not installed'}; "
        f"load {found['load']} before."
    )


def _processor() -> str:
    with suppress(OSError):
        named = re.search(r"^model name\s*:\s*(.+)$", CPU_INFO.read_text(), re.MULTILINE)
        if named is not None:
            return named[1]
    return platform.processor() or platform.machine()


def _mosquitto() -> str | None:
    program = shutil.which("mosquitto", path=os.environ.get("PATH", "") + PLACES)
    if program is None:
        return None
    command = [program, "-h"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - our peer
    found = re.search(r"version (\S+)", said)
    return found[1] if found is not None else None
