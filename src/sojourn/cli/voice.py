"""What `sojourn serve` says to a person on standard error: brokers go on where nobody can write it down."""

from __future__ import annotations

import sys

from rich.console import Console


class Voice:
    """Says sentences; a full disk or a reader that has gone ends no broker."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._unsaid = ""
        """Why something could not be said; told once, when there is somebody to hear it."""

    def __call__(self, text: str) -> None:
        """Say a sentence."""
        if self._unsaid:
            text, self._unsaid = f"{text} (what was said before could not be written: {self._unsaid})", ""
        try:
            if self._console.is_terminal:  # there may be a table below
                self._console.print(f"sojourn: {text}", soft_wrap=True, markup=False)
            else:
                print(f"sojourn: {text}", file=sys.stderr, flush=True)  # rich ends with its reader
        except OSError as error:
            self._unsaid = error.strerror or str(error)
