"""Where traces are: whether a folder may be one, asked before Spark is loaded for it.

What is at an address (`trace/places.py`) is looked at later: that takes pyarrow.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sojourn.errors import SojournError

if TYPE_CHECKING:
    from sojourn.trace.places import Place


class NoTraceError(SojournError):
    """There is no trace where one was looked for."""


def no_trace(folder: Place) -> NoTraceError:
    """Say that a folder is no trace, and what one looks like."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        return NoTraceError(f"{folder} {what}; name the directory a run was written to.")
    return NoTraceError(
        f"{folder} is not a trace: it has no folder such as {folder / 'publications'}; name the directory a "
        "run was written to."
    )


def require_trace(named: str | Path, partition: str = "run_id") -> None:
    """Refuse a folder that is no trace: one without a table that is parted by runs."""
    if is_address(named):
        return
    folder = wanted_folder(named, "this")
    if next(folder.glob(f"*/{partition}=*"), None) is None:
        raise no_trace(folder)


def is_address(named: str | Path) -> bool:
    """Whether a trace is said to be elsewhere than in a folder of this machine."""
    return isinstance(named, str) and "://" in named and not named.startswith("file://")


def wanted_folder(named: str | Path, what: str) -> Path:
    """Return a folder of this machine; refuse an address, with what cannot use one."""
    if is_address(named):
        where = str(named).partition("?")[0]
        raise NoTraceError(f"{what} needs a folder of this machine, not {where}: copy it, or mount it.")
    is_uri = isinstance(named, str) and named.startswith("file://")
    return Path(unquote(urlsplit(str(named)).path)) if is_uri else Path(named)
