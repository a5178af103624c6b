"""A command of a test that ends with the test, also with one that fails."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

ENDS_S = 30.0


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a command with its texts as str; what still runs after the block is told to end, then killed.

    `subprocess.Popen` as a context manager would wait for a command that nobody ends, for ever.
    """
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ENDS_S)
                process.kill()
