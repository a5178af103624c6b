"""A snapshot is written by a child process while its broker goes on serving.

To write down 100,000 sessions takes seconds, in which nobody would be heard. A process that forks has a copy
of all its memory at that moment, which costs it milliseconds: the child writes down the state that there was
then, and the broker notes what comes next in its journal as ever (`Journal.mark`), copies that behind it
(`Journal.catch_up`) and goes on from there (`Journal.adopt`). While it writes, the child may take as much
memory again as the broker has.

The child touches nothing but a new file of its own, so it does no harm whenever it or its broker ends; it
ends soon after its broker, whose next life removes what it left. It gives up its copies of all open files at
once: connections that the broker closes are closed, and a store or an address that the broker lets go is
free. Whether the file is whole is for the exit code to say.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from sojourn.live.store.folder import write_file

NICER = 5
"""The child lets its broker go first, by so much."""
FAILED = 255
"""The exit code of a child that failed for another reason than the disk; else it is the error's number."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Aside:
    """A child that writes one file."""

    def __init__(self, path: Path, make: Callable[[], bytes]) -> None:
        """Begin to write what `make` returns, called in the child; an `OSError` says that there is none."""
        self.path = path
        broker = os.getpid()
        self._child: int | None = os.fork()
        if not self._child:
            _write_and_end(path, make, broker)

    def outcome(self) -> str | None:
        """Why there is no file; nothing at all if there is one, and None while the child is at it."""
        if self._child is None:
            return "it was given up"
        try:
            child, status = os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:  # somebody else asked first
            child, status = self._child, FAILED << 8
        if not child:
            return None
        self._child = None
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        self._clear()
        if code < 0:
            return f"the process that wrote it was ended by signal {-code}"
        return "the process that wrote it failed" if code == FAILED else os.strerror(code)

    def give_up(self) -> None:
        """End the child, and leave nothing behind."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)
            self._child = None
        self._clear()

    def _clear(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def _write_and_end(path: Path, make: Callable[[], bytes], broker: int) -> NoReturn:
    """Be the child: whatever happens here ends here, without a word to the broker's clients or its log."""
    code = FAILED
    try:
        gc.disable()  # it would only look at what is the broker's, and so copy it
        signal.set_wakeup_fd(-1)
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        _let_go_of_files()
        os.nice(NICER)
        write_file(path, make(), goes_on=lambda: os.getppid() == broker)
        code = 0
    except OSError as error:
        code = error.errno if error.errno and error.errno < FAILED else FAILED
    finally:
        os._exit(code)


def _let_go_of_files() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(3, most if most != resource.RLIM_INFINITY else 1 << 20)
