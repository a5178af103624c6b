"""Where traces are: whether a folder may be one, asked before Spark is loaded for it."""

from pathlib import Path

from sojourn.errors import SojournError


class NoTraceError(SojournError):
    """There is no trace where one was looked for."""


def no_trace(folder: Path) -> NoTraceError:
    """Say that a folder is no trace, and what one looks like."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        return NoTraceError(f"{folder} {what}; name the directory a run was written to.")
    return NoTraceError(
        f"{folder} is not a trace: it has no folder such as {folder / 'publications'}; name the directory a "
        "run was written to."
    )


def require_trace(folder: Path, partition: str = "run_id") -> None:
    """Refuse a folder that is no trace: one without a table that is parted by runs."""
    if next(folder.glob(f"*/{partition}=*"), None) is None:
        raise no_trace(folder)
