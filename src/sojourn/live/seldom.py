"""Log lines that can repeat: the first is written at once, its like only once in a while.

    seldom = Seldom(logging.getLogger("sojourn.peers"))
    seldom.warning((peer, why), "%s ends a connection to %s: %s", broker, peer, why)

What is the like of what is said by the key. The next line that is written tells how many were left out of its
key (`left_out`) and of keys that are forgotten or never got a line (`others_left_out`).

A key should hold nothing that a stranger chooses. Whoever can invent keys all the same writes no more than
`lines_max` lines in a quiet time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable

QUIET_S = 10.0
"""Lines of the same key are at least so far apart."""
LINES_MAX = 200
"""Lines of all keys together in a quiet time."""
KEYS_MAX = 256
"""Keys remembered; the oldest are forgotten first."""


class Seldom:
    """One logger's lines that can repeat."""

    def __init__(
        self, logger: logging.Logger, now: Callable[[], float] = time.monotonic, lines_max: int = LINES_MAX
    ) -> None:
        self._log, self._now, self._lines_max = logger, now, lines_max
        self._since_s = now()
        """When the present quiet time began."""
        self._written = 0
        """Lines in the present quiet time."""
        self._others_left_out = 0
        self._said: dict[Hashable, tuple[float, int]] = {}
        """By key: when a line was last written, and how many were left out since."""

    def warning(self, key: Hashable, text: str, *args: object, **fields: object) -> None:
        """Write a warning, unless its like was written a moment ago."""
        self._say(logging.WARNING, key, text, args, fields)

    def info(self, key: Hashable, text: str, *args: object, **fields: object) -> None:
        """Write what happened, unless its like was written a moment ago."""
        self._say(logging.INFO, key, text, args, fields)

    def error(
        self, key: Hashable, text: str, *args: object, error: BaseException | None = None, **fields: object
    ) -> None:
        """Write what must not happen, with its traceback, unless its like was written a moment ago."""
        self._say(logging.ERROR, key, text, args, fields, error)

    def _say(
        self,
        level: int,
        key: Hashable,
        text: str,
        args: tuple[object, ...],
        fields: dict[str, object],
        error: BaseException | None = None,
    ) -> None:
        now = self._now()
        if now - self._since_s >= QUIET_S:
            self._since_s, self._written = now, 0
        last_s, left_out = self._said.get(key, (None, 0))
        if last_s is not None and now - last_s < QUIET_S:
            self._said[key] = (last_s, left_out + 1)
            return
        if self._written >= self._lines_max:
            self._others_left_out += 1
            return
        self._said.pop(key, None)
        while len(self._said) >= KEYS_MAX:
            _, forgotten = self._said.pop(next(iter(self._said)))
            self._others_left_out += forgotten
        self._said[key] = (now, 0)
        self._written += 1
        if left_out:
            fields["left_out"] = left_out
        if self._others_left_out:
            fields["others_left_out"] = self._others_left_out
            self._others_left_out = 0
        self._log.log(level, text, *args, extra=fields, exc_info=error)
