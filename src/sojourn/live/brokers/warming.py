"""Loading the kernels of the filter index, when a broker has so many filters that it is worth it.

Few brokers ever need them, and they take half a second and more memory than the rest of a broker; so they are
loaded when there are many filters: before a broker listens if its store has many, else in a thread while it
goes on serving, trying filters one by one. They are compiled once a machine and then read from disk; of
several processes that find nothing there one compiles, and the others wait for it. Compiling takes a quarter
of a minute of Python, which a thread would share with the loop; so another process does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.broker.live_broker import LiveBroker
from sojourn.interest import Event, Filter
from sojourn.interest.matcher import Matcher, new_index

if TYPE_CHECKING:
    from sojourn.mqtt.filter_book import FilterBook

LOCK, KEPT = "kernels.lock", "kernels.kept"
COMPILED_S = 600.0
"""For how long another process may compile; it takes ten seconds where nothing else runs."""

_log = logging.getLogger("sojourn.index")


class Warmer:
    """Sees to the index of one broker."""

    def __init__(self, broker: LiveBroker) -> None:
        self._has_begun = False
        self._users: tuple[Matcher | FilterBook, ...] = (broker.core.state.filters,)
        """Whoever finds filters for the broker."""
        if broker.network is not None:
            matcher = broker.network.links.interests.matcher
            matcher.waits_for_index = True
            self._users += (matcher,)

    @property
    def is_due(self) -> bool:
        """Whether the broker needs an index and nobody is about to give it one."""
        return not self._has_begun and any(user.wants_index for user in self._users)

    async def warm(self) -> None:
        """Load the kernels beside the loop, and have them used; say so if there are none."""
        self._has_begun = True
        await compile_aside()
        if not await asyncio.to_thread(load_index_kernels):
            _log.warning(
                "This broker tries its filters one by one, which takes long when there are many: "
                "pip install 'sojourn[index]'."
            )
            return
        if not keeps_kernels():
            _log.warning(
                "The filter index was compiled and cannot be kept, so every start will compile it again: "
                "set NUMBA_CACHE_DIR to a folder that this broker may write to."
            )
        for user in self._users:
            user.use_index()


async def compile_aside() -> None:
    """Have another process compile the kernels, if none has; where that fails they are compiled here."""
    if await asyncio.to_thread(_are_compiled):
        return
    _log.info("The filter index is compiled, once for this machine.")
    work = f"import {__name__} as it; it.load_index_kernels()"
    nothing = asyncio.subprocess.DEVNULL
    with contextlib.suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", work, stdin=nothing, stdout=nothing, stderr=nothing
        )
        try:
            await asyncio.wait_for(process.wait(), COMPILED_S)
        finally:  # a broker that stops waits for nobody
            if process.returncode is None:
                process.kill()


def load_index_kernels() -> bool:
    """Do with a small index what a broker does with its own; False where that is not installed."""
    index = new_index()
    if index is None:
        return False
    filters = [
        Filter.parse(text)
        for text in (
            "n > 1",
            "n BETWEEN 1 AND 2 AND s = 'x'",
            "s LIKE 'x%'",
            "topic LIKE 'a/+'",
            "m IS NULL",
            "b",
        )
    ]
    with _alone_at_first():
        index.add_many(range(4), filters[:4])
        for key, wanted in enumerate(filters[4:], 4):
            index.add(key, wanted)
        index.match(Event({"n": 2, "s": "x"}, topic="a/b"))
        index.remove(0)
        _note_compiled()
    return True


def _are_compiled() -> bool:
    """Whether a process has kept the kernels as they are now, or there are none to be had."""
    if new_index() is None:
        return True
    from sojourn.interest.index.compiling import cache_folder, freshness  # noqa: PLC0415 - loads Numba

    folder = cache_folder()
    if folder is None:
        return False
    try:
        return (Path(folder) / KEPT).read_text() == freshness()
    except OSError:
        return False


def _note_compiled() -> None:
    """Let others know that they find the kernels."""
    from sojourn.interest.index.compiling import cache_folder, freshness  # noqa: PLC0415 - loads Numba

    folder = cache_folder()
    if folder is not None and keeps_kernels() and not _are_compiled():
        with contextlib.suppress(OSError):
            (Path(folder) / KEPT).write_text(freshness())


def keeps_kernels() -> bool:
    """Whether the next start finds what was compiled."""
    from sojourn.interest.index.compiling import cache_folder  # noqa: PLC0415 - loads Numba

    folder = cache_folder()
    return folder is not None and any(Path(folder).glob("*.nbc"))


@contextlib.contextmanager
def _alone_at_first() -> Iterator[None]:
    """Be the only process that fills the cache of kernels; who comes meanwhile waits, and then reads it."""
    from sojourn.interest.index.compiling import cache_folder  # noqa: PLC0415 - loads Numba

    folder = cache_folder()
    try:
        lock = None if folder is None else (Path(folder) / LOCK).open("w")
    except OSError:
        lock = None
    if lock is None:
        yield  # nothing can be kept there, so there is nothing to wait for
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield
